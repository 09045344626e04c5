"""What `headway run` learns as the parent of a launcher.

`child` runs the command with its streams and signals untouched, `lines` is the grammar of what
launchers print, `observer` joins both with the ranks' own spools into events.
"""
