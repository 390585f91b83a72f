"""`evalake show`: the samples of a run, and each of them whole, as a terminal shows them."""

import csv
import io
import json
from typing import Any

import pytest

from evalake.cli.options import Format
from evalake.cli.show import show
from evalake.contracts.tables import RUNS
from evalake.core.errors import UsageError
from evalake.storage.lake import Lake
from tests.integration.cli.command import recorded
from tests.integration.storage.recorded_lake import MODELS, SAMPLES, recorded_lake


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
