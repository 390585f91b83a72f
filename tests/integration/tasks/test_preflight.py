"""What a run cannot be, by its options, its names or its lake, is refused before anything is asked."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from deltalake import write_deltalake

from evalake.core.configuration import Configuration
from evalake.core.errors import ConfigurationError, LakeError, ProviderError, SchemaMismatchError, UsageError
from evalake.request import RunRequest
from evalake.storage.lake import Lake
from evalake.suites.registry import suite
from evalake.suites.session_review.prompts import templates
from evalake.tasks.preflight import carried, check, plan_of
from evalake.tasks.runtime.context import options_of

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
