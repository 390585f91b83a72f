"""What is wished for is asked for where the model takes it and nobody configured anything else."""

import pytest

from evalake.models.cost import taken

WISHED = {"temperature": 0, "seed": 5}


@pytest.mark.parametrize(
    ("model", "takes"),
    [
        ("openai/gpt-4o", {"temperature": 0, "seed": 5}),
        ("hosted_vllm/judge", {"temperature": 0, "seed": 5}),
        ("mistral/mistral-medium-3", {"temperature": 0, "seed": 5}),
        ("anthropic/claude-opus-4-5", {"temperature": 0}),
        ("openai/o3", {"seed": 5}),
        ("openai/gpt-5", {"seed": 5}),
        ("nobody/knows-it", {}),
        ("baseline/overlap-judge", {}),
    ],
)
def test_a_model_is_asked_for_what_it_takes(model: str, takes: dict[str, float]) -> None:
    assert taken(model, WISHED, {}) == takes


@pytest.mark.parametrize(
    ("configured", "left"),
    [
        ({"temperature": 0.7}, {"seed": 5}),
        ({"top_p": 0.9}, {"seed": 5}),
        ({"reasoning_effort": "high"}, {"seed": 5}),
        ({"thinking": {"type": "enabled", "budget_tokens": 1024}}, {"seed": 5}),
        ({"seed": 1}, {"temperature": 0}),
        ({"max_tokens": 300}, WISHED),
    ],
)
def test_what_is_configured_of_sampling_leaves_no_temperature_to_wish_for(
    configured: dict[str, object], left: dict[str, float]
) -> None:
    assert taken("openai/gpt-4o", WISHED, configured) == left


def test_a_schema_is_asked_of_models_that_litellm_knows_to_take_one() -> None:
    wished = {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "object"}}}}
    asked = {
        model: taken(model, wished, {}) for model in ("openai/gpt-4o", "openai/gpt-3.5-turbo", "hosted_vllm/judge")
    }
    assert asked == {"openai/gpt-4o": wished, "openai/gpt-3.5-turbo": {}, "hosted_vllm/judge": {}}
    assert taken("openai/gpt-4o", wished, {"response_format": {"type": "text"}}) == {}
