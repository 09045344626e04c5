"""Pods and events of Kubernetes as `kubectl get pods -o json` and `kubectl get events -o json`
give them: restarts of containers, kills for lack of memory, evictions, nodes that are not ready.

A pod tells its present container and the one before it; how often it restarted numbers them, and
older ones are known by their number alone. Times are UTC.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from headway.importing.sayings import (
    Began,
    Broke,
    JobState,
    LeftRank,
    Remark,
    Saying,
    Stops,
)
from headway.importing.stamps import Moment, Stamps

Row = tuple[Saying, Moment | None, int | None]
_KINDS = ("List", "PodList", "EventList", "Pod", "Event")
_INDEX = (
    "batch.kubernetes.io/job-completion-index",
    "training.kubeflow.org/replica-index",
    "apps.kubernetes.io/pod-index",
    "jobset.sigs.k8s.io/job-index",
)
_NUMBERED = re.compile(r"-(\d{1,6})(?:-[a-z0-9]{4,10})?$")
_OUT_OF_MEMORY = ("OOMKilled", "OOMKilling", "SystemOOM")
_NODE_LOST = ("NodeNotReady", "NodeLost", "NodeControllerEviction", "Shutdown", "NodeShutdown")
_PREEMPTED = ("Preempted", "Preempting", "PreemptionByScheduler", "PreemptionByKubeScheduler")
_DRAINED = ("EvictionByEvictionAPI", "DeletionByTaintManager", "TaintManagerEviction")
_LIMIT = ("DeadlineExceeded",)
_MEMORY, _DISK = "memory", ("ephemeral-storage", "DiskPressure", "ephemeral storage", "inodes")


def is_objects(document: object) -> bool:
    """Whether a JSON document is pods or events."""
    return (
        isinstance(document, dict)
        and document.get("kind") in _KINDS
        and ("items" in document or "metadata" in document)
        and "apiVersion" in document
    )


def sayings(document: Mapping[str, Any], stamps: Stamps) -> Iterator[Row]:
    """Yield what the objects say."""
    listed = document.get("items")
    items = listed if isinstance(listed, list) else [document]
    pods = [one for one in items if _is(one, "Pod") or (_is(one, None) and "spec" in one)]
    events = [one for one in items if _is(one, "Event")]
    ranks = {
        _text(_map(pod, "metadata"), "name"): rank
        for rank, pod in enumerate(sorted(pods, key=_order))
    }
    for pod in pods:
        yield from _pod(pod, ranks[_text(_map(pod, "metadata"), "name")], stamps)
    for event in events:
        yield from _event(event, ranks, stamps)


def _order(pod: Mapping[str, Any]) -> tuple[int, str]:
    """Return what puts pods in the order of their ranks."""
    about = _map(pod, "metadata")
    labels = _map(about, "labels")
    name = _text(about, "name")
    for label in _INDEX:
        if _text(labels, label).isdigit():
            return int(_text(labels, label)), name
    found = _NUMBERED.search(name)
    return (int(found[1]) if found else 0), name


def _pod(pod: Mapping[str, Any], rank: int, stamps: Stamps) -> Iterator[Row]:
    status, node = _map(pod, "status"), _text(_map(pod, "spec"), "nodeName") or None
    statuses = status.get("containerStatuses")
    for container in statuses if isinstance(statuses, list) else []:
        if not isinstance(container, dict):
            continue
        restarts = container.get("restartCount")
        count = restarts if isinstance(restarts, int) and restarts >= 0 else 0
        before = _map(_map(container, "lastState"), "terminated")
        if before:
            yield from _ended(before, rank, max(count - 1, 0), node, stamps)
        state = _map(container, "state")
        if _map(state, "running"):
            begin = stamps.read(_text(_map(state, "running"), "startedAt"))
            yield Began(layer="scheduler", restarts=count), begin, rank
        if _map(state, "terminated"):
            yield from _ended(_map(state, "terminated"), rank, count, node, stamps)
        reason = _text(_map(state, "waiting"), "reason")
        if reason == "CrashLoopBackOff":
            end = stamps.read(_text(before, "finishedAt"))
            yield JobState(state="backoff", job=_text(_map(pod, "metadata"), "name")), end, rank
        elif reason:
            yield Remark(kind="kubernetes", text=f"waits: {reason}"), None, rank
    at = _latest(status, stamps)
    reason = _text(status, "reason")
    if reason:
        yield from _reason(reason, _text(status, "message"), at, rank, node)
    for condition in _list(status, "conditions"):
        if condition.get("type") == "DisruptionTarget" and condition.get("status") == "True":
            when = stamps.read(_text(condition, "lastTransitionTime"))
            words = _text(condition, "message")
            yield from _reason(_text(condition, "reason"), words, when or at, rank, node)


def _ended(
    ended: Mapping[str, Any], rank: int, restarts: int, node: str | None, stamps: Stamps
) -> Iterator[Row]:
    begin = stamps.read(_text(ended, "startedAt"))
    end = stamps.read(_text(ended, "finishedAt"))
    reason = _text(ended, "reason")
    yield Began(layer="scheduler", restarts=restarts), begin, rank
    code, signal = ended.get("exitCode"), ended.get("signal")
    if reason in _OUT_OF_MEMORY:
        yield (
            Broke(kind="host_oom", message=f"Kubernetes: {reason}", rank=rank, node=node),
            end,
            rank,
        )
    if isinstance(signal, int) and signal > 0:
        code = -signal
    elif isinstance(code, int) and code > 128 and code - 128 in (6, 7, 9, 11, 15):
        code = 128 - code
    by = "kernel" if reason in _OUT_OF_MEMORY else "unknown"
    yield LeftRank(code=code if isinstance(code, int) else None, rank=rank, by=by), end, rank


def _event(event: Mapping[str, Any], ranks: Mapping[str, int], stamps: Stamps) -> Iterator[Row]:
    about = _map(event, "involvedObject") or _map(event, "regarding")
    name = _text(about, "name")
    rank = ranks.get(name) if _text(about, "kind") == "Pod" else None
    node = name if _text(about, "kind") == "Node" else None
    node = node or _text(_map(event, "source"), "host") or None
    series = _map(event, "series")
    at = None
    for found in (
        _text(event, "firstTimestamp"),
        _text(event, "eventTime"),
        _text(event, "lastTimestamp"),
        _text(series, "lastObservedTime"),
    ):
        at = at or stamps.read(found)
    words = _text(event, "message") or _text(event, "note")
    reason = _text(event, "reason")
    if reason == "BackOff" and "restarting failed container" in words:
        yield JobState(state="backoff", job=name), at, rank
    elif reason == "FailedScheduling":
        yield JobState(state="queued", job=name), at, rank
    else:
        yield from _reason(reason, words, at, rank, node)


def _reason(
    reason: str, words: str, at: Moment | None, rank: int | None, node: str | None
) -> Iterator[Row]:
    message = f"Kubernetes: {reason}: {words}"[:1000]
    if reason in _OUT_OF_MEMORY:
        yield Broke(kind="host_oom", message=message, rank=rank, node=node), at, rank
    elif reason in _NODE_LOST:
        yield Broke(kind="lost_node", message=message, rank=rank, node=node), at, rank
    elif reason == "Evicted":
        kind = "host_oom" if _MEMORY in words.lower() else "lost_rank"
        kind = "storage" if any(word in words for word in _DISK) else kind
        yield Broke(kind=kind, message=message, rank=rank, node=node), at, rank
    elif reason in _PREEMPTED:
        yield Stops(reason="preemption"), at, rank
    elif reason in _DRAINED:
        yield Stops(reason="maintenance"), at, rank
    elif reason in _LIMIT:
        yield Stops(reason="time_limit"), at, rank


def _latest(status: Mapping[str, Any], stamps: Stamps) -> Moment | None:
    """Return the time of the newest change of a pod's conditions."""
    found = [stamps.read(_text(one, "lastTransitionTime")) for one in _list(status, "conditions")]
    known = [one for one in found if one is not None]
    return max(known, default=stamps.read(_text(status, "startTime")))


def _is(one: object, kind: str | None) -> bool:
    return isinstance(one, dict) and one.get("kind") == kind


def _map(found: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = found.get(name)
    return value if isinstance(value, dict) else {}


def _list(found: Mapping[str, Any], name: str) -> Sequence[Mapping[str, Any]]:
    value = found.get(name)
    every: Iterable[Any] = value if isinstance(value, list) else []
    return [one for one in every if isinstance(one, dict)]


def _text(found: Mapping[str, Any], name: str) -> str:
    value = found.get(name)
    return value if isinstance(value, str) else ""
