"""What keeps a collector from answering: each error is one sentence with the next step.

They are ready to be shown to a person.
"""


class CollectorError(RuntimeError):
    """The collector did not give the answer; `sentence` says why, `next_step` what to do."""

    def __init__(self, sentence: str, next_step: str) -> None:
        """Keep both parts for views that show them apart."""
        super().__init__(f"{sentence} {next_step}")
        self.sentence = sentence
        self.next_step = next_step


class CollectorUnreachable(CollectorError):  # noqa: N818  # the condition reads as a name
    """Nothing answers at the endpoint, or not in time."""


class CollectorTimedOut(CollectorUnreachable):
    """The collector took longer than the client waits."""


class UnknownRun(CollectorError):  # noqa: N818  # the condition reads as a name
    """The collector has no such run."""


class UnknownIncident(CollectorError):  # noqa: N818  # the condition reads as a name
    """The collector has no such incident."""


class UnknownNode(CollectorError):  # noqa: N818  # the condition reads as a name
    """The collector knows nothing of such a node."""


class UnknownQuestion(CollectorError):  # noqa: N818  # the condition reads as a name
    """The collector has no such saved question."""


class CollectorRefused(CollectorError):  # noqa: N818  # the condition reads as a name
    """The collector answered with an error: wrong token, not ready, wrong request."""


class CollectorBusy(CollectorRefused):
    """The collector cannot answer now, and says that it can in a moment."""
