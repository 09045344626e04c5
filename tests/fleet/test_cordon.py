"""The command that keeps work off a node gives the reason that its failures are."""

from headway.fleet.histories import GpuHistory, NodeHistory
from headway.fleet.rates import rate_of
from headway.incidents.losses import Loss


def test_a_program_at_fault_is_no_reason_to_drain_its_node() -> None:
    node = NodeHistory(
        node="node-a",
        runs=(),
        scheduler="slurm",
        failures=1,
        rate=rate_of(1, 0),
        causes={},
        incidents=(),
        loss=Loss(),
        last_failure=0,
        gpus=(
            GpuHistory(device="GPU-a", faults=1, names=("Xid 79",)),
            GpuHistory(device="GPU-b", faults=0, names=("Xid 13",)),
        ),
    )

    assert node.cordon == [
        "scontrol update nodename=node-a state=drain reason='headway: 1 failure (Xid 79)'"
    ]
