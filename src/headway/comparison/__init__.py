"""Two stretches of time side by side: what differs, and what of it chance explains."""
