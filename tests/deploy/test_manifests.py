"""The Kubernetes manifests: valid by the published schemas, and what each mode rests on."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from headway.exporter.agent.agent import FLUSH_TIME
from headway.settings import ALIASES, SETTINGS, AgentSettings, options

FOLDER = Path(__file__).parents[2] / "deploy" / "kubernetes"
MANIFESTS = sorted(FOLDER.glob("*.yaml"))
VERSIONS = ("1.29", "1.37")
"""The first with native sidecars by default, and the newest known."""


def read(path: Path) -> dict[str, Any]:
    (document,) = yaml.safe_load_all(path.read_text(encoding="utf-8"))
    return dict(document)


def pod(path: Path) -> dict[str, Any]:
    return dict(read(path)["spec"]["template"]["spec"])


def containers(path: Path) -> Iterator[dict[str, Any]]:
    spec = pod(path)
    for one in [*spec.get("initContainers", []), *spec["containers"]]:
        if "env" in one:
            yield one


def variables(container: dict[str, Any]) -> dict[str, Any]:
    return {one["name"]: one.get("value", one.get("valueFrom")) for one in container["env"]}


def test_there_is_a_manifest_for_each_mode() -> None:
    assert [path.stem for path in MANIFESTS] == ["daemonset", "parent", "sidecar"]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.stem)
def test_a_manifest_is_valid(path: Path, version: str) -> None:
    kubernetes_validate.validate(read(path), version, strict=True)


def test_a_misspelt_field_is_not_valid() -> None:
    manifest = read(FOLDER / "parent.yaml")
    manifest["spec"]["template"]["spec"]["restartpolicy"] = "Never"
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(manifest, VERSIONS[-1], strict=True)


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.stem)
def test_variables_are_settings_and_every_container_names_node_and_mounted_spool(
    path: Path,
) -> None:
    known = {*ALIASES.values()}
    known |= {option.variable for declared in SETTINGS for option in options(declared)}
    for container in containers(path):
        named = variables(container)
        assert {name for name in named if name.startswith("HEADWAY_")} <= known
        assert named["NODE_NAME"] == {"fieldRef": {"fieldPath": "spec.nodeName"}}
        mounts = [mount["mountPath"] for mount in container["volumeMounts"]]
        assert named["HEADWAY_SPOOL"] in mounts


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.stem)
def test_whoever_talks_to_the_collector_has_its_token_from_a_secret(path: Path) -> None:
    for container in containers(path):
        named = variables(container)
        if "HEADWAY_ENDPOINT" in named:
            assert named["HEADWAY_TOKEN"] == {"secretKeyRef": {"name": "headway", "key": "token"}}


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.stem)
def test_the_agent_has_time_to_flush_and_its_port_can_be_scraped(path: Path) -> None:
    assert pod(path)["terminationGracePeriodSeconds"] > FLUSH_TIME
    (agent,) = (one for one in containers(path) if one["command"][0] == "headway")
    assert [port["containerPort"] for port in agent["ports"]] == [AgentSettings().port]
    assert variables(agent)["HEADWAY_AGENT_HOST"] == "0.0.0.0"  # noqa: S104  # within the pod


def test_the_sidecar_is_a_native_one_that_can_read_the_trainings_spools() -> None:
    spec = pod(FOLDER / "sidecar.yaml")
    (agent,), (training,) = spec["initContainers"], spec["containers"]
    assert agent["restartPolicy"] == "Always"
    assert "shareProcessNamespace" not in spec
    assert agent["securityContext"]["runAsUser"] != training["securityContext"]["runAsUser"]
    assert spec["securityContext"]["fsGroup"]
    assert variables(training)["HEADWAY_RECORDER_SHARED"] == "true"


def test_the_nodes_agent_is_root_in_a_folder_that_every_user_may_write_to() -> None:
    spec = pod(FOLDER / "daemonset.yaml")
    (folder,), (agent,) = spec["initContainers"], spec["containers"]
    assert folder["command"][:2] == ["chmod", "1777"]
    assert agent["securityContext"]["runAsUser"] == 0
    assert variables(agent)["HEADWAY_AGENT_STATE"] != variables(agent)["HEADWAY_SPOOL"]
