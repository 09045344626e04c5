"""NVRx, recorded: adapters that turn what its parts tell a program into events."""
