"""The reference pages say what the declarations say."""

from pathlib import Path

import pytest

from headway.cli import COMMANDS, main
from headway.cli.reference import pages
from headway.events import EVENTS
from headway.metrics import CATEGORIES, METRICS
from headway.settings import SETTINGS, options

ROOT = Path(__file__).parents[2]


def test_every_committed_page_is_current() -> None:
    assert main(["generate", "--check", "--directory", str(ROOT)]) == 0


def test_generating_twice_writes_the_same() -> None:
    assert dict(pages()) == dict(pages())


def test_everything_declared_is_on_its_page() -> None:
    text = pages()

    for name in EVENTS:
        assert f"## `{name}`" in text["docs/reference/events.md"]
    for name in [*CATEGORIES, *METRICS]:
        assert f"| `{name}` |" in text["docs/reference/metrics.md"]
    for declaration in SETTINGS:
        for option in options(declaration):
            assert f"`{option.variable}`" in text["docs/reference/settings.md"]
    for name in COMMANDS:
        assert f"## `headway {name}`" in text["docs/reference/cli.md"]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Return a folder that looks like a checkout and has fresh pages."""
    (tmp_path / "src" / "headway" / "events").mkdir(parents=True)
    main(["generate", "--directory", str(tmp_path)])
    return tmp_path


@pytest.mark.slow
def test_a_stale_page_is_named_and_the_status_is_1(
    checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = checkout / "docs" / "reference" / "events.md"
    page.write_text("old", encoding="utf-8")
    (checkout / "docs" / "reference" / "cli.md").unlink()

    assert main(["generate", "--check", "--directory", str(checkout)]) == 1

    said = capsys.readouterr().err
    assert "stale: docs/reference/events.md" in said
    assert "stale: docs/reference/cli.md" in said
    assert "metrics.md" not in said
    assert page.read_text(encoding="utf-8") == "old"


@pytest.mark.slow
def test_generate_writes_what_is_stale(checkout: Path) -> None:
    page = checkout / "docs" / "reference" / "events.md"
    page.write_text("old", encoding="utf-8")

    assert main(["generate", "--directory", str(checkout)]) == 0
    assert main(["generate", "--check", "--directory", str(checkout)]) == 0


def test_a_folder_that_is_no_checkout_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["generate", "--directory", str(tmp_path)]) == 2
    assert "is not a checkout of headway" in capsys.readouterr().err
