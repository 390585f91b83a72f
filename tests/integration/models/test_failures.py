"""What went wrong is told apart by status and words, and how long to wait is read from what the provider says."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from evalake.models.client import Client
from evalake.models.failures import retry_after_seconds
from evalake.models.request import Failure, Reply
from tests.integration.models.support import PROVIDERS, QUICK, answer, configuration, request
from tests.servers.model_server import ModelServer

FINAL = {
    "unauthorized": "authentication",
    "forbidden": "authentication",
    "not_found": "not_found",
    "bad_request": "bad_request",
    "context_length": "context_length",
    "no_credit": "authentication",  # which no pause changes
    "payment": "authentication",
}


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize(("fault", "kind"), FINAL.items())
def test_what_will_not_change_is_asked_once(model_server: ModelServer, provider: str, fault: str, kind: str) -> None:
    model_server.rule(faults=[{"kind": fault, "times": 0}])
    with Client(configuration(model_server, attempts=5), backoff_seconds=QUICK) as client:
        outcome = answer(client, request("once", f"{provider}/m"))
    assert isinstance(outcome, Failure)
    assert (outcome.kind, outcome.attempts) == (kind, 1)
    assert len(model_server.seen) == 1


FILTERED = (
    {"kind": "content_policy"},
    {"kind": "content_filter_code"},
    {"kind": "bad_request", "message": "Output blocked by content filtering policy"},
    {"kind": "bad_request", "message": "The response was filtered due to Azure OpenAI's content management policy"},
    {"kind": "bad_request", "message": "Content Exists Risk"},
    {"kind": "forbidden", "message": "This model requires moderation and your input was flagged"},
)


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("fault", FILTERED, ids=str)
def test_a_filters_refusal_is_a_reply_that_was_filtered(
    model_server: ModelServer, provider: str, fault: dict[str, str]
) -> None:
    model_server.rule(faults=[{**fault, "times": 0}])
    with Client(configuration(model_server, attempts=5), backoff_seconds=QUICK) as client:
        outcome = answer(client, request("once", f"{provider}/m"))
    assert isinstance(outcome, Reply)
    assert (outcome.text, outcome.finish_reason, outcome.attempts) == (None, "content_filter", 1)


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("bad_request", "Unrecognized request argument supplied: content_filter"),
        ("bad_request", "The content policy setting is not available for this deployment"),
        ("forbidden", "Your account was blocked for violating our usage policies"),
        ("server_error", "The content filter refused to start"),
    ],
)
def test_an_error_that_speaks_of_a_filter_is_none(model_server: ModelServer, fault: str, message: str) -> None:
    model_server.rule(faults=[{"kind": fault, "message": message, "times": 0}])
    with Client(configuration(model_server, attempts=1), backoff_seconds=QUICK) as client:
        assert isinstance(answer(client, request("once")), Failure)


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize(
    ("status", "kind", "attempts"),
    [(408, "timeout", 2), (422, "bad_request", 1), (503, "server", 2), (529, "server", 2), (403, "authentication", 1)],
)
def test_the_status_tells_the_kind(
    model_server: ModelServer, provider: str, status: int, kind: str, attempts: int
) -> None:
    model_server.rule(faults=[{"kind": "server_error", "status": status, "message": "too much " * 1000, "times": 0}])
    with Client(configuration(model_server, attempts=2), backoff_seconds=QUICK) as client:
        outcome = answer(client, request("x", f"{provider}/m"))
    assert isinstance(outcome, Failure)
    assert (outcome.kind, outcome.attempts) == (kind, attempts)
    assert outcome.message.startswith(f"HTTP {status}: too much too much")
    assert len(outcome.message) <= 500


@pytest.fixture
def far_from_greenwich(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The clocks of this process are Tokyo's."""
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "Asia/Tokyo")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.usefixtures("far_from_greenwich")
def test_retry_after_is_read_as_seconds_or_date() -> None:
    now = datetime(2025, 3, 1, 12, 0, tzinfo=UTC)
    assert retry_after_seconds("7") == 7.0
    assert retry_after_seconds("0.5") == 0.5
    assert retry_after_seconds(format_datetime(now + timedelta(seconds=90), usegmt=True), now) == 90.0
    assert retry_after_seconds("Sat, 01 Mar 2025 12:01:30 -0000", now) == 90.0  # no zone stated: Greenwich's
    assert retry_after_seconds("Sat, 01 Mar 2025 13:01:30 +0100", now) == 90.0
    assert retry_after_seconds(format_datetime(now - timedelta(hours=1), usegmt=True), now) == 0.0
    assert retry_after_seconds("-3") == 0.0
    endless = f"Mon, 01 Jan {'9' * 20} 00:00:00 GMT"
    assert [retry_after_seconds(garbage) for garbage in ("", "soon", "nan", "Mon, 99 Foo 2025", endless)] == [None] * 5
    assert retry_after_seconds(None) is None
