"""Cuts what a log holds into lines, and lines into what they say.

Only lines with a mark of some format are looked at closer, and only marks that the chunk holds are
looked for, so that the cost is that of the lines that matter. Nothing in a log raises: what looks
like a format's line and cannot be read is counted as suspicious.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import cast

from headway.importing.rules import Format, Rows, Rule
from headway.importing.sayings import At, Saying, StepLine, StepRun
from headway.importing.stamps import Moment, Stamps

LONGEST = 16_384
"""Characters of a line that are read."""
_HEAD = 72
_STAMPED = 400
_ANSI = re.compile(r"\x1b(?:\[[0-?]{0,40}[ -/]{0,4}[@-~]|[@-Z\\-_])")
_BAR_END = re.compile(r"(?:it/s|s/it)[^\]\n]{0,1000}\]")
_GLUED = re.compile(r"(?<=[^\s\]:>])(?=\[rank\d{1,6}\]:)|(?<=\])(?=\[rank\d{1,6}\]:\[[EWI]\d{4})")
_RANK = re.compile(
    r"^\s{0,3}(?:(?:\[default|\[rank|\[trainer|\[)(\d{1,6})\]:|(\d{1,6}):\s"
    r"|\[[\w.-]{1,80}:(\d{1,6})\]:)|\[rank-?:?\s?(\d{1,6})(?:/\d{1,6})?\]"
    r"|\[(?:PG [^\]]{1,80})?Rank (\d{1,6})\]|\[RANK:(\d{1,6})\]"
)

Take = Callable[[Saying, Moment | None, int | None, str], None]


class LineReader:
    """Reads one stream of lines with the rules of some formats."""

    def __init__(
        self, formats: Iterable[Format], stamps: Stamps, take: Take, *, in_runs: bool = False
    ) -> None:
        """Read with `formats`; `in_runs` takes lines of progress many at a time where it can."""
        formats = list(formats)
        self._in_runs = [
            (one.name, one.rows) for one in formats if in_runs and one.rows is not None
        ]
        self._rules: Sequence[tuple[Rule, str]] = [
            (rule, one.name) for one in formats for rule in one.rules
        ]
        self._stamps = stamps
        self._take = take
        self._rest = ""
        self._skipping = False
        self.relative = False
        """Whether its times count from some begin."""
        self.lines = 0
        self.understood = 0
        self.formats: Counter[str] = Counter()
        """Lines understood by format."""
        self.suspicious: Counter[str] = Counter()
        """Lines that looked like one of a format and were not, or were damaged, by what ailed."""

    @property
    def ignored(self) -> int:
        """Lines that say nothing that is wanted."""
        return self.lines - self.understood - self.suspicious.total()

    def feed(self, text: str, final: bool = False) -> None:
        """Take the next piece of the log; the last one is `final`."""
        if "\r" in text or self._rest.endswith("\r"):
            text = (self._rest + text).replace("\r\n", "\n")
            held = "\r" if text.endswith("\r") and not final else ""
            text = text.removesuffix(held) if held else text
            text = text.replace("\r", "\n") + held
        else:
            text = self._rest + text
        self._rest = ""
        if not final:
            head, newline, tail = text.rpartition("\n")
            if not newline and len(text) < LONGEST:
                self._rest = text
                return
            if newline:
                text, self._rest = head, tail
            if len(self._rest) > LONGEST:
                self._rest = self._rest[:LONGEST]
        self._chunk(text)

    def leave(self) -> None:
        """Leave out a last line without its end: somebody may still be writing it."""
        if self._rest:
            self._rest = ""
            self.lines += 1
            self.suspicious["last line without its end"] += 1

    def _chunk(self, text: str) -> None:
        if "\x1b" in text:
            text = _ANSI.sub("", text)
        if self._in_runs and "\0" not in text:
            for kind, rows in self._in_runs:
                if rows.mark in text:
                    self._runs(text, kind, rows)
                    return
        self._lines(text)

    def _runs(self, text: str, kind: str, rows: Rows) -> None:
        """Take the plain lines of progress of a chunk together, the others between them singly."""
        columns = list(zip(*rows.pattern.findall(text.removesuffix("\n")), strict=True))
        plain, heads, others = columns[0], columns[1], columns[-1]
        number = len(plain)
        if text.count(rows.once) > number - plain.count(""):
            self._lines(text)
            return
        begin = 0
        while begin < number:
            if not plain[begin]:
                end = next((n for n in range(begin, number) if plain[n]), number)
                self._lines("\n".join(others[begin:end]) + "\n")
                begin = end
                continue
            end = _index(plain, "", begin)
            if heads.count(heads[begin]) != number:
                end = next((n for n in range(begin, end) if heads[n] != heads[begin]), end)
            run = rows.run([column[begin:end] for column in columns])
            taken = len(run.texts)
            if taken:
                self._run(run, kind, heads[begin])
            begin += taken
            if not taken:
                self._lines(plain[begin] + "\n")
                begin += 1

    def _run(self, run: StepRun, kind: str, head: str) -> None:
        self.lines += len(run.texts)
        self.understood += len(run.texts)
        self.formats[kind] += len(run.texts)
        moment = self._stamps.read(run.stamps[0]) if run.stamps[0] else None
        self._take(run, moment, rank_of(head), "")

    def _lines(self, text: str) -> None:
        """Take the lines of a piece of text one by one."""
        lines = text.split("\n")
        if lines and not lines[-1]:
            lines.pop()
        if "\0" in text:
            self.suspicious["zero bytes"] += sum("\0" in line for line in lines)
            lines = [line.replace("\0", "") for line in lines]
        self.lines += len(lines)
        active = [pair for pair in self._rules if pair[0].mark in text]
        if not active:
            return
        bars = "it/s" in text or "s/it" in text
        glued = "[rank" in text
        for number, line in enumerate(lines):
            for rule, _ in active:
                if rule.mark in line:
                    break
            else:
                continue
            if len(line) > LONGEST:
                self.suspicious["too long"] += 1
                line = line[:LONGEST]
            parts = [line]
            if bars:
                parts = [piece for part in parts for piece in _after_bar(part)]
            if glued and "[rank" in line:
                parts = [piece for part in parts for piece in _GLUED.split(part)]
            known = False
            for part in parts:
                known |= self._line(part, active, lines, number)
            self.understood += known

    def _line(
        self, line: str, active: Sequence[tuple[Rule, str]], lines: list[str], number: int
    ) -> bool:
        last = moment = None
        dated = False
        rank: int | None = None
        known = False
        for rule, name in active:
            if rule.mark not in line or rule.read is last:
                continue
            last = rule.read
            try:
                found = rule.read(line)
            except (ValueError, OverflowError, IndexError):
                self.suspicious[name] += 1
                continue
            if found is None:
                continue
            if not dated:
                dated = True
                rank = rank_of(line)
                moment = self._moment(line, found)
            if type(found) is tuple and type(found[0]) is At:
                self.relative |= found[0].relative
                moment = Moment(found[0].time, 1)
                found = found[1:]
            known = True
            self.formats[name] += 1
            if type(found) is tuple:
                for one in cast(tuple[Saying, ...], found):
                    self._take(one, moment, rank, line)
            else:
                self._take(cast(Saying, found), moment, rank, line)
        return known

    def _moment(self, line: str, found: object) -> Moment | None:
        if isinstance(found, StepLine):
            return self._stamps.read(line[:_HEAD])
        return self._stamps.read(line[:_STAMPED])


def _index(listed: Sequence[str], value: str, begin: int) -> int:
    """Return where a value stands from a place on, the end of the list if it does not."""
    try:
        return listed.index(value, begin)
    except ValueError:
        return len(listed)


def _after_bar(line: str) -> list[str]:
    found = _BAR_END.search(line)
    if found is None or not line[found.end() :].strip():
        return [line]
    return [line[: found.end()], line[found.end() :]]


def rank_of(line: str) -> int | None:
    """Return the rank that a line names before its words."""
    head = line[:100]
    found = _RANK.search(head)
    if found is None:
        return None
    return int(next(group for group in found.groups() if group is not None))
