"""Which device a rank trains on, decided alike by all ranks of a node."""

from collections.abc import Mapping, MutableMapping
from typing import Any

import torch

from headway.events import RankDevice

NCCL_FOR_RESTARTS = {
    # Else the watchdog ends the process where NVRx is about to restart it.
    "TORCH_NCCL_RETHROW_CUDA_ERRORS": "0",
    # Aborting communicators leaks their NVLink multicast memory.
    "NCCL_NVLS_ENABLE": "0",
}
"""What NVRx demands of NCCL before it restarts in a process."""


def choose(environment: MutableMapping[str, str]) -> torch.device:
    """Return this rank's GPU, or the CPU where the node has not one for each of its ranks.

    Two ranks on one GPU would not do: NCCL refuses them.
    """
    local_rank = int(environment.get("LOCAL_RANK", "0"))
    num_local_ranks = int(environment.get("LOCAL_WORLD_SIZE", "1"))
    num_gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if num_gpus < max(num_local_ranks, local_rank + 1):
        if num_gpus and not local_rank:
            few = f"GPUs for {num_gpus} of this node's {num_local_ranks} ranks"
            print(f"{few}: training on CPUs", flush=True)
        torch.set_num_threads(int(environment.get("OMP_NUM_THREADS", "1")))
        return torch.device("cpu")
    for name, value in NCCL_FOR_RESTARTS.items():
        environment.setdefault(name, value)
    device = torch.device("cuda", local_rank)
    torch.cuda.set_device(device)
    return device


def identity(device: torch.device, environment: Mapping[str, str]) -> RankDevice | None:
    """Return which GPU a rank trains on, by names that its node's driver knows, too."""
    if device.type != "cuda":
        return None
    found: Any = torch.cuda.get_device_properties(device)
    address = None
    if hasattr(found, "pci_bus_id"):  # newer versions of torch tell it
        address = f"{found.pci_domain_id:08x}:{found.pci_bus_id:02x}:{found.pci_device_id:02x}.0"
    visible = environment.get("CUDA_VISIBLE_DEVICES", "").split(",")
    named = visible[device.index].strip() if device.index < len(visible) else ""
    return RankDevice(
        device=f"GPU-{found.uuid}",
        pci_address=address,
        local_rank=device.index,
        slice=named if named.startswith("MIG-") else None,
    )
