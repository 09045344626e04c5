"""The kernel's log: where it can be read, and the watcher that follows it."""
