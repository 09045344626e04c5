"""Every saved question, in the order in which they are listed."""

from collections.abc import Mapping

from headway.storage.questions import of_incidents, of_machines, of_recovery, of_runs
from headway.storage.questions.model import Question

QUESTIONS: Mapping[str, Question] = {
    question.name: question
    for question in (
        *of_incidents.QUESTIONS,
        *of_recovery.QUESTIONS,
        *of_machines.QUESTIONS,
        *of_runs.QUESTIONS,
    )
}
"""Saved questions by name."""
