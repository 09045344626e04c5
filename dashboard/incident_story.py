"""One incident's story: evidence, attempts and what people said, in order. Pure functions."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import tzinfo
from html import escape

from headway.dashboard.incident_rows import Told, readable
from headway.wording import count, duration, plain, remark, when

_KINDS: Mapping[str, str] = {
    "evidence": "",
    "echo": "echo",
    "attempt": "attempt",
    "recovery": "recovery",
    "person": "said",
}
STYLE = """<style>
.hw-story { list-style: none; margin: 0 !important; padding: 0 !important; max-width: 60rem;
  font-size: 0.95rem; }
.hw-story li { display: grid; list-style: none; grid-template-columns: 6.5rem 1fr;
  gap: 0.2rem 0.9rem;
  padding: 0.35rem 0.6rem; border-left: 3px solid rgba(123,135,148,0.45); margin: 0; }
.hw-story .hw-moment { text-align: right; font-variant-numeric: tabular-nums; opacity: 0.8;
  white-space: nowrap; }
.hw-story .hw-words { overflow-wrap: anywhere; }
.hw-story .hw-where { opacity: 0.8; white-space: nowrap; }
.hw-story .hw-badge { display: inline-block; font-size: 0.75rem; font-weight: 600;
  border: 1px solid currentColor; border-radius: 4px; padding: 0 0.35rem; margin-right: 0.5rem; }
.hw-story li.hw-first { border-left-color: #D55E00; background: rgba(213,94,0,0.14);
  font-weight: 600; }
.hw-story li.hw-recovery { border-left-color: #009E73; }
.hw-story li.hw-person { border-left-color: #0072B2; }
@media (max-width: 640px) { .hw-story li { grid-template-columns: 1fr; }
  .hw-story .hw-moment { text-align: left; font-size: 0.8rem; } }
</style>"""
"""Looks of the story; a page that shows it puts it first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """One line of an incident's story; the time is UTC ns."""

    time: int
    words: str
    where: str = ""
    kind: str = "evidence"
    first_fault: bool = False
    decides: bool = False


def story(one: Told) -> list[Moment]:
    """Return everything that happened in an incident in order of time.

    Evidence, what the attempts did and what people said stand in one list.
    """
    return sorted(_moments(one), key=lambda moment: (moment.time, not moment.first_fault))


def _moments(one: Told) -> Iterator[Moment]:
    for place, seen in enumerate(one["observations"]):
        where = seen["node"] or ""
        rank = "" if seen["rank"] is None else f"rank {seen['rank']}"
        if rank and f"on {rank}:" not in f"{seen['words']}:":
            where = f"{rank} on {where}" if where else rank
        yield Moment(
            time=seen["time"],
            words=readable(seen["words"]),
            where=where,
            kind="echo" if seen["echo"] else "evidence",
            first_fault=place == one["first_fault"],
            decides=place == one["decided_by"],
        )
    for tried in one["tries"]:
        state = "" if tried["resumed"] is None else f" from step {count(tried['resumed'])}"
        layer = plain(tried["layer"])
        yield Moment(
            time=tried["start"] if tried["began"] is None else tried["began"],
            words=f"Attempt {tried['number']} begins{state}, started by the {_layer(layer)}",
            kind="attempt",
        )
        if tried["cause"] is not None:
            yield Moment(
                time=tried["end"],
                words=f"Attempt {tried['number']} breaks: {plain(tried['cause'])}",
                kind="attempt",
            )
    for name, words in (
        ("recovered", "Training goes on: the first step after resuming is done"),
        ("caught_up", "Caught up: the old highest step is done again"),
        ("closed", "Closed: the attempt held"),
    ):
        if one[name] is not None:
            yield Moment(time=one[name], words=words, kind="recovery")
    for said in one["history"]:
        yield Moment(
            time=said["time"], words=remark(said), where=said["author"] or "", kind="person"
        )


def _layer(layer: str) -> str:
    return {"in process": "wrapper inside the process"}.get(layer, layer)


def timeline(one: Told, zone: tzinfo) -> str:
    """Return the story of an incident as a list; the first fault stands out."""
    items = "".join(_item(moment, one["opened"], zone) for moment in story(one))
    return f'<ol class="hw-story">{items}</ol>'


def _item(moment: Moment, opened: int, zone: tzinfo) -> str:
    after = moment.time - opened
    offset = "" if after < 0 else f"+{duration(after)}"
    if after < 0:
        offset = f"{duration(-after)} before"
    badges = [
        "first fault" if moment.first_fault else _KINDS[moment.kind],
        "decides" if moment.decides else "",
    ]
    label = "".join(f'<span class="hw-badge">{escape(badge)}</span>' for badge in badges if badge)
    where = f'<span class="hw-where">{escape(moment.where)}</span>' if moment.where else ""
    kind = "hw-first" if moment.first_fault else f"hw-{moment.kind}"
    return (
        f'<li class="{kind}"><span class="hw-moment" title="{escape(when(moment.time, zone))}">'
        f"{escape(offset)}</span>"
        f'<span class="hw-words">{label}{escape(moment.words)} {where}</span></li>'
    )
