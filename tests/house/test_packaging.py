"""The wheel holds every source file under `headway` alone, and the links are links."""

import importlib.util
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
LINKS = ("alerts", "collector", "dashboard", "exporter", "grafana", "storage")


def files_of_the_checkout() -> list[str]:
    """Return every file that is tracked, or new and not ignored."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    return [name for name in listed.split("\0") if name and (ROOT / name).exists()]


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the checkout in a folder whose name has a space."""
    copy = tmp_path_factory.mktemp("a clone with a space")
    for name in files_of_the_checkout():
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, copy / name, follow_symlinks=False)
    return copy


@pytest.fixture(scope="module")
def wheel(checkout: Path) -> list[str]:
    """Return the names in a wheel that was built through the sdist."""
    subprocess.run(
        [sys.executable, "-m", "build", "--no-isolation", "--outdir", "dist", "."],
        cwd=checkout,
        check=True,
        capture_output=True,
    )
    (built,) = (checkout / "dist").glob("*.whl")
    with zipfile.ZipFile(built) as archive:
        return archive.namelist()


@pytest.mark.slow
def test_the_wheel_installs_headway_alone_at_the_top_level(wheel: list[str]) -> None:
    top = {name.partition("/")[0] for name in wheel}

    assert {name for name in top if not name.endswith(".dist-info")} == {"headway"}


@pytest.mark.slow
def test_the_wheel_holds_every_source_file_and_nothing_else(wheel: list[str]) -> None:
    source = set()
    for name in files_of_the_checkout():
        first, _, rest = name.partition("/")
        if first in LINKS:
            source.add(f"headway/{name}")
        elif name.startswith("src/headway/") and not (ROOT / name).is_symlink():
            source.add(f"headway/{rest.partition('/')[2]}")

    assert {name for name in wheel if name.startswith("headway/")} == source


def test_every_folder_with_modules_is_a_listed_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    found = {
        str(Path("headway", name).parent)
        for name in (
            name.removeprefix("src/headway/")
            for name in files_of_the_checkout()
            if name.endswith(".py") and name.startswith((*(f"{link}/" for link in LINKS), "src/"))
        )
    }

    assert {name.replace("/", ".") for name in found} == set(
        project["tool"]["setuptools"]["packages"]
    )


def test_the_folders_at_the_top_are_links_in_git() -> None:
    listed = subprocess.run(
        ["git", "ls-files", "--stage", *(f"src/headway/{name}" for name in LINKS)],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.splitlines()

    assert [line.split()[0] for line in listed] == ["120000"] * len(LINKS)
    for name in LINKS:
        assert (ROOT / "src" / "headway" / name).readlink() == Path(f"../../{name}")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Return the part of a checkout that setup.py looks at."""
    shutil.copy(ROOT / "setup.py", tmp_path)
    for name in LINKS:
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").touch()
        link = tmp_path / "src" / "headway" / name
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(f"../../{name}")
    return tmp_path


def setup_of(tree: Path) -> ModuleType:
    specification = importlib.util.spec_from_file_location("headway_setup", tree / "setup.py")
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def test_links_in_a_checkout_and_folders_in_an_sdist_are_fine(tree: Path) -> None:
    assert setup_of(tree).complaint(tree) is None

    for name in LINKS:
        link = tree / "src" / "headway" / name
        link.unlink()
        (tree / name).rename(link)
    assert setup_of(tree).complaint(tree) is None


def test_a_build_stops_with_a_sentence_where_a_link_is_a_text_file(tree: Path) -> None:
    link = tree / "src" / "headway" / "exporter"
    link.unlink()
    link.write_text("../../exporter", encoding="utf-8")

    ended = subprocess.run(
        [sys.executable, "setup.py", "--version"], cwd=tree, capture_output=True, text=True
    )

    assert ended.returncode == 1
    assert "src/headway/exporter is not a link to exporter/: run 'git config core" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_copy_in_the_place_of_a_link_is_refused_because_it_would_drift(tree: Path) -> None:
    link = tree / "src" / "headway" / "storage"
    link.unlink()
    shutil.copytree(tree / "storage", link)

    assert "src/headway/storage is not a link" in setup_of(tree).complaint(tree)
