"""Every error of the API has a status, and is answered with its sentence."""

import json

import pytest

from evalake.server.auth import refusal
from evalake.server.errors import ApiError, BusyError, ConflictError, DrainingError, NotAllowedError, NotFoundError


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (NotAllowedError("who?"), 401),
        (NotFoundError("where?"), 404),
        (ConflictError("already"), 409),
        (BusyError("later"), 429),
        (DrainingError("elsewhere"), 503),
        (ApiError("inside"), 500),
    ],
)
def test_it_is_a_status_and_a_sentence(error: ApiError, status: int) -> None:
    answer = refusal(error)
    assert answer.status_code == status
    assert json.loads(bytes(answer.body)) == {"detail": str(error)}
