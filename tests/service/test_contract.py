"""The API against its own description: whatever a client may send, it answers as it says, and never with 500."""

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis import Case
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.service.services import Service

CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]


@pytest.fixture(scope="session")
def described(services: tuple[Service, Service]) -> schemathesis.schemas.BaseSchema:
    return schemathesis.openapi.from_url(f"{services[0].url}/api/v1/openapi.json")


schema = schemathesis.pytest.from_fixture("described")


@schema.parametrize()
@settings(max_examples=15, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
def test_answers_are_as_described(case: Case) -> None:
    case.call_and_validate(checks=CHECKS)


def test_everything_is_described_with_its_errors(service: Service) -> None:
    document = service.http.get("/api/v1/openapi.json").json()
    post = document["paths"]["/api/v1/scoring/sessions/{session_id}/score"]["post"]
    assert post["responses"].keys() == {"200", "202", "400", "401", "404", "409", "422", "500", "503"}
    assert all(
        "example" in answer["content"]["application/json"]
        for code, answer in post["responses"].items()
        if code != "422"
    )
