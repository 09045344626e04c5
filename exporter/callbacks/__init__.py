"""Callbacks that record trainings driven by a framework's own trainer."""
