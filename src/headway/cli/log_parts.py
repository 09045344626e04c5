"""Files of one command as the parts of a log: in the order of time, and none of them twice."""

from collections import defaultdict
from collections.abc import Sequence
from datetime import tzinfo

from headway.cli.log_files import LogFile
from headway.importing.stamps import Stamps


def parts(files: Sequence[LogFile], zone: tzinfo, year: int | None) -> list[LogFile]:
    """Return files by their first stamps, those without one first, as they are given.

    A stamped file whose text another one begins with, such as its packed twin or an older copy,
    is skipped: what it tells is told already.
    """
    times = {}
    for one in files:
        stamp = Stamps(zone=zone, year=year, latest=one.changed).read(one.head())
        times[id(one)] = 0 if stamp is None else stamp.time
    kept: list[LogFile] = []
    alike: defaultdict[tuple[int, int | None], list[LogFile]] = defaultdict(list)
    for one in sorted(files, key=lambda file: times[id(file)]):
        time = times[id(one)]
        others = alike[time, one.rank]
        for place, other in enumerate(others if time else ()):
            within = _contained(one, other)
            if within is one:
                one.skipped = f"all of it is in {other.path}"
                break
            if within is other:
                other.skipped = f"all of it is in {one.path}"
                others[place] = kept[kept.index(other)] = one
                break
        else:
            others.append(one)
            kept.append(one)
    return kept


def _contained(one: LogFile, other: LogFile) -> LogFile | None:
    """Return which of two files is the begin of the other, or the same; None if neither is."""
    mine, theirs = one.pieces(), other.pieces()
    left, right = "", ""
    try:
        while True:
            left = left or next(mine, "")
            right = right or next(theirs, "")
            if not left:
                return one
            if not right:
                return other
            common = min(len(left), len(right))
            if left[:common] != right[:common]:
                return None
            left, right = left[common:], right[common:]
    finally:
        one.read = other.read = 0
        one.torn = other.torn = None
