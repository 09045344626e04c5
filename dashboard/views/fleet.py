"""The Fleet page: which run loses time, to what, and whether software or machines are at fault."""

from collections.abc import Mapping
from typing import Any

import streamlit as st

from headway import metrics
from headway.dashboard import fleet_rows as rows
from headway.dashboard import markup, numbers, source
from headway.dashboard.figures import fleet as figures
from headway.dashboard.views import reader, window
from headway.dashboard.views.plots import plain_bars, plot
from headway.dashboard.views.window import Window
from headway.fleet import words
from headway.fleet.sides import SIDES
from headway.wording import count, counted, duration, gpu_hours, money, ratio_range

_GROUPS: Mapping[str, str] = {
    "team": "team",
    "cluster": "cluster",
    "GPU type": "gpu_type",
    "month": "month",
}
_SHOWN = (25, 100, 500)
_MOST_NODES = 10


@reader.framed
def page() -> None:
    """Draw the page and keep it fresh."""
    st.title("Fleet")
    if not reader.any_run():
        return
    meant = window.chosen()
    reader.refreshed(lambda: _show(meant))


def _show(meant: Window) -> None:
    found = source.answer("fleet", **meant.asked)
    (group,) = found["groups"]
    if not group["runs"]:
        reader.missing("No such run lived in this time.", "Choose a longer time, or any team.")
        return
    listed = source.answer("fleet/runs", **meant.asked, limit=_SHOWN[0])
    st.html(markup.lead(rows.headline(group, next(iter(listed["runs"]), None))))
    against = "" if found["before"] is None else f" Changes are against the {meant.name} before."
    st.caption(f"{meant.words(found)}.{against}")
    _stats(meant, found, group)
    left, right = st.columns([3, 2], gap="large")
    with left:
        _waterfall(meant, group)
    with right:
        _causes(meant, group)
    _course(meant)
    _runs(meant, listed)
    _totals(meant)
    _worst_nodes()


def _stats(meant: Window, found: Mapping[str, Any], group: Mapping[str, Any]) -> None:
    before, price = found["before"], found["price"]
    query = source.query("fleet", **meant.asked)
    time, earlier = group["gpu_time"], None if before is None else before["gpu_time"]
    with numbers.row("fleet") as row:
        for title, ratio, meaning in (
            ("Training goodput", "training_goodput", metrics.TRAINING_GOODPUT),
            ("Infrastructure goodput", "infrastructure_goodput", metrics.INFRASTRUCTURE_GOODPUT),
        ):
            row.number(
                title,
                ratio_range(**time[ratio]),
                definition=f"{meaning} Over the GPU time of all runs in this time.",
                query=query,
                **rows.points(time[ratio], None if earlier is None else earlier[ratio]),
            )
        lost = group["lost_gpu_ns"]
        row.number(
            "GPU time lost",
            words.lost(lost),
            definition="GPU time that was held and did not become lasting progress; a range where "
            "some time has no evidence either way.",
            query=query,
            **rows.change(
                lost["low"],
                None if before is None else before["lost_gpu_ns"]["low"],
                gpu_hours,
            ),
        )
        if price is not None:
            row.number(
                "Cost of what was lost",
                words.cost(group["lost_cost"], price),
                definition="Lost GPU time times the price of a GPU-hour, "
                f"{price['per_gpu_hour']:g} {price['currency']}.",
                query=query,
                **rows.change(
                    group["lost_cost"]["low"],
                    None if before is None else before["lost_cost"]["low"],
                    lambda amount: money(amount, price["currency"]),
                ),
            )
        row.number(
            "Open incidents",
            count(group["open_incidents"]),
            definition="Incidents that no attempt has put behind it yet.",
            query=source.query("incidents", state="open"),
            delta=counted(group["incidents"], "incident") + " opened in this time",
        )
        failures = group["mtbf"]
        row.number(
            "Between failures",
            words.mtbf(failures),
            definition="Mean time between failures (MTBF): time in which runs were up, by failures "
            "in it. Preemptions, time limits and stops by people are no failures. The interval is "
            "the exact 95 % interval of a Poisson count (Garwood 1936).",
            query=query,
            delta=words.mtbf_interval(failures),
        )
        recovered = group["recovered_ns"]
        for title, name, meaning in (
            ("Recovery, p50", "p50", "Half of the incidents took at most so long"),
            ("Recovery, p95", "p95", "19 of 20 incidents took at most so long"),
        ):
            row.number(
                title,
                duration(recovered[name]),
                definition=f"{meaning}, from the fault to the first step after it; of those that "
                "opened in this time and have recovered. One of the measured times, never a mean.",
                query=source.query("recovery", **meant.asked),
                delta=counted(recovered["count"], "recovery", "recoveries"),
            )
    if price is None:
        st.caption(words.NO_PRICE)


def _waterfall(meant: Window, group: Mapping[str, Any]) -> None:
    numbers.heading(
        "From allocated to productive",
        "GPU time that runs held, less what each kind of loss took. The shares sum to 100 %.",
        source.query("fleet", **meant.asked),
        key="waterfall",
    )
    if not group["gpu_time"]["elapsed_ns"]:
        st.caption("No run has said how many GPUs it holds.")
        return
    plain_bars(
        figures.waterfall(group),
        "Waterfall from allocated GPU time through every loss to productive time.",
    )


def _causes(meant: Window, group: Mapping[str, Any]) -> None:
    numbers.heading(
        "What incidents cost, and whose they are",
        "GPU time that incidents cost until the first step after them, steps rolled back included, "
        "by cause. " + " ".join(f"{side.title}: {side.description}" for side in SIDES.values()),
        source.query("fleet", **meant.asked),
        key="causes",
    )
    if not group["causes"]:
        st.caption("No incident opened in this time.")
        return
    shares = words.side_shares(group)
    if shares:
        st.caption(f"{shares[:1].upper()}{shares[1:]}.")
    plain_bars(
        figures.causes(group),
        "GPU-hours lost by cause, the costliest first.",
        figures.side_colours(group),
    )


def _course(meant: Window) -> None:
    numbers.heading(
        "Over time",
        "What the GPU time held went to, as shares of each stretch of time; a triangle marks "
        "stretches in which incidents opened.",
        source.query("fleet/course", **meant.asked),
        key="course",
    )
    found = source.answer("fleet/course", **meant.asked)
    if not any(cell["categories"] for cell in found["cells"]):
        st.caption("No GPU time was held.")
        return
    plot(
        figures.course(found, reader.zone()),
        "fleet-course",
        "Shares of GPU time by category over time, with incidents marked.",
    )
    worst = figures.most_marked(found["cells"])[:3]
    if worst:
        links = [
            rows.incident_link(one, f"{one['run_name']}: {rows.incident_name(one)}")
            for one in worst
        ]
        st.html(markup.links("Costliest incidents:", links))


def _runs(meant: Window, listed: Mapping[str, Any]) -> None:
    above, asked = st.container(), {**meant.asked, "limit": _SHOWN[0]}
    if listed["of"] > _SHOWN[0]:
        asked["limit"] = st.segmented_control(
            "Most rows",
            _SHOWN,
            default=_SHOWN[0],
            required=True,
            key="rows",
            bind="query-params",
        )
        listed = source.answer("fleet/runs", **asked)
    with above:
        numbers.heading(
            "Runs",
            "The runs that lost most GPU time come first. The strip shows each run's part of this "
            "time from left to right: what took most of each stretch, and a loss from a quarter of "
            "it on. The smaller figure under the training goodput is the infrastructure goodput. "
            "Attempts, steps and checkpoints are those of the whole run.",
            source.query("fleet/runs", **asked),
            key="runs",
        )
        body = [rows.run_row(one, listed["price"]) for one in listed["runs"]]
        st.html(markup.table("Runs", rows.RUN_COLUMNS, body))
        used = {each["category"] for one in listed["runs"] for each in one["strip"]}
        st.html(markup.legend(markup.in_order(dict.fromkeys(used, 1))))
        if listed["of"] > len(body):
            st.caption(f"{count(len(body))} of {counted(listed['of'], 'run')}.")


def _totals(meant: Window) -> None:
    above = st.container()
    by = st.segmented_control(
        "Totals by",
        list(_GROUPS),
        default="team",
        required=True,
        key="by",
        bind="query-params",
        label_visibility="collapsed",
    )
    asked = {**meant.asked, "by": _GROUPS[by or "team"]}
    with above:
        numbers.heading(
            "Totals",
            "The figures above by the values of a label, or by calendar month (UTC). "
            "`headway report --fleet --by team` prints the same.",
            source.query("fleet", **asked),
            key="totals",
        )
    found = source.answer("fleet", **asked)
    columns = rows.total_columns(by or "team")
    body = [rows.total_row(one, found["price"]) for one in found["groups"]]
    st.html(markup.table("Totals", columns, body, wide=(len(columns) - 1,)))


def _worst_nodes() -> None:
    numbers.heading(
        "Worst nodes",
        "Nodes that failed at least twice, by the rate that they surely have: the lower end of the "
        "exact 95 % interval of a Poisson count (Garwood 1936), over all time.",
        source.query("nodes", limit=_MOST_NODES),
        key="nodes",
    )
    found = source.answer("nodes", limit=_MOST_NODES)
    failed = [one for one in found["nodes"] if one["repeats"]]
    if not failed:
        st.caption("No node has failed twice.")
        return
    body = [rows.node_row(one, reader.zone()) for one in failed]
    st.html(markup.table("Worst nodes", rows.NODE_COLUMNS, body))
    fleet = found["fleet"]
    left = found["repeats"] - len(failed)
    more = f"{count(left)} more failed at least twice. " if left else ""
    st.caption(f"{more}All nodes: {rows.rate(fleet)} failures per 1,000 node-days.")
    st.html(markup.links("", [markup.link(markup.address("hardware"), "All hardware")]))
