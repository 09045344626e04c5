"""In and beside the training: `Recorder` is what a training program imports.

Importing this package loads the standard library and the contract alone.
"""

from headway.exporter.phases import Phase
from headway.exporter.recorder import Recorder
from headway.exporter.step_timer import StepTimer

__all__ = ["Phase", "Recorder", "StepTimer"]
