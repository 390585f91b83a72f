"""A function of one's own as the model: it is asked once for each revision, and what it raises is missing."""

import functools
import itertools
import linecache
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import evalake
from evalake.suites.declared.functions import source_hash_of
from tests.integration.cli.command import evalake_here

SAMPLES = [
    {"sample_id": "sum", "input": "1 + 1 =\n", "target": "2"},
    {"sample_id": "tree", "input": "{{ Baum }} ünd 🌳", "target": "tree", "hint": "oak"},
    {"sample_id": "long", "input": "Say it.", "target": "no"},
]
PUNCTUATION = ".!"
asked: list[str] = []  # by the functions below, which have no other way to tell
numbers = itertools.count()


pytestmark = pytest.mark.usefixtures("prefect_api")


@pytest.fixture(autouse=True)
def of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is asked yet, and other tests do not see the suites of this one."""
    asked.clear()
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


def by_shout(answer: str, target: str, sample: dict[str, Any]) -> tuple[float, str]:
    found = re.sub(f"[{PUNCTUATION}]", "", answer).lower() == target
    return float(found), f"hint {sample.get('hint')}"


def written(body: str) -> Callable[[str], str]:
    """Make a function `answer` as an editor would write it, with a source that is found."""
    source, file = f"def answer(text):\n    asked.append(text)\n    {body}\n", f"<written {next(numbers)}>"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    around: dict[str, Any] = {"asked": asked, "__name__": __name__}
    exec(compile(source, file, "exec"), around)
    return around["answer"]  # type: ignore[no-any-return]


def of_own(folder: Path, function: Callable[[str], str], scorers: Any = "exact", **options: Any) -> evalake.Run:
    return evalake.evaluate(function, SAMPLES, scorers, lake=folder / "lake", **options)


def test_a_function_is_scored_and_asked_once_for_each_source(tmp_path: Path) -> None:
    answer = written("return '2' if '+' in text else 'Tree!' if 'Baum' in text else 'yes'")
    run = of_own(tmp_path, answer, ["exact", {"kind": "includes", "ignore_case": True}, by_shout])
    assert run.state == "completed", run.message
    assert sorted(asked) == sorted(sample["input"] for sample in SAMPLES)
    rows = {row["sample_id"]: row for row in run.results().iter_rows(named=True)}
    assert rows["tree"]["scores"] == '{"exact": 0.0, "includes": 1.0, "by_shout": 1.0}'
    assert '"hint oak"' in rows["tree"]["reasons"]
    assert {name: row["correct"] for name, row in rows.items()} == {"sum": True, "tree": False, "long": False}
    assert [row["cost_usd"] for row in rows.values()] == [None] * 3  # unknown: the function may ask anyone
    metrics = run.headline().rows_by_key("metric", named=True, unique=True)
    assert metrics["accuracy"]["value"] == pytest.approx(1 / 3)
    asked.clear()
    again = of_own(tmp_path, answer, ["exact", {"kind": "includes", "ignore_case": True}, by_shout])
    assert (asked, again.suite, again.row["calls_made"]) == ([], run.suite, 0)
    frame = evalake.evaluate(written("return 'no'"), pl.DataFrame(SAMPLES), "exact", lake=tmp_path / "lake")
    assert (len(asked), frame.row["calls_made"]) == (3, 3)
    # The command line finds the suite, and has the ledger's replies without the function
    asked.clear()
    run_again = ("run", run.suite, "--models", run.row["models"][0])
    for command in (run_again, ("rescore", run.run_id), ("check",)):
        done = evalake_here(*command, "--lake", tmp_path / "lake", folder=tmp_path)
        assert done.returncode == 0, done.stdout + done.stderr
    assert evalake.open(tmp_path / "lake").find(suite=run.suite).row["calls_made"] == 0
    assert asked == []
    (scorer,) = (tmp_path / "config").rglob("by_shout.py")
    scorer.write_text("def by_shout(answer, target, sample):\n    return 1 / ('hint' in sample)\n")
    failing = evalake_here("rescore", run.run_id, "--lake", tmp_path / "lake", folder=tmp_path)
    assert (failing.returncode, "2 rows of the run" in failing.stderr) == (1, True), failing.stderr


def test_a_revision_keeps_the_replies_of_a_changed_function(tmp_path: Path) -> None:
    of_own(tmp_path, written("return '2'"), revision="v1")
    kept = of_own(tmp_path, written("return 'other'"), revision="v1")
    assert (len(asked), kept.row["models"]) == (3, ["function/answer@v1"])


def test_what_fails_is_missing_and_told(tmp_path: Path) -> None:
    run = of_own(tmp_path, written("return None if 'Baum' in text else '' if text == 'Say it.' else str(1 / 0)"))
    assert run.state == "incomplete"
    assert run.message is not None
    assert "2 of 3" in run.message
    assert run.results()["sample_id"].to_list() == ["long"]  # an empty reply is a reply
    assert run.headline()["missing"][0] == pytest.approx(2 / 3)
    for style, told in (("junit", 'tests="3" failures="1" errors="2"'), ("inspect", '"completed_samples": 1')):
        options = ("--format", style, "--out", style, "--lake", tmp_path / "lake")
        assert evalake_here("export", "results", run.run_id, *options, folder=tmp_path).returncode == 0
        (file,) = (each for each in tmp_path.glob(f"{style}*/**/*" if style == "inspect" else style) if each.is_file())
        assert told in file.read_text()


def _returns(reply: object) -> Callable[[str], str]:
    return lambda text: str(reply)


@pytest.mark.parametrize(
    ("function", "scorers", "given", "said"),
    [
        (str.upper, "exact", {}, "give one with revision="),
        (functools.partial(str.replace, "a", "b"), "exact", {}, "give one with revision="),
        (_returns(object()), "exact", {}, "give one with revision="),
        ("text", "exact", {}, "must be a function"),
        (_returns("a"), "exakt", {}, "no scorer 'exakt'; did you mean exact"),
        (_returns("a"), [], {}, "there is no scorer"),
        (_returns("a"), str.upper, {}, "write it as a plain def"),
        (_returns("a"), "exact", {"revision": "a b/c"}, "revision must be"),
        (_returns("a"), "exact", {"suite": "command_guard"}, "choose another name"),
        (_returns("a"), "exact", {"limt": 2}, "a run has no option 'limt'"),
    ],
)
def test_what_cannot_be_is_refused(tmp_path: Path, function: Any, scorers: Any, given: Any, said: str) -> None:
    with pytest.raises(evalake.UsageError, match=said):
        of_own(tmp_path, function, scorers, **given)
    assert not (tmp_path / "lake").exists()


def test_values_around_a_function_are_part_of_its_version_and_dask_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert source_hash_of(_returns("a")) == source_hash_of(_returns("a")) != source_hash_of(_returns("b"))
    before = source_hash_of(by_shout)
    monkeypatch.setitem(globals(), "PUNCTUATION", ".")
    assert source_hash_of(by_shout) != before
    monkeypatch.setenv("EVALAKE_TASK_RUNNER", "dask")
    with pytest.raises(evalake.UsageError, match="only this process can call the function"):
        of_own(tmp_path, _returns("a"))
