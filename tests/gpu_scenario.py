"""What the fake driver says: a file that `tests/fake_nvml` follows while it is being asked."""

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

FAKE = Path(__file__).parent / "fake_nvml"
XID, DOUBLE_BIT, RETIREMENT, RETIREMENT_FAILURE, RECOVERY = 0x8, 0x2, 0x400, 0x800, 0x8000
NO_INSTANCE = 0xFFFF_FFFF


def gpu(number: int, **changed: Any) -> dict[str, Any]:
    """Return a GPU like an H100 that has nothing to complain about."""
    return {
        "uuid": f"GPU-{number:08d}-0000-0000-0000-000000000000",
        "pci": f"00000000:{0x1B + number:02X}:00.0",
        "name": "NVIDIA H100 80GB HBM3",
        "serial": f"165012300{number:04d}",
        "temperature": 40 + number,
        "power": 350_500,
        "memory": [80 * 1024**3, 60 * 1024**3],
        "utilization": 97,
        "reasons": 0,
        "ecc": [0, 0],
        "remapped": [0, 0, 0, 0],
        "pcie_replays": 0,
        "links": [1] * 18,
        "fields": {"230": 0, "161": 0, "162": 0, "163": 0},
        **changed,
    }


class Scenario:
    """A driver and its GPUs; what is put in `content` holds from `tell` on."""

    def __init__(self, path: Path, num_gpus: int = 2, **content: Any) -> None:
        self.path = path
        self.content: dict[str, Any] = {
            "driver": "580.82.07",
            "tick": 0.01,
            "gpus": [gpu(number) for number in range(num_gpus)],
            "events": [],
            **content,
        }
        self.tell()

    def tell(self) -> None:
        """Let the driver say what `content` holds from now on."""
        new = self.path.with_suffix(".new")
        new.write_text(json.dumps(self.content))
        os.replace(new, self.path)

    def breaks(self, number: int, **changed: Any) -> None:
        """Change a GPU."""
        self.content["gpus"][number].update(changed)
        self.tell()

    def reports(
        self, number: int, kind: int, data: int = 0, instance: tuple[int, int] | None = None
    ) -> None:
        """Let the driver report an event of a GPU."""
        ids = instance or (NO_INSTANCE, NO_INSTANCE)
        self.content["events"].append([number, kind, data, *ids])
        self.tell()

    @property
    def environment(self) -> Mapping[str, str]:
        """Variables with which a process finds this driver, besides its own."""
        paths = [str(FAKE), *filter(None, sys.path)]
        return {"FAKE_NVML": str(self.path), "PYTHONPATH": os.pathsep.join(paths)}
