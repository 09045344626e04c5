"""Whom an alert reaches: the routes of a site, walked as Alertmanager walks its tree.

A route takes what all its matchers match; its own routes are tried first, and the first that takes
the alert has it, unless it says that the search goes on. Pure.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from headway.alerts.matching import Matcher, matching

GROUP_WAIT, GROUP_INTERVAL, REPEAT_INTERVAL = 3, 60, 4 * 3600
"""Seconds before a first notice, between two about changes, and before one is said again."""
GROUP_BY = ("subject",)
"""What alerts of one notice share: the run, or the node, that they are about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """One branch of the tree; times in seconds, `None` as for the route that holds it.

    `escalate_to` is the receiver that hears of a page which nobody acknowledged in
    `escalate_after` seconds.
    """

    receiver: str | None = None
    matchers: tuple[Matcher, ...] = ()
    routes: tuple["Route", ...] = ()
    goes_on: bool = False
    group_wait: int | None = None
    group_interval: int | None = None
    repeat_interval: int | None = None
    mute: tuple[str, ...] = ()
    escalate_to: str | None = None
    escalate_after: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """Where an alert goes: the receiver, its times in seconds, and the route that sent it there.

    `path` are the positions of the routes from the root; empty means that no route took it and the
    default receiver has it.
    """

    receiver: str
    path: tuple[int, ...]
    group_wait: int
    group_interval: int
    repeat_interval: int
    mute: tuple[str, ...]
    escalate_to: str | None
    escalate_after: int | None

    @property
    def is_default(self) -> bool:
        """Whether no route of the site took it."""
        return not self.path


def ways(root: Route, labels: Mapping[str, str]) -> list[Way]:
    """Return every way of an alert with these labels, in order of the routes.

    Raises:
        ValueError: a root without a receiver.
    """
    if root.receiver is None:
        raise ValueError("the root of the routes names no receiver, so that some alerts reach none")
    start = Way(
        receiver=root.receiver,
        path=(),
        group_wait=_first(root.group_wait, GROUP_WAIT),
        group_interval=_first(root.group_interval, GROUP_INTERVAL),
        repeat_interval=_first(root.repeat_interval, REPEAT_INTERVAL),
        mute=root.mute,
        escalate_to=root.escalate_to,
        escalate_after=root.escalate_after,
    )
    return list(_walk(root.routes, labels, start)) or [start]


def _walk(routes: Sequence[Route], labels: Mapping[str, str], above: Way) -> Iterator[Way]:
    for position, route in enumerate(routes):
        if not matching(route.matchers, labels):
            continue
        here = Way(
            receiver=route.receiver or above.receiver,
            path=(*above.path, position),
            group_wait=_first(route.group_wait, above.group_wait),
            group_interval=_first(route.group_interval, above.group_interval),
            repeat_interval=_first(route.repeat_interval, above.repeat_interval),
            mute=route.mute,
            escalate_to=route.escalate_to or above.escalate_to,
            escalate_after=_either(route.escalate_after, above.escalate_after),
        )
        deeper = list(_walk(route.routes, labels, here))
        yield from deeper or [here]
        if not route.goes_on:
            return


def _first(own: int | None, inherited: int) -> int:
    return inherited if own is None else own


def _either(own: int | None, inherited: int | None) -> int | None:
    return inherited if own is None else own
