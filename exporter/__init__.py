"""In and beside the training: `Recorder` is what a training program imports.

Importing this package loads the standard library and the contract alone.
"""

from headway.exporter.recording.phases import Phase
from headway.exporter.recording.recorder import Recorder
from headway.exporter.recording.step_timer import StepTimer

__all__ = ["Phase", "Recorder", "StepTimer"]
