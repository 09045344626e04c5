"""What a fleet of machines lives through: faults, rates, histories; pure functions."""
