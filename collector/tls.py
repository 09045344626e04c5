"""TLS of the collector's own: certificate and key from files, read again when they are renewed."""

import logging
import ssl
from pathlib import Path

from headway.settings import CollectorSettings, SettingError

_LOG = logging.getLogger(__name__)


def server_context(settings: CollectorSettings) -> ssl.SSLContext | None:
    """Return how to speak TLS (1.2 or newer), or None where no certificate is set.

    Raises:
        SettingError: one of the two is missing, cannot be read, is encrypted, or does not fit.
    """
    certificate, key = settings.tls_certificate, settings.tls_key
    if certificate is None and key is None:
        return None
    if certificate is None or key is None:
        raise SettingError(
            "TLS needs both HEADWAY_COLLECTOR_TLS_CERTIFICATE and HEADWAY_COLLECTOR_TLS_KEY"
        )
    try:
        pair = _Pair(certificate, key)
    except (OSError, ValueError) as error:
        raise SettingError(
            f"cannot use certificate {str(certificate)!r} with key {str(key)!r}: {error}"
        ) from error
    context = pair.context
    context.sni_callback = pair.choose  # asked at each handshake
    return context


class _Pair:
    """Certificate and key as files, and the context of what was read of them last."""

    def __init__(self, certificate: Path, key: Path) -> None:
        self._paths = (certificate, key)
        self._seen = self._now()
        self.context = self._read()

    def choose(self, connection: ssl.SSLObject, _: str | None, __: ssl.SSLContext) -> None:
        """Let a connection use what the files hold now."""
        try:
            seen = self._now()
            if seen != self._seen:
                self.context = self._read()
                self._seen = seen
                _LOG.info("read the certificate again from %s", self._paths[0])
        except (OSError, ValueError) as error:
            # Half of a renewal: the old pair serves on, and the next handshake looks again.
            _LOG.warning("the renewed certificate cannot be used yet: %s", error)
        connection.context = self.context

    def _read(self) -> ssl.SSLContext:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        certificate, key = self._paths
        context.load_cert_chain(certificate, key, password=_no_password)
        return context

    def _now(self) -> list[tuple[int, int]]:
        return [(status.st_ino, status.st_mtime_ns) for status in map(Path.stat, self._paths)]


def _no_password() -> str:
    raise ValueError("the key is encrypted; write it without a password, readable by its owner")
