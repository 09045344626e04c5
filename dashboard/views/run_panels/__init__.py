"""The parts of the Run page, one module per tab."""
