"""Whether a command is a Python launcher that can be entered, and how it is entered.

Only where it is certain what would run: `torchrun` and `ft_launcher` as pip installs them, and
their modules behind `python -m`. Every other command is run as it stands.
"""

import re
import shutil
from collections.abc import Sequence
from pathlib import Path

ENTRY = Path(__file__).with_name("entry.py")
_MODULES = (
    "torch.distributed.run",
    "torch.distributed.launch",
    "nvidia_resiliency_ext.fault_tolerance.launcher",
)
_SCRIPTS = ("torchrun", "ft_launcher")
_PYTHON = re.compile(r"python(3(\.\d+)?)?")
_THROUGH_SHELL = re.compile(r"""'''exec' ("?)(/[^"\n]+)\1 "\$0" "\$@"\n""")
"""How pip starts a Python whose path is too long for a first line, or holds a space."""
_PLAIN_FLAGS = ("-u", "-B", "-O", "-OO", "-s", "-q")
_LARGEST_SCRIPT = 4096
"""Bytes; a script that pip writes has some hundred."""


def entered(command: Sequence[str], descriptor: int) -> list[str] | None:
    """Return the command that runs a launcher through `entry`; `None` where it is no launcher.

    `descriptor` is the open file, inherited by the command, to which the entry tells what it sees.
    """
    name = Path(command[0]).name
    if name in _SCRIPTS:
        path = shutil.which(command[0])
        python = None if path is None else _interpreter(Path(path))
        if path is None or python is None:
            return None
        return [python, str(ENTRY), str(descriptor), "script", path, *command[1:]]
    if not _PYTHON.fullmatch(name):
        return None
    rest = list(command[1:])
    flags = []
    while rest and rest[0] in _PLAIN_FLAGS:
        flags.append(rest.pop(0))
    if len(rest) < 2 or rest[0] != "-m" or rest[1] not in _MODULES:
        return None
    return [command[0], *flags, str(ENTRY), str(descriptor), "module", *rest[1:]]


def _interpreter(script: Path) -> str | None:
    """Return the Python that runs a script which pip wrote for one of the modules."""
    try:
        with script.open("rb") as opened:
            content = opened.read(_LARGEST_SCRIPT + 1).decode()
    except (OSError, ValueError):
        return None
    first, _, rest = content.partition("\n")
    runs = any(f"from {name} import main" in rest for name in _MODULES)
    if len(content) > _LARGEST_SCRIPT or not runs or not first.startswith("#!/"):
        return None
    through_shell = _THROUGH_SHELL.match(rest) if first == "#!/bin/sh" else None
    python = through_shell[2] if through_shell else first.removeprefix("#!")
    return python if _PYTHON.fullmatch(Path(python).name) else None
