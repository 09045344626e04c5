"""Which GPU an incident is blamed on: a fault inside the window, on a GPU of the run, of a class
that says that the GPU is broken."""

import random
from dataclasses import replace

import pytest

from headway.events import GpuXid
from headway.incidents import incidents
from headway.ledger import Timeline, ledger
from headway.report import report
from timeline import SECOND, at, timeline

GPUS = """
0  gpu 0 GPU-a 0000:1b:00.0
0  gpu 1 GPU-b 0000:43:00.0
0  gpu 2 GPU-c 0000:c9:00.0
0  gpu 3 GPU-d 0000:cb:00.0
"""
RUN = """
400      allocation 4
400      attempt A launcher world=4 rank=0..3 local=0
400-500  steps 1-100 rank=0..3
500.5    fault exception rank=1 exception=RuntimeError message="CUDA error: unspecified"
505      exit rank=0..3 signal=9 by=launcher
"""


def found(text, until=600):
    return incidents(ledger(timeline(text), at(until)))


def broken(text, until=600):
    (incident,) = found(text, until)
    return incident


def blamed(text, until=600):
    one = broken(text, until)
    return one.cause, one.suspect_gpu, one.suspect_rank, one.suspect_node


NOBODY = ("exception", None, 1, "node-a")


def words(incident):
    return [item.words for item in incident.evidence]


def test_an_xid_that_asks_for_a_reset_outranks_the_exception_it_provoked():
    incident = broken(GPUS + RUN + "500.2 xid 95 0000:cb:00")
    assert incident.cause == "gpu_fault"
    assert (incident.suspect_gpu, incident.suspect_rank) == ("GPU-d", 3)
    assert incident.suspect_node == "node-a"
    assert incident.rule == "Xid 95 is of class reset by the policy headway 2026.11"
    assert incident.suspect_rule == "by its rank within the node"


def test_a_report_shows_the_evidence_in_the_order_of_time_and_points_at_what_decides():
    text = GPUS + RUN + "500.2 xid 95 0000:cb:00\n503 xid 95 0000:1b:00"
    (one,) = report(ledger(timeline(text), at(600)))["incidents"]
    times = [item["time"] for item in one["observations"]]
    assert times == sorted(times)
    assert "Xid 95" in one["evidence"][one["first_fault"]]
    assert len(one["evidence"]) == len(times) > 2


@pytest.mark.parametrize("kind", ["reset", "reboot", "replace"])
def test_the_recorded_class_decides_whatever_the_default_policy_says(kind):
    text = GPUS + RUN + f"500.2 xid 13 0000:cb:00 class={kind}"
    assert blamed(text) == ("gpu_fault", "GPU-d", 3, "node-a")
    assert broken(text).rule == f"Xid 13 is of class {kind} by the policy site 1"


@pytest.mark.parametrize("kind", ["application", "watch", "consequence"])
def test_other_classes_are_evidence_and_blame_nobody(kind):
    text = GPUS + RUN + f"500.2 xid 95 0000:cb:00 class={kind}"
    assert blamed(text) == NOBODY
    assert "Xid 95" in " ".join(words(broken(text)))


@pytest.mark.parametrize("code", [13, 31, 43, 45])
def test_codes_of_applications_and_consequences_blame_nobody_by_the_default_policy(code):
    assert blamed(GPUS + RUN + f"500.2 xid {code} 0000:cb:00") == NOBODY


@pytest.mark.parametrize("time", [200.5, 500.5, 560.5])
def test_the_window_reaches_from_five_minutes_before_the_first_fault_to_one_after_the_last(time):
    assert blamed(GPUS + RUN + f"{time} xid 95 0000:cb:00")[0] == "gpu_fault"


@pytest.mark.parametrize("time", [200.4, 560.6])
def test_outside_the_window_nothing_is_blamed_or_even_listed(time):
    text = GPUS + RUN + f"{time} xid 95 0000:cb:00"
    assert blamed(text) == NOBODY
    assert not [line for line in words(broken(text)) if "Xid" in line]


def test_the_gpu_of_another_run_on_the_node_is_not_blamed():
    two = RUN.replace("world=4 rank=0..3", "world=2 rank=0..1").replace("0..3", "0..1")
    text = GPUS + two + "500.2 xid 95 0000:cb:00"
    assert blamed(text) == NOBODY
    assert "Xid 95 on GPU-d, which no rank of this run works on" in words(broken(text))
    assert blamed(GPUS + two + "500.2 xid 95 0000:43:00") == ("gpu_fault", "GPU-b", 1, "node-a")


def test_a_node_on_which_the_run_has_no_rank_is_not_even_evidence():
    text = GPUS + RUN + "500.2 xid 95 0000:cb:00 node=node-z"
    assert blamed(text) == NOBODY
    assert not [line for line in words(broken(text)) if "Xid" in line]


@pytest.mark.parametrize(
    "written",
    ["0000:cb:00", "PCI:0000:cb:00", "00000000:CB:00.0", "0000:CB:00.0", "cb:00.0", "GPU-D"],
)
def test_every_form_of_an_address_means_the_same_gpu(written):
    assert blamed(GPUS + RUN + f"500.2 xid 95 {written}")[1:3] == ("GPU-d", 3)


def test_another_pci_domain_is_another_gpu():
    assert blamed(GPUS + RUN + "500.2 xid 95 0018:cb:00") == NOBODY


def test_visible_devices_say_which_gpu_a_rank_works_on():
    text = GPUS + RUN.replace("local=0", "local=0 visible=3,2,1,0")
    assert blamed(text + "500.2 xid 95 0000:cb:00")[1:3] == ("GPU-d", 0)


def test_visible_devices_may_be_uuids_even_cut_short():
    text = """
    0  gpu 0 GPU-1a2b 0000:1b:00.0
    0  gpu 1 GPU-9f8e 0000:43:00.0
    """ + RUN.replace("local=0", "local=0 visible=GPU-9f,GPU-1a2b")
    incident = broken(text + "500.2 xid 95 0000:43:00")
    assert (incident.suspect_gpu, incident.suspect_rank) == ("GPU-9f8e", 0)
    assert incident.suspect_rule == "by the devices that the rank may see"


def test_a_process_that_sees_one_gpu_works_on_it_whatever_its_rank():
    text = GPUS + RUN.replace("world=4 rank=0..3", "world=1 rank=0").replace("0..3", "0")
    text = text.replace("local=0", "local=3 visible=1").replace("rank=1", "rank=0")
    assert blamed(text + "500.2 xid 95 0000:43:00")[1:3] == ("GPU-b", 0)


def test_ranks_that_may_see_no_gpu_have_none():
    text = GPUS + RUN.replace("local=0", "local=0 visible=-1")
    assert blamed(text + "500.2 xid 95 0000:cb:00") == NOBODY


def test_what_a_rank_recorded_of_its_gpu_beats_what_its_number_suggests():
    text = GPUS + RUN + "\n401 device GPU-d rank=0\n401 device GPU-a rank=3\n"
    incident = broken(text + "500.2 xid 95 0000:cb:00")
    assert (incident.suspect_gpu, incident.suspect_rank) == ("GPU-d", 0)
    assert incident.suspect_rule == "the rank recorded its GPU"


def test_a_gpu_that_its_rank_alone_knows_by_uuid_is_called_by_it():
    text = RUN + "\n401 device GPU-d pci=00000000:CB:00.0 rank=3\n"
    assert blamed(text + "500.2 xid 95 0000:cb:00")[1:3] == ("GPU-d", 3)


def test_an_address_that_a_container_renamed_is_overruled_by_the_uuid():
    seen_inside = "".join(
        f"\n401 device GPU-{'dcba'[rank]} pci=0000:{17 + rank}:00.0 rank={rank}"
        for rank in range(4)
    )
    text = GPUS + RUN + seen_inside + "\n"
    assert blamed(text + "500.2 xid 95 0000:cb:00")[1:3] == ("GPU-d", 0)
    assert blamed(text + "500.2 xid 95 0000:17:00") == NOBODY


def test_gpus_that_a_reboot_renumbered_are_told_apart_by_the_boot():
    text = (
        GPUS
        + RUN
        + """
    560 boot b2
    560 gpu 3 GPU-a 0000:1b:00.0
    560 gpu 0 GPU-d 0000:cb:00.0
    570 attempt B launcher world=4 rank=0..3 local=0
    575-600 steps 101-105 rank=0..3
    601 fault exception rank=1 exception=RuntimeError
    602 exit rank=0..3 signal=9 by=launcher
    600.5 xid 95 0000:cb:00
    """
    )
    (one,) = found(text, 660)
    assert (one.suspect_gpu, one.suspect_rank) == ("GPU-d", 0)
    assert (one.tries[-1].cause, one.tries[-1].suspect_rank) == ("gpu_fault", 0)
    assert blamed(GPUS + RUN + "500.2 xid 95 0000:cb:00")[1:3] == ("GPU-d", 3)


def test_an_address_of_another_boot_says_nothing_about_this_one():
    text = """
    400      attempt A launcher world=2 rank=0..1
    401      device GPU-a pci=0000:1b:00.0 rank=0
    401      device GPU-b pci=0000:43:00.0 rank=1
    400-500  steps 1-100 rank=0..1
    500.5    fault exception rank=1 exception=RuntimeError
    505      exit rank=0..1 signal=9 by=launcher
    520      boot b2
    520      gpu 0 GPU-z 0000:1b:00.0
    530      xid 79 0000:1b:00
    """
    assert blamed(text) == NOBODY


SLICED = """
0        gpu 0 GPU-a 0000:1b:00.0 slices=MIG-x,MIG-y instances=1/0,2/0
400      attempt A launcher world=1 rank=0 local=0 visible=MIG-x
400-500  steps 1-100
500.5    fault exception exception=RuntimeError
505      exit signal=9 by=launcher
"""


def test_a_slice_of_another_run_on_the_same_gpu_is_not_blamed():
    assert blamed(SLICED + "500.2 xid 95 0000:1b:00 gi=2 ci=0")[0] == "exception"
    assert blamed(SLICED + "500.2 xid 95 0000:1b:00 gi=1 ci=0")[:3] == ("gpu_fault", "GPU-a", 0)
    assert blamed(SLICED + "500.2 xid 95 0000:1b:00 gi=1")[:3] == ("gpu_fault", "GPU-a", 0)


def test_a_fault_of_the_whole_gpu_hits_the_ranks_of_all_its_slices():
    assert blamed(SLICED + "500.2 xid 79 0000:1b:00")[:3] == ("gpu_fault", "GPU-a", 0)


def test_a_slice_named_in_the_old_way_carries_its_instances():
    old = SLICED.replace("visible=MIG-x", "visible=MIG-GPU-a/1/0").split("slices=")
    text = old[0] + old[1].removeprefix("MIG-x,MIG-y instances=1/0,2/0")
    assert blamed(text + "500.2 xid 95 0000:1b:00 gi=2 ci=0")[0] == "exception"
    assert blamed(text + "500.2 xid 95 0000:1b:00 gi=1 ci=0")[1] == "GPU-a"


def test_of_the_ranks_on_one_gpu_the_process_in_the_line_is_accused():
    text = SLICED.replace("visible=MIG-x", "visible=0 pid=71").replace("world=1", "world=2")
    text += "400 attempt A launcher world=2 rank=1 local=0 visible=0 pid=72\n"
    assert blamed(text + "500.2 xid 95 0000:1b:00 pid=72")[1:3] == ("GPU-a", 1)
    assert blamed(text + "500.2 xid 95 0000:1b:00 pid=9")[1:3] == ("GPU-a", None)


def test_the_process_in_the_line_is_told_beside_the_gpu():
    text = (
        SLICED.replace("visible=MIG-x", "visible=MIG-x pid=71") + "500.2 xid 13 0000:1b:00 pid={}"
    )
    assert "Xid 13 on GPU-a, in the process of rank 0" in words(broken(text.format(71)))
    assert "Xid 13 on GPU-a" in words(broken(text.format(9)))


def test_what_decides_comes_first_among_the_evidence():
    late = broken(GPUS + RUN + "503 xid 95 0000:cb:00\n504 xid 13 0000:cb:00")
    kinds = [item.words.partition(" on ")[0] for item in late.evidence]
    assert (kinds[0], kinds[-1]) == ("Xid 95", "Xid 13")


WITHOUT_LIST = """
400      attempt A launcher world=2 rank=0 pid=71
400      attempt A launcher world=2 rank=1 pid=72
400-500  steps 1-100 rank=0..1
500.5    fault exception rank=1 exception=RuntimeError
505      exit rank=0..1 signal=9 by=launcher
"""


def test_where_nobody_listed_the_gpus_the_process_in_the_line_tells_the_rank():
    incident = broken(WITHOUT_LIST + "500.2 xid 79 0000:cb:00 pid=71")
    assert (incident.suspect_gpu, incident.suspect_rank) == ("0000:cb:00.0", 0)
    assert incident.suspect_rule == "the driver names the rank's process"


def test_a_process_of_another_namespace_names_no_rank_and_acquits_nobody():
    incident = broken(WITHOUT_LIST + "500.2 xid 79 0000:cb:00 pid=40017")
    assert (incident.cause, incident.suspect_rank) == ("gpu_fault", None)
    assert incident.suspect_node == "node-a"
    assert incident.suspect_rule == "which rank works on the GPU is not known"


def test_a_gpu_that_is_surely_the_runs_beats_one_that_only_may_be():
    text = GPUS + RUN + "500.1 sxid 20034 0000:05:00 class=reset\n500.2 xid 95 0000:cb:00"
    assert blamed(text)[1:3] == ("GPU-d", 3)
    (switch,) = [item for item in broken(text).evidence if item.kind == "sxid"]
    assert (switch.cause, switch.words) == ("unknown", "SXid 20034 on switch 0000:05:00")


@pytest.mark.parametrize(
    ("line", "gpu"),
    [
        ("500.2 gpu_fault lost GPU-d", "GPU-d"),
        ("500.2 gpu_fault fallen_off_bus 0000:cb:00", "GPU-d"),
        ("500.2 gpu_fault gsp_heartbeat class=reset", None),
        ("500.2 sxid 20034 0000:05:00 class=reset", None),
    ],
)
def test_faults_without_an_xid_and_of_switches_count_alike(line, gpu):
    assert blamed(GPUS + RUN + line)[:2] == ("gpu_fault", gpu)
    assert blamed(GPUS + RUN + line.replace("500.2", "90"))[0] == "exception"


def test_noise_of_xid_45_is_one_line_with_its_count():
    noise = "".join(
        f"\n{500.3 + number / 100} xid 45 0000:{bus}:00 repeats=140"
        for number, bus in enumerate(["1b", "43", "c9", "cb"] * 2)
    )
    incident = broken(GPUS + RUN + "500.2 xid 79 0000:cb:00" + noise)
    assert [line for line in words(incident) if "Xid 45" in line] == [
        "Xid 45 on 4 GPUs (1,120 times), a consequence"
    ]
    assert (incident.suspect_gpu, incident.suspect_rank) == ("GPU-d", 3)


def test_what_the_kernels_log_and_nvml_both_tell_is_not_counted_twice():
    both = GPUS + RUN + "500.2 xid 95 0000:cb:00 line=NVRM\n500.3 xid 95 GPU-d\n"
    assert words(broken(both))[0] == "Xid 95 on GPU-d"
    again = both + "500.4 xid 95 0000:cb:00 line=NVRM repeats=2"
    assert words(broken(again))[0] == "Xid 95 on GPU-d (3 times)"


def test_a_fault_that_the_driver_says_follows_from_another_is_no_cause():
    text = GPUS + RUN + "500.1 xid 119 0000:cb:00 caused_by=79\n500.2 xid 79 0000:cb:00"
    assert broken(text).rule.startswith("Xid 79")
    alone = GPUS + RUN + "500.1 xid 119 0000:cb:00 caused_by=79"
    assert broken(alone).rule.startswith("Xid 119")


def test_the_gpu_of_a_rank_whose_health_check_failed_is_named():
    assert blamed(GPUS + RUN + "500.4 fault health_check rank=2")[:3] == ("gpu_fault", "GPU-c", 2)


def test_a_node_that_ran_out_of_memory_counts_where_a_rank_on_it_was_killed():
    killed = RUN.replace(
        "505      exit rank=0..3 signal=9 by=launcher", "500.6 exit rank=2 signal=9"
    )
    assert blamed(killed + "500.6 node_fault host_oom") == ("host_oom", None, 2, "node-a")
    assert blamed(RUN + "500.6 node_fault host_oom") == NOBODY


AGAIN = """
{a}      attempt {name} launcher world=4 rank=0..3 local=0
{a}      resumed {base} rank=0..3
{a}-{b}  steps {first}-{last} rank=0..3
{b}.2    xid 95 0000:{bus}:00
{b}.5    fault exception rank=1 exception=RuntimeError
{c}      exit rank=0..3 signal=9 by=launcher
"""


def repeated(gap, count, buses=("cb",)):
    text = GPUS
    for number in range(count):
        a, base = 400 + number * gap, number * 100
        bus = buses[number % len(buses)]
        text += AGAIN.format(
            a=a, b=a + 100, c=a + 105, name=f"A{number}", base=base, first=base + 1,
            last=base + 100, bus=bus,
        )  # fmt: skip
    return found(text, 400 + count * gap)


def test_repeats_of_one_gpu_within_a_week_are_counted():
    listed = repeated(1000, 3)
    assert [one.gpu_repeats for one in listed] == [1, 2, 3]
    assert listed[-1].persistent["gpu"] == 3
    said = report(ledger(timeline(GPUS + RUN + "500.2 xid 95 0000:cb:00"), at(600)))
    assert said["incidents"][0]["suspect_gpu"] == "GPU-d"


def test_another_gpu_or_another_week_is_no_repeat():
    assert [one.gpu_repeats for one in repeated(1000, 4, ("cb", "43"))] == [1, 1, 2, 2]
    assert [one.gpu_repeats for one in repeated(8 * 86_400, 2)] == [1, 1]


SECOND_ATTEMPT = """
520      attempt B launcher world=4 rank=0..3 local=0
530-560  steps 101-130 rank=0..3
560.5    fault exception rank=2 exception=ValueError
561      exit rank=0..3 signal=9 by=launcher
"""


def test_what_struck_an_earlier_attempt_accuses_no_later_one_that_trained_on():
    first, second = found(GPUS + RUN + SECOND_ATTEMPT + "500.2 xid 95 0000:cb:00")
    assert (first.cause, first.suspect_gpu) == ("gpu_fault", "GPU-d")
    assert (second.cause, second.suspect_gpu, second.suspect_rank) == ("exception", None, 2)


def test_what_struck_before_a_start_that_failed_at_once_accuses_that_too():
    text = GPUS + RUN + "520 attempt B launcher world=4 rank=0..3 local=0\n525 exit rank=0 code=1\n"
    text += "526 exit rank=1..3 signal=15 by=launcher\n"
    one = broken(text + "500.2 xid 95 0000:cb:00")
    assert [tried.cause for tried in one.tries] == ["gpu_fault"]


LATER = """
520      attempt B launcher world=4 rank=0..3 local=0
590      fault exception rank=3 exception=RuntimeError
591      exit rank=0..3 signal=9 by=launcher
"""


def test_a_gpu_that_is_seen_to_be_broken_only_in_a_later_attempt_broke_the_first_one_too():
    one = broken(GPUS + RUN + LATER + "589 xid 79 0000:cb:00")
    assert (one.cause, one.suspect_gpu, one.suspect_rank) == ("gpu_fault", "GPU-d", 3)
    assert one.opened == at(500.5)


def test_a_later_broken_gpu_does_not_explain_what_it_cannot_have_provoked():
    told = RUN.replace("fault exception rank=1", "stop preemption rank=0..3 #")
    one = broken(GPUS + told + LATER + "589 xid 79 0000:cb:00")
    assert (one.cause, one.tries[0].cause) == ("preemption", "gpu_fault")


def test_what_struck_between_two_attempts_accuses_the_later_one():
    listed = found(GPUS + RUN.replace("505 ", "501 ") + SECOND_ATTEMPT.replace("520 ", "590 ")
                   .replace("530-560", "600-630").replace("560.5", "630.5").replace("561 ", "631 ")
                   + "570 xid 95 0000:cb:00", 700)  # fmt: skip
    assert [one.cause for one in listed] == ["exception", "gpu_fault"]


NODE_EVENTS = """
500.2    xid 95 0000:cb:00
200.5    gpu_fault lost GPU-a
90000    xid 79 0000:cb:00
501      node_fault lost_node
502      health gpu unhealthy
"""


@pytest.mark.parametrize("seed", range(8))
def test_events_of_a_node_change_causes_but_never_the_account(seed):
    plain, told = timeline(RUN), timeline(GPUS + RUN + NODE_EVENTS)
    random.Random(seed).shuffle(told)  # noqa: S311
    late = Timeline("run")
    for envelope in told:
        late.add([envelope])
        late.ledger(at(600))
    for until in (510, 600, 87_000, 200_000):
        bare, full = ledger(plain, at(until)), late.ledger(at(until))
        assert full.categories == bare.categories
        assert (full.start, full.end, full.state) == (bare.start, bare.end, bare.state)
        assert (full.first_event, full.last_event) == (bare.first_event, bare.last_event)
        assert full.problems == bare.problems
        assert full.intervals() == bare.intervals()
        assert incidents(full) == incidents(ledger(timeline(GPUS + RUN + NODE_EVENTS), at(until)))


def test_a_list_of_gpus_told_long_before_the_run_is_not_set_aside():
    long_ago = [
        replace(envelope, producer="before", anchor=envelope.anchor - 100 * 86_400 * SECOND)
        for envelope in timeline(GPUS)
    ]
    started = timeline("400 run_started llama\n" + RUN + "500.2 xid 95 0000:cb:00")
    book = ledger([*long_ago, *started], at(600))
    assert not [problem for problem in book.problems if problem.kind == "absurd_time"]
    assert incidents(book)[0].suspect_gpu == "GPU-d"


def test_a_gpu_whose_number_no_rank_has_is_not_the_runs_though_others_are_not_listed():
    text = "0 gpu 3 GPU-d 0000:cb:00.0\n" + RUN
    assert blamed(text + "500.2 xid 95 0000:cb:00")[1:3] == ("GPU-d", 3)
    half = RUN.replace("world=4 rank=0..3", "world=2 rank=0..1").replace("0..3", "0..1")
    assert blamed("0 gpu 3 GPU-d 0000:cb:00.0\n" + half + "500.2 xid 95 0000:cb:00") == NOBODY


def test_a_line_of_an_imported_log_that_names_no_boot_is_read_in_the_boot_of_its_time():
    listed = "boot b1\n" + GPUS.replace("0  gpu", "1  gpu")
    text = "0 " + listed + RUN + "500.2 xid 95 0000:cb:00\n"
    later = "560 boot b2\n560 gpu 3 GPU-z 0000:cb:00.0\n"
    told = [
        replace(one, boot_id=None) if isinstance(one.event, GpuXid) else one
        for one in timeline(text + later)
    ]
    (incident,) = incidents(ledger(told, at(600)))
    assert (incident.suspect_gpu, incident.suspect_rank) == ("GPU-d", 3)
