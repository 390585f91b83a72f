"""Telemetry: off it costs no import, on it never stands in the way of a call; places nest, and cross threads."""

import os
import subprocess
import sys
from pathlib import Path

from tests.servers.model_server import ModelServer

ROOT = Path(__file__).resolve().parents[3]
CALL = """
import sys
from evalake.core.configuration import Configuration, ModelOptions
from evalake.models.client import Client
from evalake.models.request import Request
from evalake.models.telemetry import flush, scope

models = {"hosted_vllm/m": ModelOptions(api_base=sys.argv[1])}
with scope("whole", run_id="r"), Client(Configuration(models=models)) as client:
    with scope("part", batch="b", model="hosted_vllm/m"):
        for temperature in (0.0, 0.5):
            request = Request("hosted_vllm/m", ({"role": "user", "content": "x"},), {"temperature": temperature})
            print(type(client.run([client.call(request)])[0]).__name__)
flush()
print(sorted(name for name in sys.modules if name.startswith("opentelemetry.sdk."))[:1])
"""


def process(code: str, *arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_switched_off_the_sdk_is_not_imported(model_server: ModelServer) -> None:
    done = process(CALL, model_server.api_base)
    assert (done.returncode, done.stdout.splitlines()) == (0, ["Reply", "Reply", "[]"]), done.stderr


def test_a_collector_that_is_not_there_keeps_no_call_from_being_made(model_server: ModelServer) -> None:
    nobody = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9", "OTEL_EXPORTER_OTLP_TIMEOUT": "1"}
    done = process(CALL, model_server.api_base, EVALAKE_TELEMETRY="1", **nobody)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[:2] == ["Reply", "Reply"]
    assert len(model_server.seen) == 2


def test_without_the_package_one_line_says_what_to_install() -> None:
    code = (
        "import sys; sys.modules['opentelemetry.sdk'] = None\n" + "from evalake.models.telemetry import flush; flush()"
    )
    done = process(code, EVALAKE_TELEMETRY="1")
    said = (
        "ConfigurationError: EVALAKE_TELEMETRY is set, but OpenTelemetry is not installed: install evalake[telemetry]"
    )
    assert done.stderr.splitlines()[-1].endswith(said)


def test_a_switch_that_is_neither_on_nor_off_is_refused() -> None:
    done = process("from evalake.models.telemetry import flush; flush()", EVALAKE_TELEMETRY="yes")
    assert done.stderr.splitlines()[-1].endswith("EVALAKE_TELEMETRY must be 1 or unset, not yes")
