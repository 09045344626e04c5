"""Headway: how much of a training run's time became lasting progress, and why the rest did not."""
