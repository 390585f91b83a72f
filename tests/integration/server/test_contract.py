"""The API against its own description: whatever a client may send, it answers as it says, and never with 500."""

from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import Case
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.e2e.processes import PrefectStack
from tests.integration.server.services import Place, Service, start
from tests.servers.model_server import ModelServer

CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]


@pytest.fixture(scope="module")
def service(
    idle: PrefectStack, tmp_path_factory: pytest.TempPathFactory, judge_server: ModelServer
) -> Iterator[Service]:
    """A service of its own: among what clients may send is a batch of all that was never scored."""
    place = Place(tmp_path_factory.mktemp("described"), judge_server)
    place.write("a", "b", "c")
    service = start(idle, place)
    yield service
    service.stop()


def test_answers_are_as_described(service: Service) -> None:
    schema = schemathesis.openapi.from_url(f"{service.url}/api/v1/openapi.json")
    operations = [found.ok() for found in schema.get_all_operations()]  # type: ignore[union-attr]
    assert len(operations) == len(list(schema.get_all_operations())) > 10
    for operation in operations:

        @settings(max_examples=15, derandomize=True, suppress_health_check=list(HealthCheck))
        @given(case=operation.as_strategy())
        def holds(case: Case[Any]) -> None:
            case.call_and_validate(checks=CHECKS)

        holds()


def test_everything_is_described_with_its_errors(service: Service) -> None:
    document = service.http.get("/api/v1/openapi.json").json()
    post = document["paths"]["/api/v1/scoring/sessions/{session_id}/score"]["post"]
    assert post["responses"].keys() == {"200", "202", "400", "401", "404", "409", "422", "500", "503"}
    assert all(
        "example" in answer["content"]["application/json"]
        for code, answer in post["responses"].items()
        if code != "422"
    )
