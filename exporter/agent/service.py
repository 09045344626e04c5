"""Starts the node agent as a program of its own."""

import signal
import sys
from contextlib import ExitStack

from headway.exporter.agent.agent import Agent
from headway.exporter.agent.lock import only_agent
from headway.exporter.node.metrics import NodeMetrics
from headway.exporter.node.metrics_server import MetricsServer
from headway.exporter.spooling.layout import spool_folder
from headway.logs import configure
from headway.settings import AgentSettings, SettingError


def main(settings: AgentSettings, *, port_given: bool = False) -> int:
    """Ship until SIGTERM or SIGINT; return the exit status.

    A port that is taken is replaced by a free one, unless it was given.
    """
    configure(settings)
    folder = spool_folder(settings.spool)
    try:
        check(settings)
        with ExitStack() as until_the_end:
            until_the_end.enter_context(only_agent(folder))
            metrics = NodeMetrics(folder)
            agent = Agent(settings, metrics)
            until_the_end.callback(agent.close)
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, lambda *_: agent.stop())
            server = MetricsServer(metrics, settings.host, settings.port, fixed=port_given)
            until_the_end.callback(server.close)
            agent.watch()  # a recorder that starts after this line sees that it is shipped
            print(f"listening on {server.address}", flush=True)
            agent.run()
    except SettingError as error:
        print(f"headway agent: {error}", file=sys.stderr)
        return 2
    return 0


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
