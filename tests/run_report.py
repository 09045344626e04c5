"""The report on one run, from the envelopes that its producers recorded."""

from collections.abc import Sequence
from typing import Any

from headway.events import Envelope
from headway.ledger import Timeline
from headway.report import report


def report_on(envelopes: Sequence[Envelope]) -> dict[str, Any]:
    """Return the report on the only run of some envelopes, as of the newest of them."""
    (run,) = {envelope.run for envelope in envelopes if envelope.run is not None}
    timeline = Timeline(run)
    timeline.add(envelopes)
    return report(timeline.ledger(max(each.anchor + each.monotonic for each in envelopes)))
