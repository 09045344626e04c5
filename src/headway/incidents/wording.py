"""An incident as one sentence: what, whose, and what it cost."""

from headway import wording
from headway.incidents.model import Incident


def headline(incident: Incident, as_of: int) -> str:
    """Return the sentence that a page, a terminal and an alert begin with."""
    what = incident.cause.replace("_", " ").replace("gpu", "GPU").replace("oom", "OOM")
    if incident.suspect_rank is not None:
        what += f" on rank {incident.suspect_rank}"
        what += f" ({incident.suspect_node})" if incident.suspect_node else ""
    elif incident.suspect_node is not None:
        what += f" on {incident.suspect_node}"
    parts = [what[0].upper() + what[1:]]
    if incident.suspect_gpu is not None:
        again = incident.gpu_repeats or 1
        week = f", for the {_ordinal(again)} time this week" if again > 1 else ""
        parts.append(f"{incident.suspect_gpu} is to blame{week}")
    if incident.recovered is not None:
        parts.append(f"recovered after {wording.duration(incident.recovered - incident.opened)}")
    elif incident.outcome == "not_recovered":
        parts.append("not recovered")
    else:
        parts.append(f"not recovered for {wording.duration(as_of - incident.opened)}")
    if incident.rollback_steps:
        lost = wording.counted(incident.rollback_steps, "step")
        parts.append(f"{lost} rolled back ({wording.duration(incident.rollback)})")
    if len(incident.tries) > 1:
        parts.append(f"{len(incident.tries)} attempts to recover")
    return "; ".join(parts) + "."


def _ordinal(number: int) -> str:
    words = ("zeroth", "first", "second", "third", "fourth", "fifth")
    return words[number] if number < len(words) else f"{number}th"
