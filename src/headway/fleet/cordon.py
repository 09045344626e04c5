"""How to keep new work off a node, as a command to copy."""

import shlex
from collections.abc import Mapping, Sequence

_COMMANDS: Mapping[str, str] = {
    "slurm": "scontrol update nodename={node} state=drain reason={reason}",
    "kubernetes": "kubectl cordon {node}",
}


def cordon_commands(node: str, scheduler: str | None, reason: str) -> Sequence[str]:
    """Return the command for the scheduler that holds the node; if none is known, one for each."""
    return [
        command.format(node=shlex.quote(node), reason=shlex.quote(reason))
        for name, command in _COMMANDS.items()
        if scheduler in (name, None)
    ]
