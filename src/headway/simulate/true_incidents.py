"""The incidents of a simulated run as the simulator itself knows them."""

from dataclasses import dataclass

from headway.simulate.attempt import Attempt

HOLDS_AFTER = 10
"""Steps beyond the old highest with which an incident closes."""


@dataclass(slots=True, kw_only=True)
class TrueIncident:
    """One incident; times of the run in ns. `labels` are those of all troubles that joined.

    `highest` is the highest step before it, `attempts` how many followed before one held, `layer`
    and `rollback_steps` those of the last of them.
    """

    labels: list[str]
    cause: str
    suspect_rank: int | None
    suspect_node: str | None
    opened: int
    highest: int
    attempts: int = 0
    closed: bool = False
    recovered: int | None = None
    layer: str | None = None
    rollback_steps: int | None = None


class IncidentLog:
    """Incidents in order; at most the last one is open."""

    def __init__(self) -> None:
        self.incidents: list[TrueIncident] = []

    @property
    def current(self) -> TrueIncident | None:
        """The incident that has not closed."""
        last = self.incidents[-1] if self.incidents else None
        return None if last is None or last.closed else last

    def strike(self, incident: TrueIncident) -> None:
        """Open an incident, or let its trouble join the one that has not closed."""
        if self.current is None:
            self.incidents.append(incident)
        else:
            self.current.labels += incident.labels

    def began(self) -> None:
        """Another attempt follows."""
        if self.current is not None:
            self.current.attempts += 1

    def trained(self, time: int) -> None:
        """An attempt completed its first step."""
        if self.current is not None:
            self.current.recovered = time

    def progressed(self, attempt: Attempt, completed: int, saved: bool) -> None:
        """Close once the attempt holds: a save of its own is durable, or it is well beyond."""
        current = self.current
        if current is not None and (saved or completed >= current.highest + HOLDS_AFTER):
            self._resolve(current, attempt)
            current.closed = True

    def close(self, attempt: Attempt, trains: bool) -> tuple[TrueIncident, ...]:
        """Return the incidents of a run that is over, whose last attempt trained until then or not.

        A group that was told to stop and never came back was not interrupted.
        """
        current = self.current
        if current is not None and current.attempts:
            self._resolve(current, attempt)
            current.closed = trains and attempt.steps > 0
        elif current is not None and current.suspect_rank is None:
            self.incidents.pop()
        return tuple(self.incidents)

    def _resolve(self, incident: TrueIncident, attempt: Attempt) -> None:
        incident.layer = attempt.layer
        if attempt.steps:
            incident.rollback_steps = max(incident.highest - attempt.base, 0)
