"""The form of a condition: a published metric, the values of its labels but the run's, a value."""

Condition = tuple[str, tuple[str, ...], float]
"""Name in `headway.metrics`, values of its labels after `run`, value."""
DAY = 86_400 * 10**9
HOUR = 3_600 * 10**9
LEAST_TIME = 600 * 10**9
"""Nobody is called before a run was silent or down for this long, in ns."""
