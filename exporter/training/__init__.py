"""A small but real resilient FSDP training: what the demo, the drills and the tests run."""
