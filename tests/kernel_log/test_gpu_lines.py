"""Forms of the drivers' messages beyond the published lines, and what only looks like one."""

import pytest

from headway.events import GpuFault, GpuSxid, GpuXid
from headway.kernel_log.gpu_lines import DriverLines


def xid(text: str) -> GpuXid:
    found = DriverLines().read(text)
    assert isinstance(found, GpuXid)
    return found


@pytest.mark.parametrize(
    ("fields", "process_id", "process", "message"),
    [
        ("pid=12, name=a, Ch 00000008", 12, "a", "Ch 00000008"),
        ("pid=12, name=a,b, Ch 00000008", 12, "a,b", "Ch 00000008"),
        ("pid=12, name=job, rank 3, channel 0x0d", 12, "job, rank 3", "channel 0x0d"),
        ("pid=12, name=a::b, GPU has fallen", 12, "a::b", "GPU has fallen"),
        ("pid=12, name=[kworker/0:1], Ch 1, intr 0", 12, "[kworker/0:1]", "Ch 1, intr 0"),
        ("pid='<unknown>', name='<unknown>', Ch 1", None, None, "Ch 1"),
        ("pid=<unknown>, name=<unknown>, Ch 1", None, None, "Ch 1"),
        ("pid='12',   name='a',   Ch 1", 12, "a", "Ch 1"),
        ("pid=12, name=, Ch 1", 12, None, "Ch 1"),
        ("pid=12, name=what is new, words of a later driver", 12, "what is new", None),
        ("name=a, Ch 1", None, "a", "Ch 1"),
        ("pid=12", 12, None, None),
        ("", None, None, None),
    ],
)
def test_process_fields_are_read_in_every_form(
    fields: str, process_id: int | None, process: str | None, message: str | None
) -> None:
    found = xid(f"NVRM: Xid (PCI:0000:01:00): 109, {fields}")

    assert (found.process_id, found.process) == (process_id, process)
    if message is not None:
        assert found.message == message


@pytest.mark.parametrize(
    "text",
    [
        "NVRM: Xid (PCI:0000:01:00): ",
        "NVRM: Xid (PCI:0000:01:00): abc, Ch 1",
        "NVRM: Xid (PCI:0000:01:00): 0, Ch 1",
        "NVRM: Xid (PCI:0000:01:00): 12345, Ch 1",
        "NVRM: Xid (PCI:0000:01:00): 79 said the operator",
        "NVRM: Xid (): 79, GPU has fallen off the bus.",
        "NVRM: Xid PCI:0000:01:00: 79, GPU has fallen off the bus.",
        "NVRM: Xid error: xyz, invalid data",
        "NVRM: GPU 0000:01:00.0: GPU is on Board 0123.",
        "NVRM: The NVIDIA GPU 0000:01:00.0",
        "nvidia-nvswitch1: using MSI",
        "nvidia-nvswitch1: SXid (PCI:0000:06:00.0): twelve, Fatal",
    ],
)
def test_what_does_not_fit_in_full_is_no_fault(text: str) -> None:
    assert DriverLines().read(text) is None


def test_the_recovery_action_is_known_by_its_number_whatever_the_words() -> None:
    words = ("Node Reboot Required", "OS Reboot", "GPU Reset Required", "")

    found = [
        xid(
            "NVRM: Xid (PCI:0000:01:00): 154, GPU recovery action changed from 0x0 (None) "
            f"to 0x2 ({word})"
        )
        for word in words
    ]

    assert {each.recovery_action for each in found} == {2}


def test_the_layout_of_nvlink_5_before_driver_575_is_read_too() -> None:
    found = xid(
        "NVRM: Xid (PCI:0000:00:1e): 149, NETIR_LINK_EVT Fatal XC 1 i 2 Link 01 [0x025001c6]"
    )

    assert (found.unit, found.fatal, found.link) == ("NETIR_LINK_EVT", True, 1)
    assert (found.sub_code, found.error_status) == (37, None)


def test_three_lines_without_a_number_are_one_gpu_off_the_bus() -> None:
    lines = DriverLines()

    found = [
        lines.read(text)
        for text in (
            "NVRM: The NVIDIA GPU 0000:cb:00.0",
            "NVRM: (PCI ID: 10de:26b5) installed in this system has",
            "NVRM: fallen off the bus and is not responding to commands.",
        )
    ]

    assert found[:2] == [None, None]
    assert isinstance(found[2], GpuFault)
    assert (found[2].kind, found[2].device) == ("fallen_off_bus", "0000:cb:00")


def test_an_address_that_something_else_followed_is_not_taken_for_the_lost_gpus() -> None:
    lines = DriverLines()

    lines.read("NVRM: The NVIDIA GPU 0000:cb:00.0")
    lines.read("NVRM: loading NVIDIA UNIX Open Kernel Module")
    found = lines.read("NVRM: fallen off the bus and is not responding to commands.")

    assert isinstance(found, GpuFault)
    assert found.device is None


@pytest.mark.parametrize(
    ("words", "fatal", "link"),
    [
        ("Fatal, Link 48 LTSSM Fault Up", True, 48),
        ("Non-fatal, Link 27 egress non-posted PRIV error", False, 27),
        ("Severity 0 Engine instance 60", False, None),
        ("Data {0x1, 0x2}", None, None),
    ],
)
def test_a_switch_error_says_its_severity_in_words_or_by_number(
    words: str, fatal: bool | None, link: int | None
) -> None:
    found = DriverLines().read(f"nvidia-nvswitch3: SXid (PCI:0000:c4:00.0): 12028, {words}")

    assert isinstance(found, GpuSxid)
    assert (found.device, found.code, found.fatal, found.link) == ("0000:c4:00", 12028, fatal, link)
