"""The NVIDIA drivers' words for a GPU fault: Xid, SXid, and faults that have no number.

Takes the text from `NVRM:` or `nvidia-nvswitch` on and returns the event it is. The formats are
those of the driver's `kernel_rc.c` and of the lines that operators published, from driver 304 to
610; whatever does not fit in full is no fault.
"""

import re

from headway.events import GpuFault, GpuSxid, GpuXid
from headway.kernel_log.addresses import pci_address

_XID = re.compile(
    r"NVRM:\s{1,8}Xid\s{0,8}\((?:PCI:)?([^\s()]{1,40})"
    r"(?:\s{1,8}GPU-I:(\d{1,4}))?(?:\s{1,8}GPU-CI:(\d{1,4}))?\s{0,8}\):\s{0,8}(\d{1,3})(?:,|\s*$)"
)
_PROCESS_ID = re.compile(r"\s{0,16}pid=(?:(\d{1,10})|'?<unknown>'?|'(\d{1,10})')(?:,|\s*$)")
_NAME = re.compile(r"\s{0,16}name=")
_CAUSED_BY = re.compile(r"\s{0,8}caused by previous Xid (\d{1,3})\s{0,8}$")
_CAUSED_BY_LENGTH = 64
_ACTION = re.compile(r"\bto 0x([0-9a-fA-F]{1,4})\b")
_ACTION_XID = 154
_NVLINK5 = re.compile(
    r"(\w{1,40})\s{1,8}(Fatal|Non-?fatal)\s{1,8}XC\s?(\d)\s{1,8}i\s?(\d)\s{1,8}Link\s{1,8}(-?\d{1,3})"
    r"\s{1,8}[(\[]0x([0-9a-fA-F]{1,8})(?:\s{1,4}0x([0-9a-fA-F]{1,8}))?",
    re.IGNORECASE,
)
_NVLINK5_XIDS = range(144, 151)
_SUB_CODE_SHIFT, _SUB_CODE_MASK = 20, 0x3F

_LONGEST_NAME = 15
"""Bytes of a process's name in the kernel (`TASK_COMM_LEN` less its end)."""
_MESSAGE_OPENING = re.compile(
    r"\s{0,16}(?:Ch(?:annel)?\s|channel\s|Graphics\s|Shader\s|GPU\s|Timeout\s|errorString\s|CTX\s|"
    r"Contained|Uncontained|Row\s|Dynamic\s|An\suncorrectable|NVLink|MMU\s|GSP\s|PMU\s|TLC\s|"
    r"RLW_|SAW_|TLW_|TREX|NVLPW|NETIR|MSE_|engine\s|intr\s|Class\s|[0-9a-f]{8}\b)"
)

_SXID = re.compile(
    r"nvidia-nvswitch\d{0,4}:\s{1,8}SXid\s{0,8}\((?:PCI:)?([^\s()]{1,40})\):\s{0,8}(\d{1,6}),\s{0,8}"
)
_SEVERITY = re.compile(r"(Fatal|Non-?fatal)\b,?\s{0,8}(?:Link\s{1,8}(\d{1,3})\b\s{0,8})?", re.I)
_SEVERITY_NUMBER = re.compile(r"Severity\s{1,8}([01])\b")

_OFF_THE_BUS = re.compile(r"NVRM:\s{1,8}GPU (?:at )?([^\s]{1,40}): GPU has fallen off the bus")
_INSTALLED = re.compile(r"NVRM:\s{1,8}The NVIDIA GPU ([^\s]{1,40})\s*$")
_INSTALLED_MIDDLE = re.compile(r"NVRM:\s{1,8}\(PCI ID: [0-9a-fA-F:]{1,20}\) installed in")
_NOT_RESPONDING = re.compile(r"NVRM:\s{1,8}fallen off the bus and is not responding to commands")
_RESET_REQUIRED = re.compile(r"NVRM:\s{1,8}(GPU\d{1,3}\s)?.{0,300}?\[NV_ERR_RESET_REQUIRED\]")
_HEARTBEAT = re.compile(r"NVRM:\s{1,8}(GPU\d{1,3}\s)?_kgspIsHeartbeatTimedOut: Heartbeat timed out")

DRIVER_MARKS = ("NVRM:", "nvidia-nvswitch")
"""What the message of a driver begins with."""
SOURCE = "kernel log"
"""Who saw a fault that has no number."""


class DriverLines:
    """Reads the messages of the drivers in their order, since one fault can take three lines."""

    def __init__(self) -> None:
        self._installed: str | None = None
        """Address of `The NVIDIA GPU`, until a line that does not go on with it."""

    def read(self, text: str) -> GpuXid | GpuSxid | GpuFault | None:
        """Return the fault that a message reports, without its raw line, or None for no fault."""
        if text.startswith("nvidia-nvswitch"):
            return _sxid(text)
        known, self._installed = self._installed, None
        installed = _INSTALLED.match(text)
        if installed is not None:
            self._installed = installed[1]
            return None
        if _INSTALLED_MIDDLE.match(text) is not None:
            self._installed = known
            return None
        if _NOT_RESPONDING.match(text) is not None:
            device = None if known is None else pci_address(known)
            return _fault("fallen_off_bus", device, text)
        return _xid(text) or _unnumbered(text)


def _xid(text: str) -> GpuXid | None:
    found = _XID.match(text)
    if found is None or int(found[4]) == 0:
        return None
    code = int(found[4])
    place = found.end()
    process_id, place = _process_id(text, place)
    name, place = _process(text, place)
    message = text[place:].strip()
    cause = _CAUSED_BY.search(message, max(0, len(message) - _CAUSED_BY_LENGTH))
    if cause is not None:
        message = message[: cause.start()]
    action = _ACTION.search(message) if code == _ACTION_XID else None
    link = _NVLINK5.match(message) if code in _NVLINK5_XIDS else None
    return GpuXid(
        code=code,
        device=pci_address(found[1]) or found[1],
        process_id=process_id,
        process=name,
        message=message or None,
        gpu_instance=_number(found[2]),
        compute_instance=_number(found[3]),
        caused_by=None if cause is None else int(cause[1]),
        recovery_action=None if action is None else int(action[1], 16),
        sub_code=(None if link is None else int(link[6], 16) >> _SUB_CODE_SHIFT & _SUB_CODE_MASK),
        unit=None if link is None else link[1],
        error_status=None if link is None or link[7] is None else int(link[7], 16),
        fatal=None if link is None else link[2].lower() == "fatal",
        link=None if link is None else int(link[5]),
    )


def _process_id(text: str, place: int) -> tuple[int | None, int]:
    found = _PROCESS_ID.match(text, place)
    if found is None:
        return None, place
    return _number(found[1] or found[2]), found.end()


def _process(text: str, place: int) -> tuple[str | None, int]:
    """Return the process's name and where the message begins.

    A name may hold commas. It ends at the first comma within its greatest length behind which a
    known message begins, else at the first comma of all.
    """
    found = _NAME.match(text, place)
    if found is None:
        return None, place
    begin = found.end()
    comma = text.find(",", begin)
    end = len(text) if comma < 0 else comma
    while 0 <= comma <= begin + _LONGEST_NAME + len("''"):
        if _MESSAGE_OPENING.match(text, comma + 1) is not None:
            end = comma
            break
        comma = text.find(",", comma + 1)
    name = text[begin:end].strip().strip("'")
    return None if name in ("", "<unknown>") else name, end + 1


def _sxid(text: str) -> GpuSxid | None:
    found = _SXID.match(text)
    if found is None:
        return None
    message = text[found.end() :].strip()
    severity = _SEVERITY.match(message)
    number = _SEVERITY_NUMBER.match(message)
    fatal: bool | None = None
    link: int | None = None
    if severity is not None:
        fatal = severity[1].lower() == "fatal"
        link = _number(severity[2])
        message = message[severity.end() :].strip()
    elif number is not None:
        fatal = number[1] == "1"
    return GpuSxid(
        code=int(found[2]),
        device=pci_address(found[1]) or found[1],
        fatal=fatal,
        link=link,
        message=message or None,
    )


def _unnumbered(text: str) -> GpuFault | None:
    gone = _OFF_THE_BUS.match(text)
    if gone is not None:
        return _fault("fallen_off_bus", pci_address(gone[1]), text)
    if "_kgspIsHeartbeatTimedOut" in text:
        late = _HEARTBEAT.match(text)
        return None if late is None else _fault("gsp_heartbeat", _gpu(late[1]), text)
    if "[NV_ERR_RESET_REQUIRED]" in text:
        wanted = _RESET_REQUIRED.match(text)
        return None if wanted is None else _fault("reset_required", _gpu(wanted[1]), text)
    return None


def _fault(kind: str, device: str | None, text: str) -> GpuFault:
    message = text.removeprefix("NVRM:").strip()
    return GpuFault(kind=kind, device=device, source=SOURCE, message=message)


def _gpu(driver_name: str | None) -> str | None:
    return None if driver_name is None else driver_name.strip()


def _number(digits: str | None) -> int | None:
    return None if digits is None else int(digits)
