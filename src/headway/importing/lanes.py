"""What one rank's lines have told so far: where it stands, and by its own clock when."""

from dataclasses import dataclass, field

from headway.importing.blocks import Block
from headway.importing.stamps import Moment


@dataclass(slots=True)
class OpenPhase:
    """A phase that began; `untimed` says that no line told when it ended."""

    name: str
    began: int
    step: int | None = None
    ended: int | None = None


@dataclass(slots=True)
class Lane:
    """The lines of one rank, or of all ranks that are not told apart (`rank` None).

    `now` is the time that its lines have reached, in ns, `mark` where its last step or phase ended.
    """

    rank: int | None
    attempt: int
    now: int = 0
    mark: int = 0
    last_step: int | None = None
    last_line: str = ""
    form: str = ""
    pace: int | None = None
    elapsed: int | None = None
    scope: tuple[int, int] | None = None
    target: int | None = None
    block: Block | None = None
    phase: OpenPhase | None = None
    evaluated: bool = False
    """Whether an evaluation was told since the last step."""
    traceback: int = 0
    """Lines for which an exception may still follow a traceback."""
    started: bool = False
    begun: int | None = None
    """When its attempt begins, once that is recorded."""
    fresh: bool = True
    """Whether nothing of its attempt has a time yet."""
    losses: list[float] = field(default_factory=list)

    def reach(self, moment: Moment) -> None:
        """Move to a stamp: the printed durations count as far as the stamp leaves room.

        Within an attempt time only goes on: a clock that was set back, or a summer time that
        ended, moves nothing until its stamps have caught up.
        """
        reached = max(moment.time, min(self.now, moment.time + moment.resolution - 1))
        if self.fresh:
            self.fresh = False
            self.mark = min(self.mark, reached)
        self.now = max(reached, self.mark)

    def shift(self, by: int) -> None:
        """Move all times."""
        self.now += by
        self.mark += by
        if self.begun is not None:
            self.begun += by
        if self.block is not None:
            self.block.start += by
            self.block.end += by
        if self.phase is not None:
            self.phase.began += by
            if self.phase.ended is not None:
                self.phase.ended += by
