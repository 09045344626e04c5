"""The file of tokens: who may do what, with a hash of each secret and never the secret.

A secret is 256 random bits, so one SHA-256 is enough: there is no dictionary to try, and scrypt,
made for what people choose, would cost every request tens of milliseconds, which is an open door
for anyone who wants to keep the collector busy. The file lies outside the database, which is
copied, backed up and handed to others.
"""

import fcntl
import hashlib
import json
import os
import re
import secrets
import stat
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

INGEST, READ, ADMIN = "ingest", "read", "admin"
SCOPES = {
    INGEST: "send telemetry",
    READ: "read runs, incidents, nodes and metrics",
    ADMIN: "all of it, and to say something about incidents",
}
"""Every scope, with what it allows."""

SECRET_PREFIX = "headway_"  # noqa: S105  # lets scanners of leaked secrets know ours
_SECRET_BYTES = 32
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_HASH = re.compile(r"[0-9a-f]{64}")
_VERSION = 1
_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH


class TokenError(ValueError):
    """A file of tokens that cannot be used, or a token that cannot be made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """One token without its secret."""

    name: str
    scopes: tuple[str, ...]
    run: str | None = None
    """Pattern of the names of the runs that it may write to; None is every run and node."""
    created: int
    """When it was made, in UTC ns."""
    sha256: str


def digest(secret: str) -> str:
    """Return the hash under which a secret is kept."""
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).hexdigest()


def new_token(name: str, scopes: Sequence[str], run: str | None, created: int) -> tuple[Token, str]:
    """Make a token; return it with its secret, which is kept nowhere.

    Raises:
        TokenError: a name, scope or pattern that cannot be.
    """
    secret = SECRET_PREFIX + secrets.token_urlsafe(_SECRET_BYTES)
    made = {"name": name, "scopes": list(scopes), "run": run, "created": created}
    return _token({**made, "sha256": digest(secret)}), secret


def read(path: Path) -> tuple[Token, ...]:
    """Return the tokens of a file.

    Raises:
        FileNotFoundError: there is none.
        TokenError: it cannot be read, is no file of tokens, or others may write to it.
    """
    try:
        with path.open(encoding="utf-8") as file:
            mode = os.fstat(file.fileno()).st_mode
            content = json.load(file)
    except FileNotFoundError:
        raise
    except (OSError, ValueError) as error:
        raise TokenError(f"cannot read the tokens in {str(path)!r}: {error}") from error
    if mode & _WRITABLE_BY_OTHERS:
        raise TokenError(
            f"others may write to {str(path)!r} and so let themselves in; run chmod 600 on it"
        )
    try:
        return _tokens(content)
    except TokenError as error:
        raise TokenError(f"{str(path)!r} is no file of tokens: {error}") from error


def add(path: Path, token: Token) -> None:
    """Write one more token.

    Raises:
        TokenError: its name is taken, or the file cannot be read or written.
    """
    with _changing(path) as known:
        if any(other.name == token.name for other in known):
            raise TokenError(
                f"there is a token {token.name!r} already; revoke it or take another name"
            )
        known.append(token)


def revoke(path: Path, name: str) -> None:
    """Remove a token; the file stays, so that removing the last lets nobody in.

    Raises:
        TokenError: there is no such token, or the file cannot be read or written.
    """
    with _changing(path) as known:
        kept = [token for token in known if token.name != name]
        if len(kept) == len(known):
            names = ", ".join(token.name for token in known) or "none"
            raise TokenError(f"no token {name!r} in {str(path)!r}; known: {names}")
        known[:] = kept


@contextmanager
def _changing(path: Path) -> Iterator[list[Token]]:
    """Give the tokens of a file to be changed, alone, and write what became of them."""
    target = path.resolve()
    try:
        folder = os.open(target.parent, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise TokenError(f"no folder for the file of tokens {str(path)!r}: {error}") from error
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        known: list[Token] = []
        with suppress(FileNotFoundError):
            known += read(target)
        yield known
        try:
            _write(target, known)
        except OSError as error:
            raise TokenError(f"cannot write the tokens to {str(path)!r}: {error}") from error
    finally:
        os.close(folder)


def _write(target: Path, tokens: Sequence[Token]) -> None:
    """Replace the file as a whole: a collector reads the old one or the new one."""
    owner = (target if target.exists() else target.parent).stat()
    content = {"version": _VERSION, "tokens": [asdict(token) for token in tokens]}
    handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")  # 0600
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            if os.geteuid() == 0:  # root adds a token for a collector that runs as another user
                os.fchown(file.fileno(), owner.st_uid, owner.st_gid)
            json.dump(content, file, indent=2)
            file.write("\n")
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:
        os.unlink(temporary)
        raise


def _tokens(content: Any) -> tuple[Token, ...]:
    if not isinstance(content, dict) or content.get("version") != _VERSION:
        raise TokenError(f"it does not say version {_VERSION}")
    listed = content.get("tokens")
    if not isinstance(listed, list) or not all(isinstance(item, dict) for item in listed):
        raise TokenError("it holds no list of tokens")
    found = tuple(_token(item) for item in listed)
    if len({token.name for token in found}) < len(found):
        raise TokenError("two tokens have the same name")
    return found


def _token(item: dict[str, Any]) -> Token:
    name, scopes, run = item.get("name"), item.get("scopes"), item.get("run")
    if not isinstance(name, str) or _NAME.fullmatch(name) is None:
        raise TokenError(f"a token's name is 1-64 of A-Z a-z 0-9 . _ -, got {name!r}")
    if not isinstance(scopes, list) or not scopes or not set(map(str, scopes)) <= set(SCOPES):
        raise TokenError(f"the scopes of {name!r} are some of {', '.join(SCOPES)}, got {scopes!r}")
    if run is not None and (not isinstance(run, str) or not run):
        raise TokenError(f"the run of {name!r} is a pattern such as 'llama-*', got {run!r}")
    if run is not None and (INGEST not in scopes or ADMIN in scopes):
        raise TokenError(f"a pattern of runs limits the scope {INGEST}, {name!r} has {scopes!r}")
    sha256, created = item.get("sha256"), item.get("created")
    if not isinstance(sha256, str) or _HASH.fullmatch(sha256) is None:
        raise TokenError(f"the token {name!r} has no sha256 of 64 hexadecimal digits")
    if not isinstance(created, int):
        raise TokenError(f"the token {name!r} does not say in UTC ns when it was created")
    ordered = tuple(scope for scope in SCOPES if scope in scopes)
    return Token(name=name, scopes=ordered, run=run, created=created, sha256=sha256)
