"""What every published line means; `published_lines` has the meanings, tests/data/gpu the lines."""

from datetime import UTC, datetime

import pytest

from headway.events import GpuFault, GpuSxid, GpuXid
from headway.kernel_log.log import Finding, KernelLog
from headway.kernel_log.stamps import Clock
from published_lines import LINES, MEANINGS, SXIDS, YEAR


def _read(line: str) -> Finding | None:
    log = KernelLog(Clock(year=YEAR))
    found = [*log.feed(line), *log.finish()]
    assert len(found) <= 1
    return found[0] if found else None


def test_every_line_has_its_meaning_written_down() -> None:
    assert list(MEANINGS) == list(range(1, len(LINES) + 1))


@pytest.mark.parametrize("number", MEANINGS)
def test_a_published_line_means_what_it_says(number: int) -> None:
    found = _read(LINES[number - 1])

    meaning = MEANINGS[number]
    if meaning is None:
        assert found is None
        return
    assert found is not None
    what, device, process_id, process, time, since_boot = meaning
    report = found.report
    if isinstance(what, str):
        assert isinstance(report, GpuFault)
        assert report.kind == what
    elif number in SXIDS:
        assert isinstance(report, GpuSxid)
        assert report.code == what
    else:
        assert isinstance(report, GpuXid)
        assert (report.code, report.process_id, report.process) == (what, process_id, process)
    assert report.device == device
    assert report.line == LINES[number - 1]
    assert found.time == _ns(time)
    assert found.monotonic == (None if since_boot is None else round(since_boot * 10**6) * 1_000)


def test_more_of_a_line_is_read_where_it_says_more() -> None:
    def xid(number: int) -> GpuXid:
        found = _read(LINES[number - 1])
        assert found is not None
        assert isinstance(found.report, GpuXid)
        return found.report

    assert xid(44).caused_by == 149
    assert xid(44).message == "Ch 00000001"
    peer = xid(49)
    assert (peer.unit, peer.fatal, peer.link, peer.sub_code) == ("NETIR_LINK_EVT", True, 0, 37)
    assert xid(47).link == -1
    cut = xid(53)
    assert (cut.unit, cut.error_status, cut.fatal, cut.link) == ("RLW_SRC_TRACK", 4, False, 17)
    assert [xid(number).recovery_action for number in (52, 55, 56)] == [4, 1, 2]
    assert (xid(57).gpu_instance, xid(57).compute_instance) == (5, None)
    assert (xid(59).gpu_instance, xid(59).compute_instance) == (1, 2)


def test_a_switch_error_says_its_link_and_severity() -> None:
    found = _read(LINES[SXIDS[0] - 1])

    assert found is not None
    assert isinstance(found.report, GpuSxid)
    assert (found.report.fatal, found.report.link) == (True, 48)
    assert found.report.message == "LTSSM Fault Up"


def _ns(time: str | None) -> int | None:
    if time is None:
        return None
    moment = datetime.fromisoformat(time).replace(tzinfo=UTC)
    return int(moment.timestamp()) * 10**9 + moment.microsecond * 1_000
