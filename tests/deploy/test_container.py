"""The container image: what hadolint says of its Dockerfile, and what it rests on."""

import json
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from headway.settings import SETTINGS, CollectorSettings, load, options

ROOT = Path(__file__).parents[2]
DOCKERFILE = ROOT / "deploy" / "container" / "Dockerfile"
HADOLINT = Path(sys.executable).with_name("hadolint")


def instructions() -> list[tuple[str, str]]:
    """Return each instruction of the image itself with its words."""
    text = DOCKERFILE.read_text(encoding="utf-8").replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    last = max(number for number, line in enumerate(lines) if line.startswith("FROM "))
    return [(line.partition(" ")[0], line.partition(" ")[2].strip()) for line in lines[last:]]


def words(instruction: str) -> str:
    (found,) = (text for name, text in instructions() if name == instruction)
    return found


def variables() -> dict[str, str]:
    pairs = (item.partition("=") for item in shlex.split(words("ENV")))
    return {name: value for name, _, value in pairs}


def test_hadolint_has_nothing_to_say() -> None:
    program = HADOLINT if HADOLINT.exists() else shutil.which("hadolint")
    assert program, "hadolint comes with headway[dev]"
    said = subprocess.run([program, str(DOCKERFILE)], capture_output=True, text=True)
    assert (said.returncode, said.stdout) == (0, "")


def test_every_base_is_one_exact_version() -> None:
    bases = [
        line.split()[1]
        for line in DOCKERFILE.read_text(encoding="utf-8").splitlines()
        if line.startswith("FROM ")
    ]
    assert bases
    for base in bases:
        version = base.partition(":")[2].partition("-")[0]
        assert len(version.split(".")) == 3


def test_it_runs_as_no_root_and_keeps_its_files_in_the_volume() -> None:
    user, _, group = words("USER").partition(":")
    assert int(user) > 0
    assert int(group) > 0
    settings = load(CollectorSettings, {}, variables())
    assert str(settings.database.parent) == str(settings.tokens.parent) == words("VOLUME")
    assert words("WORKDIR") == words("VOLUME")


def test_its_variables_are_settings() -> None:
    known = {option.variable for each in SETTINGS for option in options(each)}
    known |= {option.alias for each in SETTINGS for option in options(each) if option.alias}
    given = {name for name in variables() if name.startswith("HEADWAY_")}
    assert given <= known


def test_the_port_that_is_asked_for_its_health_is_the_collectors() -> None:
    interval, command = words("HEALTHCHECK").split("CMD")
    program = json.loads(command)
    assert "--start-period=" in interval
    assert f":{CollectorSettings().port}/healthz" in program[-1]
    compile(program[-1], "healthcheck", "exec")
    assert json.loads(words("ENTRYPOINT")) == ["headway"]
    assert json.loads(words("CMD")) == ["collect"]


def test_the_build_is_given_what_the_wheel_is_made_of_and_nothing_else() -> None:
    ignored = DOCKERFILE.with_name("Dockerfile.dockerignore").read_text(encoding="utf-8")
    let_in = {line[1:] for line in ignored.splitlines() if line.startswith("!")}
    links = {path.name for path in (ROOT / "src" / "headway").iterdir() if path.is_symlink()}
    assert let_in == {
        *links,
        *("src", "LICENSE", "README.md", "pyproject.toml", "setup.py", "constraints.txt"),
    }
    assert "*" in ignored.splitlines()
    for name in let_in:
        assert (ROOT / name).exists()
