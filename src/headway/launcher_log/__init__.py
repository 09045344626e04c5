"""What launchers and schedulers print, as a pure grammar: for the node agent and for old logs."""
