"""The error with which a command refuses: one sentence, the next step, no traceback."""

NO = 1
WRONG_USE = 2


class Refusal(Exception):  # noqa: N818  # a command that refuses is not a program that erred
    """What a command could not do, what the user does next, and the exit status."""

    def __init__(
        self, sentence: str, next_step: str | None = None, *, status: int = WRONG_USE
    ) -> None:
        """Keep the status; the message is both parts, one a line."""
        super().__init__(sentence if next_step is None else f"{sentence}\n{next_step}")
        self.status = status
