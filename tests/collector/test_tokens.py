"""The file of tokens: hashes alone, closed to others, and changed as a whole."""

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from headway.collector import tokens
from headway.collector.tokens import Token, TokenError

NOW = 1_790_000_000_000_000_000


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "tokens.json"


def added(path: Path, name: str, *scopes: str, run: str | None = None) -> tuple[Token, str]:
    token, secret = tokens.new_token(name, scopes, run, NOW)
    tokens.add(path, token)
    return token, secret


def test_a_token_is_read_as_it_was_added_and_its_secret_is_nowhere(path: Path) -> None:
    agents, secret = added(path, "agents", "ingest", run="llama-*")
    grafana, _ = added(path, "grafana", "read")

    assert tokens.read(path) == (agents, grafana)
    assert agents.sha256 == tokens.digest(secret)
    assert secret not in path.read_text(encoding="utf-8")
    assert len(secret) > 40


def test_the_file_is_its_owners_alone(path: Path) -> None:
    added(path, "agents", "ingest")

    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(path.parent.iterdir()) == [path]


def test_two_tokens_never_have_one_name_or_one_secret(path: Path) -> None:
    _, first = added(path, "agents", "ingest")

    with pytest.raises(TokenError, match="there is a token 'agents' already"):
        added(path, "agents", "read")
    assert added(path, "others", "ingest")[1] != first


def test_revoking_the_last_token_leaves_an_empty_file_and_not_none(path: Path) -> None:
    added(path, "agents", "ingest")

    tokens.revoke(path, "agents")

    assert tokens.read(path) == ()


def test_revoking_an_unknown_token_names_those_that_there_are(path: Path) -> None:
    added(path, "agents", "ingest")

    with pytest.raises(TokenError, match=r"no token 'agent' in .*; known: agents"):
        tokens.revoke(path, "agent")
    with pytest.raises(TokenError, match="known: none"):
        tokens.revoke(path.with_name("other.json"), "agent")
    assert list(path.parent.iterdir()) == [path]


def test_a_link_to_the_file_stays_a_link(path: Path) -> None:
    added(path, "agents", "ingest")
    link = path.with_name("link.json")
    link.symlink_to(path)

    added(link, "grafana", "read")

    assert link.is_symlink()
    assert [token.name for token in tokens.read(path)] == ["agents", "grafana"]


@pytest.mark.parametrize("mode", [0o620, 0o602])
def test_a_file_that_others_may_write_to_is_refused(path: Path, mode: int) -> None:
    added(path, "agents", "ingest")
    path.chmod(mode)

    with pytest.raises(TokenError, match="others may write to"):
        tokens.read(path)


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(TokenError, match=r"no folder for the file of tokens .*/missing/tokens"):
        added(tmp_path / "missing" / "tokens.json", "agents", "ingest")


GOOD = {
    "name": "agents",
    "scopes": ["ingest"],
    "run": None,
    "created": NOW,
    "sha256": "0" * 64,
}


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"name": ""}, "a token's name is"),
        ({"name": "a b"}, "a token's name is"),
        ({"name": "a\nb"}, "a token's name is"),
        ({"name": 3}, "a token's name is"),
        ({"scopes": []}, "the scopes of 'agents' are some of ingest, read, admin"),
        ({"scopes": "ingest"}, "the scopes of 'agents'"),
        ({"scopes": ["ingest", "root"]}, "the scopes of 'agents'"),
        ({"run": ""}, "the run of 'agents' is a pattern"),
        ({"run": "llama-*", "scopes": ["read"]}, "a pattern of runs limits the scope ingest"),
        ({"run": "llama-*", "scopes": ["ingest", "admin"]}, "a pattern of runs limits"),
        ({"sha256": "secret"}, "has no sha256"),
        ({"created": None}, "does not say in UTC ns when"),
    ],
)
def test_a_token_that_cannot_be_makes_the_file_unusable(
    path: Path, change: dict[str, Any], sentence: str
) -> None:
    write(path, {"version": 1, "tokens": [{**GOOD, **change}]})

    with pytest.raises(TokenError, match=sentence):
        tokens.read(path)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ([], "does not say version 1"),
        ({"version": 2, "tokens": []}, "does not say version 1"),
        ({"version": 1}, "no list of tokens"),
        ({"version": 1, "tokens": ["agents"]}, "no list of tokens"),
        ({"version": 1, "tokens": [GOOD, GOOD]}, "two tokens have the same name"),
    ],
)
def test_a_file_that_holds_something_else_is_no_file_of_tokens(
    path: Path, content: object, sentence: str
) -> None:
    write(path, content)

    with pytest.raises(TokenError, match=sentence):
        tokens.read(path)


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe"])
def test_a_file_that_is_not_json_cannot_be_read(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    path.chmod(0o600)

    with pytest.raises(TokenError, match="cannot read the tokens in"):
        tokens.read(path)


def write(path: Path, content: object) -> None:
    path.write_text(json.dumps(content), encoding="utf-8")
    path.chmod(0o600)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes files for others")
def test_what_root_adds_belongs_to_whom_the_folder_belongs(path: Path) -> None:
    os.chown(path.parent, 12345, 12346)

    added(path, "agents", "ingest")

    assert (path.stat().st_uid, path.stat().st_gid) == (12345, 12346)
