"""The watcher that reads other exporters' GPU metrics, with bounds on time and size."""

import time
from collections.abc import Callable, Collection
from urllib.parse import urlsplit

import requests
from prometheus_client.samples import Sample

from headway.events import Event, GpuFault, Health
from headway.exporter.gpus.echoes import KernelXids
from headway.exporter.gpus.scraped import Scraped, parse
from headway.exporter.node.errands import Errand
from headway.exporter.node.sink import NodeSink
from headway.exporter.shipping import LOOPBACK
from headway.gpu_faults.policy import DEFAULT_POLICY, Policy

SIZE_LIMIT = 8 * 1024**2
"""Bytes of one exporter's answer."""
TIME_LIMIT = 10.0
"""Seconds for one answer, however slowly it drips."""
_CHUNK = 64 * 1024
_CONNECT, _SILENCE = 2.0, 5.0
_CLOSING = 1.0


class GpuScraper:
    """Reads one exporter at an interval in seconds."""

    def __init__(
        self,
        sink: NodeSink,
        url: str,
        *,
        interval: float,
        covered: Callable[[], Collection[str]] = tuple,
        kernel: KernelXids | None = None,
        policy: Policy = DEFAULT_POLICY,
        monotonic: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        """Prepare.

        `covered` gives the UUIDs of GPUs that the driver itself tells about, `kernel` knows the
        Xids of the kernel's log, `policy` says what a fault asks for.
        """
        self._sink = sink
        self._url = url
        self._covered = covered
        self._kernel = kernel
        self._scraped = Scraped(policy)
        self._health: Health | None = None
        self._errand = Errand(
            lambda: look(url), interval, name="headway-gpu-scrape", monotonic=monotonic
        )

    def poll(self) -> None:
        """Record what the exporter said since the last look."""
        for at, (samples, trouble) in self._errand.poll():
            if samples is not None:
                for event in self._scraped.read(samples, self._covered()):
                    if not self._told(event, at):
                        self._sink.node_event(event, monotonic=at)
            self._say(trouble, at)

    def close(self) -> None:
        """Stop reading."""
        self._errand.close(_CLOSING)

    def _told(self, event: Event, at: int) -> bool:
        """Return whether the kernel's log has already told of the Xid that changed a metric."""
        if self._kernel is None or not isinstance(event, GpuFault) or event.code is None:
            return False
        address = self._scraped.address(event.device)
        return address is not None and self._kernel.told(address, event.code, at)

    def _say(self, trouble: str | None, at: int) -> None:
        state = "healthy" if trouble is None else "disabled"
        health = Health(check=f"gpu exporter {self._url}", state=state, detail=trouble)
        if health != self._health:
            self._health = health
            self._sink.node_event(health, monotonic=at)


def look(url: str) -> tuple[list[Sample] | None, str | None]:
    """Return what an exporter says of GPUs, or None and why it says nothing."""
    text, trouble = fetch(url)
    if text is None:
        return None, trouble
    try:
        return parse(text), None
    except ValueError as error:
        return None, f"its answer is no exposition: {error}"


def fetch(url: str) -> tuple[str | None, str | None]:
    """Return the exposition, or None and why there is none."""
    deadline = time.monotonic() + TIME_LIMIT
    try:
        with requests.Session() as session:
            # A proxy of the environment cannot reach this machine's loopback.
            session.trust_env = urlsplit(url).hostname not in LOOPBACK
            with session.get(url, stream=True, timeout=(_CONNECT, _SILENCE)) as answer:
                if not answer.ok:
                    return None, f"it answers with status {answer.status_code}"
                content = bytearray()
                for chunk in answer.iter_content(_CHUNK):
                    content += chunk
                    if len(content) > SIZE_LIMIT:
                        return None, f"its answer has more than {SIZE_LIMIT} bytes"
                    if time.monotonic() > deadline:
                        return None, f"its answer took more than {TIME_LIMIT:.0f} s"
                return content.decode("utf-8", "replace"), None
    except requests.RequestException as error:
        return None, f"it does not answer ({type(error).__name__})"
