"""What calls are told as to a collector, by the conventions for generative AI."""

from collections.abc import Iterator

import pytest

from tests.integration.models.test_telemetry import CALL, process
from tests.servers.collector import Collector
from tests.servers.model_server import ModelServer


@pytest.fixture(scope="module")
def collector() -> Iterator[Collector]:
    """What a collector was told by a process that made two calls."""
    with Collector() as collector, ModelServer() as server:
        done = process(CALL, server.api_base, EVALAKE_TELEMETRY="1", OTEL_EXPORTER_OTLP_ENDPOINT=collector.endpoint)
        assert done.returncode == 0, done.stderr
        yield collector


def test_switched_on_every_call_is_a_span_below_its_place(collector: Collector) -> None:
    spans = {span.name: span for span in collector.spans}
    calls = [span for span in collector.spans if span.name == "chat m"]
    assert sorted(call.attributes["gen_ai.request.temperature"] for call in calls) == [0.0, 0.5]
    assert {call.parent for call in calls} == {spans["part"].id}
    assert spans["part"].parent == spans["whole"].id
    assert spans["part"].attributes == {"evalake.batch": "b", "evalake.model": "hosted_vllm/m"}


def test_durations_and_tokens_are_histograms_by_model(collector: Collector) -> None:
    names = {histogram.name for histogram in collector.histograms}
    assert {"gen_ai.client.operation.duration", "gen_ai.client.token.usage"} <= names
