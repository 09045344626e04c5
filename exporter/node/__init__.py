"""What the agent knows about its node: ranks, memory, network, clock, and its metrics."""
