"""Every ledger category and every published metric, declared once.

Prometheus HELP, axis titles, colours, definitions shown to people and the reference pages derive
from here. Standard library only.
"""

from collections.abc import Mapping

from headway.metrics.agent import OF_AGENT
from headway.metrics.categories import CATEGORIES, CUSTOM, SPARE, Category, category
from headway.metrics.collector import OF_COLLECTOR
from headway.metrics.conditions import OF_CONDITIONS
from headway.metrics.fleet import OF_FLEET
from headway.metrics.goodputs import (
    INFRASTRUCTURE_FORMULA,
    INFRASTRUCTURE_GOODPUT,
    TRAINING_FORMULA,
    TRAINING_GOODPUT,
)
from headway.metrics.metric import Metric
from headway.metrics.node import OF_NODE
from headway.metrics.runs import OF_RUNS

__all__ = [
    "CATEGORIES",
    "CUSTOM",
    "INFRASTRUCTURE_FORMULA",
    "INFRASTRUCTURE_GOODPUT",
    "METRICS",
    "SPARE",
    "TRAINING_FORMULA",
    "TRAINING_GOODPUT",
    "Category",
    "Metric",
    "category",
]

METRICS: Mapping[str, Metric] = {
    metric.name: metric
    for metric in (
        *OF_RUNS,
        *OF_COLLECTOR,
        *OF_FLEET,
        *OF_CONDITIONS,
        *OF_AGENT,
        *OF_NODE,
    )
}
"""Every published metric by its Prometheus name."""
