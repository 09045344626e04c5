"""What faults ask for, by the shipped table and by a site's own file."""

from dataclasses import replace

import pytest

from headway.events import GPU_FAULT_CLASSES, GPU_FAULT_KINDS, GpuFault, GpuSxid, GpuXid
from headway.gpu_faults import nvlink5
from headway.gpu_faults.policy import (
    DEFAULT_POLICY,
    RECOVERY_ACTIONS,
    classified,
    classify,
)
from headway.gpu_faults.policy_file import PolicyError, parse_policy
from headway.gpu_faults.table import SOURCES, VERSION, XIDS

_SITE = 'name = "site"\nversion = "3"\n'


def xid(code: int, **fields: object) -> GpuXid:
    return replace(GpuXid(code=code, device="0000:01:00"), **fields)  # type: ignore[arg-type]


# The last column of the table that operators agreed on most; 63 drains at the next gap.
@pytest.mark.parametrize(
    ("codes", "classification"),
    [
        ((8, 13, 31, 43, 94, 137), "application"),
        ((45,), "consequence"),
        ((46, 48, 61, 62, 74, 95, 109, 110, 119, 120, 136, 140, 143, 156, 158), "reset"),
        ((54, 64), "replace"),
        ((79,), "reboot"),
        ((63, 92, 121), "watch"),
    ],
)
def test_a_code_alone_asks_for_what_the_table_says(
    codes: tuple[int, ...], classification: str
) -> None:
    assert {classify(xid(code)).classification for code in codes} == {classification}


def test_a_code_that_nobody_lists_is_watched_and_the_verdict_says_so() -> None:
    verdict = classify(xid(999))

    assert (verdict.classification, verdict.reason) == ("watch", "Xid 999 is not listed")


def test_the_table_is_whole() -> None:
    assert list(XIDS) == sorted(XIDS)
    for code, entry in XIDS.items():
        assert entry.code == code
        assert entry.classification in GPU_FAULT_CLASSES
        assert set(entry.opinions) <= set(SOURCES)
        assert entry.opinions


def test_the_codes_on_which_tools_disagree_are_known() -> None:
    disputed = {code for code, entry in XIDS.items() if entry.disputed}

    assert disputed >= {63, 94, 109, 121, 136, 156}
    assert not disputed & {13, 31, 43, 45, 48, 79, 95, 119}


def test_the_recovery_action_decides_by_its_number() -> None:
    found = [classify(xid(154, recovery_action=number)).classification for number in range(8)]

    assert found == [
        *("watch", "reset", "reboot", "reset", "reset", "watch", "reset", "reboot"),
    ]
    assert list(RECOVERY_ACTIONS) == list(range(8))
    assert classify(xid(154, recovery_action=99)).classification == "reset"
    assert classify(xid(154)).classification == "watch"
    assert classify(GpuFault(kind="recovery_action", code=2)).classification == "reboot"


@pytest.mark.parametrize(
    ("code", "unit", "status", "sub_code", "fatal", "classification"),
    [
        (149, "NETIR_LINK_EVT", 0, 37, True, "reset"),
        (149, "NETIR_LINK_EVT", 0, 38, True, "watch"),  # NVIDIA: ignore, look at the software
        (149, "NETIR_LINK_EVT", 0, 63, True, "reset"),  # not in the table: the driver's word
        (149, "NETIR_BER_EVENT", 1, 0, False, "watch"),
        (149, "NETIR", 0, 0, True, "reset"),
        (149, "NETIR_MFDE_EVENT", 3, 0, False, "watch"),
        (149, "NETIR_MFDE_EVENT", 5, 0, True, "reset"),
        (145, "RLW_SRC_TRACK", 0x4, 0, False, "application"),
        (145, "RLW_SRC_TRACK", 0x14, 0, True, "reset"),
        (145, "RLW_RXPIPE", 0x8, 0, False, "watch"),
        (144, "SAW_MVB", 0x8, 0, False, "watch"),
        (144, "SAW_MVB", 0x2, 0, True, "reset"),
        (146, "TLW_RX_PIPE1", 0x4, 0, True, "reset"),
        (150, "MSE_WATCHDOG", 0x0, 0, True, "reset"),
        (148, "A_LATER_UNIT", 0x1, 0, True, "reset"),
        (148, "A_LATER_UNIT", 0x1, 0, False, "watch"),
        (144, None, None, None, True, "reset"),
        (144, None, None, None, None, "watch"),
    ],
)
def test_an_xid_of_nvlink_5_is_judged_by_unit_status_and_sub_code(
    code: int,
    unit: str | None,
    status: int | None,
    sub_code: int | None,
    fatal: bool | None,
    classification: str,
) -> None:
    fault = xid(code, unit=unit, error_status=status, sub_code=sub_code, fatal=fatal)

    assert classify(fault).classification == classification


def test_a_switch_error_is_judged_by_its_severity() -> None:
    fault = GpuSxid(code=20034, device="0000:06:00", fatal=True)

    assert classify(fault).classification == "reset"
    assert classify(replace(fault, fatal=False)).classification == "watch"
    assert classify(replace(fault, fatal=None)).classification == "watch"


def test_every_kind_of_fault_without_a_number_has_a_class() -> None:
    for kind in GPU_FAULT_KINDS:
        verdict = classify(GpuFault(kind=kind, code=46 if kind == "xid_changed" else 2))
        assert verdict.classification in GPU_FAULT_CLASSES
        assert not verdict.reason.endswith("is not listed")


def test_a_changed_last_xid_is_judged_as_that_xid() -> None:
    assert classify(GpuFault(kind="xid_changed", code=79)).classification == "reboot"


def test_a_fault_keeps_who_judged_it() -> None:
    fault = classified(xid(79, line="raw"))

    assert (fault.classification, fault.policy) == ("reboot", f"headway {VERSION}")
    assert (fault.code, fault.line) == (79, "raw")


def test_a_file_overrides_what_it_names_and_nothing_else() -> None:
    policy = parse_policy(
        _SITE
        + 'unlisted = "reset"\nnonfatal = "application"\n'
        + '[xid]\n63 = "reset"\n"145.0" = "replace"\n'
        + '[sxid]\n20034 = "watch"\n[recovery_action]\n3 = "application"\n'
        + '[kind]\ngsp_heartbeat = "watch"\n'
    )

    def judged(fault: GpuXid | GpuSxid | GpuFault) -> str:
        return classify(fault, policy).classification

    assert policy.label == "site 3"
    assert classify(xid(63), policy).policy == "site 3"
    assert judged(xid(63)) == "reset"
    assert judged(xid(79)) == "reboot"
    assert judged(xid(999)) == "reset"
    assert judged(xid(145, sub_code=0, unit="RLW_SRC_TRACK", error_status=4)) == "replace"
    assert judged(xid(145, sub_code=1, unit="RLW_SRC_TRACK", error_status=4)) == "application"
    assert judged(GpuSxid(code=20034, device="0000:06:00", fatal=True)) == "watch"
    assert judged(GpuSxid(code=12028, device="0000:06:00", fatal=False)) == "application"
    assert judged(xid(154, recovery_action=3)) == "application"
    assert judged(GpuFault(kind="gsp_heartbeat")) == "watch"
    assert classify(xid(63)).classification == "watch"
    assert DEFAULT_POLICY.sub_codes == {}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("name = ", "it is no TOML"),
        ('version = "1"', "name must be a text of 1 to 64 characters, got nothing"),
        ('name = "site"', 'version must be a text .* write for example version = "1"'),
        ('name = "headway"\nversion = "1"', "'headway' is the default policy's; give this one"),
        ("name = 3\nversion = 1", "name must be a text .* got 3"),
        (_SITE + "[xids]", "unknown entry 'xids'; known: name, version, fatal"),
        (_SITE + 'xid = "reset"', "xid must be a table, got 'reset'; begin it with \\[xid\\]"),
        (
            _SITE + '[xid]\n63 = "ignore"',
            "unknown class 'ignore' for '63' in \\[xid\\]; known: application, reset, reboot",
        ),
        (_SITE + "[xid]\n63 = 1", "unknown class 1 for '63'"),
        (_SITE + '[xid]\nnvlink = "reset"', "'nvlink' in \\[xid\\] is no Xid; write a number"),
        (_SITE + '[xid]\n"79.1" = "reset"', "an Xid of NVLink 5 \\(144 to 150\\)"),
        (_SITE + '[sxid]\nx = "reset"', "'x' in \\[sxid\\] is no number"),
        (_SITE + '[kind]\nmelted = "replace"', "unknown kind 'melted' in \\[kind\\]; known: lost"),
        (_SITE + '[kind]\nxid_changed = "watch"', "unknown kind 'xid_changed'"),
        (_SITE + 'unlisted = "unknown"', "unknown class 'unknown' for unlisted"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_with_what_would_be_right(
    text: str, words: str
) -> None:
    with pytest.raises(PolicyError, match=words):
        parse_policy(text)


def test_every_unit_of_nvlink_5_is_on_the_reference_page_once() -> None:
    units = [unit for row in nvlink5.rules() for unit in row[0].split("`, `")]

    assert len(units) == len(set(units))
    assert {"RLW_REMAP", "NETIR_LINK_EVT", "MSE_WATCHDOG", "TREX"} <= set(units)
