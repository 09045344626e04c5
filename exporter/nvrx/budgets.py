"""How many restarts the launcher has left, as far as its environment tells a rank.

TORCHELASTIC_RESTART_COUNT is the number of restarts in torchrun and NVRx 0.4 and 0.5, and from
0.6 on the number of the cycle, which also counts what did not use up a restart. So what is left
by it is a lower bound there; where `headway run` reads the launcher's own figure, that follows
in the record and counts.
"""

from collections.abc import Mapping

from headway.events import RestartBudget
from headway.exporter.recording.recorder import Recorder


def launcher_budget(environment: Mapping[str, str]) -> RestartBudget | None:
    """Return what the environment tells; None if no launcher of torchelastic's kind started us."""
    limit = environment.get("TORCHELASTIC_MAX_RESTARTS", "")
    count = environment.get("TORCHELASTIC_RESTART_COUNT", "")
    if not (limit.isdecimal() and count.isdecimal()):
        return None
    allowed = int(limit)
    return RestartBudget(layer="launcher", remaining=max(allowed - int(count), 0), limit=allowed)


def record_launcher_budget(recorder: Recorder, environment: Mapping[str, str]) -> None:
    """Record what the launcher has left; the first rank speaks for all."""
    budget = launcher_budget(environment)
    if budget is not None and environment.get("RANK", "0") == "0":
        recorder.record(budget)
