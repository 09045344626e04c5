"""What was told of something can be read afterwards, with who took it; the file stays as it is."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from headway.alerts.notice_log import NoticeLog
from headway.alerts.notices import Notice, Told, acknowledged, plan
from headway.alerts.site import site
from headway.storage.alert_book import AlertBook, BookError

NOW = 1_790_000_000.0
SITE = site('default = "hook"\n[receivers.hook]\nkind = "log"\n')
LABELS = {"alertname": "RunHung", "subject": "run r", "severity": "page"}
FIRING = Told(labels=LABELS, annotations={"summary": "r hangs"}, starts_at=NOW)
OVER = Told(labels=LABELS, annotations={"summary": "r hangs"}, starts_at=NOW, ends_at=NOW + 90)


def row(notice: Notice) -> dict[str, Any]:
    kept = {name: getattr(notice, name) for name in ("receiver", "key", "subject")}
    return {**kept, "body": asdict(notice)}


def told_and_taken() -> list[Notice]:
    """Return the notices of a page that fires, is taken by Ada and is over."""
    opened = plan(SITE, [FIRING], [], {}, NOW)
    first = plan(SITE, [FIRING], [], {one.identity: one for one in opened.groups}, NOW + 60)
    (group,) = first.groups
    taken = acknowledged(group, "Ada", NOW + 70)
    last = plan(SITE, [OVER], [], {taken.identity: taken}, NOW + 90)
    assert last.groups == ()
    return [*first.notices, *last.notices]


def test_who_took_a_page_is_known_after_it_is_over(tmp_path: Path) -> None:
    book = AlertBook(tmp_path / "alerts.sqlite")
    for seconds, notice in zip((60, 90), told_and_taken(), strict=True):
        book.post([row(notice)], NOW + seconds)
    found = NoticeLog(book).told(["run r"], NOW, NOW + 100)
    assert [(one["status"], one["created"]) for one in found] == [
        ("firing", NOW + 60),
        ("resolved", NOW + 90),
    ]
    assert {(one["acknowledged_by"], one["acknowledged_at"]) for one in found} == {
        ("Ada", NOW + 70)
    }
    assert [one["status"] for one in NoticeLog(book).told(["run r"], NOW, NOW + 61)] == ["firing"]
    assert NoticeLog(book).told(["run other"], NOW, NOW + 100) == []
    book.close()


def test_a_closed_book_is_read_and_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "alerts.sqlite"
    book = AlertBook(path)
    book.post([row(notice) for notice in told_and_taken()], NOW)
    book.close()
    before = {one.name: one.read_bytes() for one in tmp_path.iterdir()}
    closed = AlertBook(path, closed=True)
    assert len(NoticeLog(closed).told(["run r"], NOW, NOW)) == 2
    closed.close()
    assert {one.name: one.read_bytes() for one in tmp_path.iterdir()} == before


def test_what_is_no_closed_book_is_refused_and_not_made(tmp_path: Path) -> None:
    with pytest.raises(BookError):
        AlertBook(tmp_path / "missing.sqlite", closed=True)
    assert not (tmp_path / "missing.sqlite").exists()
    other = tmp_path / "other.sqlite"
    other.write_bytes(b"no database at all, but long enough to be read as one" * 20)
    with pytest.raises(BookError):
        AlertBook(other, closed=True)
