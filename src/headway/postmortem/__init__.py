"""The post-mortem of an incident, written from what the read API can answer. Pure functions.

`composing` reads the answers into one `model.Postmortem`, `page` lays it out for a reader's time
zone, `markdown` and `html` write that down; both say the same, because both render the same page.
"""
