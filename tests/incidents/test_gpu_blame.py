"""Which GPU an incident is blamed on: a fault inside the window, on a GPU of the run, of a class
that says that the GPU is broken."""

import random

import pytest

from gpu_incidents import GPUS, NOBODY, RUN, blamed, broken, found, words
from headway.incidents import incidents
from headway.ledger import Timeline, ledger
from headway.report import report
from timeline import at, timeline

AGAIN = """
{a}      attempt {name} launcher world=4 rank=0..3 local=0
{a}      resumed {base} rank=0..3
{a}-{b}  steps {first}-{last} rank=0..3
{b}.2    xid 95 0000:{bus}:00
{b}.5    fault exception rank=1 exception=RuntimeError
{c}      exit rank=0..3 signal=9 by=launcher
"""
SECOND_ATTEMPT = """
520      attempt B launcher world=4 rank=0..3 local=0
530-560  steps 101-130 rank=0..3
560.5    fault exception rank=2 exception=ValueError
561      exit rank=0..3 signal=9 by=launcher
"""
LATER = """
520      attempt B launcher world=4 rank=0..3 local=0
590      fault exception rank=3 exception=RuntimeError
591      exit rank=0..3 signal=9 by=launcher
"""
NODE_EVENTS = """
500.2    xid 95 0000:cb:00
200.5    gpu_fault lost GPU-a
90000    xid 79 0000:cb:00
501      node_fault lost_node
502      health gpu unhealthy
"""


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


def test_a_node_on_which_the_run_has_no_rank_is_not_even_evidence():
    text = GPUS + RUN + "500.2 xid 95 0000:cb:00 node=node-z"
    assert blamed(text) == NOBODY
    assert not [line for line in words(broken(text)) if "Xid" in line]


def test_what_decides_comes_first_among_the_evidence():
    late = broken(GPUS + RUN + "503 xid 95 0000:cb:00\n504 xid 13 0000:cb:00")
    kinds = [item.words.partition(" on ")[0] for item in late.evidence]
    assert (kinds[0], kinds[-1]) == ("Xid 95", "Xid 13")


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


def test_what_struck_an_earlier_attempt_accuses_no_later_one_that_trained_on():
    first, second = found(GPUS + RUN + SECOND_ATTEMPT + "500.2 xid 95 0000:cb:00")
    assert (first.cause, first.suspect_gpu) == ("gpu_fault", "GPU-d")
    assert (second.cause, second.suspect_gpu, second.suspect_rank) == ("exception", None, 2)


def test_what_struck_before_a_start_that_failed_at_once_accuses_that_too():
    text = GPUS + RUN + "520 attempt B launcher world=4 rank=0..3 local=0\n525 exit rank=0 code=1\n"
    text += "526 exit rank=1..3 signal=15 by=launcher\n"
    one = broken(text + "500.2 xid 95 0000:cb:00")
    assert [tried.cause for tried in one.tries] == ["gpu_fault"]


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
