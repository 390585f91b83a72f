"""What calls are told as to a collector, by the conventions for generative AI."""

from tests.providers.test_telemetry import CALL, process
from tests.servers.collector import Collector
from tests.servers.model_server import ModelServer


def test_switched_on_every_call_is_a_span_below_its_place(model_server: ModelServer) -> None:
    with Collector() as collector:
        done = process(
            CALL, model_server.api_base, EVALAKE_TELEMETRY="1", OTEL_EXPORTER_OTLP_ENDPOINT=collector.endpoint
        )
    assert done.returncode == 0, done.stderr
    spans = {span.name: span for span in collector.spans}
    calls = [span for span in collector.spans if span.name == "chat m"]
    assert sorted(call.attributes["gen_ai.request.temperature"] for call in calls) == [0.0, 0.5]
    assert {call.parent for call in calls} == {spans["part"].id}
    assert spans["part"].parent == spans["whole"].id
    assert spans["part"].attributes == {"evalake.batch": "b", "evalake.model": "hosted_vllm/m"}


def test_durations_and_tokens_are_histograms_by_model(model_server: ModelServer) -> None:
    with Collector() as collector:
        process(CALL, model_server.api_base, EVALAKE_TELEMETRY="1", OTEL_EXPORTER_OTLP_ENDPOINT=collector.endpoint)
    names = {histogram.name for histogram in collector.histograms}
    assert {"gen_ai.client.operation.duration", "gen_ai.client.token.usage"} <= names
