"""A part of a run as one plain object, for API and terminal: formulas and exclusions said."""

from collections.abc import Sequence
from typing import Any

from headway.ledger import Ledger, Range
from headway.ledger.ratios import checkpoint_efficiency
from headway.metrics import INFRASTRUCTURE_FORMULA, TRAINING_FORMULA
from headway.report import bounds, formula_object
from headway.windows import Window, sliding, window


def window_report(
    ledger: Ledger, start: int, end: int, excluded: Sequence[tuple[int, int]] = ()
) -> dict[str, Any]:
    """Return the ledger between two times in UTC ns without the excluded stretches.

    Raises:
        ValueError: a stretch that ends before it starts.
    """
    return {
        "run": ledger.run,
        "as_of": ledger.as_of,
        **_window(window(ledger, start, end, excluded)),
    }


def sliding_report(
    ledger: Ledger, length: int, step: int, excluded: Sequence[tuple[int, int]] = ()
) -> dict[str, Any]:
    """Return windows of `length` ns, one every `step` ns, the newest ending at the run's end.

    Raises:
        ValueError: a length or step that is not positive.
    """
    parts = sliding(ledger, length, step, excluded)
    return {"run": ledger.run, "as_of": ledger.as_of, "windows": [_window(part) for part in parts]}


def _window(part: Window) -> dict[str, Any]:
    return {
        "start": part.start,
        "end": part.end,
        "elapsed_ns": part.elapsed,
        "excluded": [{"start": start, "end": end} for start, end in part.excluded],
        "categories": dict(part.categories),
        "training_goodput": _ratio(part.training_goodput, TRAINING_FORMULA),
        "infrastructure_goodput": _ratio(part.infrastructure_goodput, INFRASTRUCTURE_FORMULA),
        "checkpoint_efficiency": checkpoint_efficiency(part.categories),
    }


def _ratio(ratio: Range, formula: str) -> dict[str, Any]:
    return {**bounds(ratio), **formula_object(formula, ratio)}
