"""The Health page: whether what the other pages say can be trusted, and who sends nothing."""

from collections.abc import Callable, Mapping, Sequence
from statistics import median, median_low
from typing import Any

import streamlit as st

from headway.dashboard import markup, numbers, source
from headway.dashboard.views import reader
from headway.wording import UNKNOWN, count, counted, duration, percent, plain, size, when

_MOST_ROWS = 100
_MILLISECOND = 1_000_000
_NO_STEP = "no recorder told it yet"
_NO_AGENT = "no agent told it yet"
_OUTCOMES: Mapping[str, str] = {
    "stored": "Taken and kept.",
    "duplicate": "Sent again by an agent that had no answer; counted once.",
    "quarantined": "Not understood; kept aside with the reason.",
    "refused": "Telemetry of other programs, which is not kept.",
}
_REQUESTS: Mapping[str, str] = {
    "taken": "Answered and stored.",
    "malformed": "No OTLP at all.",
    "unknown_form": "Of a kind that the collector does not read.",
    "too_large": "Larger than the collector's limit.",
    "busy": "Turned away for the moment; the agent sends it again.",
    "gone": "The sender left before its request was whole.",
}


@reader.framed
def page() -> None:
    """Draw the page and keep it fresh."""
    st.title("Health")
    reader.refreshed(_show)


def _show() -> None:
    health = source.answer("health")
    quality = source.answer("health/runs", limit=_MOST_ROWS)
    senders = source.answer("health/nodes", limit=_MOST_ROWS)
    if health["failing"] is not None:
        reader.missing(
            f"The collector cannot store events at present: {health['failing']}.",
            "Free space or mend the disk of its database; agents keep what they could not send.",
        )
    _stats(health, quality)
    _cost(quality, senders)
    _runs(quality)
    _nodes(senders, health["time"])
    _arrivals(health)
    _refused(health)
    _versions(health, quality)


def _stats(health: Mapping[str, Any], quality: Mapping[str, Any]) -> None:
    lag, asked = health["lag_ns"], source.query("health")
    dropped = sum(run["dropped_events"] for run in quality["runs"])
    with numbers.row("health") as row:
        row.number(
            "Ingest lag, p99",
            duration(lag.get("p99")) if lag else "nothing arrives",
            delta=f"longest {duration(lag['longest'])}" if lag else "in the last minute",
            definition="Time from an event until it was durable in the collector, of what was "
            "stored in the last minute; 99 of 100 events took no longer.",
            query=asked,
        )
        row.number(
            "Open gaps",
            count(health["open_gaps"]),
            delta="in the numbers of senders",
            definition="Ranges of sequence numbers of which the collector has neither the records "
            "nor word of their loss: they are still on their way, or were lost with a disk.",
            query=asked,
        )
        row.number(
            "Dropped events",
            count(dropped),
            delta=f"in {counted(len(quality['runs']), 'run')} listed below",
            definition="Events that their recorders had to leave out, by their own count, because "
            "a queue or a disk was full. A ledger with dropped events may miss something.",
            query=source.query("health/runs", limit=_MOST_ROWS),
        )
        row.number(
            "Quarantined",
            count(health["records"].get("quarantined")),
            delta="records since the collector began",
            definition="Records that the collector could not read; each is kept with its reason.",
            query=source.query("quarantine"),
        )
        row.number(
            "Lost with a log",
            count(health["lost_records"]),
            delta=counted(health["recoveries"], "damaged log mended", "damaged logs mended"),
            definition="Records that were lost because the database's log was damaged; after such "
            "a loss a ledger may miss time.",
            query=asked,
        )


def _cost(quality: Mapping[str, Any], senders: Mapping[str, Any]) -> None:
    by_run, by_node = source.query("health/runs", limit=_MOST_ROWS), source.query("health/nodes")
    numbers.heading(
        "What recording costs",
        "What recorders and agents measured of themselves, once a minute each. A recorder writes "
        "to a file on its own node and waits for nobody; an agent ships what lies there. "
        "`scripts/bench recorder` and `scripts/bench agent` measure more on your machines.",
        by_run,
        key="cost",
    )
    told = quality["recording"]
    agents = [one for one in senders["nodes"] if one["agent_cpu"] is not None]
    steps = sum(one["steps"] for one in told)
    with numbers.row("own-cost") as row:
        row.number(
            "Recorder, per step",
            small(median_low(one["median_ns"] for one in told)) if told else "not measured",
            delta=f"longest {small(max(one['highest_ns'] for one in told))}" if told else _NO_STEP,
            definition="Time that the training spent in the recorder at one step: the median of "
            f"{counted(len(told), 'run')}, each the median of its newest measured steps, "
            f"{count(steps)} in all. One step a minute is measured, on one rank of each node.",
            query=by_run,
        )
        row.number(
            "Agent, of one core",
            percent(median(one["agent_cpu"] for one in agents)) if agents else "not measured",
            delta=_most(agents, "agent_cpu", percent) or _NO_AGENT,
            definition="Share of one core that the node's agent used in its newest minute: the "
            f"median of {counted(len(agents), 'node')}.",
            query=by_node,
        )
        row.number(
            "Agent, memory",
            size(median_low(one["agent_memory"] for one in agents)) if agents else "not measured",
            delta=_most(agents, "agent_memory", size) or _NO_AGENT,
            definition="Memory that the node's agent held when it last told: the median of "
            f"{counted(len(agents), 'node')}.",
            query=by_node,
        )


def small(ns: int) -> str:
    """Return a time so short that microseconds matter: `0.9 us`, `1.2 ms`."""
    return f"{ns / 1_000:.1f} us" if ns < _MILLISECOND else duration(ns)


def _most(agents: Sequence[Mapping[str, Any]], field: str, words: Callable[[Any], str]) -> str:
    """Return the node whose agent takes most; empty without any."""
    if not agents:
        return ""
    worst = max(agents, key=lambda one: one[field])
    return f"most {words(worst[field])} on {worst['node']}"


def _runs(quality: Mapping[str, Any]) -> None:
    asked = source.query("health/runs", limit=_MOST_ROWS)
    numbers.heading(
        "Runs with flaws in their data",
        "Runs of which events were dropped, or whose events contradict each other. Their ledgers "
        "are right about what arrived and may miss what did not.",
        asked,
        key="flaws",
    )
    if not quality["runs"]:
        st.caption("None: no event was dropped, and nothing in the events contradicts itself.")
        return
    rows = [
        (
            markup.run_link(run["run"], run["run"]),
            plain(run["state"]),
            count(run["dropped_events"]),
            ", ".join(f"{plain(kind)} {count(n)}" for kind, n in run["problems"].items()) or "none",
            UNKNOWN if run["last_event"] is None else when(run["last_event"], reader.zone()),
        )
        for run in quality["runs"]
    ]
    columns = ("Run", "State", "#Dropped events", "Contradictions", "Last event")
    st.html(markup.table("Runs with flaws in their data", columns, rows, wide=(3,)))
    _rest(len(rows), quality["of"])


def _nodes(senders: Mapping[str, Any], now: int) -> None:
    numbers.heading(
        "Nodes",
        "Nodes of which something was heard within a day, the longest silent first. The clock's "
        "offset is how far the node's clock lags behind the collector's, as its agent measured.",
        source.query("health/nodes", limit=_MOST_ROWS),
        key="nodes",
    )
    if not senders["nodes"]:
        st.caption("Nothing was heard of any node within a day. Is `headway agent` running there?")
        return
    rows = [
        (
            markup.link(markup.address("hardware", node=one["node"]), one["node"]),
            duration(max(0, now - one["heard"]) // 10**9 * 10**9) + " ago",
            UNKNOWN if one["clock_offset_ns"] is None else duration(one["clock_offset_ns"]),
            UNKNOWN if one["clock_error_ns"] is None else duration(one["clock_error_ns"]),
            UNKNOWN if one["agent_cpu"] is None else percent(one["agent_cpu"]),
            UNKNOWN if one["agent_memory"] is None else size(one["agent_memory"]),
            one["agent_version"] or UNKNOWN,
        )
        for one in senders["nodes"]
    ]
    columns = (
        "Node",
        "#Last heard",
        "#Clock offset",
        "#Its error",
        "#Agent's share of a core",
        "#Its memory",
        "Its version",
    )
    st.html(markup.table("Nodes", columns, rows))
    _rest(len(rows), senders["of"])


def _arrivals(health: Mapping[str, Any]) -> None:
    numbers.heading(
        "What arrived",
        "Records and requests since the collector began, by what became of them.",
        source.query("health"),
        key="arrived",
    )
    left, right = st.columns(2, gap="large")
    for column, title, found, words in (
        (left, "Records", health["records"], _OUTCOMES),
        (right, "Requests", health["requests"], _REQUESTS),
    ):
        rows = [(plain(name), count(n), words.get(name, "")) for name, n in found.items()]
        with column:
            st.html(markup.table(title, (title, "#Count", "Meaning"), rows, wide=(2,)))
    st.caption(f"{size(health['bytes_in_flight'])} of requests are on their way into the store.")


def _refused(health: Mapping[str, Any]) -> None:
    if not health["records"].get("quarantined"):
        return
    numbers.heading(
        "Newest quarantined records",
        "Records that the collector could not read, and why. An agent that is newer than the "
        "collector is the usual reason.",
        source.query("quarantine", limit=20),
        key="quarantine",
    )
    rows = [
        (when(one["received"], reader.zone()), one["reason"])
        for one in source.answer("quarantine", limit=20)["records"]
    ]
    st.html(markup.table("Quarantined records", ("Received", "Reason"), rows, wide=(1,)))


def _versions(health: Mapping[str, Any], quality: Mapping[str, Any]) -> None:
    numbers.heading(
        "Versions",
        "What the collector runs with, and the libraries that runs say they use.",
        source.query("health/runs", limit=_MOST_ROWS),
        key="versions",
    )
    rows = [(library, number, "the collector") for library, number in health["versions"].items()]
    rows += [
        (one["library"], one["version"], counted(one["runs"], "run"))
        for one in quality["versions"][: _MOST_ROWS - len(rows)]
    ]
    st.html(markup.table("Versions", ("Library", "Version", "Used by"), rows, narrow=True))


def _rest(shown: int, whole: int) -> None:
    if whole > shown:
        st.caption(f"The first {count(shown)} of {count(whole)}.")
