"""Makes up runs whose true ledger is known: pure, seeded, without a clock."""

from headway.simulate.plan import Plan, Recovery, Straggler, Strike, Trouble
from headway.simulate.run import simulate
from headway.simulate.true_incidents import TrueIncident
from headway.simulate.truth import Simulated, TrueStraggler, Truth

__all__ = [
    "Plan",
    "Recovery",
    "Simulated",
    "Straggler",
    "Strike",
    "Trouble",
    "TrueIncident",
    "TrueStraggler",
    "Truth",
    "simulate",
]
