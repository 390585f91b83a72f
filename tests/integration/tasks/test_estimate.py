"""What a run is said to ask and cost before it asks: counts that come true, dollars that the price lies between."""

import json
from pathlib import Path

import pytest

from evalake.models.endpoints import endpoint_of
from evalake.request import RunRequest
from evalake.storage.ledger import append
from evalake.tasks.converse import Conversation, next_request
from evalake.tasks.plan import Estimate, estimate, segments
from evalake.tasks.preflight import Plan, check
from evalake.tasks.runtime.context import RunContext
from tests.integration.storage.rows import call

MODEL, JUDGE = "hosted_vllm/guard", "hosted_vllm/judge"


def planned(folder: Path, suite: str = "command_guard", price: bool = True, **order: object) -> tuple[RunContext, Plan]:
    file = folder / "evalake.toml"
    priced = "price = { input = 1.0, output = 2.0 }\n" if price else ""
    models = (MODEL, "hosted_vllm/other", JUDGE)
    file.write_text("".join(f'[models."{model}"]\napi_base = "http://127.0.0.1:9/v1"\n{priced}' for model in models))
    plan = check(RunRequest(suite, lake=str(folder / "lake"), configuration_file=str(file), **order))  # type: ignore[arg-type]
    return RunContext("", suite, plan.lake, plan.configuration), plan


def answer(context: RunContext, plan: Plan, items: int, output_tokens: int | None = None) -> None:
    """Put replies to the first items of the plan into the ledger."""
    (segment,) = segments(plan.datasets, MODEL, plan.judges, plan.prompt_types, [0])
    requests = [next_request(context, Conversation(item)) for item in segment[:items]]
    whose = endpoint_of(MODEL, plan.configuration).name
    rows = [
        {
            **call(0),
            "prompt_hash": request.prompt_hash,
            "model": MODEL,
            "output_tokens": output_tokens,
            "endpoint": whose,
        }
        for request in requests
        if request is not None
    ]
    append(context.lake, rows)


def test_what_the_ledger_answers_is_not_to_be_called(tmp_path: Path) -> None:
    context, plan = planned(tmp_path, models=[MODEL], limit=40)
    answer(context, plan, 15)
    found = estimate(context, plan)
    assert (found.in_ledger, found.to_make) == (15, 25)
    assert json.loads(json.dumps(found.as_dict()))["calls"] == {"to_make": 25, "in_ledger": 15}


def test_an_estimate_is_made_anew_only_where_the_ledger_has_moved(tmp_path: Path) -> None:
    context, plan = planned(tmp_path, models=[MODEL], limit=40)
    first = estimate(context, plan)
    assert estimate(context, plan) is first
    answer(context, plan, 15)
    assert estimate(context, plan).in_ledger == 15


def test_dollars_follow_how_long_the_replies_of_a_model_were(tmp_path: Path) -> None:
    context, plan = planned(tmp_path, models=[MODEL], limit=40)
    answer(context, plan, 20, output_tokens=80)
    (each,) = estimate(context, plan).by_model
    usd = (each.input_tokens * 1.0 + 20 * 80 * 2.0) / 1e6
    assert each.usd_low is not None
    assert each.usd_high is not None
    assert each.usd_low < usd < each.usd_high < 1.3 * usd


def test_a_judge_is_asked_about_every_subject_and_a_subject_once_for_all_judges(tmp_path: Path) -> None:
    judges = [JUDGE, "baseline/overlap-judge"]
    context, plan = planned(tmp_path, "solidity_audit", models=[MODEL, "hosted_vllm/other"], judges=judges, limit=10)
    counts = {(each.role, each.model): each.to_make for each in estimate(context, plan).by_model}
    subjects = {("subject", MODEL): 10, ("subject", "hosted_vllm/other"): 10}
    assert counts == subjects | {("judge", judge): 20 for judge in judges}


def test_both_turns_of_a_session_are_counted(tmp_path: Path) -> None:
    context, plan = planned(tmp_path, "session_review", judges=[JUDGE])
    assert estimate(context, plan).to_make == 2 * plan.samples


def test_a_part_of_the_items_stands_for_all(tmp_path: Path) -> None:
    context, plan = planned(tmp_path, models=[MODEL])
    whole, part = estimate(context, plan), estimate(context, plan, most_items=50)
    assert part.to_make == whole.to_make == plan.items
    assert part.usd is not None
    assert whole.usd is not None
    assert part.usd == pytest.approx(whole.usd, rel=0.1)


def test_an_unknown_price_is_unknown(tmp_path: Path) -> None:
    context, plan = planned(tmp_path, price=False, models=[MODEL, "baseline/always-block"], limit=5)
    found = estimate(context, plan)
    assert (found.usd, found.as_dict()["usd_low"]) == (None, None)
    assert [each.usd_high for each in found.by_model] == [None, 0.0]
    assert next(found.lines()) == "0 of 10 in the ledger, 10 to call, price unknown (estimated)"


def test_nothing_to_ask_is_free() -> None:
    assert Estimate(()).usd == (0, 0)
