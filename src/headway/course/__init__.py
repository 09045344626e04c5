"""The course of a run for people: its ranks, its pace and its settings over time. Pure."""
