"""A certificate for loopback, made by openssl where a test needs one."""

import subprocess
from pathlib import Path


def make_certificate(folder: Path, name: str = "server") -> tuple[Path, Path]:
    """Return certificate and key, both PEM; the certificate vouches for itself."""
    certificate, key = folder / f"{name}.crt", folder / f"{name}.key"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"),
            *("-nodes", "-days", "2", "-subj", f"/CN={name}"),
            *("-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost"),
            *("-keyout", str(key), "-out", str(certificate)),
        ],
        check=True,
        capture_output=True,
    )
    return certificate, key
