"""A kernel's log that lies in a file: its findings, and the events they are for the collector.

Each event is sent by a producer of its own whose name derives from the node and the line, so that
importing a log again, grown or not, adds nothing that is there.
"""

import hashlib
from collections.abc import Iterator
from typing import IO

from headway.events import Envelope
from headway.gpu_faults.policy import Policy, classified
from headway.kernel_log.bursts import Bursts
from headway.kernel_log.log import Finding, KernelLog
from headway.kernel_log.oom import OomKill
from headway.kernel_log.stamps import Clock

_LONGEST_LINE = 65_536
_PRODUCER_DIGITS = 32


def read_findings(log: IO[str], clock: Clock) -> Iterator[Finding]:
    """Give the united findings of a log in the order of their first lines, with bounded memory."""
    reader, bursts = KernelLog(clock), Bursts()
    whole = True
    while line := log.readline(_LONGEST_LINE):
        if whole:  # what follows the limit of a line that is too long is no line of its own
            for finding in reader.feed(line):
                bursts.add(finding)
            yield from bursts.pop()
        whole = line.endswith("\n")
    for finding in reader.finish():
        bursts.add(finding)
    yield from bursts.pop_all()


def envelope(finding: Finding, policy: Policy, node: str) -> Envelope | None:
    """Return what the collector is sent of a finding, None for what it is not sent.

    That is a fault of unknown time, which nothing can be blamed on, and a process killed for
    memory, which says nothing while nobody knows whether it was of a run.
    """
    if finding.time is None or isinstance(finding.report, OomKill):
        return None
    identity = "\n".join((node, str(finding.time), finding.line))
    return Envelope(
        producer=hashlib.sha256(identity.encode()).hexdigest()[:_PRODUCER_DIGITS],
        anchor=finding.time,  # this producer's clock reads 0 at its only event
        first_sequence=1,
        last_sequence=1,
        run=None,
        node=node,
        wall=finding.time,
        monotonic=0,
        event=classified(finding.report, policy),
    )
