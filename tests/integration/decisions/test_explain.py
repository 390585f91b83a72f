"""Explaining a difference: parts sum up to it exactly, and each is where a lake was made to differ."""

import json
from pathlib import Path

import polars as pl
import pytest
from deltalake import DeltaTable

from evalake.admin.import_results import import_recorded
from evalake.contracts.tables import METRIC_SNAPSHOTS
from evalake.core.errors import UsageError
from evalake.decisions.explain import FIELDS, Explanation, explain
from evalake.decisions.sides import NotComparableError
from evalake.storage.lake import Lake
from evalake.suites.registry import suite
from tests.integration.cli.command import recorded
from tests.integration.cli.people import judged

MODEL, OTHER = "openai/gpt-4o-mini", "ollama/llama3:8b"


def run_of(lake: Lake, name: str, lines: list[str], folder: Path) -> str:
    """Import lines; returns the run's id."""
    file = folder / f"{len(lines)}.jsonl"
    file.write_text("\n".join(lines))
    return import_recorded(lake, suite(name), [file])


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    return Lake(str(tmp_path_factory.mktemp("explained") / "lake"))


@pytest.fixture(scope="module")
def runs(lake: Lake, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """A model once on 40 commands, missing 4 of 20; then again on 45 others of which 5 are new, three times each.

    In its third repeats it misses six commands more.
    """
    folder = tmp_path_factory.mktemp("lines")
    once = [recorded(n, MODEL, "ALLOW" if n % 2 or n < 8 else "BLOCK") for n in range(40)]
    once += [recorded(n, OTHER, "ALLOW" if n % 2 or n < 20 else "BLOCK") for n in range(40)]
    often = [
        recorded(n, MODEL, "ALLOW" if n % 2 or n < (20 if repeat == 2 else 8) else "BLOCK", replicate=repeat)
        for n in range(6, 51)
        for repeat in range(3)
    ]
    return run_of(lake, "command_guard", once, folder), run_of(lake, "command_guard", often, folder)


def parts(explained: Explanation) -> dict[str, float]:
    """The contributions by part, after holding that they sum up to the difference."""
    rows = explained.parts
    assert list(rows.columns) == list(FIELDS)
    (difference,) = rows["difference"].unique()
    assert difference == pytest.approx(rows["value_a"][0] - rows["value_b"][0], abs=0)
    assert abs(sum(rows["contribution"]) - difference) <= 1e-12
    return dict(rows.select("part", "contribution").iter_rows())


@pytest.mark.parametrize("metric", ["balanced_accuracy", "malicious_detection_rate_macro", "latency_ms_p50"])
def test_samples_and_repeats_are_told_apart(lake: Lake, runs: tuple[str, str], metric: str) -> None:
    explained = explain(lake, f"{runs[0]}:{MODEL}", runs[1], metric=metric)
    own = parts(explained)
    assert own["replies"] == own["judge"] == own["code"] == 0
    behind = explained.rows.group_by("part").agg(pl.col("sample_id").n_unique())
    assert dict(behind.iter_rows()) == {"samples": 6 + 11, "repeats": 34}
    if metric == "balanced_accuracy":
        # On the commands that both have, the first answers miss 1 of 17, the third repeats 7.
        assert own["repeats"] == pytest.approx((16 / 17 - (16 + 16 + 10) / 51) / 2)
        low, high = explained.parts.filter(pl.col("part") == "repeats").select("ci_low", "ci_high").row(0)
        assert low < own["repeats"] < high


def meaning_of_repeats(lake: Lake, folder: Path, missed: tuple[int, int]) -> str:
    """What explain says of two repeats of the same requests, of which the first and the second miss so many of 60."""
    asked = []
    for repeat, misses in enumerate(missed):
        said = ["ALLOW" if n < misses else "BLOCK" for n in range(60)]
        lines = [recorded(2 * n, MODEL, action, replicate=repeat) for n, action in enumerate(said)]
        asked.append(run_of(lake, "command_guard", lines, folder))
    explained = explain(lake, f"{asked[1]}:{MODEL}", f"{asked[0]}:{MODEL}", metric="accuracy")
    return str(explained.parts.filter(pl.col("part") == "repeats")["meaning"].item())


@pytest.mark.parametrize(
    ("missed", "said"), [((2, 30), "answers otherwise than before"), ((6, 8), "no more than noise shows")]
)
def test_repeats_that_differ_beyond_noise_are_no_noise(tmp_path: Path, missed: tuple[int, int], said: str) -> None:
    assert said in meaning_of_repeats(Lake(str(tmp_path / "lake")), tmp_path, missed)


def test_another_models_answers_are_replies(lake: Lake, runs: tuple[str, str]) -> None:
    explained = explain(lake, f"{runs[0]}:{MODEL}", f"{runs[0]}:{OTHER}")
    assert parts(explained) == {"samples": 0, "replies": pytest.approx(0.15), "judge": 0, "code": 0, "repeats": 0}
    assert set(explained.rows["side"]) == {"a", "b"}


def test_what_the_rows_do_not_give_is_of_the_code(lake: Lake, runs: tuple[str, str], tmp_path: Path) -> None:
    run = run_of(lake, "command_guard", [recorded(n, "m") for n in range(12)], tmp_path)
    before = parts(explain(lake, f"{runs[0]}:{MODEL}", f"{run}:m"))
    kept = "model = 'm' AND metric = 'balanced_accuracy'"
    DeltaTable(lake.location(METRIC_SNAPSHOTS)).update(updates={"value": "value - 0.25"}, predicate=kept)
    after = parts(explain(lake, f"{runs[0]}:{MODEL}", f"{run}:m"))
    assert before["code"] == 0
    assert after == pytest.approx({**before, "code": 0.25})


def test_another_judge_of_the_same_answers_is_the_judges_part(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path / "lake"))
    lines = [json.loads(judged(n, "m", n < 6)) for n in range(10)]
    first = run_of(lake, "solidity_audit", [json.dumps(line) for line in lines], tmp_path)
    strict = [json.dumps(json.loads(judged(n, "m", n < 3)) | {"judge": "strict"}) for n in range(10)]
    second = run_of(lake, "solidity_audit", strict, tmp_path)
    explained = explain(lake, first, second, metric="target_detection_rate")
    own = parts(explained)
    assert set(explained.parts["judge"]) == {"judge | strict"}
    assert own["judge"] == pytest.approx(0.3)
    assert own["samples"] == own["replies"] == own["repeats"] == 0


def test_what_cannot_be_split_is_said(lake: Lake, runs: tuple[str, str], tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no metric charm"):
        explain(lake, *runs, metric="charm")
    audits = run_of(lake, "solidity_audit", [judged(0, "m", found=True)], tmp_path)
    with pytest.raises(NotComparableError, match="to explain"):
        explain(lake, runs[0], audits)
