"""Runs the resilient training as a user does and reads what it recorded from the spools."""

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from headway.events import Envelope, Event, Steps
from headway.exporter.spooling.reader import SpoolReader, spools
from headway.step_blocks import Step, unpack
from nvrx_versions import INSTALLED, python_path

SOURCE = Path(__file__).parents[1] / "src"
TORCHRUN = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")


@dataclass(frozen=True, slots=True, kw_only=True)
class Training:
    """What one launch printed and recorded."""

    output: str
    envelopes: dict[int, list[Envelope]]
    """The records of each rank in their order."""

    def of(self, rank: int, *kinds: type[Event]) -> list[Event]:
        """Return the events of some kinds that a rank recorded."""
        return [item.event for item in self.envelopes[rank] if isinstance(item.event, kinds)]

    def passes(self, rank: int) -> list[tuple[int, Step]]:
        """Return every completed step of a rank in the order of completion."""
        found = []
        for event in self.of(rank, Steps):
            assert isinstance(event, Steps)
            found += enumerate(unpack(event.version, event.packed), event.first_step)
        return found


def environment(spool: Path, version: str = INSTALLED) -> dict[str, str]:
    """Return the environment of a training that records to `spool`, under a version of NVRx."""
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith("HEADWAY")},
        "PYTHONPATH": os.pathsep.join([*python_path(version), str(SOURCE)]),
        "PYTHONWARNINGS": "ignore:The pynvml package is deprecated:FutureWarning",
        "OMP_NUM_THREADS": "1",
        "HEADWAY_SPOOL": str(spool),
    }


def train(
    directory: Path,
    spool: Path,
    *options: str,
    launcher: Sequence[str] = TORCHRUN,
    version: str = INSTALLED,
    killed: bool = False,
) -> Training:
    """Train with two ranks until the launcher ends, which must succeed.

    Unless processes are `killed` meanwhile, each must end its record in order.
    """
    program = ["-m", "headway.exporter.training.loop", "--directory", str(directory)]
    ended = subprocess.run(
        [sys.executable, *launcher, *program, *options],
        env=environment(spool, version),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=240,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout
    return read(spool, ended.stdout, killed=killed)


def read(spool: Path, output: str = "", *, killed: bool = False) -> Training:
    """Return what the ranks of one launch recorded."""
    envelopes: dict[int, list[Envelope]] = {}
    for folder in spools(spool):
        reader = SpoolReader(folder)
        assert reader.producer is not None
        assert reader.producer.rank is not None
        batch = reader.read(limit=10**6)
        assert batch.finished or killed
        assert batch.damaged == 0
        envelopes.setdefault(reader.producer.rank, []).extend(batch.envelopes)
    for told in envelopes.values():
        told.sort(key=lambda one: one.monotonic)
    return Training(output=output, envelopes=envelopes)
