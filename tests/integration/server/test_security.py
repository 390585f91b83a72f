"""Headers of every answer."""

import pytest

from tests.integration.server.services import Service


@pytest.mark.parametrize("path", ["/api/v1/status", "/api/v1/sessions/nobody", "/nothing/here", "/api/v1/openapi.json"])
def test_every_answer_forbids_what_a_page_does_not_need(service: Service, path: str) -> None:
    headers = service.http.get(path).headers
    assert "default-src 'none'" in headers["content-security-policy"]
    assert "unsafe" not in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"
    assert "server" not in headers
