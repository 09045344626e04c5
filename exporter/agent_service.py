"""Starts the node agent: as a program of its own, or in a thread of a launcher's parent.

One agent at a time ships the spools of a folder; a file lock says so, which the kernel releases
however the process ends.
"""

import contextlib
import logging
import signal
import sys
import threading
from collections.abc import Iterator

from headway.exporter.agent import Agent
from headway.exporter.agent_lock import only_agent
from headway.exporter.metrics_server import MetricsServer
from headway.exporter.node_metrics import NodeMetrics
from headway.exporter.spool_layout import spool_folder
from headway.settings import AgentSettings, SettingError


def main(settings: AgentSettings) -> int:
    """Ship until SIGTERM or SIGINT; return the exit status."""
    logging.basicConfig(
        format="%(asctime)s %(levelname)s %(name)s: %(message)s", level=logging.INFO
    )
    try:
        with _prepared(settings) as (agent, address):
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, lambda *_: agent.stop())
            print(f"listening on {address}", flush=True)
            agent.run()
    except SettingError as error:
        print(f"headway agent: {error}", file=sys.stderr)
        return 2
    return 0


@contextlib.contextmanager
def background_agent(settings: AgentSettings) -> Iterator[Agent]:
    """Ship in a thread while the block runs; its end flushes, within `agent.FLUSH_TIME`.

    A recorder that starts inside the block sees that it is shipped. No signal is touched.

    Raises:
        SettingError: a setting that cannot be used, or another agent that ships this folder.
    """
    with _prepared(settings) as (agent, _):
        thread = threading.Thread(target=agent.run, name="headway-agent", daemon=True)
        thread.start()
        try:
            yield agent
        finally:
            agent.stop()
            thread.join()


@contextlib.contextmanager
def _prepared(settings: AgentSettings) -> Iterator[tuple[Agent, str]]:
    """Make the only agent of a folder and serve its metrics; yield both agent and address."""
    folder = spool_folder(settings.spool)
    check(settings)
    with only_agent(folder), contextlib.ExitStack() as open_things:
        metrics = NodeMetrics(folder)
        agent = Agent(settings, metrics)
        open_things.callback(agent.close)
        server = MetricsServer(metrics, settings.host, settings.port)
        open_things.callback(server.close)
        agent.watch()  # a recorder that starts after this line sees that it is shipped
        yield agent, server.address


def check(settings: AgentSettings) -> None:
    """Refuse settings with which no agent can work.

    Raises:
        SettingError: one of them.
    """
    if not settings.interval > 0:
        raise SettingError(f"interval must be more than 0 seconds, got {settings.interval!r}")
    if not settings.clock_interval > 0:
        raise SettingError(
            f"clock_interval must be more than 0 seconds, got {settings.clock_interval!r}"
        )
    if settings.batch < 1:
        raise SettingError(f"batch must be at least 1 record, got {settings.batch!r}")
