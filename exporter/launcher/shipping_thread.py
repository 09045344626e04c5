"""The node's agent in a thread, for as long as a command runs and no other one is at work."""

import logging
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from headway.exporter.agent.lock import OtherAgentError, only_agent, remove_marker, renew_marker
from headway.exporter.spooling.reader import spools
from headway.settings import AgentSettings, SettingError

if TYPE_CHECKING:
    from headway.exporter.agent.agent import Agent
    from headway.exporter.node.metrics import NodeMetrics

_log = logging.getLogger(__name__)

_LOOK = 0.02
_TRY_AGAIN = 1.0
"""Seconds between two looks whether another agent has left the folder."""
ABSENCE = 30.0
"""Seconds without any agent after which the folder is taken over: one may be started anew."""


class ShippingThread:
    """Ships the spools of a folder."""

    def __init__(self, settings: AgentSettings, folder: Path) -> None:
        self._settings = settings
        self._folder = folder
        self._claim = ExitStack()
        self._is_ours = False
        """Whether this is the agent of the folder."""
        self._agent: Agent | None = None
        self._metrics: NodeMetrics | None = None
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def claim(self) -> None:
        """Become the folder's agent, so that recorders see one; leave it to one that is."""
        try:
            self._is_ours = self._is_free()
        except SettingError as error:
            _log.error("%s; nothing is shipped", error)
            return
        if self._is_ours:
            renew_marker(self._folder)
        else:
            _log.info("another agent ships the spools in %s", self._folder)
        self._thread = threading.Thread(target=self._run, name="headway agent", daemon=True)

    def start(self) -> None:
        """Begin to ship."""
        if self._thread is not None:
            self._thread.start()

    def release(self) -> None:
        """Let go of the folder: there is no command."""
        self._leave()
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
            self._leave()
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
        self._leave()
        return False

    def _is_free(self) -> bool:
        """Claim the folder; return False where another agent has it.

        Raises:
            SettingError: the folder cannot be used.
        """
        try:
            self._claim.enter_context(only_agent(self._folder))
        except OtherAgentError:
            return False
        return True

    def _await(self) -> None:
        """Wait until nobody ships the folder any more, or the command is over; then claim it."""
        import headway.exporter.agent.agent  # noqa: F401  # too slow for the moment when it is needed

        last_seen = time.monotonic()
        while not self._is_ours:
            over = self._over.wait(_TRY_AGAIN)
            if not self._is_free():
                last_seen = time.monotonic()
            elif over or time.monotonic() - last_seen >= ABSENCE:
                self._is_ours = True
                renew_marker(self._folder)
                return
            else:
                self._claim.close()
            if over:
                return

    def _leave(self) -> None:
        if self._is_ours:
            remove_marker(self._folder)

    def _taken(self) -> int:
        """Return how many records the collector has taken or refused so far."""
        if self._metrics is None:
            return 0
        from headway.exporter.node.metrics import REFUSED, SHIPPED

        return self._metrics.counters[SHIPPED] + self._metrics.counters[REFUSED]

    def _run(self) -> None:
        try:
            if not self._is_ours:
                self._await()
            if self._is_ours:
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
            self._leave()
            self._claim.close()

    def _ship(self) -> None:
        # Slow to import: the command does not wait for it.
        from headway.exporter.agent.agent import Agent
        from headway.exporter.agent.service import check
        from headway.exporter.node.metrics import NodeMetrics
        from headway.exporter.node.metrics_server import MetricsServer

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
