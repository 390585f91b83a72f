"""Before a run: what is chosen, estimated, checked and split."""

import json
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from deltalake import write_deltalake

from evalake.core.configuration import Configuration
from evalake.core.errors import ConfigurationError, LakeError, ProviderError, SchemaMismatchError, UsageError
from evalake.models.endpoints import endpoint_of
from evalake.request import RunRequest
from evalake.sdk import Dataset, Item, Sample
from evalake.storage.lake import Lake
from evalake.storage.ledger import append
from evalake.suites.registry import suite
from evalake.suites.session_review.prompts import templates
from evalake.tasks.clusters import shared_inputs, twins_of, with_clusters
from evalake.tasks.converse import Conversation, next_request
from evalake.tasks.extract import choose, draw, draw_pooled
from evalake.tasks.plan import Estimate, cut_batches, estimate, segments
from evalake.tasks.preflight import Plan, carried, check, plan_of
from evalake.tasks.runtime.context import RunContext, options_of
from tests.integration.storage.rows import call

# Items in segments and batches: none twice, none left out, and what shares a call stays together.

GUARD = suite("command_guard").data.read("starter")


def test_every_item_comes_once_and_judges_of_a_sample_beside_each_other() -> None:
    items = [
        item for part in segments([GUARD], "a/model", ["one", "two"], ["direct", "other"], range(2)) for item in part
    ]
    identities = {(item.sample.sample_hash, item.judge, item.prompt_type, item.replicate) for item in items}
    assert len(items) == len(identities) == len(GUARD.samples) * 2 * 2 * 2
    for first, second in zip(items[::2], items[1::2], strict=True):
        assert first.sample is second.sample
        assert (first.judge, second.judge) == ("one", "two")


def test_batches_are_of_about_the_size_and_no_shared_call_is_parted() -> None:
    def asking(number: int, judge: str) -> Conversation:
        return Conversation(Item(GUARD.samples[number], "a/model", judge, "direct", 0), f"hash {number}")

    asked = [asking(number, judge) for number in range(7) for judge in ("one", "two", "three")]
    batches = list(cut_batches(asked, 4))
    assert [len(batch) for batch in batches] == [6, 6, 6, 3]
    assert [conversation for batch in batches for conversation in batch] == asked


# Choosing samples: a draw has every label, is the same every time, and grows without changing what it held.


def dataset(**counts: int) -> Dataset:
    """So many samples of each label, label after label, in three categories."""
    return Dataset(
        "d",
        tuple(
            Sample("s", "d", f"{label}{number}", "x", label=label, category=f"c{number % 3}")
            for label, count in counts.items()
            for number in range(count)
        ),
    )


def test_few_samples_of_the_starter_data_hold_both_labels_and_every_category() -> None:
    starter = suite("command_guard").data.read("starter")
    for size in (2, 10, 50):
        labels = Counter(sample.label for sample in draw(starter, size).samples)
        assert labels == {"malicious": size // 2, "harmless": size // 2}
    assert len({sample.category for sample in draw(starter, 50).samples}) == len({s.category for s in starter.samples})


def test_a_draw_is_proportional_in_order_and_no_larger_than_asked() -> None:
    whole = dataset(a=90, b=10)
    drawn = draw(whole, 20)
    assert Counter(sample.label for sample in drawn.samples) == {"a": 18, "b": 2}
    assert list(drawn.samples) == [sample for sample in whole.samples if sample in drawn.samples]
    assert max(Counter((s.label, s.category) for s in drawn.samples if s.label == "a").values()) == 6
    assert draw(whole, 1000) == whole


def test_a_larger_draw_holds_the_smaller_ones() -> None:
    whole = dataset(a=40, b=25, c=3)
    draws = [{sample.sample_id for sample in draw(whole, size).samples} for size in range(1, 69)]
    assert [len(drawn) for drawn in draws] == list(range(1, 69))
    assert all(smaller < larger for smaller, larger in pairwise(draws))


def test_named_samples_are_kept_and_unknown_ones_are_named() -> None:
    other = Dataset("other", (Sample("s", "other", "z", "x"),))
    assert [d.name for d in choose([dataset(a=3), other], ["z"])] == ["other"]
    (kept,) = choose([dataset(a=3), other], ["a2", "a0"])
    assert [sample.sample_id for sample in kept.samples] == ["a0", "a2"]
    with pytest.raises(UsageError, match="'nowhere'"):
        choose([other], ["nowhere", "z"])


def test_a_pooled_draw_has_each_dataset_in_proportion_and_grows_without_changing_what_it_held() -> None:
    small = replace(
        dataset(a=60), name="small", samples=tuple(replace(s, dataset="small") for s in dataset(a=60).samples)
    )
    whole = [dataset(a=400, b=200), small]
    drawn = [draw_pooled(whole, size) for size in (40, 110, 660)]
    shares = [{d.name: len(d.samples) for d in each} for each in drawn]
    assert shares[-1] == {"d": 600, "small": 60}
    assert all(abs(each["small"] - size / 11) <= 2 for each, size in zip(shares, (40, 110, 660), strict=True))
    names = [{(d.name, s.sample_id) for d in each for s in d.samples} for each in drawn]
    assert names[0] < names[1] < names[2]
    assert [len(each) for each in names] == [40, 110, 660]


def test_a_pooled_draw_keeps_clusters_whole_and_gives_rare_strata_their_chance() -> None:
    samples = [
        Sample("s", "d", f"{c}-{n}", "x", label=f"l{c}", cluster=f"c{c}") for c in range(200) for n in range(1 + c % 4)
    ]
    early, *_ = draw_pooled([Dataset("d", tuple(samples))], 100)
    sizes = Counter(sample.cluster for sample in samples)
    drawn = Counter(sample.cluster for sample in early.samples)
    assert all(sizes[cluster] == count for cluster, count in drawn.items())
    assert 100 <= len(early.samples) <= 103
    assert 25 <= len(drawn) <= 60, "every label has one cluster only: about a fifth of them are drawn"


def test_neighbours_of_a_file_do_not_follow_each_other_in_a_pooled_draw() -> None:
    """Replies of blocks of five hang together: the first forty samples are of many blocks."""
    ordered = Dataset("d", tuple(Sample("s", "d", f"s{n}", "x", label="a") for n in range(500)))
    (early,) = draw_pooled([ordered], 40)
    assert len({int(sample.sample_id[1:]) // 5 for sample in early.samples}) >= 25


# What a run is said to ask and cost before it asks: counts that come true, dollars that the price lies between.

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


# What a run cannot be, by its options, its names or its lake, is refused before anything is asked.

WRONG = [
    ({"comand_guard": {"target": 0.9}}, "comand_guard"),
    ({"command_guard": {"traget": 0.9}}, "traget"),
    ({"command_guard": {"target": "high"}}, "high"),
    ({"command_guard": {"target": 85}}, "85"),
    ({"command_guard": {"target": True}}, "True"),
]


@pytest.mark.parametrize(("suites", "named"), WRONG, ids=[named for _, named in WRONG])
def test_what_cannot_be_is_named(suites: dict[str, Any], named: str) -> None:
    with pytest.raises(ConfigurationError, match=named):
        options_of(suite("command_guard"), Configuration(suites=suites))


def test_what_is_said_takes_the_place_of_the_default() -> None:
    chosen = Configuration(suites={"command_guard": {"target": 0.9}, "session_review": {"context_tokens": 50_000}})
    assert options_of(suite("command_guard"), chosen) == {"target": 0.9}
    assert options_of(suite("command_guard"), Configuration()) == {"target": 0.85}


@pytest.mark.parametrize(
    ("name", "lines", "named"),
    [
        ("command_guard", "[suites.command_guard]\ntraget = 0.9", "traget"),
        ("solidity_audit", "[suites.solidity_audit.sui_weights]\nf2 = 1.0", "sui_weights"),
    ],
)
def test_a_run_with_wrong_options_leaves_nothing(tmp_path: Path, name: str, lines: str, named: str) -> None:
    file = tmp_path / "evalake.toml"
    file.write_text(lines)
    with pytest.raises(ConfigurationError, match=named):
        check(RunRequest(name, lake=str(tmp_path / "lake"), configuration_file=file))
    assert not (tmp_path / "lake").exists()


@pytest.mark.parametrize("blank", ["models", "judges", "prompt_types"])
def test_blank_names_are_no_run_of_nothing(tmp_path: Path, blank: str) -> None:
    with pytest.raises(UsageError, match=f"the {blank.replace('_', ' ')} are blank"):
        check(RunRequest("solidity_audit", lake=str(tmp_path / "lake"), **{blank: ["", " "]}))  # type: ignore[arg-type]
    assert not (tmp_path / "lake").exists()


@pytest.mark.parametrize(
    ("name", "part", "texts", "pair"),
    [
        ("session_review", "request", {"mine": templates()["request"]}, ("direct", "mine")),
        ("command_guard", "system", {"mine": "Say BLOCK.", "yours": "Say BLOCK."}, ("mine", "yours")),
    ],
)
def test_prompts_with_the_same_texts_are_told_before_anything_is_asked(
    tmp_path: Path, name: str, part: str, texts: dict[str, str], pair: tuple[str, str]
) -> None:
    lines = []
    for prompt, text in texts.items():
        (tmp_path / f"{prompt}.md").write_text(text)
        lines.append(f'[suites.{name}.prompts.{prompt}]\n{part} = "{prompt}.md"\n')
    (tmp_path / "evalake.toml").write_text("".join(lines))
    order = RunRequest(
        name, lake=str(tmp_path / "lake"), prompt_types=pair, limit=1, configuration_file=tmp_path / "evalake.toml"
    )
    with pytest.raises(UsageError, match=f"the prompts {pair[0]} and {pair[1]} have the same texts"):
        check(order)
    (tmp_path / "mine.md").write_text(f"{texts['mine']}\nBe brief.")
    assert check(order).prompt_types == pair


@pytest.mark.parametrize("table", ["samples", "quarantine"])
def test_a_table_of_another_schema_ends_a_run_before_it_begins(tmp_path: Path, table: str) -> None:
    lake = Lake(str(tmp_path / "lake"))
    write_deltalake(f"{lake.uri}/{table}", pl.DataFrame({"of": ["somebody else"]}).to_arrow())
    with pytest.raises(SchemaMismatchError, match=f"the table {table} of the lake"):
        check(RunRequest("command_guard", lake=lake.uri, limit=1))


def test_looking_a_run_up_leaves_nothing_in_the_lake_whether_it_is_refused_or_not(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    with pytest.raises(ProviderError, match="baseline/nope"):
        check(RunRequest("command_guard", lake=str(lake), models=("baseline/nope",)))
    check(RunRequest("command_guard", lake=str(lake), limit=1))
    assert not lake.exists()
    with pytest.raises(LakeError, match="is not writable"):
        check(RunRequest("command_guard", lake="/proc/lake", limit=1))


def test_a_plan_that_was_checked_is_taken_over_by_the_same_order_only(tmp_path: Path) -> None:
    order = RunRequest("command_guard", lake=str(tmp_path / "lake"), datasets=("starter",), limit=3)
    plan = check(order)
    with carried(order, plan):
        assert plan_of(RunRequest(**{**order.parameters, "datasets": ["starter"]})) is plan  # as Prefect gives it back
        assert plan_of(RunRequest(**{**order.parameters, "limit": 2})).samples == 2
    assert plan_of(order) is not plan


def test_a_plan_that_was_carried_out_is_made_anew(tmp_path: Path) -> None:
    order = RunRequest("command_guard", lake=str(tmp_path / "lake"), limit=3)
    plan = check(order)
    with carried(order, plan):
        plan.release_samples()
        assert plan_of(order).samples == 3


# Rows whose samples share something are one unit: by the dataset's own clusters, and by equal inputs.

SAMPLES = pl.DataFrame(
    {
        "sample_hash": ["a", "b", "c", "d", "e"],
        "dataset": ["one", "one", "one", "two", "two"],
        "sample_id": ["1", "2", "3", "1", "2"],
        "cluster": ["x", "x", None, None, None],
        "input": ["ls", "rm", "cat", "cat", ""],
    }
)
ROWS = pl.DataFrame({"sample_hash": ["e", "d", "c", "b", "a", "unknown"]})


def test_equal_inputs_are_one_unit_across_datasets_and_order_stays() -> None:
    found = with_clusters(ROWS.lazy(), SAMPLES.lazy(), twins_of(SAMPLES)).collect()
    assert found["sample_hash"].to_list() == ROWS["sample_hash"].to_list()
    assert found["cluster"].to_list() == ["two/2", "one/3", "one/3", "one/x", "one/x", "unknown"]


def test_a_cluster_of_the_row_stays_where_its_sample_is_unknown() -> None:
    found = with_clusters(ROWS.lazy().with_columns(cluster=pl.lit("own")), SAMPLES.lazy(), twins_of(SAMPLES)).collect()
    assert found["cluster"].to_list()[-1] == "own"


def test_hashed_rows_have_the_units_of_named_ones() -> None:
    unnamed = SAMPLES.with_columns(cluster=pl.lit(None, pl.String), input="sample_hash")
    for ids in (["1", "2", "3", "1", "2"], ["/1", "2", "3", "/1", "2"]):  # /1 is one cluster of both datasets
        samples = unnamed.with_columns(sample_id=pl.Series(ids)).lazy()
        named = with_clusters(ROWS.lazy(), samples, {}).collect()["cluster"]
        hashed = with_clusters(ROWS.lazy().with_columns(pl.col("sample_hash").hash()), samples, {}).collect()["cluster"]
        assert hashed.n_unique() == named.n_unique()
        assert [hashed[1] == hashed[4], named[1] == named[4]] == [ids[0] == "/1"] * 2


def test_what_datasets_have_in_common_is_told() -> None:
    told = "1 input of one and two are the same: each counts as one unit"
    assert shared_inputs(ROWS, SAMPLES) == [told]
    assert shared_inputs(ROWS.head(1), SAMPLES) == []
