"""Saved questions: SQL over the documented views with parameters, and how they are asked.

One declaration serves the command line (`headway ask`), the read API, the Explore page and the
reference page.
"""

from headway.storage.questions.library import QUESTIONS
from headway.storage.questions.model import (
    Parameter,
    Question,
    QuestionRefused,
    bound,
    parsed,
)

__all__ = ["QUESTIONS", "Parameter", "Question", "QuestionRefused", "bound", "parsed"]
