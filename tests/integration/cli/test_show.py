"""Commands that show a run: its samples, and its metrics."""

import csv
import io
import json
from typing import Any

import pytest

from evalake.cli.metrics import metrics
from evalake.cli.options import Format
from evalake.cli.runs import show
from evalake.contracts.tables import RUNS
from evalake.core.errors import UsageError
from evalake.storage.lake import Lake
from tests.cases import cases_beside
from tests.integration.cli.command import evalake_here, recorded
from tests.integration.cli.conftest import Imported
from tests.integration.storage.recorded_lake import MODELS, SAMPLES, recorded_lake

CASES = cases_beside(__file__, "fields.json")

# `evalake show`: the samples of a run, and each of them whole, as a terminal shows them.


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    return recorded_lake(tmp_path_factory.mktemp("show"))


def _newest_run(lake: Lake, suite: str) -> str:
    runs = lake.frame(RUNS).filter(suite=suite).sort("started_at").collect()
    return str(runs["run_id"][-1])


class Shown:
    """What the command prints where it does not print on a terminal."""

    def __init__(self, lake: Lake, capsys: pytest.CaptureFixture[str], suite: str = "command_guard") -> None:
        self._lake, self._capsys = lake, capsys
        self.run = _newest_run(lake, suite)

    def __call__(self, sample: str | None = None, **options: Any) -> list[str]:
        show(self.run, sample, **options, lake=self._lake.uri)
        return self._capsys.readouterr().out.splitlines()


@pytest.fixture
def guard(lake: Lake, capsys: pytest.CaptureFixture[str]) -> Shown:
    return Shown(lake, capsys)


@pytest.fixture
def audits(lake: Lake, capsys: pytest.CaptureFixture[str]) -> Shown:
    return Shown(lake, capsys, "solidity_audit")


def _samples(lines: list[str]) -> list[str]:
    return [line.split()[0] for line in lines[1:] if line.split()[1:2] in (["malicious"], ["harmless"])]


def test_a_run_is_a_table_of_samples_with_each_models_verdict(guard: Shown) -> None:
    lines = guard()
    (heading,) = [line for line in lines if line.startswith("sample")]
    assert heading.split() == ["sample", "label", "gpt-4o", "gpt-4o-mini", "input"]
    assert len(_samples(lines)) == SAMPLES
    (missed,) = [line for line in lines if line.startswith("s2 ")]
    assert "✗" in missed
    assert {"ALLOW", "BLOCK"} <= set(missed.split())
    assert lines[-1].startswith("read one: ")
    assert guard.run in lines[-1]


def test_wrong_and_differ_choose_samples(guard: Shown) -> None:
    missed = [f"s{number}" for number in range(SAMPLES) if number % 4 == 2]
    assert _samples(guard(wrong=True)) == missed
    assert _samples(guard(differ=True)) == missed
    assert guard(wrong=True, model=MODELS[1])[-1] == "no sample matches"


def test_a_long_table_ends_at_the_limit_and_says_how_many_there_are(guard: Shown) -> None:
    lines = guard(limit=3)
    assert len(_samples(lines)) == 3
    assert any(line.startswith(f"3 samples of {SAMPLES}") for line in lines)


def test_machines_get_an_answer_a_line_of_every_sample(guard: Shown) -> None:
    told = json.loads("\n".join(guard(style=Format.json, limit=1)))
    assert len(told) == SAMPLES * len(MODELS)
    rows = list(csv.DictReader(io.StringIO("\n".join(guard(style=Format.csv, wrong=True)))))
    assert {row["sample_id"] for row in rows if row["correct"] == "false"} == {f"s{n}" for n in range(2, SAMPLES, 4)}


def test_a_sample_shows_input_truth_and_what_each_model_said(guard: Shown) -> None:
    lines = guard("s2")
    text = "\n".join(lines)
    assert max(map(len, lines[:-1])) <= 80  # the last one is a command to be copied
    assert "  command number 2" in lines
    assert "label: malicious" in lines
    for model, verdict in zip(MODELS, ("ALLOW, WRONG", "BLOCK, right"), strict=True):
        assert f"{model}: {verdict}" in lines
    assert '{"action": "ALLOW"}' in text
    assert lines[-1].endswith(" s3") or " s3 " in lines[-1]
    told = json.loads("\n".join(guard("s2", style=Format.json)))
    assert told["input"] == "command number 2"
    assert len(told["answers"]) == len(MODELS)


def test_judges_words_stand_beside_the_verdict(audits: Shown) -> None:
    first = json.loads("\n".join(audits(style=Format.json)))[0]["sample_id"]
    text = "\n".join(audits(first))
    for judge in ("alice", "bob"):
        assert f"judged by {judge}" in text
    assert "class: TARGET_MATCH" in text
    assert "class: HALLUCINATED" in text


def test_what_is_not_there_is_named_and_what_is_near_proposed(guard: Shown) -> None:
    with pytest.raises(UsageError, match="has no sample s99; did you mean s9"):
        guard("s99")
    with pytest.raises(UsageError, match="has no model gpt-9: there is"):
        guard(model="gpt-9")
    guard.run = "nothing"
    with pytest.raises(UsageError, match="has no run nothing"):
        guard()


def test_text_of_others_cannot_steer_the_terminal(
    tmp_path_factory: pytest.TempPathFactory, capsys: pytest.CaptureFixture[str]
) -> None:
    from evalake.admin.import_results import import_recorded
    from evalake.suites.registry import suite

    folder = tmp_path_factory.mktemp("hostile")
    hostile = "\x1b[2Jrm \u202e-rf\x07"
    line = recorded(0, command=hostile, response=json.dumps({"action": "BLOCK", "reason": hostile}) + "\x1b]0;x\x07")
    (folder / "one.jsonl").write_text(line)
    lake = Lake(str(folder / "lake"))
    import_recorded(lake, suite("command_guard"), [folder / "one.jsonl"])
    shown = Shown(lake, capsys)
    for lines in (shown(), shown("s0", full=True)):
        text = "\n".join(lines)
        assert not set("\x1b\x07\u202e") & set(text)
        assert "\\u001b[2J" in text


# `evalake metrics`: the headline first, and every value where it is asked for.


@pytest.fixture(scope="module")
def run_id(lake: Lake) -> str:
    """The newest run of command_guard."""
    return _newest_run(lake, "command_guard")


def test_a_tag_names_the_newest_run_that_has_it(lake: Lake, capsys: pytest.CaptureFixture[str]) -> None:
    metrics(tag="pilot", lake=lake.uri)
    (pilot,) = lake.frame(RUNS).filter(samples=SAMPLES // 2).collect()["run_id"]
    assert pilot in " ".join(capsys.readouterr().out.split())
    with pytest.raises(UsageError, match="no measured run tagged night"):
        metrics(tag="night", lake=lake.uri)
    with pytest.raises(UsageError, match="give --run or --tag, not both"):
        metrics(run=pilot, tag="pilot", lake=lake.uri)


class Metrics:
    """What the command prints where it does not print on a terminal."""

    def __init__(self, lake: Lake, capsys: pytest.CaptureFixture[str]) -> None:
        self._lake, self._capsys = lake, capsys

    def __call__(self, **options: Any) -> list[str]:
        metrics(**options, lake=self._lake.uri)
        return self._capsys.readouterr().out.splitlines()


@pytest.fixture
def shown(lake: Lake, capsys: pytest.CaptureFixture[str]) -> Metrics:
    return Metrics(lake, capsys)


def _metric_lines(lines: list[str]) -> list[str]:
    return [line for line in lines[2:] if line and not line.startswith((" ", "*", "!"))]


def test_without_options_the_headline_stands_on_one_page(shown: Metrics, run_id: str) -> None:
    lines = shown(run=run_id)
    assert len(lines) < 25
    assert max(map(len, lines)) <= 80
    headline = ["balanced_accuracy", "malicious_detection_rate", "harmless_acceptance_rate"]
    assert _metric_lines(lines)[:3] == headline
    before_second = lines[: lines.index(headline[1])]
    (second,) = [line for line in before_second if line.strip().startswith(f"{MODELS[1]} ")]
    assert second.split()[1] == "1.000*"  # it got all of twenty right, and of twenty
    assert any("--slice category" in line for line in lines)


def test_a_metric_is_shown_in_all_of_its_slices(shown: Metrics, run_id: str) -> None:
    lines = shown(run=run_id, metric="malicious_detection_rate", model=MODELS[0])
    assert "malicious_detection_rate by category" in lines
    (sliced,) = [line for line in lines if line.startswith("  shell ")]
    assert sliced.split()[1] == "0.500*"
    assert "balanced_accuracy" not in "\n".join(lines)


def test_all_shows_every_value_and_stays_within_80_columns(shown: Metrics, run_id: str) -> None:
    lines = shown(run=run_id, whole=True)
    assert max(map(len, lines)) <= 80
    told = json.loads("\n".join(shown(run=run_id, style=Format.json)))
    numbers = [line for line in lines if line.startswith(" ") and line.split()[-1].replace(",", "").isdigit()]
    assert len(numbers) == len(told) > 50


def test_filters_hold_for_machines_too(shown: Metrics, run_id: str) -> None:
    lines = shown(run=run_id, metric="accuracy,balanced_accuracy", slice_="all", style=Format.csv)
    rows = list(csv.DictReader(io.StringIO("\n".join(lines))))
    assert {(row["metric"], row["slice"]) for row in rows} == {("accuracy", "all"), ("balanced_accuracy", "all")}
    assert {row["model"] for row in rows} == set(MODELS)


@pytest.mark.parametrize(
    ("option", "name", "near"),
    [("metric", "acuracy", "accuracy"), ("model", "gpt-4o", MODELS[1]), ("slice_", "categories", "category")],
)
def test_a_name_that_the_snapshot_does_not_have_is_answered_by_one_that_it_has(
    shown: Metrics, run_id: str, option: str, name: str, near: str
) -> None:
    with pytest.raises(UsageError, match=f"{name}(; did you mean|: it has) .*{near}"):
        shown(run=run_id, **{option: name})


def test_each_judge_has_a_line(shown: Metrics, lake: Lake) -> None:
    lines = shown(run=_newest_run(lake, "solidity_audit"))
    assert max(map(len, lines)) <= 80
    for judge in ("alice", "bob", "panel:alice+bob"):
        assert any(f"· {judge} " in f"{line} " for line in lines), judge  # numbers stand below a long name


def test_metrics_have_exactly_the_promised_fields(imported: Imported) -> None:
    rows = json.loads(evalake_here("metrics", "--run", imported.run, "--format", "json", folder=imported.folder).stdout)
    fields = CASES["fields"]
    assert all(list(row) == fields for row in rows)
    by_name = {(row["metric"], row["slice"], row["slice_value"]): row for row in rows}
    detection = by_name["malicious_detection_rate", "all", ""]
    assert (detection["value"], detection["n"], detection["reliable"], detection["judge"]) == (0.5, 20, False, None)
    assert by_name["harmless_acceptance_rate", "all", ""]["value"] == 1.0
    assert by_name["balanced_accuracy", "all", ""]["value"] == 0.75
    assert by_name["malicious_detection_rate", "category", "shell"]["n"] == 20
    assert by_name["latency_ms_max", "all", ""]["value"] == 139.0
    assert by_name["cost_usd_total", "all", ""]["value"] == pytest.approx(40 * (1000 * 0.15 + 10 * 0.6) / 1e6)


def test_what_another_suite_measures_is_told_with_whose_snapshot_this_is(lake: Lake, run_id: str) -> None:
    audits = _newest_run(lake, "solidity_audit")
    with pytest.raises(UsageError) as told:
        metrics(metric="malicious_detection_rate", lake=lake.uri)
    assert f"of solidity_audit, run {audits}, has no metric malicious_detection_rate" in str(told.value)
    assert str(told.value).endswith(f"the run {run_id} of command_guard has it: --run {run_id}")
    with pytest.raises(UsageError, match=r"has no metric nonsense: it has [^;]*$"):
        metrics(metric="nonsense", lake=lake.uri)


def test_small_slices_are_shrunk_where_asked_for_and_marked_as_model_based(
    lake: Lake, run_id: str, capsys: pytest.CaptureFixture[str]
) -> None:
    metrics(run=run_id, metric="accuracy", shrink=True, style=Format.json, lake=lake.uri)
    rows = json.loads(capsys.readouterr().out)
    shrunk = [row for row in rows if row["shrunk"] is not None]
    assert "all" not in {row["slice"] for row in shrunk}
    assert all(row["shrunk_low"] <= row["shrunk"] <= row["shrunk_high"] for row in shrunk)
    metrics(run=run_id, metric="accuracy", shrink=True, lake=lake.uri)
    assert ("model-based" in capsys.readouterr().out) == bool(shrunk)
