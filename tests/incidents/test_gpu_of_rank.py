"""Which GPU a rank works on: by list, number, address, slice, process and boot."""

from dataclasses import replace

import pytest

from gpu_incidents import GPUS, NOBODY, RUN, blamed, broken, found, words
from headway.events import GpuXid
from headway.incidents import incidents
from headway.ledger import ledger
from timeline import SECOND, at, timeline

SLICED = """
0        gpu 0 GPU-a 0000:1b:00.0 slices=MIG-x,MIG-y instances=1/0,2/0
400      attempt A launcher world=1 rank=0 local=0 visible=MIG-x
400-500  steps 1-100
500.5    fault exception exception=RuntimeError
505      exit signal=9 by=launcher
"""
WITHOUT_LIST = """
400      attempt A launcher world=2 rank=0 pid=71
400      attempt A launcher world=2 rank=1 pid=72
400-500  steps 1-100 rank=0..1
500.5    fault exception rank=1 exception=RuntimeError
505      exit rank=0..1 signal=9 by=launcher
"""


def test_the_gpu_of_another_run_on_the_node_is_not_blamed():
    two = RUN.replace("world=4 rank=0..3", "world=2 rank=0..1").replace("0..3", "0..1")
    text = GPUS + two + "500.2 xid 95 0000:cb:00"
    assert blamed(text) == NOBODY
    assert "Xid 95 on GPU-d, which no rank of this run works on" in words(broken(text))
    assert blamed(GPUS + two + "500.2 xid 95 0000:43:00") == ("gpu_fault", "GPU-b", 1, "node-a")


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
