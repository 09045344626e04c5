"""Files that are one JSON document: results of the NVRx benchmark, cycles, Kubernetes objects."""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from headway.events import Scalar
from headway.importing import benchmark_figures, kubernetes, nvrx_benchmark
from headway.importing.merging import Told
from headway.importing.sayings import Began, Published, Remark, Saying, StepLine
from headway.importing.stamps import Moment, Stamps

_DOCUMENT = re.compile(r'\s{0,100}(?:\{\s{0,100}"|\[\s{0,100}\{)')
_CYCLE = ("cycle_number", "cycle_start_time", "active_nodes")


def begins_document(head: str) -> bool:
    """Whether a text may be one JSON document: no log, and no object a line."""
    if _DOCUMENT.match(head) is None:
        return False
    line, _, rest = head.lstrip().partition("\n")
    return not rest.strip() or document_of(line) is None


def document_of(text: str) -> Any:
    """Return the JSON document that a text is, None if it is something else."""
    if text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def kind_of(document: object) -> str | None:
    """Return the name of the format of a document, None if it is not known."""
    return next((name for name, (fits, _) in _KINDS.items() if fits(document)), None)


def read(document: Any, stamps: Stamps) -> list[Told]:
    """Return what a document tells, in the order of time."""
    name = kind_of(document)
    if name is None:
        return []
    found: list[Told] = []
    for saying, moment, rank in _KINDS[name][1](document, stamps):
        line = f"{name} {len(found)}"  # no two of them are the same line again
        found.append(Told(0 if moment is None else moment.time, saying, moment, rank, line))
    return sorted(found, key=lambda told: told.time)


Row = tuple[Saying, Moment | None, int | None]


def _results(document: Mapping[str, Any], stamps: Stamps) -> Iterable[Row]:
    figures: dict[str, Scalar] = {
        str(name): value
        for name, value in document.items()
        if isinstance(value, str | int | float) and not isinstance(value, bool)
    }
    for name, value in benchmark_figures.corrected(document).items():
        figures[f"corrected {name}"] = value
    kind = benchmark_figures.restart_type(document)
    if kind is not None:
        figures["restart_type"] = kind
    yield Published(figures=figures), None, None


def _is_cycle(document: object) -> bool:
    return isinstance(document, dict) and all(name in document for name in _CYCLE)


def _cycle(document: Mapping[str, Any], stamps: Stamps) -> Iterable[Row]:
    number = document.get("cycle_number")
    begin = stamps.read(str(document.get("cycle_start_time") or ""))
    end = stamps.read(str(document.get("cycle_end_time") or ""))
    if not isinstance(number, int) or begin is None:
        return
    yield Began(layer="launcher", restarts=number), begin, None
    if end is not None:
        yield Remark(kind="launcher", text=f"cycle {number} ended"), end, None


def _is_trainer_state(document: object) -> bool:
    return isinstance(document, dict) and {"global_step", "log_history"} <= document.keys()


def _trainer_state(document: Mapping[str, Any], stamps: Stamps) -> Iterable[Row]:
    """Yield the steps that a Hugging Face `trainer_state.json` tells; it has no times."""
    target, history = document.get("max_steps"), document["log_history"]
    for entry in history if isinstance(history, list) else []:
        step, loss = (entry.get("step"), entry.get("loss")) if isinstance(entry, dict) else (0, 0)
        if not isinstance(step, int) or not 0 < step < 10**12 or loss is None:
            continue
        known = isinstance(loss, int | float) and not isinstance(loss, bool)
        yield (
            StepLine(
                step=step,
                printed=step,
                form="state",
                target=target if isinstance(target, int) and target > 0 else None,
                loss=float(loss) if known else None,
            ),
            None,
            None,
        )


_Read = Callable[[Any, Stamps], Iterable[Row]]
_KINDS: Mapping[str, tuple[Callable[[object], bool], _Read]] = {
    "nvrx-benchmark": (nvrx_benchmark.is_results, _results),
    "nvrx": (_is_cycle, _cycle),
    "huggingface": (_is_trainer_state, _trainer_state),
    "kubernetes": (kubernetes.is_objects, kubernetes.sayings),
}
