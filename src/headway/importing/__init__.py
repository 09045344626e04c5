"""Logs of other programs as the events that Headway records: pure, one module per format."""
