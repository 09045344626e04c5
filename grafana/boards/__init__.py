"""Every dashboard that Headway ships."""

from headway.grafana.boards import alerts, fleet, node, pipeline, run
from headway.grafana.layout import Board

BOARDS: tuple[Board, ...] = (
    fleet.BOARD,
    run.BOARD,
    node.BOARD,
    pipeline.BOARD,
    alerts.BOARD,
)
"""In the order in which people read them."""
