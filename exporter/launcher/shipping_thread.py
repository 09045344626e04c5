"""The node's agent in a thread, for as long as a command runs, unless another one is at work."""

import logging
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from headway.exporter.agent_lock import OtherAgentError, only_agent, remove_marker, renew_marker
from headway.exporter.spool import spools
from headway.settings import AgentSettings, SettingError

if TYPE_CHECKING:
    from headway.exporter.agent import Agent
    from headway.exporter.node_metrics import NodeMetrics

_log = logging.getLogger(__name__)

_LOOK = 0.02


class ShippingThread:
    """Ships the spools of a folder."""

    def __init__(self, settings: AgentSettings, folder: Path) -> None:
        self._settings = settings
        self._folder = folder
        self._claim = ExitStack()
        self._agent: Agent | None = None
        self._metrics: NodeMetrics | None = None
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def claim(self) -> None:
        """Become the folder's agent, so that recorders see one; leave it to one that is."""
        try:
            self._claim.enter_context(only_agent(self._folder))
        except OtherAgentError:
            _log.info("another agent ships the spools in %s", self._folder)
            return
        except SettingError as error:
            _log.error("%s; nothing is shipped", error)
            return
        renew_marker(self._folder)
        self._thread = threading.Thread(target=self._run, name="headway agent", daemon=True)

    def start(self) -> None:
        """Begin to ship."""
        if self._thread is not None:
            self._thread.start()

    def release(self) -> None:
        """Let go of the folder: there is no command."""
        if self._thread is not None:
            remove_marker(self._folder)
        self._claim.close()

    def finish(self, deadline: float, pause: Callable[[float], bool]) -> bool:
        """Ship what is there; return whether the thread is done.

        It goes on beyond `deadline`, on the monotonic clock in seconds, only while the collector
        takes something. `pause` waits, and returns True where somebody wants an end at once.
        """
        thread = self._thread
        if thread is None or not thread.is_alive():
            return True
        if self._agent is None and not spools(self._folder):
            remove_marker(self._folder)
            return False  # it is still being imported, and there is nothing to ship
        patience = max(deadline - time.monotonic(), 0.0)
        taken = self._taken()
        self._over.set()
        if self._agent is not None:
            self._agent.stop()
        while thread.is_alive() and time.monotonic() < deadline and not pause(_LOOK):
            if self._taken() != taken:
                taken = self._taken()
                deadline = time.monotonic() + patience
        if not thread.is_alive():
            return True
        _log.warning("not all was taken; the next agent ships the rest from %s", self._folder)
        remove_marker(self._folder)
        return False

    def _taken(self) -> int:
        """Return how many records the collector has taken or refused so far."""
        if self._metrics is None:
            return 0
        from headway.exporter.node_metrics import REFUSED, SHIPPED

        return self._metrics.counters[SHIPPED] + self._metrics.counters[REFUSED]

    def _run(self) -> None:
        try:
            self._ship()
        except SettingError as error:
            _log.error("%s; nothing is shipped", error)
        except ModuleNotFoundError as error:
            _log.error(
                "the agent needs %s; nothing is shipped; install it with: "
                "pip install 'headway[exporter]'",
                error.name,
            )
        except Exception:
            _log.exception("the agent failed; the command goes on and nothing more is shipped")
        finally:
            remove_marker(self._folder)
            self._claim.close()

    def _ship(self) -> None:
        # Slow to import: the command does not wait for it.
        from headway.exporter.agent import Agent
        from headway.exporter.agent_service import check
        from headway.exporter.metrics_server import MetricsServer
        from headway.exporter.node_metrics import NodeMetrics

        check(self._settings)
        metrics = NodeMetrics(self._folder)
        agent = Agent(self._settings, metrics)
        server = MetricsServer(metrics, self._settings.host, self._settings.port)
        _log.info("listening on %s", server.address)
        self._metrics, self._agent = metrics, agent
        if self._over.is_set():
            agent.stop()
        try:
            agent.run()
        finally:
            agent.close()
            server.close()
