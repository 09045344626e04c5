"""Serves the metrics of one node to Prometheus."""

import logging
from wsgiref.simple_server import WSGIServer

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.registry import Collector

from headway.listening import TAKEN, refused_port
from headway.settings import SettingError

_log = logging.getLogger(__name__)


class MetricsServer:
    """Serves the metrics of one node over HTTP in a thread of its own."""

    def __init__(self, metrics: Collector, host: str, port: int, *, fixed: bool = False) -> None:
        """Begin to serve; a port that is taken is replaced by a free one, unless it is `fixed`.

        Raises:
            SettingError: there is no such address, or the port cannot be used.
        """
        registry = CollectorRegistry()
        registry.register(metrics)
        try:
            server, thread = start_http_server(port, host, registry)
        except OSError as busy:
            refusal = refused_port(host, port, busy)
            if fixed and busy.errno in TAKEN:
                raise refusal from busy
            try:
                server, thread = start_http_server(0, host, registry)
            except OSError as error:
                raise SettingError(
                    f"cannot listen on {host!r}: {error.strerror}; name another address with --host"
                ) from error
            why = str(refusal).partition(";")[0]
            _log.warning("%s, so the metrics are on port %d", why, server.server_port)
        self._server: WSGIServer = server
        self._thread = thread
        name = f"[{host}]" if ":" in host else host
        self.address = f"http://{name}:{server.server_port}"

    def close(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
