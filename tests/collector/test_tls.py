"""TLS of the collector's own, and clients that are told whom to trust."""

import os
import shutil
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from certificates import make_certificate
from headway.collector.tls import server_context
from headway.settings import ClientSettings, CollectorSettings, SettingError
from headway.storage.client import CollectorClient
from headway.storage.collector_errors import CollectorUnreachable

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="no openssl here")


@contextmanager
def answering(context: ssl.SSLContext) -> Iterator[tuple[str, int]]:
    """Shake hands with everybody who connects, until the block ends."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                plain, _ = listener.accept()
            except OSError:
                return
            with plain:
                try:
                    context.wrap_socket(plain, server_side=True).close()
                except OSError:
                    continue

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield listener.getsockname()
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()


def subject(address: tuple[str, int]) -> bytes:
    """Return the certificate that a client is shown."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with (
        socket.create_connection(address) as plain,
        context.wrap_socket(plain, server_hostname="localhost") as secured,
    ):
        shown = secured.getpeercert(binary_form=True)
    assert shown is not None
    return shown


def of(certificate: Path) -> bytes:
    return ssl.PEM_cert_to_DER_cert(certificate.read_text(encoding="ascii"))


def test_without_a_certificate_there_is_no_tls() -> None:
    assert server_context(CollectorSettings()) is None


def test_old_versions_of_tls_are_not_spoken(tmp_path: Path) -> None:
    certificate, key = make_certificate(tmp_path)

    context = server_context(CollectorSettings(tls_certificate=certificate, tls_key=key))

    assert context is not None
    assert context.minimum_version >= ssl.TLSVersion.TLSv1_2


def test_a_renewed_certificate_serves_without_a_restart(tmp_path: Path) -> None:
    certificate, key = make_certificate(tmp_path)
    old = of(certificate)
    context = server_context(CollectorSettings(tls_certificate=certificate, tls_key=key))
    assert context is not None

    with answering(context) as address:
        assert subject(address) == old
        newer, newer_key = make_certificate(tmp_path, "newer")
        os.replace(newer, certificate)
        assert subject(address) == old  # half of a renewal: the key is still the old one
        os.replace(newer_key, key)
        assert subject(address) == of(certificate) != old


def test_a_client_that_speaks_another_way_is_told_how_to_speak(tmp_path: Path) -> None:
    certificate, key = make_certificate(tmp_path)
    context = server_context(CollectorSettings(tls_certificate=certificate, tls_key=key))
    assert context is not None

    with answering(context) as (host, port):
        for scheme, step in (("https", "HEADWAY_CA_FILE"), ("http", "https://")):
            client = CollectorClient(ClientSettings(endpoint=f"{scheme}://{host}:{port}"))
            with pytest.raises(CollectorUnreachable) as refused:
                client.runs()
            assert step in refused.value.next_step


def test_what_cannot_be_used_is_refused_with_the_paths(tmp_path: Path) -> None:
    certificate, key = make_certificate(tmp_path)
    _, other_key = make_certificate(tmp_path, "other")
    locked = tmp_path / "locked.key"
    lock = ("openssl", "ec", "-aes128", "-passout", "pass:word", "-in", str(key), "-out")
    subprocess.run([*lock, str(locked)], check=True, capture_output=True)

    with pytest.raises(SettingError, match="TLS needs both"):
        server_context(CollectorSettings(tls_certificate=certificate))
    for wrong in (other_key, locked, tmp_path / "missing.key", certificate):
        settings = CollectorSettings(tls_certificate=certificate, tls_key=wrong)
        with pytest.raises(SettingError, match=f"with key '{wrong}'"):
            server_context(settings)
