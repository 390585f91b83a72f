"""One run, watched: its spans and metrics reach a collector, and its log lines say where they belong."""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes as conventions
from opentelemetry.semconv._incubating.metrics import gen_ai_metrics
from opentelemetry.semconv.attributes import error_attributes, server_attributes

from evalake.contracts.tables import CALLS, RUNS
from tests.e2e.processes import PrefectStack
from tests.integration.cli.command import evalake
from tests.integration.flows.workplace import MODEL, Workplace
from tests.servers.collector import Collector, Span
from tests.servers.model_server import ModelServer

pytestmark = pytest.mark.e2e

CALL_COUNT, BATCH_SIZE = 25, 10
REFUSED = 3  # calls that the model's server refuses
CLIENT, ERROR = 3, 2  # of OTLP's enumerations


@dataclass
class ObservedRun:
    collector: Collector
    work: Workplace
    run: dict[str, Any]
    lines: list[dict[str, Any]]


@pytest.fixture(scope="module")
def watched(stack: PrefectStack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObservedRun]:
    """A run of some batches, in which three calls are refused, with telemetry and JSON lines switched on."""
    folder = tmp_path_factory.mktemp("watched")
    with ModelServer() as server, Collector() as collector:
        work = Workplace(folder, server)
        work.configure(batch_size=BATCH_SIZE)
        server.rule(reply='{"action": "BLOCK"}')
        for number in range(REFUSED):
            server.rule(contains=f"# {number:05d}", faults=[{"kind": "bad_request", "times": 0}])
        environment = {**stack.environment, **collector.environment, "EVALAKE_LOG_FORMAT": "json"}
        order = ["run", "command_guard", "--models", MODEL, "--dataset", work.dataset(CALL_COUNT), "--json"]
        done = evalake(*order, "--lake", work.lake.uri, "--config", work.configuration, folder=folder, **environment)
        assert done.returncode == 1  # three items have no answer
        assert json.loads(done.stdout)["calls"] == {"made": CALL_COUNT - REFUSED, "from_ledger": 0, "failed": REFUSED}
        lines = [json.loads(line) for line in done.stderr.splitlines() if not line.startswith("evalake: ")]
        yield ObservedRun(collector, work, work.rows(RUNS).row(0, named=True), lines)


def named(watched: ObservedRun, beginning: str) -> list[Span]:
    return [span for span in watched.collector.spans if span.name.startswith(beginning)]


def test_calls_are_under_batches_and_batches_under_the_run(watched: ObservedRun) -> None:
    (run,), batches, calls = named(watched, "evaluate"), named(watched, "batch"), named(watched, "chat")
    assert len(watched.collector.spans) == 1 + len(batches) + len(calls)
    assert {span.trace for span in watched.collector.spans} == {run.trace}
    assert (run.name, run.parent) == ("evaluate command_guard", b"")
    assert sorted(batch.name for batch in batches) == [f"batch {MODEL} #{number}" for number in (1, 2, 3)]
    assert {batch.parent for batch in batches} == {run.id}
    assert sorted(Counter(call.parent for call in calls).values()) == [5, 10, 10]
    assert {call.parent for call in calls} == {batch.id for batch in batches}
    for batch in batches:
        assert batch.attributes["evalake.run_id"] == watched.run["run_id"]
        assert batch.attributes["evalake.model"] == MODEL
        assert run.started <= batch.started <= batch.ended <= run.ended
        inner = [call for call in calls if call.parent == batch.id]
        assert all(batch.started <= call.started < call.ended <= batch.ended for call in inner)
    assert run.status == ERROR  # the run is incomplete
    assert watched.collector.resources[0]["service.name"] == "evalake"


def test_calls_are_named_by_the_conventions(watched: ObservedRun) -> None:
    base = {
        conventions.GEN_AI_OPERATION_NAME: conventions.GenAiOperationNameValues.CHAT.value,
        conventions.GEN_AI_PROVIDER_NAME: "hosted_vllm",
        conventions.GEN_AI_REQUEST_MODEL: "guard",
        server_attributes.SERVER_ADDRESS: "127.0.0.1",
        server_attributes.SERVER_PORT: int(watched.work.server.address.rpartition(":")[2]),
    }
    hashes = set(watched.work.rows(CALLS)["prompt_hash"])
    calls = named(watched, "chat")
    answered = [call for call in calls if call.status != ERROR]
    assert (len(calls), len(answered)) == (CALL_COUNT, CALL_COUNT - REFUSED)
    for call in calls:
        assert call.name == "chat guard"
        assert call.kind == CLIENT
        assert base.items() <= call.attributes.items()
    for call in answered:
        assert call.attributes[conventions.GEN_AI_RESPONSE_MODEL] == "guard"
        assert call.attributes[conventions.GEN_AI_USAGE_INPUT_TOKENS] == 20
        assert call.attributes[conventions.GEN_AI_USAGE_OUTPUT_TOKENS] == 5
        assert call.attributes[conventions.GEN_AI_RESPONSE_FINISH_REASONS] == ["stop"]
    assert {call.attributes["evalake.prompt_hash"] for call in answered} == hashes
    for call in calls:
        if call.status == ERROR:
            assert call.attributes[error_attributes.ERROR_TYPE] == "bad_request"
            assert call.message == "HTTP 400: Unsupported value"


def test_metrics_have_the_names_units_and_buckets_of_the_conventions(watched: ObservedRun) -> None:
    points = {
        (point.name, point.attributes.get(conventions.GEN_AI_TOKEN_TYPE) or point.attributes.get("error.type")): point
        for point in watched.collector.histograms
    }
    duration, usage = gen_ai_metrics.GEN_AI_CLIENT_OPERATION_DURATION, gen_ai_metrics.GEN_AI_CLIENT_TOKEN_USAGE
    assert {key: point.count for key, point in points.items()} == {
        (duration, None): CALL_COUNT - REFUSED,
        (duration, "bad_request"): REFUSED,
        (usage, "input"): CALL_COUNT - REFUSED,
        (usage, "output"): CALL_COUNT - REFUSED,
    }
    assert points[usage, "input"].sum == 20 * (CALL_COUNT - REFUSED)
    assert points[usage, "output"].sum == 5 * (CALL_COUNT - REFUSED)
    assert {point.unit for point in points.values() if point.name == duration} == {"s"}
    assert {point.unit for point in points.values() if point.name == usage} == {"{token}"}
    # As the conventions write them down: doubling from a hundredth of a second, and powers of four.
    assert points[duration, None].boundaries == pytest.approx([0.01 * 2**n for n in range(14)])
    assert points[usage, "input"].boundaries == pytest.approx([4**n for n in range(14)])
    spans = [span for span in named(watched, "chat") if span.status != ERROR]
    assert points[duration, None].sum == pytest.approx(sum(span.ended - span.started for span in spans) / 1e9)


def test_no_prompt_and_no_reply_is_sent(watched: ObservedRun) -> None:
    everything = b"".join(watched.collector.bodies)
    assert b"evalake.prompt_hash" in everything
    assert b"/etc/shadow" not in everything
    assert b"BLOCK" not in everything


def test_every_line_of_a_batch_says_run_batch_and_model(watched: ObservedRun) -> None:
    run_id = watched.run["run_id"]
    of_batches = [line for line in watched.lines if line["logger"] in ("evalake.calls", "evalake.batches")]
    of_batches += [line for line in watched.lines if line.get("task_run_name", "").startswith(MODEL) or "batch" in line]
    for line in of_batches:
        assert line["run_id"] == run_id, line
        assert line["batch"].startswith(f"{MODEL} #"), line
        assert line["model"] == MODEL, line
    assert {line["batch"] for line in of_batches} == {f"{MODEL} #{number}" for number in (1, 2, 3)}
    # Prefect's own records about the batches and the run are among them, though they are made outside of both.
    assert {"prefect.task_runs"} <= {line["logger"] for line in of_batches}
    of_flow = [line for line in watched.lines if line["logger"] == "prefect.flow_runs"]
    assert {line["flow_run_id"] for line in of_flow} == {watched.run["flow_run_id"]}
    assert of_flow[-1]["message"].startswith("Finished in state")
    assert of_flow[-1]["run_id"] == run_id
    refused = [line for line in watched.lines if line["logger"] == "evalake.calls"]
    assert len(refused) == REFUSED
    assert "HTTP 400: Unsupported value" in refused[0]["message"]


def test_every_line_has_a_time_a_level_and_words(watched: ObservedRun) -> None:
    assert len(watched.lines) > 10
    for line in watched.lines:
        assert {"time", "level", "logger", "message"} <= line.keys()
        assert line["time"].endswith("+00:00")
    assert any("is incomplete" in line["message"] for line in watched.lines if line["logger"] == "evalake.runs")
