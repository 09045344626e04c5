"""The spool: how it lies on disk, who writes it, and who follows it to the collector."""
