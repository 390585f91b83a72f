"""No key leaves in a message or a log, whatever the provider echoes."""

import io
import logging
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalake.core.configuration import Configuration, ModelOptions
from evalake.core.redaction import REDACTED, RedactionFilter, redact
from evalake.models.client import Client
from evalake.models.request import Failure
from tests.cases import cases_beside
from tests.integration.models.support import PROVIDERS, QUICK, answer, configuration, request
from tests.servers.model_server import ModelServer

CASES = cases_beside(__file__, "redaction.json")

SECRETS = CASES["secrets"]
INNOCENT = CASES["innocent"]


@pytest.mark.parametrize(("text", "secret"), SECRETS)
def test_keys_by_shape(text: str, secret: str) -> None:
    assert secret not in redact(text)


@pytest.mark.parametrize("text", INNOCENT)
def test_other_text_is_left_alone(text: str) -> None:
    assert redact(text) == text


@given(st.text(alphabet="abcXYZ019", min_size=8, max_size=40), st.text(max_size=30), st.text(max_size=30))
def test_keys_of_the_environment_by_value(key: str, before: str, after: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SOMEONES_API_KEY", key)
        assert key not in redact(f"{before} {key} {after}")


def test_a_key_that_is_part_of_another_leaves_nothing_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHORT_API_KEY", "swordfish")
    monkeypatch.setenv("LONG_API_KEY", "swordfish-and-more")
    assert redact("with swordfish-and-more") == "with [redacted]"


def test_blanks_around_a_key_are_no_part_of_it_and_short_values_are_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOMEONES_API_KEY", " swordfish\n")
    monkeypatch.setenv("SOMEONES_TOKEN", "cat")
    assert redact("no cat is a swordfish.") == "no cat is a [redacted]."


PIECES = (
    *("eyJ-", "a://", "a://b:", "sk-", "Bearer ", "api_key: ", "?key=", 'password="', "-----BEGIN PRIVATE KEY-----"),
    *("token=", "secret: a ", "--a-", "--password ", "sshpass ", "curl -u a", "cookie: a", "Cookie: a=; "),
)


@pytest.mark.slow
@pytest.mark.parametrize("piece", PIECES)
def test_a_key_behind_much_that_resembles_one_is_found(piece: str) -> None:
    # Shapes that took quadratic time would take minutes here.
    assert "hunter2secret" not in redact(piece * 20_000 + "\nhttps://user:hunter2secret@host/v1")


def test_a_megabyte_of_all_that_resembles_keys_takes_a_megabytes_time() -> None:
    pieces = "".join(PIECES)
    text = pieces * (2**20 // len(pieces))
    assert "hunter2secret" not in redact(f"{text}\ntoken=hunter2secret")


@pytest.mark.slow
@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("fault", ["unauthorized", "server_error", "bad_request"])
def test_keys_a_provider_echoes_are_not_in_failures_or_logs(
    model_server: ModelServer,
    provider: str,
    fault: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("ODDLY_NAMED_PASS", "swordfish-1234")
    monkeypatch.setenv("OPENAI_API_KEY", "plain-env-key-5678")
    message = "bad key swordfish-1234, not plain-env-key-5678; header Authorization: Bearer tok-9012-abcd"
    model_server.rule(faults=[{"kind": fault, "times": 0, "message": message}])
    model = f"{provider}/m"
    options = ModelOptions(api_base=model_server.api_base, api_key_env="ODDLY_NAMED_PASS")
    caplog.set_level(logging.DEBUG)
    with Client(Configuration(models={model: options}), backoff_seconds=QUICK) as client:
        outcome = answer(client, request("x", model))
    assert isinstance(outcome, Failure)
    assert "bad key [redacted], not [redacted]" in outcome.message
    assert model_server.seen[0].authorization == "Bearer swordfish-1234"
    everything = outcome.message + caplog.text + "".join(capfd.readouterr())
    assert not [secret for secret in ("swordfish", "env-key", "tok-9012") if secret in everything]


@pytest.mark.slow
def test_litellm_prints_nothing(model_server: ModelServer, capfd: pytest.CaptureFixture[str]) -> None:
    model_server.rule(faults=[{"kind": "server_error", "times": 0}])
    with Client(configuration(model_server, attempts=1), backoff_seconds=QUICK) as client:
        answer(client, request("x", "openai/m"))
    printed = "".join(capfd.readouterr()).splitlines()
    assert [line for line in printed if "evalake.calls" not in line] == []  # our own log may go to the console


def test_what_is_logged_while_python_ends_is_redacted_too() -> None:
    last = """
import os
from evalake.core.redaction import redact
class Last:
    def __del__(self, redact=redact, write=os.write):
        write(1, redact("token=hunter2").encode())
last = Last()
"""
    done = subprocess.run([sys.executable, "-c", last], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("token=[redacted]", "")


def test_the_log_filter_covers_arguments_and_tracebacks() -> None:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.addFilter(RedactionFilter())
    logger = logging.Logger("someone")
    logger.addHandler(handler)
    try:
        raise RuntimeError("with sk-live-abcdefgh12345678")
    except RuntimeError:
        logger.exception("calling with %s", "Bearer abcdefgh12345678")
    assert "abcdefgh12345678" not in stream.getvalue()
    assert "calling with Bearer [redacted]" in stream.getvalue()
    assert "RuntimeError: with [redacted]" in stream.getvalue()


@pytest.mark.parametrize("text", CASES["told"])
def test_secrets_of_settings_command_lines_and_cookies(text: str) -> None:
    shown = redact(text)
    assert REDACTED in shown
    assert not [word for word in ("hunter2", "swordfish", "correct") if word in shown]


def test_a_known_secret_is_found_as_a_url_writes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKE_PASSWORD", "sl/ash and@more")
    for written in ("sl/ash and@more", "sl%2Fash%20and%40more", "sl/ash%20and%40more", "sl%2Fash+and%40more"):
        assert redact(f"at {written} it failed") == "at [redacted] it failed"
