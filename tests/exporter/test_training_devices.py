"""The device of each rank, on machines with and without enough GPUs."""

import warnings
from types import SimpleNamespace

import pytest

from headway.events import RankDevice

with warnings.catch_warnings():
    warnings.simplefilter("ignore", FutureWarning)  # torch about pynvml
    import torch

    from headway.exporter.training import devices


@pytest.fixture
def chosen(monkeypatch: pytest.MonkeyPatch) -> list[torch.device]:
    """Return the list of devices that are made current."""
    found: list[torch.device] = []
    monkeypatch.setattr(torch.cuda, "set_device", found.append)
    return found


def gpus(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: count > 0)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: count)


def test_a_rank_takes_the_gpu_of_its_place_on_the_node_and_readies_nccl_for_restarts(
    monkeypatch: pytest.MonkeyPatch, chosen: list[torch.device]
) -> None:
    gpus(monkeypatch, 2)
    environment = {"LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2", "NCCL_NVLS_ENABLE": "1"}
    assert devices.choose(environment) == torch.device("cuda", 1)
    assert chosen == [torch.device("cuda", 1)]
    assert environment["TORCH_NCCL_RETHROW_CUDA_ERRORS"] == "0"
    assert environment["NCCL_NVLS_ENABLE"] == "1"  # as the user wants it


@pytest.mark.parametrize(
    ("count", "said"), [(0, ""), (1, "GPUs for 1 of this node's 2 ranks: training on CPUs\n")]
)
def test_all_ranks_of_a_node_with_too_few_gpus_train_on_cpus(
    monkeypatch: pytest.MonkeyPatch,
    chosen: list[torch.device],
    capsys: pytest.CaptureFixture[str],
    count: int,
    said: str,
) -> None:
    gpus(monkeypatch, count)
    for rank in ("0", "1"):
        environment = {"LOCAL_RANK": rank, "LOCAL_WORLD_SIZE": "2"}
        assert devices.choose(environment) == torch.device("cpu")
        assert "TORCH_NCCL_RETHROW_CUDA_ERRORS" not in environment
    assert chosen == []
    assert capsys.readouterr().out == said


def test_a_rank_whose_node_nobody_counts_needs_a_gpu_of_its_number(
    monkeypatch: pytest.MonkeyPatch, chosen: list[torch.device]
) -> None:
    gpus(monkeypatch, 1)
    assert devices.choose({"LOCAL_RANK": "1"}) == torch.device("cpu")
    assert chosen == []


@pytest.mark.parametrize(
    ("visible", "slice_"), [("", None), ("2,3", None), ("MIG-a, MIG-b", "MIG-b"), ("MIG-a", None)]
)
def test_a_rank_names_its_gpu_as_the_driver_of_its_node_does(
    monkeypatch: pytest.MonkeyPatch, visible: str, slice_: str | None
) -> None:
    found = SimpleNamespace(
        uuid="5ab0f9e7-2f2e-1111-aaaa-0123456789ab",
        pci_domain_id=0,
        pci_bus_id=0xCB,
        pci_device_id=0,
    )
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: found)
    environment = {"CUDA_VISIBLE_DEVICES": visible}
    assert devices.identity(torch.device("cuda", 1), environment) == RankDevice(
        device="GPU-5ab0f9e7-2f2e-1111-aaaa-0123456789ab",
        pci_address="00000000:cb:00.0",
        local_rank=1,
        slice=slice_,
    )


def test_a_rank_on_a_cpu_has_no_gpu_to_name() -> None:
    assert devices.identity(torch.device("cpu"), {}) is None
