"""`headway token`: the secret is shown once, and a running collector knows."""

import json
from pathlib import Path

import pytest

from headway import cli
from headway.collector import tokens


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    found = tmp_path / "tokens.json"
    monkeypatch.setenv("HEADWAY_COLLECTOR_TOKENS", str(found))
    return found


def test_the_secret_alone_is_printed_once(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = ["token", "add", "agents", "--scope", "ingest", "--scope", "read", "--run", "llama-*"]
    assert cli.main(given) == 0

    said = capsys.readouterr()
    (token,) = tokens.read(path)
    assert tokens.digest(said.out.removesuffix("\n")) == token.sha256
    assert said.out.strip() not in said.err
    assert "agents: ingest and read, writes to runs llama-* only" in said.err
    assert str(path) in said.err


def test_the_list_shows_everything_but_secrets(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cli.main(["token", "add", "agents", "--scope", "ingest"])
    secret = capsys.readouterr().out.strip()
    (token,) = tokens.read(path)

    assert cli.main(["token", "list"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("agents: ingest; made 20")
    assert cli.main(["token", "list", "--json"]) == 0
    listed = capsys.readouterr().out
    assert json.loads(listed) == {
        "tokens": [{"name": "agents", "scopes": ["ingest"], "run": None, "created": token.created}]
    }
    for text in (said, listed):
        assert secret not in text
        assert token.sha256 not in text


def test_a_revoked_token_is_gone(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cli.main(["token", "add", "agents", "--scope", "ingest"])

    assert cli.main(["token", "revoke", "agents"]) == 0

    assert capsys.readouterr().out.endswith("agents is not valid any more\n")
    assert tokens.read(path) == ()


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (["list"], "make one with `headway token add`"),
        (["revoke", "agents"], "no token 'agents'"),
        (["add", "two words", "--scope", "read"], "a token's name is"),
        (["add", "me", "--scope", "admin", "--run", "llama-*"], "limits the scope ingest"),
    ],
)
def test_what_cannot_be_is_refused_with_a_sentence(
    path: Path, capsys: pytest.CaptureFixture[str], given: list[str], sentence: str
) -> None:
    assert cli.main(["token", *given]) == 2
    assert sentence in capsys.readouterr().err
    assert not path.exists()


@pytest.mark.parametrize("given", [["add", "me"], ["add", "me", "--scope", "root"], []])
def test_wrong_use_is_status_2(given: list[str]) -> None:
    with pytest.raises(SystemExit) as left:
        cli.main(["token", *given])
    assert left.value.code == 2
