"""What is wrong with the state that an attempt resumed from.

A checkpoint that cannot be read, or is not found, makes many programs start over without a word:
that looks like a clean restart and costs everything since.
"""

from headway.incidents.reading import Reading
from headway.ledger.checkpoints import Checkpoint


def resume_warnings(reading: Reading, first: int, last: int, opened: int) -> tuple[str, ...]:
    """Return what is wrong with the state that attempt `last` trained from.

    `opened` is when the incident of attempt `first` opened, in ns: what counted as durable then
    was to be resumed from.
    """
    held = reading.accounts[last]
    base = held.segments[0].base
    found = []
    if base == 0 and reading.highest(first) > 0:
        asked = next(
            (
                record.requested
                for log in held.attempt.ranks.values()
                for _, record in log.resumed
                if record.requested is not None
            ),
            None,
        )
        wish = "" if asked is None else f" although {asked!r} was asked for"
        found.append(f"restarted from scratch{wish}")
    passed = _newest_claimed(reading, first, base, opened)
    if passed is not None:
        found.append(
            f"resumed at step {base}, below checkpoint {passed.identity!r} of step {passed.step}"
        )
    return tuple(found)


def _newest_claimed(reading: Reading, first: int, base: int, time: int) -> Checkpoint | None:
    """Return the newest checkpoint of the lineage beyond a step that counted as durable then."""
    best = None
    for position, limit in reading.lineage(first, base):
        attempt = reading.accounts[reading.ledger.book.chain[position].attempt].attempt
        for save in reading.saves[attempt.identity]:
            seen = save.finalized if save.finalized is not None else save.durable_since
            if (
                seen is not None
                and seen <= time
                and save.tier != "memory"
                and save.step > (base if best is None else best.step)
                and (limit is None or save.step <= limit)
            ):
                best = save
    return best
