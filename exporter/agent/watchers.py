"""What looks at the node beside the spools: its memory, its kernel's log, its GPUs.

A watcher looks when the agent's loop asks it to and records what it found through the witness. It
never blocks, and where it breaks it is left out of that round: shipping goes on.
"""

import logging
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Protocol

from headway.exporter.gpus.echoes import KernelXids
from headway.exporter.gpus.sampler import GpuSampler
from headway.exporter.gpus.scraper import GpuScraper
from headway.exporter.gpus.site_policy import load_policy
from headway.exporter.identity import boot_id
from headway.exporter.kernel.log import OFF, KernelLogWatcher
from headway.exporter.node.counts import Sample
from headway.exporter.node.memory import NodeMemoryWatcher
from headway.exporter.node.nics import NicWatcher
from headway.exporter.node.own_cost import OwnCostWatcher
from headway.exporter.node.sink import NodeSink
from headway.exporter.node.witness import Witness
from headway.exporter.spooling.layout import spool_folder
from headway.gpu_faults.policy import Policy
from headway.kernel_log.oom import OomKill
from headway.settings import AgentSettings, SettingError

_log = logging.getLogger(__name__)


class Watcher(Protocol):
    """Looks at one source of evidence about the node."""

    def poll(self) -> None:
        """Record what is new; called once per interval of the agent, must not block."""

    def close(self) -> None:
        """Let go of everything."""


class Watchers:
    """All watchers of a node, none of which can stop the agent."""

    def __init__(self, watching: Sequence[Watcher]) -> None:
        self._watching = list(watching)
        self._broken: set[int] = set()

    def poll(self) -> int:
        """Let each look once; return how many raised, which is logged the first time."""
        failures = 0
        for number, watcher in enumerate(self._watching):
            try:
                watcher.poll()
            except Exception:
                failures += 1
                if number not in self._broken:
                    _log.exception("%s failed; the agent goes on", type(watcher).__name__)
                self._broken.add(number)
            else:
                self._broken.discard(number)
        return failures

    def close(self) -> None:
        """Close each, whatever the others say."""
        for watcher in self._watching:
            try:
                watcher.close()
            except Exception:
                _log.exception("%s could not be closed", type(watcher).__name__)
        self._watching = []


def watchers(
    settings: AgentSettings,
    witness: Witness,
    samples: Callable[[], Iterable[Sample]],
    killed: Callable[[OomKill, int], None],
) -> list[Watcher]:
    """Return what watches this node, as far as the settings want it.

    `samples` gives the node's metrics to a push; `killed` takes the kernel's kills for lack of
    memory and their monotonic ns.

    Raises:
        SettingError: a policy or a time that cannot be used.
    """
    for name in ("gpu_interval", "gpu_deadline", "nic_interval", "otlp_metrics_interval"):
        if not getattr(settings, name) > 0:
            raise SettingError(
                f"{name} must be more than 0 seconds, got {getattr(settings, name)!r}"
            )
    policy = load_policy(settings.gpu_policy)
    sink: NodeSink = witness
    found: list[Watcher] = []
    if settings.otlp_metrics is not None:
        # Here, since the SDK's metrics are megabytes that an agent without them need not hold.
        from headway.exporter.gpus.hardware_metrics import HardwareMetrics
        from headway.exporter.node.metrics_push import MetricsPush
        from headway.exporter.node.scope import node_scope

        sink = hardware = HardwareMetrics(witness)
        interval = settings.otlp_metrics_interval
        sources = [hardware.scope, node_scope(samples)]
        push = MetricsPush(
            settings.otlp_metrics, sources, interval=interval, ca_file=settings.ca_file
        )
        found.append(push)
    kernel = KernelXids(sink)
    found.append(OwnCostWatcher(witness))
    if settings.memory:
        found.append(NodeMemoryWatcher(witness))
    if settings.kernel_log != OFF:
        found.append(
            KernelLogWatcher(
                kernel,
                earlier=witness.earlier_event,
                killed=killed,
                choice=settings.kernel_log,
                policy=policy,
                state=settings.state or spool_folder(settings.spool),
                boot_id=boot_id(),
            )
        )
    found += _gpu_watchers(settings, sink, kernel, policy)
    if settings.nics:
        found.append(NicWatcher(sink, interval=settings.nic_interval))
    return found


def _gpu_watchers(
    settings: AgentSettings, sink: NodeSink, kernel: KernelXids, policy: Policy
) -> list[Watcher]:
    """Return the watchers of driver and exporters; `kernel` knows the Xids of the kernel's log."""
    found: list[Watcher] = []
    covered: Callable[[], Collection[str]] = tuple
    if settings.gpus:
        sampler = GpuSampler(
            sink,
            interval=settings.gpu_interval,
            deadline=settings.gpu_deadline,
            kernel=kernel,
            policy=policy,
        )
        found.append(sampler)
        covered = sampler.answering
    for url in filter(None, (settings.gpu_exporters or "").split(",")):
        scraper = GpuScraper(
            sink,
            url.strip(),
            interval=settings.gpu_interval,
            covered=covered,
            kernel=kernel,
            policy=policy,
        )
        found.append(scraper)
    return found
