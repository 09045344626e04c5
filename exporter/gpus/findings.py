"""From the helper's lines to events: what is new, what changed, what is a fault.

Knows no process and no clock: times come with the lines, in monotonic ns. A standing fault is
told once and again only after it had passed; measurements that rarely change are told when they do.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from headway.events import Event, GpuFault, GpuPresent, GpuSample, GpuXid, Health
from headway.exporter.gpus.reading import GPU_IS_LOST, NO_PERMISSION, RESET_REQUIRED, TIMEOUT
from headway.gpu_faults.policy import DEFAULT_POLICY, Policy, classified

SOURCE = "NVML"
REPEAT_INTERVAL = 600_000_000_000
"""After this many ns without a change, what rarely changes is told again."""
BURST = 60_000_000_000
"""Equal faults of one GPU within this many ns are one."""
_QUICK = ("temperature", "power", "memory_used", "utilization")
_ERRORS = {GPU_IS_LOST: "lost", RESET_REQUIRED: "reset_required", TIMEOUT: "query_hung"}
"""Kind of fault that one of NVML's errors means."""
_EVENTS = {
    "ecc_uncorrected": "ecc_uncorrected",
    "poison": "ecc_uncorrected",
    "fatal_poison": "ecc_uncorrected",
    "page_retirement": "page_retirement",
    "row_remap_failed": "row_remap_failed",
    "recovery_action": "recovery_action",
    "unavailable": "lost",
}
"""Kind of fault that one of NVML's events means."""
_UNANSWERED = ("lost", "reset_required", "query_hung", "unanswered")
"""Standing faults that a reading clears."""


class Findings:
    """What is known of one node's GPUs from its driver."""

    def __init__(self, policy: Policy = DEFAULT_POLICY) -> None:
        """Begin with nothing; `policy` says what each fault asks for."""
        self._policy = policy
        self.gpus: dict[str, GpuPresent] = {}
        """Each GPU that was ever listed, by its UUID, as last listed."""
        self._health: Health | None = None
        self._standing: dict[str | None, dict[str, str]] = {}
        """Faults that hold, by GPU and kind, in words."""
        self._notes: dict[str, str] = {}
        """What is not a fault and still has to be said, by what it is about."""
        self._told: dict[tuple[str | None, str, int | None], int] = {}
        """When each fault was last told."""
        self._slow: dict[str, tuple[int, dict[str, Any]]] = {}
        """What rarely changes, as last told, and when."""
        self._uncorrected: dict[str, int] = {}
        """Uncorrected errors at the last reading."""
        self.answering: set[str] = set()
        """GPUs whose last reading came."""

    def take(self, line: Mapping[str, Any]) -> list[Event]:
        """Return the events that a line of the helper means."""
        at = line["at"]
        match line["kind"]:
            case "inventory":
                return self._inventory(line["gpus"], line["skipped"], at) + self._new_health()
            case "state":
                return self._state(line, at) + self._new_health()
            case "event":
                return self._event(line, at) + self._new_health()
            case "trouble":
                return self._trouble(line, at) + self._new_health()
            case "disabled":
                return self._disabled(line["reason"], listed_none=line["loaded"])
        return []

    def hung(self, device: str | None, index: int | None, waited: float, at: int) -> list[Event]:
        """Return the events of a question that did not return within so many seconds."""
        device = self.device(device, index)
        words = f"the driver did not answer for {waited:.0f} s"
        return self._stands(device, "query_hung", words, at) + self._new_health()

    def device(self, device: str | None, index: int | None) -> str | None:
        """Return a GPU's UUID, else that last listed under its number, else its number."""
        if device is not None or index is None:
            return device
        known = (gpu.device for gpu in self.gpus.values() if gpu.index == index)
        return next(known, f"GPU{index}")

    def _inventory(
        self, listed: Sequence[Mapping[str, Any]], skipped: Collection[int], at: int
    ) -> list[Event]:
        events: list[Event] = []
        found = set()
        for identity in listed:
            lists = {name: tuple(identity.get(name, ())) for name in ("slices", "instances")}
            gpu = GpuPresent(**{**identity, **lists})
            found.add(gpu.device)
            self._standing.pop(f"GPU{gpu.index}", None)
            self._notes.pop(f"GPU{gpu.index}", None)
            if self.gpus.get(gpu.device) != gpu:
                self.gpus[gpu.device] = gpu
                events.append(gpu)
        for device, gpu in self.gpus.items():
            explained = gpu.index in skipped or f"GPU{gpu.index}" in self._notes
            if device not in found and not explained and not self._standing.get(device):
                words = "the driver does not list it any more"
                events += self._stands(device, "lost", words, at)
        return events

    def _state(self, line: Mapping[str, Any], at: int) -> list[Event]:
        device, state = line["device"], dict(line["state"])
        for kind in _UNANSWERED:
            self._passes(device, kind)
        self._standing.pop(None, None)
        self.answering.add(device)
        self._refused(device, line["refusals"], answered=bool(state))
        events: list[Event] = []
        action = state.get("recovery_action")
        if action:
            words = f"the driver asks for recovery action {action}"
            events += self._stands(device, "recovery_action", words, at, code=action)
        elif action == 0:
            self._passes(device, "recovery_action")
        if state.get("remap_failed"):
            words = "a memory row could not be replaced"
            events += self._stands(device, "row_remap_failed", words, at)
        errors = state.get("ecc_uncorrected")
        if errors is not None:
            more = errors - self._uncorrected.get(device, errors)
            self._uncorrected[device] = errors
            if more > 0:
                words = f"uncorrected memory errors rose by {more} to {errors}"
                events += self._fault(device, "ecc_uncorrected", words, at)
        return [*events, self._sample(device, state, at)]

    def _sample(self, device: str, state: dict[str, Any], at: int) -> GpuSample:
        if "throttle" in state:
            state["throttle"] = tuple(state["throttle"])
        quick = {name: state.pop(name) for name in _QUICK if name in state}
        since, told = self._slow.get(device, (at, {}))
        if at - since >= REPEAT_INTERVAL:
            told = {}
        changed = {name: value for name, value in state.items() if told.get(name) != value}
        self._slow[device] = (since if told else at, {**told, **changed})
        return GpuSample(device=device, **quick, **changed)

    def _refused(
        self, device: str, refusals: Mapping[str, tuple[int, str]], *, answered: bool
    ) -> None:
        questions = [name for name, (code, _) in refusals.items() if code == NO_PERMISSION]
        if questions:
            self._notes[device] = f"no permission to ask {device} for {', '.join(questions)}"
        else:
            self._notes.pop(device, None)
        others = [words for code, words in refusals.values() if code != NO_PERMISSION]
        if others and not answered:
            self._standing.setdefault(device, {})["unanswered"] = f"no answer: {others[0]}"

    def _event(self, line: Mapping[str, Any], at: int) -> list[Event]:
        device, event = line["device"], line["event"]
        if event == "xid":
            gpu = self.gpus.get(device)
            xid = GpuXid(
                code=line["data"],
                device=gpu.device if gpu else "unknown",
                message="reported by NVML; no line of the kernel's log was seen",
                gpu_instance=line["gpu_instance"],
                compute_instance=line["compute_instance"],
                repeats=line["repeats"],
            )
            return [classified(xid, self._policy)]
        kind = _EVENTS.get(event)
        if kind is None:
            return []
        words = f"NVML's event {event.replace('_', ' ')}"
        code = line["data"] if kind == "recovery_action" else None
        if kind == "lost":
            return self._stands(device, kind, words, at)
        if kind == "recovery_action":
            return self._stands(device, kind, words, at, code=code) if code else []
        return self._fault(device, kind, words, at)

    def _trouble(self, line: Mapping[str, Any], at: int) -> list[Event]:
        index = line.get("index")
        device = self.device(line.get("device"), index)
        words = line["words"]
        kind = _ERRORS.get(line["code"])
        if kind is not None:
            return self._stands(device, kind, words, at)
        if line["code"] == NO_PERMISSION:
            self._notes[f"GPU{index}"] = f"no permission to use GPU{index}"
        else:
            self._standing.setdefault(device, {})["unanswered"] = words
        return []

    def _disabled(self, reason: str, *, listed_none: bool) -> list[Event]:
        if listed_none and self.gpus:  # told as lost
            return []
        # A driver that was unloaded: a lost GPU keeps it loaded.
        self.gpus.clear()
        self._standing.clear()
        self.answering.clear()
        return self._said(Health(check="gpu", state="disabled", detail=reason))

    def _stands(
        self, device: str | None, kind: str, words: str, at: int, code: int | None = None
    ) -> list[Event]:
        """Return the fault unless it already stood."""
        standing = self._standing.setdefault(device, {})
        if kind in _UNANSWERED and device is not None:
            self.answering.discard(device)
        before = standing.get(kind)
        standing[kind] = words
        if before is not None and (code is None or before == words):
            return []
        return self._fault(device, kind, words, at, code)

    def _passes(self, device: str | None, kind: str) -> None:
        standing = self._standing.get(device, {})
        standing.pop(kind, None)
        if not standing:
            self._standing.pop(device, None)

    def _fault(
        self, device: str | None, kind: str, words: str, at: int, code: int | None = None
    ) -> list[Event]:
        told = self._told.get((device, kind, code))
        self._told[device, kind, code] = at
        if told is not None and at - told < BURST:
            return []
        fault = GpuFault(kind=kind, device=device, source=SOURCE, message=words, code=code)
        return [classified(fault, self._policy)]

    def _new_health(self) -> list[Event]:
        if self._standing:
            detail = "; ".join(
                f"{device or 'the driver'}: {words}"
                for device, kinds in self._standing.items()
                for words in kinds.values()
            )
            return self._said(Health(check="gpu", state="unhealthy", detail=detail))
        if not self.gpus or self.answering < self.gpus.keys():
            return []
        detail = "; ".join([f"{len(self.gpus)} GPUs", *self._notes.values()])
        return self._said(Health(check="gpu", state="healthy", detail=detail))

    def _said(self, health: Health) -> list[Event]:
        if health == self._health:
            return []
        self._health = health
        return [health]
