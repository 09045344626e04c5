"""Every Xid that we have an opinion on, with the opinions of others and where they come from.

The classes are ours; the other columns say what each tool does with the code, in that tool's own
words. Tools disagree (`disputed`), which is why the raw code is always kept and a policy may
answer otherwise.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated

from headway.events import Described

VERSION = "2026.11"
"""Changes whenever a class in this package changes."""

SOURCES: Mapping[str, str] = {
    "nvidia": "NVIDIA's Xid catalog as of October 2025: immediate action, then investigation.",
    "kubernetes": "NVIDIA's Kubernetes device plugin: its list of codes that leave a GPU healthy; "
    "every other code makes it unhealthy.",
    "gpud": "leptonai/gpud: type of the event in its catalog.",
    "nvsentinel": "NVIDIA/NVSentinel: mapping of its syslog health monitor.",
    "eks": "Node monitoring agent of Amazon EKS: its list of well-known codes, all of them fatal.",
    "aws": "GPU health check of awslabs/awsome-distributed-ai.",
    "meta": "facebookresearch/gcm: its list of codes that are not critical.",
}

_OUT_OF_SERVICE: Mapping[str, bool] = {
    "ignore": False,  # `unhealthy` is left out: it is what every code gets that nobody listed
    "fatal": True,
    "warning": False,
    "nonfatal": False,
    "MONITOR": False,
    "RESET": True,
    "REBOOT": True,
    "ISOLATE": True,
    "not critical": False,
}
"""Whether a tool's word takes the GPU out of service."""


@dataclass(frozen=True, slots=True, kw_only=True)
class XidEntry:
    """One Xid: what it means, what it asks for, and what others make of it."""

    code: Annotated[int, Described("Xid number.")]
    meaning: Annotated[str, Described("What happened.")]
    classification: Annotated[str, Described("What it asks for.")]
    opinions: Annotated[Mapping[str, str], Described("Word of each source that names the code.")]
    note: Annotated[str | None, Described("What has to be known beside the class.")] = None

    @property
    def disputed(self) -> bool:
        """Whether one tool takes a GPU out of service for this code and another does not."""
        verdicts = {_OUT_OF_SERVICE.get(word) for word in self.opinions.values()} - {None}
        return len(verdicts) > 1


def _entries() -> Iterable[XidEntry]:
    for code, meaning, classification, words, note in _DISCUSSED:
        found = {
            source: word
            for source, word in zip(SOURCES, words.split("|"), strict=True)
            if word != "-"
        }
        yield XidEntry(
            code=code,
            meaning=meaning,
            classification=classification,
            opinions=found,
            note=note,
        )
    for codes, meaning, classification, nvidia in _CATALOGUED:
        for code in codes:
            yield XidEntry(
                code=code,
                meaning=meaning,
                classification=classification,
                opinions={"nvidia": nvidia},
            )


# Opinions in the order of SOURCES; `-` is none.
_DISCUSSED: tuple[tuple[int, str, str, str, str | None], ...] = (
    (
        8,
        "GPU stopped processing",
        "application",
        "RESTART_APP|unhealthy|warning|nonfatal|-|-|-",
        None,
    ),
    (
        13,
        "Graphics or SM exception",
        "application",
        "RESTART_APP, workflow 13|ignore|warning|nonfatal|-|MONITOR|not critical",
        "Hardware where it comes back on the same GPC and TPC.",
    ),
    (
        31,
        "GPU memory page fault",
        "application",
        "RESTART_APP, workflow 31|ignore|warning|nonfatal|-|MONITOR|not critical",
        "Hardware where it comes back on the same GPU alone.",
    ),
    (
        43,
        "Channel stopped by a reset",
        "application",
        "IGNORE|ignore|warning|nonfatal|-|MONITOR|not critical",
        None,
    ),
    (
        45,
        "Preemptive cleanup after another error",
        "consequence",
        "follow the other Xid|ignore|warning|nonfatal|-|MONITOR|not critical",
        "Never a root cause; thousands may follow one fault.",
    ),
    (46, "GPU timeout", "reset", "RESET_GPU|unhealthy|fatal|fatal|fatal|-|-", None),
    (
        48,
        "Double-bit ECC error",
        "reset",
        "workflow 48|unhealthy|fatal|fatal|fatal|RESET|-",
        None,
    ),
    (
        54,
        "Auxiliary power is not connected",
        "replace",
        "CHECK_MECHANICALS|unhealthy|warning|fatal|fatal|ISOLATE|-",
        "Somebody has to look at the board.",
    ),
    (61, "Micro-controller breakpoint", "reset", "unused|unhealthy|fatal|fatal|-|-|-", None),
    (62, "Micro-controller halt", "reset", "RESET_GPU|unhealthy|fatal|fatal|fatal|-|-", None),
    (
        63,
        "Row remapping or page retirement recorded",
        "watch",
        "IGNORE|unhealthy|fatal|nonfatal|fatal|MONITOR|not critical",
        "The new row counts from the next reset on: drain at the next gap.",
    ),
    (
        64,
        "Row remapping or page retirement failed",
        "replace",
        "RESET_GPU, then support|unhealthy|fatal|fatal|fatal|RESET|-",
        "The AWS check isolates the node where a reset did not help.",
    ),
    (
        68,
        "NVDEC0 exception",
        "application",
        "RESTART_APP|ignore|-|-|-|-|not critical",
        None,
    ),
    (
        74,
        "NVLink error",
        "reset",
        "NVLink workflow|unhealthy|fatal|fatal|fatal|RESET|-",
        "Look at the SXids of the switches too; its seven registers name the fault.",
    ),
    (
        79,
        "GPU has fallen off the bus",
        "reboot",
        "RESTART_BM|unhealthy|fatal|fatal|fatal|REBOOT|-",
        None,
    ),
    (
        92,
        "High rate of single-bit ECC errors",
        "watch",
        "IGNORE|unhealthy|warning|nonfatal|-|MONITOR|not critical",
        None,
    ),
    (
        94,
        "Contained memory error",
        "application",
        "RESTART_APP|unhealthy|fatal|nonfatal|-|MONITOR|-",
        "gpud asks for a reboot after 1,000 of them only.",
    ),
    (
        95,
        "Uncontained memory error",
        "reset",
        "RESET_GPU|unhealthy|fatal|fatal|fatal|RESET|-",
        "The AWS check reboots a node of A100.",
    ),
    (
        109,
        "Context switch timeout",
        "reset",
        "RESET_GPU|ignore|warning|fatal|fatal|RESET|not critical",
        None,
    ),
    (110, "Security fault", "reset", "RESET_GPU|unhealthy|fatal|fatal|fatal|RESET|-", None),
    (
        119,
        "Timeout of a call to the GSP",
        "reset",
        "RESET_GPU|unhealthy|fatal|fatal|fatal|RESET|-",
        None,
    ),
    (120, "GSP error", "reset", "RESET_GPU|unhealthy|fatal|fatal|fatal|RESET|-", None),
    (121, "C2C error", "watch", "IGNORE|unhealthy|fatal|nonfatal|-|MONITOR|-", None),
    (
        136,
        "Link training failed",
        "reset",
        "RESET_GPU|unhealthy|warning|fatal|fatal|RESET|-",
        None,
    ),
    (
        137,
        "NVLink privilege error",
        "application",
        "IGNORE, flow 137|unhealthy|warning|nonfatal|-|-|-",
        "As a rule the fault of a peer.",
    ),
    (140, "Unrecovered ECC error", "reset", "RESET_GPU|unhealthy|fatal|fatal|fatal|RESET|-", None),
    (
        143,
        "GPU initialization error",
        "reset",
        "RESET_GPU|unhealthy|fatal|fatal|fatal|RESET|-",
        None,
    ),
    *(
        (
            code,
            f"NVLink 5: error of {unit}",
            "watch",
            "NVLINK5 workflow|unhealthy|by sub-code|fatal|-|MONITOR|-",
            "Unit, error status and sub-code decide; this class is for lines without them. "
            "NVSentinel decides by rules of its own in later versions.",
        )
        for code, unit in zip(
            range(144, 151),
            ("SAW", "RLW", "TLW", "TREX", "NVLPW_CTRL", "NETIR", "MSE"),
            strict=True,
        )
    ),
    (
        154,
        "Recovery action changed",
        "watch",
        "informational|unhealthy|-|nonfatal|-|parsed|-",
        "The number of the action decides, never its words; this class is for lines without it.",
    ),
    (
        156,
        "Resource retirement",
        "reset",
        "RESET_GPU|unhealthy|warning|fatal|fatal|RESET|-",
        None,
    ),
    (158, "GPU fatal timeout", "reset", "RESET_GPU|unhealthy|warning|fatal|fatal|RESET|-", None),
)

# What only NVIDIA's catalog speaks of.
_CATALOGUED: tuple[tuple[Iterable[int], str, str, str], ...] = (
    ((11, 25, 32), "Invalid or corrupted push buffer", "application", "RESTART_APP"),
    ((37, 38), "Driver firmware error", "watch", "IGNORE"),
    ((39, 40, 41), "Copy engine exception", "application", "RESTART_APP"),
    ((44,), "Graphics engine fault during a context switch", "watch", "IGNORE"),
    ((60,), "Video processor exception", "application", "RESTART_APP"),
    ((66, 67), "Illegal access by the driver", "watch", "IGNORE"),
    ((69,), "Graphics engine class error", "application", "RESTART_APP"),
    ((*range(70, 73), *range(75, 78), 85), "Copy engine error", "application", "RESTART_APP"),
    ((78,), "vGPU start error", "watch", "UPDATE_SWFW"),
    ((80,), "Corrupted data sent to the GPU", "application", "RESTART_APP"),
    ((82, *range(99, 106)), "Image decoder error", "application", "RESTART_APP"),
    ((83, 84, 88, 89, *range(96, 99)), "Video decoder error", "application", "RESTART_APP"),
    ((86, 139), "Optical flow engine error", "application", "RESTART_APP"),
    ((93,), "Wear limit of the InfoROM exceeded", "watch", "IGNORE"),
    ((106, 107), "Test message of the management bus", "watch", "IGNORE"),
    (range(126, 136), "Copy engine error", "application", "RESTART_APP"),
    ((141,), "CUDA fast path error", "watch", "IGNORE"),
    ((151,), "Key rotation error", "reboot", "RESTART_VM"),
    ((152, 153), "Deep learning accelerator error", "watch", "IGNORE"),
    ((155,), "NVLink error defined by software", "reset", "RESET_GPU"),
    ((157,), "Resource retirement failed", "watch", "IGNORE, then support"),
    ((159,), "CHI error without data", "watch", "CHECK_UVM"),
    ((160, 161), "Channel retirement", "watch", "IGNORE"),
)

XIDS: Mapping[int, XidEntry] = {
    entry.code: entry for entry in sorted(_entries(), key=lambda entry: entry.code)
}
"""Every Xid of the table by its number."""
