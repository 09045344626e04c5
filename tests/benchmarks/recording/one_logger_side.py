"""nv-one-logger's training telemetry with its file exporter; argument: the number of steps.

As its own example sets it up, with the default of a summary every 50 iterations.
"""

import json
import logging
import sys
import tempfile
from pathlib import Path

from nv_one_logger.api.config import OneLoggerConfig
from nv_one_logger.exporter.file_exporter import FileExporter
from nv_one_logger.training_telemetry.api import callbacks
from nv_one_logger.training_telemetry.api.checkpoint import CheckPointStrategy
from nv_one_logger.training_telemetry.api.config import TrainingTelemetryConfig
from nv_one_logger.training_telemetry.api.training_telemetry_provider import (
    TrainingTelemetryProvider,
)

from benchmarks.recording.cost import BLOCK, per_step


def main() -> None:
    """Measure and print."""
    logging.disable()
    base = OneLoggerConfig(
        application_name="bench",
        world_size_or_fn=1,
        session_tag_or_fn="bench",
        enable_for_current_rank=True,
    )
    training = TrainingTelemetryConfig(
        perf_tag_or_fn="bench",
        global_batch_size_or_fn=8,
        is_log_throughput_enabled_or_fn=False,
        save_checkpoint_strategy=CheckPointStrategy.SYNC,
    )
    with tempfile.TemporaryDirectory() as folder:
        provider = TrainingTelemetryProvider.instance()
        exporter = FileExporter(file_path=Path(folder) / "telemetry.json")
        provider.with_base_config(base).with_exporter(exporter).configure_provider()
        callbacks.on_app_start()
        provider.set_training_telemetry_config(training)
        callbacks.on_train_start(train_iterations_start=0)

        def steps(first: int) -> None:
            for _ in range(first, first + BLOCK):
                callbacks.on_training_single_iteration_start()
                callbacks.on_training_single_iteration_end()

        print(json.dumps({"step": per_step(steps, int(sys.argv[1]))._asdict()}))


if __name__ == "__main__":
    main()
