"""The sampler on a compiled `libnvidia-ml.so.1`: a call that hangs inside the library."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from gpu_scenario import FAKE
from gpu_watch import Recorded, Watch
from headway.events import GpuFault, GpuPresent, GpuSample, GpuXid
from headway.exporter.gpus import echoes
from headway.exporter.gpus.sampler import GpuSampler

COMPILER = shutil.which("cc") or shutil.which("gcc")


@pytest.mark.skipif(COMPILER is None, reason="no C compiler to build a driver's library with")
def test_a_call_that_hangs_inside_the_drivers_library_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(echoes, "PATIENCE", 0)
    library = tmp_path / "libnvidia-ml.so.1"
    assert COMPILER is not None
    flags = ("-shared", "-fPIC", "-Wall", "-Werror", "-o", str(library))
    subprocess.run([COMPILER, *flags, str(FAKE / "library.c")], check=True)
    hang = tmp_path / "hang"
    variables = {
        "LD_LIBRARY_PATH": str(tmp_path),
        "FAKE_NVML_HANG": str(hang),
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
    }
    environment = [f"{name}={value}" for name, value in variables.items()]
    command = ["env", *environment, sys.executable, "-m", "headway.exporter.gpus.helper"]
    recorded = Recorded()
    sampler = GpuSampler(recorded, interval=0.05, deadline=2.0, command=command)
    watch = Watch(sampler, recorded)
    try:
        watch.until(lambda: recorded.of(GpuXid) and len(recorded.of(GpuSample)) > 1)
        hang.touch()
        watch.until(lambda: recorded.of(GpuFault))
    finally:
        sampler.close()
    (present,) = recorded.of(GpuPresent)
    assert present == GpuPresent(
        device="GPU-c0",
        pci_address="0018:00:00.0",
        index=0,
        product="GPU of a compiled library 0",
        driver="580.95.05",
    )
    assert recorded.of(GpuSample)[0] == GpuSample(
        device="GPU-c0", power=123.456, memory_used=60 * 1024**3, memory_total=80 * 1024**3
    )
    assert [(xid.code, xid.device) for xid in recorded.of(GpuXid)] == [(79, "GPU-c0")]
    (fault,) = recorded.of(GpuFault)
    assert (fault.kind, fault.device) == ("query_hung", "GPU-c0")
