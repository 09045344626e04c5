"""What `headway doctor` sees of this machine: Python, extras, settings, spools, kernel, GPUs."""

import os
import platform
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from headway.cli.findings import Finding, fine, problem, warning
from headway.redaction import MASK, masked
from headway.settings import (
    CONFIG_VARIABLE,
    SETTINGS,
    AgentSettings,
    RecorderSettings,
    SettingError,
    load,
    sources,
    unread_variables,
)

EXTRAS: Mapping[str, tuple[str, ...]] = {
    "exporter": ("nvidia-ml-py", "opentelemetry-sdk", "prometheus-client", "requests"),
    "server": ("duckdb", "httpx", "pyarrow", "sqlalchemy", "starlette", "streamlit", "uvicorn"),
    "training": ("torch", "nvidia-resiliency-ext"),
}
"""Packages by which each extra is known to be installed."""
_PYTHONS = ((3, 11), (3, 13))
"""First version that works, and the first for which NVRx has no wheels."""
_TORCH = (2, 9)
_NVRX = ((0, 4, 1), (0, 6), (0, 7))
"""Versions of NVRx with which the tests run."""
_ROOM = 4 * 256 * 1024**2
"""Bytes that the spools of a few ranks may need while no collector answers."""
_NVML_TIME = 15.0
_NVML = "import pynvml as n; n.nvmlInit(); print(n.nvmlDeviceGetCount())"


def installed(extra: str) -> bool:
    """Return whether every package is there by which an extra is known."""
    return not _missing(extra)


def python() -> Iterator[Finding]:
    """Look at Python and at what is installed."""
    first, beyond = _PYTHONS
    sentence = f"{platform.python_version()} at {sys.executable}"
    if first <= sys.version_info[:2] < beyond:
        yield fine("python", sentence)
    else:
        yield warning(
            "python",
            f"{sentence}; tested with 3.11 and 3.12",
            "make the environment with python3.11 or python3.12",
        )
    there = [extra for extra in EXTRAS if installed(extra)]
    if there:
        yield fine("extras", ", ".join(there))
    else:
        yield problem(
            "extras", "none is installed", "pip install 'headway[server]' or 'headway[exporter]'"
        )
    for extra in EXTRAS:
        missing = _missing(extra)
        if missing and len(missing) < len(EXTRAS[extra]) and extra != "training":
            yield warning(
                "extras",
                f"{extra} is incomplete, without {', '.join(missing)}",
                f"pip install 'headway[{extra}]' where you need it",
            )


def libraries() -> Iterator[Finding]:
    """Look at the versions of the libraries that are recorded from."""
    for name, judged in (("torch", _judge_torch), ("nvidia-resiliency-ext", _judge_nvrx)):
        found = _version(name)
        if found is not None:
            yield judged(name, found, _numbers(found))


def settings() -> Iterator[Finding]:
    """Look at every setting that is not the default and where it comes from, secrets masked."""
    file = os.environ.get(CONFIG_VARIABLE)
    if file:
        yield from _settings_file(Path(file))
    for sentence in unread_variables():
        said, _, step = sentence.partition("; ")
        yield warning("settings", said, step)
    num_given = 0
    for declaration in SETTINGS:
        try:
            values, given = load(declaration), sources(declaration)
        except SettingError as error:
            yield problem("settings", masked(str(error)), "correct it, or unset it")
            continue
        for name, source in given.items():
            num_given += 1
            value = MASK if name == "token" else masked(str(getattr(values, name)))
            yield fine("settings", f"[{declaration.section}] {name} = {value} from {source}")
    if not num_given:
        yield fine("settings", "all are the defaults")


def spools() -> Iterator[Finding]:
    """Look at the folder of the spools: whether it takes records, and whether they are shipped."""
    from headway.exporter.spooling.layout import agent_is_shipping, spool_folder

    folder = spool_folder(load(RecorderSettings).spool)
    agents = spool_folder(load(AgentSettings).spool)
    if folder != agents:
        yield problem(
            "spools",
            f"ranks write to {folder} and the agent ships {agents}",
            "set HEADWAY_SPOOL, which is for both",
        )
    nearest = next(path for path in (folder, *folder.parents) if path.exists())
    if not nearest.is_dir() or not os.access(nearest, os.W_OK | os.X_OK):
        yield problem(
            "spools",
            f"{nearest} cannot be written by user {os.geteuid()}, so ranks record nothing",
            "give it to the training's user, or name another folder with HEADWAY_SPOOL",
        )
        return
    room = shutil.disk_usage(nearest).free
    if room < _ROOM:
        yield warning(
            "spools",
            f"{folder} has room for {room // 1024**2} MiB",
            "make room: while no collector answers, each rank may need 256 MiB",
        )
    else:
        yield fine("spools", f"{folder} can be written and has {room // 1024**3} GiB of room")
    if agent_is_shipping(folder):
        yield fine("agent", f"one ships {folder}")
    else:
        yield warning(
            "agent",
            f"none ships {folder}; what ranks record waits there",
            "start `headway agent`, or the training with `headway run`",
        )


def kernel_log() -> Iterator[Finding]:
    """Look for a kernel log that the agent may read."""
    from headway.exporter.kernel.choices import choices, open_source

    setting = load(AgentSettings).kernel_log
    if setting == "off":
        yield fine("kernel log", "the agent is told not to read any")
        return
    refused = []
    for name in choices(setting):
        try:
            if Path(name).is_absolute():
                Path(name).open("rb").close()  # what follows a file waits for one to appear
            else:
                open_source(name, {}).close()
        except OSError as error:
            refused.append(f"{name}: {error.strerror or error}")
        else:
            yield fine("kernel log", f"{name} can be read")
            return
    yield warning(
        "kernel log",
        f"none can be read ({'; '.join(refused)}), so GPU faults and kills for memory go unseen",
        "give the agent CAP_SYSLOG or the group of the log, or set HEADWAY_AGENT_KERNEL_LOG",
    )


def gpus() -> Iterator[Finding]:
    """Ask the GPUs' driver, in a child process because a broken one may hang."""
    try:
        said = subprocess.run(  # noqa: S603  # this interpreter with a constant program
            [sys.executable, "-c", _NVML],
            capture_output=True,
            text=True,
            timeout=_NVML_TIME,
            check=False,
        )
    except subprocess.TimeoutExpired:
        yield problem(
            "gpus",
            f"the driver gave no answer in {_NVML_TIME:.0f} s",
            "see the kernel log; the node may need a restart",
        )
        return
    if said.returncode == 0:
        yield fine("gpus", f"{said.stdout.strip()} seen through the driver")
    elif Path("/dev/nvidiactl").exists():
        last = (said.stderr.strip().splitlines() or ["no answer"])[-1]
        yield problem("gpus", f"the driver refuses: {last}", "compare with nvidia-smi")
    else:
        yield fine("gpus", "no NVIDIA driver on this machine")


def _missing(extra: str) -> Sequence[str]:
    return [name for name in EXTRAS[extra] if _version(name) is None]


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _judge_torch(name: str, found: str, numbers: tuple[int, ...]) -> Finding:
    if numbers >= _TORCH:
        return fine("torch", found)
    lowest = ".".join(map(str, _TORCH))
    return warning("torch", f"{found}; tested from {lowest} on", f"install {name}>={lowest}")


def _judge_nvrx(name: str, found: str, numbers: tuple[int, ...]) -> Finding:
    if any(numbers[: len(known)] == known for known in _NVRX):
        return fine("nvrx", found)
    known = ", ".join(".".join(map(str, one)) for one in _NVRX)
    return warning("nvrx", f"{found}; tested with {known}", f"install one of these of {name}")


def _numbers(found: str) -> tuple[int, ...]:
    parts = found.partition("+")[0].split(".")
    return tuple(int(part) for part in parts if part.isdecimal())


def _settings_file(path: Path) -> Iterator[Finding]:
    try:
        mode = path.stat().st_mode
    except OSError as error:
        yield problem(
            "settings", f"cannot read {path}: {error.strerror}", f"unset {CONFIG_VARIABLE}"
        )
        return
    if mode & (stat.S_IRWXG | stat.S_IRWXO) and "token" in path.read_text(errors="replace"):
        yield warning(
            "settings", f"others may read {path}, which holds a token", f"chmod 600 {path}"
        )
