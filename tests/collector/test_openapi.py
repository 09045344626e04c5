"""What the OpenAPI document promises, the collector keeps, whatever is asked."""

import json
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest
import schemathesis
from schemathesis.checks import not_a_server_error
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_schema_conformance,
    status_code_conformance,
)

from headway.collector.api import application
from headway.collector.endpoint import Endpoint, parameters
from headway.collector.endpoints import ENDPOINTS
from headway.storage.alert_client import AlertClient
from incident_collector import Running, running
from records import ANCHOR, SECOND

ROOT = Path(__file__).parents[2]
CHECKS = {
    GenerationMode.POSITIVE: [
        not_a_server_error,
        status_code_conformance,
        content_type_conformance,
        response_schema_conformance,
    ],
    GenerationMode.NEGATIVE: [
        not_a_server_error,
        status_code_conformance,
        response_schema_conformance,
        negative_data_rejection,
    ],
}


@pytest.fixture(scope="module")
def collector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("openapi") / "events.duckdb") as found:
        yield found


@pytest.fixture(scope="module")
def schema(collector: Running) -> schemathesis.BaseSchema:
    return schemathesis.openapi.from_url(f"{collector.address}/openapi.json")


ASKED = [
    pytest.param(endpoint, mode, id=f"{endpoint.name}-{mode.value}")
    for endpoint in ENDPOINTS
    for mode in CHECKS
    # Where nothing can be said, nothing can be said wrongly.
    if mode is GenerationMode.POSITIVE or parameters(endpoint.declaration)
]


@pytest.mark.slow
@pytest.mark.parametrize(("endpoint", "mode"), ASKED)
def test_every_answer_is_as_described(
    collector: Running, schema: schemathesis.BaseSchema, endpoint: Endpoint, mode: GenerationMode
) -> None:
    operation = schema[endpoint.path][endpoint.method.value]
    (incident,) = collector.client.incidents()
    until = ANCHOR + 3_600 * SECOND
    silence = AlertClient(collector.client).silence(['run="x"'], "Ada", "a trial", until)
    known = {
        "silence": silence["silence"],
        "run": "llama-1",
        "node": "n1",
        "incident": incident["incident"],
        "question": "worst-incidents",
        "rule": "RestartLoop",
    }

    @hypothesis.settings(
        max_examples=20,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    @hypothesis.given(case=operation.as_strategy(generation_mode=mode))
    def check(case: schemathesis.Case) -> None:
        if mode is GenerationMode.POSITIVE:
            case.path_parameters = {name: known[name] for name in endpoint.in_path}
        case.call_and_validate(checks=CHECKS[mode])

    check()


@pytest.mark.parametrize(
    "path", ["/api/v1/clock", "/api/v1/access", "/metrics", "/openapi.json", "/healthz", "/readyz"]
)
def test_what_no_endpoint_declares_answers_as_described(
    schema: schemathesis.BaseSchema, path: str
) -> None:
    schema[path]["GET"].Case().call_and_validate(checks=CHECKS[GenerationMode.POSITIVE])


def test_every_path_is_described_but_those_of_otlp(collector: Running) -> None:
    served = {route.path.replace(":path}", "}") for route in application(collector.service).routes}
    described = set(collector.http.get("/openapi.json").json()["paths"])
    assert served - described == {"/v1/logs", "/v1/traces", "/v1/metrics"}
    assert described <= served


def test_the_document_is_served_as_it_is_written(collector: Running) -> None:
    written = (ROOT / "docs" / "reference" / "openapi.json").read_text(encoding="utf-8")
    assert collector.http.get("/openapi.json").json() == json.loads(written)
