"""The two goodputs, in a sentence and in a formula each."""

TRAINING_GOODPUT = "Time that became lasting progress, divided by elapsed time."
INFRASTRUCTURE_GOODPUT = (
    "Time in which the allocated machines were up and serving the loop, divided by elapsed time."
)
TRAINING_FORMULA = "productive / elapsed"
INFRASTRUCTURE_FORMULA = "(elapsed - stalled - restart - down - unattributed) / elapsed"
