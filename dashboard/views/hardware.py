"""The Hardware page: which nodes and GPUs fail, what their faults ask for, what cannot be seen."""

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from headway.dashboard import fleet_rows, heatmap, markup, numbers, source
from headway.dashboard import hardware_rows as rows
from headway.dashboard.views import notes, reader, window
from headway.dashboard.views.window import Window
from headway.wording import UNKNOWN, count, counted, when

_NODE = "node"
_MOST_OFFENDERS = 20
_MOST_STATES = 200
_MOST_LINKS = 50
_SEEN = (
    "Seen are the nodes on which a run had ranks, and those whose agent told of them. Failures of "
    "a node without a run are seen only where its agent runs."
)


@reader.framed
def page() -> None:
    """Draw the page and keep it fresh; the address may name one node."""
    st.title("Hardware")
    known = sorted(one["node"] for one in source.answer("hardware")["gpu_states"])
    if not known:
        reader.wait(
            lambda: bool(source.answer("hardware")["gpu_states"]),
            "No node has been heard yet.",
            "Start `headway agent` on the nodes, or a run.",
        )
        return
    meant = window.chosen("30 days", labels=False)
    node = st.selectbox(
        "Node",
        known,
        index=None,
        key=_NODE,
        bind="query-params",
        accept_new_options=True,
        placeholder="All nodes; choose one, or type its name",
    )
    reader.refreshed(lambda: _show(meant) if node is None else _one(node))


def _show(meant: Window) -> None:
    asked = {"last": meant.length}
    found = source.answer("hardware", **asked)
    nodes = source.answer("nodes", limit=_MOST_OFFENDERS)
    query = source.query("hardware", **asked)
    st.html(markup.lead(rows.headline(found, nodes)))
    st.caption(_SEEN)
    _stats(found, nodes, query)
    _heatmap(meant, found, query)
    _offenders(nodes)
    _faults(found, query)
    _states(found, query)


def _stats(found: Mapping[str, Any], nodes: Mapping[str, Any], query: str) -> None:
    fleet, states = nodes["fleet"], rows.states(found)
    with numbers.row("hardware") as row:
        row.number(
            "Nodes",
            count(found["nodes"]),
            definition="Nodes on which a run had ranks, or whose agent told of itself.",
            query=source.query("nodes", limit=_MOST_OFFENDERS),
            delta=counted(nodes["repeats"], "repeat offender"),
        )
        row.number(
            "Failures per 1,000 node-days",
            UNKNOWN if fleet["rate"] is None else f"{fleet['rate']:,.1f}",
            definition="Failures while a run was there, over the time that runs were there, over "
            "all time; with the exact 95 % interval of a Poisson count (Garwood 1936).",
            query=source.query("nodes", limit=_MOST_OFFENDERS),
            delta=None
            if fleet["rate"] is None
            else f"{fleet['low']:,.1f} to {fleet['high']:,.1f}; "
            f"{counted(fleet['failures'], 'failure')}",
        )
        row.number(
            "GPUs unhealthy",
            counted(states["unhealthy"], "node"),
            definition="Nodes whose agent says that a fault of a GPU lasts.",
            query=query,
        )
        row.number(
            "GPUs not seen",
            counted(states["disabled"] + states["unknown"], "node"),
            definition="Nodes whose agent cannot see their GPUs (no driver, no permission), and "
            "nodes of which no agent told. They may be healthy or not.",
            query=query,
            delta=f"{count(states['healthy'])} healthy",
        )


def _heatmap(meant: Window, found: Mapping[str, Any], query: str) -> None:
    numbers.heading(
        "Failures by node and day",
        "GPU faults that ask for a reset, a reboot or a replacement, and incidents of cause GPU "
        "fault or node lost that are blamed on the node; within five minutes they are one. Days "
        "are UTC. Empty: no run was there and nothing failed, so nobody knows.",
        query,
        key="heatmap",
    )
    told = found["heatmap"]
    if not told["nodes"]:
        st.caption(f"No node was seen in this time ({meant.name}).")
        return
    st.html(heatmap.html(told, "Failures of each node on each day."))
    st.html(markup.colours(heatmap.COLOURS))
    left = told["left_out"]
    more = f"{counted(left, 'node')} that failed less are left out. " if left else ""
    st.caption(f"{more}{meant.words(found)}. The worst nodes come first.")


def _offenders(nodes: Mapping[str, Any]) -> None:
    numbers.heading(
        "Repeat offenders",
        "Nodes that failed at least twice, over all time, by the lower end of the exact 95 % "
        "interval of a Poisson count (Garwood 1936): so one failure in a day does not outrank "
        "eight in a year.",
        source.query("nodes", limit=_MOST_OFFENDERS),
        key="offenders",
    )
    failed = [one for one in nodes["nodes"] if one["repeats"]]
    if not failed:
        st.caption("No node has failed twice.")
        return
    body = [fleet_rows.node_row(one, reader.zone()) for one in failed]
    st.html(markup.table("Repeat offenders", fleet_rows.NODE_COLUMNS, body))
    if nodes["repeats"] > len(body):
        st.caption(f"{count(len(body))} of {count(nodes['repeats'])}.")


def _faults(found: Mapping[str, Any], query: str) -> None:
    numbers.heading(
        "GPU faults",
        "What the kernel's log and the driver told. What a fault asks for is a policy's judgement, "
        "which is named; disputed: known tools judge it differently. Faults within five minutes on "
        "one GPU count once.",
        query,
        key="faults",
    )
    if not found["faults"]:
        st.caption("No GPU fault was told in this time. Nodes that cannot be seen tell of none.")
        return
    body = [rows.fault_row(one, reader.zone()) for one in found["faults"]]
    st.html(markup.table("GPU faults", rows.FAULT_COLUMNS, body, wide=(1, 3)))


def _states(found: Mapping[str, Any], query: str) -> None:
    numbers.heading(
        "State of GPUs",
        "What each node's agent told last; it tells again when that changes. Cannot be seen: the "
        "agent says why. Unknown: no agent told, which is not the same as healthy.",
        query,
        key="states",
    )
    told = [one for one in found["gpu_states"] if one["state"] != "healthy"]
    _state_table(told)
    healthy = found["gpu_states"][len(told) :]
    if healthy:
        with st.expander(counted(len(healthy), "node") + " with healthy GPUs"):
            _state_table(healthy)


def _state_table(states: Sequence[Mapping[str, Any]]) -> None:
    if not states:
        st.caption("No node tells of an unhealthy GPU, and the GPUs of all are seen.")
        return
    body = [rows.state_row(one, reader.zone()) for one in states[:_MOST_STATES]]
    st.html(markup.table("State of GPUs", rows.STATE_COLUMNS, body, wide=(4, 5)))
    if len(states) > len(body):
        st.caption(f"{count(len(body))} of {counted(len(states), 'node')}.")


def _one(node: str) -> None:
    found = source.answer("nodes/{node}", node=node)
    query = source.query("nodes/{node}", node=node)
    st.html(markup.lead(rows.node_sentence(found)))
    if found["incidents"]:
        numbers.heading(
            "Incidents blamed on it",
            "Those whose suspect is this node.",
            query,
            key="node-incidents",
        )
        _incidents(node)
    numbers.heading(
        "Its GPUs",
        "Each GPU with its faults and the incidents that it is to blame for.",
        query,
        key="node-gpus",
    )
    if found["gpus"]:
        body = [rows.gpu_row(one, reader.zone()) for one in found["gpus"]]
        st.html(markup.table("GPUs", rows.GPU_COLUMNS, body, wide=(8,)))
    else:
        st.caption("Unknown: no agent of the node has listed them, and no fault names one.")
    _stays(found, query)
    if found["failures"] or found["incidents"]:
        numbers.heading(
            "Keep new work off it",
            "The command to copy; Headway itself cordons nothing.",
            query,
            key="node-cordon",
        )
        for command in found["cordon"]:
            st.code(command, language="bash", wrap_lines=True)
    notes.show("node", node)


def _incidents(node: str) -> None:
    known = source.answer("incidents", node=node, limit=_MOST_LINKS)["incidents"]
    body = [
        (
            fleet_rows.incident_link(one, one["headline"]),
            markup.run_link(one["run"], one["run_name"]),
            one["state"],
            when(one["opened"], reader.zone()),
        )
        for one in known
    ]
    st.html(markup.table("Incidents", ("Incident", "Run", "State", "Opened"), body, wide=(0,)))


def _stays(found: Mapping[str, Any], query: str) -> None:
    numbers.heading(
        "Runs on it",
        "The newest ten runs, and what of the node's health was another after a run than before.",
        query,
        key="node-stays",
    )
    if not found["stays"]:
        st.caption("No run had ranks on it.")
        return
    body = [
        (
            markup.run_link(one["run"], one["run_name"]),
            when(one["start"], reader.zone()),
            "still there" if one["live"] else when(one["end"], reader.zone()),
            count(len(one["health"])),
        )
        for one in found["stays"]
    ]
    st.html(markup.table("Runs", ("Run", "From", "To", "#Changes of health"), body))
    changes = rows.health_rows(found)
    if changes:
        st.html(markup.table("Health", rows.HEALTH_COLUMNS, changes))
