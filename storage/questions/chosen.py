"""What most questions share: which incidents are meant, by run, team, cause and time."""

from headway.events import CAUSES
from headway.storage.questions.model import Parameter

RUN = Parameter(name="run", sentence="Only this run, by its identity or its name.")
TEAM = Parameter(name="team", sentence="Only runs of this team, by their labels.")
CAUSE = Parameter(name="cause", sentence="Only incidents of this cause.", choices=tuple(CAUSES))
SINCE = Parameter(name="since", sentence="Only what opened at it or later.", kind="time")
UNTIL = Parameter(name="until", sentence="Only what opened before it.", kind="time")
CHOICE = (RUN, TEAM, CAUSE, SINCE, UNTIL)
"""Parameters of `of_chosen`."""

_CHOSEN = """\
WITH chosen AS (
  SELECT i.*, r.run_name, r.team, r.gpus
  FROM v_incidents AS i JOIN v_runs AS r ON r.run = i.run
  WHERE ($run IS NULL OR $run IN (i.run, r.run_name))
    AND ($team IS NULL OR r.team = $team)
    AND ($cause IS NULL OR i.cause = $cause)
    AND ($since IS NULL OR i.opened >= $since)
    AND ($until IS NULL OR i.opened < $until)
)"""
"""The incidents that are meant, with what their runs say."""


def of_chosen(rest: str) -> str:
    """Return a statement over `chosen`; `rest` begins with what follows that table."""
    return _CHOSEN + rest


def limit(rows: int) -> Parameter:
    """Return the parameter of the most rows of an answer."""
    return Parameter(
        name="limit",
        sentence="Most rows.",
        kind="integer",
        default=rows,
        lowest=1,
        highest=100_000,
    )
