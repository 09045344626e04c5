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
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    pair = _Pair(certificate, key)
    try:
        pair.load(context)
    except (OSError, ValueError) as error:
        raise SettingError(
            f"cannot use certificate {str(certificate)!r} with key {str(key)!r}: {error}"
        ) from error
    # Asked at each handshake; a pair that is read again serves from the next one on.
    context.sni_callback = lambda *_: pair.renew(context)
    return context


class _Pair:
    """Certificate and key as files, with what was read of them last."""

    def __init__(self, certificate: Path, key: Path) -> None:
        self._paths = (certificate, key)
        self._seen: list[tuple[int, int]] = []

    def load(self, context: ssl.SSLContext) -> None:
        seen = self._now()
        certificate, key = self._paths
        context.load_cert_chain(certificate, key, password=_no_password)
        self._seen = seen

    def renew(self, context: ssl.SSLContext) -> None:
        try:
            if self._now() == self._seen:
                return
            self.load(context)
        except (OSError, ValueError) as error:
            # Half of a renewal: the old pair serves on, and the next handshake looks again.
            _LOG.warning("the renewed certificate cannot be used yet: %s", error)
        else:
            _LOG.info("read the certificate again from %s", self._paths[0])

    def _now(self) -> list[tuple[int, int]]:
        return [(status.st_ino, status.st_mtime_ns) for status in map(Path.stat, self._paths)]


def _no_password() -> str:
    raise ValueError("the key is encrypted; write it without a password, readable by its owner")
