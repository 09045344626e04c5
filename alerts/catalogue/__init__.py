"""The catalogue: every rule that Headway ships, by what it watches."""

from collections.abc import Mapping

from headway.alerts.catalogue import checkpoints, goodput, hardware, pipeline, restarts
from headway.alerts.rule import Rule

GROUPS: Mapping[str, tuple[Rule, ...]] = {
    "restarts": restarts.RULES,
    "checkpoints": checkpoints.RULES,
    "goodput": goodput.RULES,
    "hardware": hardware.RULES,
    "pipeline": pipeline.RULES,
}
"""The rules in groups, in the order in which people read them."""
RULES: Mapping[str, Rule] = {rule.name: rule for group in GROUPS.values() for rule in group}
"""The rules by name."""
