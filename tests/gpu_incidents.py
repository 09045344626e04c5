"""Incidents of a run on a node of GPUs, with what its kernel log and its driver told."""

from headway.incidents import incidents
from headway.ledger import ledger
from timeline import at, timeline

GPUS = """
0  gpu 0 GPU-a 0000:1b:00.0
0  gpu 1 GPU-b 0000:43:00.0
0  gpu 2 GPU-c 0000:c9:00.0
0  gpu 3 GPU-d 0000:cb:00.0
"""
RUN = """
400      allocation 4
400      attempt A launcher world=4 rank=0..3 local=0
400-500  steps 1-100 rank=0..3
500.5    fault exception rank=1 exception=RuntimeError message="CUDA error: unspecified"
505      exit rank=0..3 signal=9 by=launcher
"""
NOBODY = ("exception", None, 1, "node-a")
"""What is said of this run where no GPU is blamed."""


def found(text, until=600):
    """Return the incidents of a timeline as known at one of its seconds."""
    return incidents(ledger(timeline(text), at(until)))


def broken(text, until=600):
    """Return the only incident."""
    (incident,) = found(text, until)
    return incident


def blamed(text, until=600):
    """Return cause, GPU, rank and node that the only incident is blamed on."""
    one = broken(text, until)
    return one.cause, one.suspect_gpu, one.suspect_rank, one.suspect_node


def words(incident):
    """Return what each piece of its evidence says."""
    return [item.words for item in incident.evidence]
