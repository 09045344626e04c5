"""What a training process can tell of itself without being asked: command, variables, versions.

It completes the settings that a program records, so that two attempts can be compared. Variables
are those whose prefix says that they steer a library; one that is named like a secret is left out,
and what looks like a secret elsewhere is masked as in every event.
"""

import os
import platform
import shlex
import sys
from collections.abc import Mapping
from dataclasses import replace

from headway.events import RunConfigured, Scalar
from headway.redaction import is_private

LONGEST = 4_000
"""Characters that are kept of a command line."""
MOST_VARIABLES = 200
PREFIXES = (
    "ACCELERATE_",
    "CUBLAS_",
    "CUDA_",
    "CUDNN_",
    "DEEPSPEED_",
    "FI_",
    "FT_",
    "GLOO_",
    "HEADWAY_",
    "HSA_",
    "JAX_",
    "KMP_",
    "MKL_",
    "NCCL_",
    "NVIDIA_",
    "NVSHMEM_",
    "NVTE_",
    "OMP_",
    "PYTORCH_",
    "RCCL_",
    "TOKENIZERS_",
    "TORCH",
    "TRITON_",
    "UCX_",
    "XLA_",
)
_EVERY_RANKS_OWN = (
    "CUDA_VISIBLE_DEVICES",
    "FT_RANK_MONITOR_IPC_SOCKET",
    "HEADWAY_LAUNCH",
    "NVIDIA_VISIBLE_DEVICES",
    "TORCHELASTIC_ERROR_FILE",
    "TORCHELASTIC_RESTART_COUNT",
    "TORCHELASTIC_RUN_ID",
)
"""Variables that differ between ranks or launches by design and would drown what matters."""
LIBRARIES = (
    "torch",
    "nvidia-resiliency-ext",
    "lightning",
    "transformers",
    "accelerate",
    "deepspeed",
    "megatron-core",
    "transformer-engine",
    "flash-attn",
    "numpy",
    "jax",
)


def completed(event: RunConfigured) -> RunConfigured:
    """Return settings with command, variables and versions where the program named none."""
    told = event.versions
    known = told is None or isinstance(told, Mapping)
    return replace(
        event,
        command=command(sys.orig_argv) if event.command is None else event.command,
        environment=steering(os.environ) if event.environment is None else event.environment,
        versions={**_versions(), **(told or {})} if known else told,
    )


def command(arguments: list[str]) -> str | None:
    """Return a command line as a shell would take it; None where there is none.

    One text, because what follows an option such as `--api-key` only shows beside it.
    """
    return shlex.join(arguments)[:LONGEST] if arguments else None


def steering(environment: Mapping[str, str]) -> dict[str, Scalar]:
    """Return the variables that steer a library, by name."""
    names = sorted(
        name
        for name in environment
        if name.startswith(PREFIXES) and name not in _EVERY_RANKS_OWN and not is_private(name)
    )
    return {name: environment[name][:LONGEST] for name in names[:MOST_VARIABLES]}


def _versions() -> dict[str, Scalar]:
    from importlib import metadata  # costs tens of milliseconds, and most processes never need it

    found: dict[str, Scalar] = {"python": platform.python_version()}
    for library in LIBRARIES:
        try:
            found[library] = metadata.version(library)
        except metadata.PackageNotFoundError:
            continue
    return found
