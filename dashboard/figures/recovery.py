"""What incidents threw away and how runs came back."""

import plotly.graph_objects as go  # type: ignore[import-untyped]  # it ships no types

from headway import metrics
from headway.dashboard.figures.style import Report, styled
from headway.dashboard.palette import EDGE
from headway.wording import counted, duration

_MANY = 60


def rollback_distance(report: Report) -> go.Figure:
    """Return the steps that each incident threw away, as far as that is known."""
    incidents = [one for one in report["incidents"] if one["rollback_steps"] is not None]
    figure = go.Figure(
        go.Bar(
            x=[str(one["number"]) for one in incidents],
            y=[one["rollback_steps"] for one in incidents],
            marker={"color": metrics.category("rolled_back").colour, "line": {"color": EDGE}},
            hovertext=[
                f"Incident {one['number']}: {one['cause']}<br>"
                f"{counted(one['rollback_steps'], 'step')}, {duration(one['rollback_ns'])}"
                for one in incidents
            ],
            hovertemplate="%{hovertext}<extra></extra>",
        )
    )
    many = len(incidents) > _MANY
    styled(figure, 260, bargap=0 if many else 0.5)
    if many:
        figure.update_traces(marker_line_width=0)
    figure.update_xaxes(title="Incident", type="category", fixedrange=True, nticks=20, tickangle=0)
    figure.update_yaxes(title="Steps", tickformat=",d", rangemode="tozero", fixedrange=True)
    return figure
