"""The files of an import as runs: lines, JSON documents and Headway's own events alike."""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import tzinfo
from typing import Any

from headway import wire
from headway.cli.import_report import ImportedRun
from headway.cli.log_files import LogFile
from headway.events import Envelope
from headway.importing.documents import begins_document, document_of, kind_of, read
from headway.importing.log import LogImport
from headway.importing.merging import Stream, Told, merged
from headway.importing.reader import LineReader
from headway.importing.rules import Format
from headway.importing.stamps import Stamps

_LARGEST_DOCUMENT = 256 * 1024**2
"""Bytes of a JSON document that is read as one."""


class Sources:
    """Reads files as one import; `over` yields a file's text and may show how far it is."""

    def __init__(
        self,
        files: Sequence[LogFile],
        formats: Sequence[Format],
        *,
        zone: tzinfo,
        year: int | None,
        over: Callable[[LogFile], Iterator[str]],
        interval: int | None = None,
        growing: bool = False,
    ) -> None:
        """Begin; of files that are `growing` a last line without its end is left out."""
        self._files = files
        self._growing = growing
        self._formats = formats
        self._zone = zone
        self._year = year
        self._over = over
        self._interval = interval
        self._readers: dict[str, LineReader] = {}
        self._documents: dict[str, tuple[str, int]] = {}
        """Format and number of lines of files that are one document, or events."""
        self._clocks: list[Stamps] = []
        self._own: dict[str, list[Envelope]] = {}
        self._damaged = 0

    def read(self, run: str, start: int | None) -> list[ImportedRun]:
        """Return the runs that the files tell of."""
        sources: list[Iterator[Told] | Stream] = []
        for one in self._files:
            head = one.head()
            if _is_event(head):
                self._events(one)
                continue
            clock = Stamps(zone=self._zone, year=self._year, latest=one.changed)
            first = clock.read(head)  # the first year that it names helps stamps that name none
            self._clocks.append(clock)
            told = self._document(one, head, clock)
            if told is not None:
                sources.append(iter(told))
                continue
            stream = Stream(
                self._over(one),
                self._formats,
                clock,
                one.rank,
                alone=len(self._files) == 1,
                growing=self._growing,
                since=0 if first is None else first.time,
            )
            self._readers[str(one.path)] = stream.reader
            sources.append(stream)
        log = LogImport(run, self._clocks[0] if self._clocks else None, interval=self._interval)
        for one_told in merged(sources):
            log.take(one_told.saying, one_told.moment, one_told.rank, one_told.text)
        relative = any(reader.relative for reader in self._readers.values())
        found = [
            ImportedRun(
                run=one.run,
                envelopes=one.course.journal.envelopes,
                lasting=one.lasting(),
                as_of=one.course.journal.last or 0,
                timed=one.timed,
                interval=one.course.interval,
                log=one.course.findings.values(one.course.journal.shift),
            )
            for one in log.finish(start, relative)
            if one.course.journal.envelopes or one.course.findings.published
        ]
        return found + [
            ImportedRun(
                run=name,
                envelopes=envelopes,
                lasting=envelopes,
                as_of=max(one.anchor + one.monotonic for one in envelopes),
                timed=True,
                interval=None,
                log=None,
            )
            for name, envelopes in self._own.items()
        ]

    def _document(self, file: LogFile, head: str, clock: Stamps) -> list[Told] | None:
        """Return what a file tells that is one JSON document of a known kind."""
        if not begins_document(head) or file.size > _LARGEST_DOCUMENT:
            return None
        text = "".join(self._over(file))
        document = document_of(text)
        kind = kind_of(document)
        if kind is None:
            file.read = 0
            return None
        self._documents[str(file.path)] = (kind, text.count("\n") + 1)
        return read(document, clock)

    def _events(self, file: LogFile) -> None:
        count = 0
        rest = ""
        for piece in self._over(file):
            *lines, rest = (rest + piece).split("\n")
            count += self._envelopes(lines)
        count += self._envelopes([rest])
        self._documents[str(file.path)] = ("events", count)

    def _envelopes(self, lines: Sequence[str]) -> int:
        count = 0
        for line in lines:
            if not line.strip():
                continue
            count += 1
            try:
                envelope = wire.from_json(json.loads(line))
            except (ValueError, KeyError, TypeError):
                self._damaged += 1
                continue
            self._own.setdefault(envelope.run or "", []).append(envelope)
        return count

    def summary(self, files: Sequence[LogFile]) -> dict[str, Any]:
        """Return what was read of which files."""
        formats: Counter[str] = Counter()
        suspicious: Counter[str] = Counter()
        if self._damaged:
            suspicious["events"] = self._damaged
        listed = []
        for one in files:
            reader = self._readers.get(str(one.path))
            kind, lines = self._documents.get(str(one.path), ("", 0))
            own = Counter({kind: lines}) if kind else Counter()
            if reader is not None:
                own, lines = reader.formats, reader.lines
                suspicious += reader.suspicious
            if one.torn is not None:
                suspicious["packed file without its end"] += 1
            formats += own
            listed.append(
                {
                    "path": str(one.path),
                    "bytes": one.size,
                    "packing": one.packing,
                    "encoding": one.encoding,
                    "skipped": one.skipped,
                    "torn": one.torn,
                    "rank": one.rank,
                    "lines": lines,
                    "formats": dict(own),
                }
            )
        years = {one.guessed_year for one in self._clocks if one.guessed_year is not None}
        whole = sum(lines for _, lines in self._documents.values())
        readers = self._readers.values()
        return {
            "formats": dict(formats.most_common()),
            "files": listed,
            "lines": {
                "total": whole + sum(reader.lines for reader in readers),
                "understood": whole - self._damaged + sum(one.understood for one in readers),
                "ignored": sum(reader.ignored for reader in readers),
                "suspicious": dict(suspicious),
            },
            "clock": {
                "zone": str(self._zone),
                "zone_assumed": any(one.assumed_zone for one in self._clocks),
                "year_assumed": min(years) if years else None,
            },
        }


def _is_event(head: str) -> bool:
    """Whether a file begins with one of Headway's own events."""
    line = head.lstrip().partition("\n")[0]
    if not line.startswith("{") or '"producer"' not in line or '"anchor"' not in line:
        return False
    try:
        wire.from_json(json.loads(line))
    except (ValueError, KeyError, TypeError):
        return False
    return True
