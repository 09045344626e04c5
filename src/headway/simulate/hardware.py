"""What the nodes of a made-up fleet record by themselves: their GPUs, faults and readings."""

import hashlib
from collections.abc import Sequence
from random import Random

from headway.events import AgentCost, Clock, Envelope, Event, GpuPresent, GpuSample, GpuXid, Health
from headway.gpu_faults.policy import classified
from headway.simulate.plan import HOUR, MINUTE, SECOND

GPUS = 8
_PRODUCTS = {"fra": "NVIDIA H200", "iow": "NVIDIA H100 80GB HBM3", "osa": "NVIDIA A100-SXM4-80GB"}
_GIB = 2**30
_OWN = (13, 31, 43, 63, 94)
"""Xids that strike without ending a run: of the program, or of memory that mended itself."""
_SILENT = 13
"""Of so many nodes one tells nothing of its checks."""
_WORDS = {
    13: "Graphics SM Warp Exception on (GPC 1, TPC 3, SM 0): Out Of Range Address",
    31: "MMU Fault: ENGINE GRAPHICS faulted @ 0x7f1c_2a000000. Fault is of type FAULT_PDE",
    43: "Ch 00000018",
    48: "DBE (double bit error) ECC error",
    63: "Row remapping event: a row was remapped",
    79: "GPU has fallen off the bus.",
    94: "Contained: CE User Channel (0x9). RST: No, D-RST: No",
    95: "Uncontained: LTC TAG (0x2,0x0). RST: Yes, D-RST: No",
    119: "Timeout after 6s of waiting for RPC response from GPU3 GSP!",
}


def device(node: str, index: int) -> str:
    """Return the UUID of a GPU."""
    digits = hashlib.sha256(f"{node} {index}".encode()).hexdigest()
    return f"GPU-{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:32]}"


def pci_address(index: int) -> str:
    """Return the PCI address of a GPU on its node."""
    return f"0000:{(0x18, 0x2A, 0x3A, 0x5D, 0x9A, 0xAB, 0xBA, 0xDB)[index]:02x}:00.0"


def xid(code: int, node: str, index: int) -> GpuXid:
    """Return what the kernel says about a GPU."""
    words = _WORDS.get(code, "GPU fault")
    address = pci_address(index)
    line = f"NVRM: Xid (PCI:{address[:-2]}): {code}, pid=41187, name=python3, {words}"
    return classified(
        GpuXid(
            code=code,
            device=device(node, index),
            process_id=41187,
            process="python3",
            message=words,
            line=line,
        )
    )


def hardware(
    random: Random,
    nodes: Sequence[str],
    faults: Sequence[tuple[int, str, int, int]],
    start: int,
    now: int,
) -> list[Envelope]:
    """Return the events of all nodes in order of time.

    `faults` are (time, node, index of the GPU, Xid) that ended a run; others are added. Times are
    UTC ns.
    """
    told: list[tuple[int, str, Event]] = [
        (start + index, node, present)
        for node in nodes
        for index, present in enumerate(_present(node))
    ]
    told += [(time, node, xid(code, node, index)) for time, node, index, code in faults]
    for _ in range(len(nodes)):
        node = random.choice(nodes)
        time = random.randrange(start + HOUR, now - HOUR)
        told.append((time, node, xid(random.choice(_OWN), node, random.randrange(GPUS))))
    struck = {(node, index) for _, node, index, _ in faults}
    for place, node in enumerate(nodes):
        told += [
            (now - 2 * MINUTE + index, node, _sample(random, node, index, (node, index) in struck))
            for index in range(GPUS)
        ]
        broke = any(struck_node == node for struck_node, _ in struck)
        said = _said_of_itself(random, node, now, broke)
        told += said if place % _SILENT else said[:1]
    return _enveloped(told, start)


def _said_of_itself(
    random: Random, node: str, now: int, struck: bool
) -> list[tuple[int, str, Event]]:
    """Say how the node's checks ended and how far its clock is off; a few checks fail."""
    offset = random.randrange(-4_000_000, 4_000_000)
    log = Health(check="kernel_log", state="healthy", detail="reads /dev/kmsg")
    if struck and random.random() < 0.5:
        gpu = Health(check="gpu", state="unhealthy", detail="GPU 3: row remapping failed")
    elif random.random() < 0.1:
        gpu = Health(check="gpu", state="disabled", detail="no permission for /dev/nvidia0")
        log = Health(check="kernel_log", state="disabled", detail="/dev/kmsg: not permitted")
    else:
        gpu = Health(check="gpu", state="healthy", detail=f"{GPUS} GPUs")
    return [
        (now - 90 * SECOND, node, Clock(offset=offset, error=400_000)),
        (now - 80 * SECOND, node, gpu),
        (now - 70 * SECOND, node, log),
        (now - 60 * SECOND, node, _agent(node)),
    ]


def _agent(node: str) -> AgentCost:
    """Return what the node's agent takes: a little more of a core on some than on others."""
    share = int(device(node, 0)[4:8], 16)
    return AgentCost(
        cpu=0.003 + share % 61 / 10_000, memory=(52 + share % 17) * 2**20, version="0.1.0"
    )


def _present(node: str) -> list[GpuPresent]:
    product = _PRODUCTS.get(node.split("-")[1])
    return [
        GpuPresent(
            device=device(node, index),
            pci_address=pci_address(index),
            index=index,
            product=product,
            serial=str(1_650_000_000_000 + int(device(node, index)[4:12], 16) % 10**9),
            driver="580.95.05",
        )
        for index in range(GPUS)
    ]


def _sample(random: Random, node: str, index: int, struck: bool) -> GpuSample:
    return GpuSample(
        device=device(node, index),
        temperature=float(random.randrange(44, 88 if struck else 74)),
        power=float(random.randrange(310, 690)),
        memory_used=random.randrange(50, 76) * _GIB,
        memory_total=80 * _GIB,
        utilization=random.randrange(80, 100) / 100,
        ecc_corrected=random.randrange(0, 40 if struck else 3),
        ecc_uncorrected=random.randrange(1, 4) if struck else 0,
        retirement_pending=None,
        remap_failed=struck and random.random() < 0.3,
    )


def _enveloped(told: Sequence[tuple[int, str, Event]], start: int) -> list[Envelope]:
    sequences: dict[str, int] = {}
    found = []
    for time, node, event in sorted(told, key=lambda one: one[0]):
        sequence = sequences.get(node, 0)
        sequences[node] = sequence + 1
        found.append(
            Envelope(
                producer=hashlib.sha256(f"{node} {start}".encode()).hexdigest()[:32],
                anchor=start,
                first_sequence=sequence,
                last_sequence=sequence,
                run=None,
                node=node,
                boot_id=f"boot-{node}",
                wall=time,
                monotonic=time - start,
                event=event,
            )
        )
    return found
