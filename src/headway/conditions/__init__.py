"""What the alerts compare: one gauge per condition of a live run, from its ledger and report.

A condition is computed here and nowhere else, so that Prometheus and the embedded engine compare
the same number. A run that is over has none: its alerts resolve. Pure.
"""

from headway.conditions.gauge import Condition
from headway.conditions.goodput import target_of
from headway.conditions.live import conditions

__all__ = ["Condition", "conditions", "target_of"]
