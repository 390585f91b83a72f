"""Comparisons: the rows that `evalake compare` prints, and the pairs of answers behind them."""

import httpx
import pytest

from evalake.decisions.compare import compare_sides
from tests.integration.server.viewer.world import BAD, COMMANDS, GOOD, TAG, World


@pytest.mark.parametrize("corrected", [False, True])
def test_the_rows_are_those_of_the_command(http: httpx.Client, world: World, corrected: bool) -> None:
    told = http.get("/compare", params={"a": GOOD, "b": BAD, "run": world.verdicts, "corrected": corrected}).json()
    compared = compare_sides(world.lake, GOOD, BAD, run_id=world.verdicts, corrected=corrected)

    assert (told["rows"], told["warnings"]) == (compared.rows.to_dicts(), compared.remarks)
    assert any("not corrected" in remark for remark in compared.remarks) == corrected, compared.remarks
    assert told["suite"] == "command_guard"


@pytest.mark.parametrize(("kind", "total"), [("differences", 10), ("all", COMMANDS), ("to_a", 5), ("to_b", 5)])
def test_pairs_of_a_kind(http: httpx.Client, world: World, kind: str, total: int) -> None:
    sides = {"a": GOOD, "b": BAD, "run": world.verdicts}
    first = http.get("/compare/items", params={**sides, "kind": kind, "limit": 4}).json()

    assert (first["total"], first["answered"], len(first["pairs"]), first["next"]) == (total, COMMANDS, 4, 4)
    assert {(pair["a"]["model"], pair["b"]["model"]) for pair in first["pairs"]} == {(GOOD, BAD)}


def test_models_of_two_runs_are_paired_by_sample(http: httpx.Client, world: World) -> None:
    sides = {"a": f"{world.verdicts}:{GOOD}", "b": f"{world.changed}:{GOOD}-2"}
    pairs = http.get("/compare/items", params={**sides, "kind": "all", "limit": 1}).json()

    assert (pairs["run_a"], pairs["run_b"], pairs["answered"]) == (world.verdicts, world.changed, COMMANDS)


def test_several_sides_stand_in_columns(http: httpx.Client, world: World) -> None:
    sides = [GOOD, BAD, f"{world.changed}:{GOOD}-2"]
    asked: dict[str, str | int | list[str]] = {"side": sides, "run": world.verdicts, "limit": 4}
    first = http.get("/compare/columns", params=asked).json()
    every = http.get("/compare/columns", params={**asked, "kind": "all"}).json()

    assert first["runs"] == [world.verdicts, world.verdicts, world.changed]
    assert (first["answered"], every["total"], every["next"], len(every["rows"])) == (COMMANDS, COMMANDS, 4, 4)
    assert 10 <= first["total"] < COMMANDS
    for row in first["rows"]:
        assert [answer["model"] for answer in row["answers"]] == [GOOD, BAD, f"{GOOD}-2"]
        assert len({answer["verdict"] for answer in row["answers"]}) > 1


def test_sides_of_several_suites_have_no_columns(http: httpx.Client, world: World) -> None:
    answer = http.get("/compare/columns", params={"side": [world.verdicts, world.audits]})
    assert (answer.status_code, "several suites" in answer.text) == (400, True)


def test_what_does_not_exist_or_compare_is_said(http: httpx.Client, world: World) -> None:
    unknown = http.get("/compare", params={"a": "nobody", "b": BAD, "run": world.verdicts})
    other = http.get("/compare", params={"a": world.verdicts, "b": world.audits})

    assert (unknown.status_code, other.status_code) == (404, 400)
    assert "nobody" in unknown.json()["detail"]
    assert "no model in common" in other.json()["detail"]


def test_models_are_of_the_newest_run_with_the_tag(http: httpx.Client, world: World) -> None:
    sides = {"a": GOOD, "b": BAD, "tag": TAG}
    assert http.get("/compare", params=sides).json()["rows"]
    pairs = http.get("/compare/items", params=sides).json()
    assert (pairs["run_a"], pairs["run_b"]) == (world.verdicts, world.verdicts)
    columns = http.get("/compare/columns", params={"side": [GOOD, BAD], "tag": TAG}).json()
    assert columns["runs"] == [world.verdicts, world.verdicts]
    assert http.get("/compare", params={**sides, "tag": "none"}).status_code == 404
