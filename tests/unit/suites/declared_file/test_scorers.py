"""What scorers make of answers, judges' forms, and a user's function that raises."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from evalake.core.errors import SuiteError
from evalake.core.hashing import content_hash
from evalake.models.request import Reply
from evalake.sdk import Exchange, Item, Sample
from evalake.suites.declared import texts
from evalake.suites.declared.file import SuiteFile, checked
from evalake.suites.declared.make import make, scores_of, totals
from evalake.suites.declared.parts import Scorer
from evalake.suites.declared.scorers import UNREADABLE, applies, read_form, similarity
from tests.cases import cases_beside

CASES = cases_beside(__file__, "forms.json")


def declared(folder: Path, *scorers: dict[str, Any], **more: Any) -> SuiteFile:
    given = {"dataset": "x.csv", "prompt": "{{ input }}", "score": list(scorers), "name": "quiz", **more}
    return checked(given, folder / "suite.toml", {})


def value(reply: str, target: Any, folder: Path, **scorer: Any) -> float | None:
    file = declared(folder, scorer)
    (scored,) = scores_of(file, {"target": target, "topic": "x"}, [Reply(reply)]).values()
    return scored.value


@pytest.mark.parametrize("schema", [{"$ref": "http://127.0.0.1:1/x"}, {"$ref": "#/no"}, {"allOf": [{"$ref": "#"}]}])
def test_a_schema_that_refers_elsewhere_or_to_itself_is_refused(schema: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(SuiteError, match="JSON schema refers to"):
        value("{}", [schema], tmp_path, kind="is_json")


@pytest.mark.parametrize(
    ("scorer", "reply", "target", "expected"),
    [*CASES["rules"], ({"kind": "similarity", "threshold": 0.5}, "one two", "three", similarity("one two", "three"))],
)
def test_a_rule(scorer: dict[str, Any], reply: str, target: Any, expected: float, tmp_path: Path) -> None:
    assert value(reply, target, tmp_path, **scorer) == expected


def test_similarity_is_a_share_that_knows_words_and_letters() -> None:
    assert similarity("a b c", "c b a") == 1.0
    assert similarity("colour", "color") > 0.9
    assert similarity("", "word") == 0.0


def test_without_a_target_there_is_nothing_to_say(tmp_path: Path) -> None:
    with pytest.raises(SuiteError, match="exact has nothing to compare with"):
        value("Paris", None, tmp_path, kind="exact")
    with pytest.raises(SuiteError, match="an empty target, which every answer fits"):
        value("Paris", "", tmp_path, kind="starts_with")


def test_a_condition_is_met_however_a_table_writes_yes_and_numbers() -> None:
    for cell, said in (("true", True), ("True", True), (True, "true"), (1.0, 1), ("A", "A")):
        scorer = Scorer(kind="exact", where={"hard": said})
        assert [applies(scorer, each) for each in ({"hard": cell}, {"hard": "a"}, {})] == [True, False, False]


def test_several_scorers_make_one_verdict_and_one_score(tmp_path: Path) -> None:
    scorers = (
        {"kind": "includes"},
        {"kind": "exact", "weight": 3},
        {"kind": "regex", "pattern": "x", "where": {"a": 1}},
    )
    file = declared(tmp_path, *scorers)
    assert totals(file, scores_of(file, {"target": "Rome", "a": 2}, [Reply("in Rome")])) == {
        "correct": False,
        "score": 0.25,
    }
    assert totals(file, scores_of(file, {"target": "Rome", "a": 1}, [Reply("Rome x")]))["score"] == 2 / 5
    empty = totals(file, scores_of(file, {"target": "Rome", "a": 2}, [Reply(None)]))
    assert empty == {"correct": False, "score": 0.0}


TONE = Scorer(kind="judge", name="tone", rubric="Is it kind?", form={"score": "1..5", "reason": "text"}, pass_from=4)


@pytest.mark.parametrize(("form", "share"), CASES["judge"])
def test_a_judges_form(form: str | None, share: float | None) -> None:
    read = read_form(TONE, form)
    assert read.value == share
    assert (share is not None) or read.why == UNREADABLE


def test_a_judge_that_cannot_be_read_leaves_the_verdict_open_unless_a_rule_says_no(tmp_path: Path) -> None:
    judged = {"kind": "judge", "rubric": "?", "form": {"good": "yes/no"}}
    file = declared(tmp_path, judged, {"kind": "exact"})
    said = [Reply("Rome"), Reply("hm")]
    assert totals(file, scores_of(file, {"target": "Rome"}, said)) == {"correct": None, "score": None}
    assert totals(file, scores_of(file, {"target": "Oslo"}, said)) == {"correct": False, "score": None}


def test_what_no_scorer_decides_is_missing_and_no_wrong_answer(tmp_path: Path) -> None:
    rows = pl.DataFrame({"correct": [None, None, False], "unreadable": [UNREADABLE, None, "empty"]})
    missing = make(declared(tmp_path, {"kind": "exact"})).scoring.outcomes.missing
    assert missing is not None
    assert rows.select(missing)[:, 0].to_list() == [UNREADABLE, "no verdict", None]


def test_a_function_is_given_all_columns_and_what_it_returns_is_checked(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("def f(answer, target, row):\n    return row['give']\n")
    scorer = {"kind": "python", "function": "mine.py:f"}
    file = declared(tmp_path, scorer)
    for given, expected in ((True, 1.0), (0.25, 0.25), ((False, "why"), 0.0), (None, None)):
        (scored,) = scores_of(file, {"give": given, "target": None}, [Reply("x")]).values()
        assert scored.value == expected
    (tmp_path / "two.py").write_text("def f(answer, target):\n    return answer == target\n")
    assert value("x", "x", tmp_path, kind="python", function="two.py:f") == 1
    with pytest.raises(TypeError, match=r"mine.py:f returned 7"):
        scores_of(file, {"give": 7, "target": None}, [Reply("x")])
    for wrong, why in (
        ("../mine.py:f", "outside"),
        ("mine.py:g", "no function g"),
        ("mine.py", "written file.py:name"),
    ):
        with pytest.raises(SuiteError, match=why):
            scores_of(declared(tmp_path, {**scorer, "function": wrong}), {"target": None}, [Reply("x")])


def test_a_changed_scorer_has_another_version(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("def f(answer, target, row):\n    return True\n")
    scorer = {"kind": "python", "function": "mine.py:f"}
    before = make(declared(tmp_path, scorer)).scoring.version
    assert make(declared(tmp_path, scorer, title="Other")).scoring.version == before
    (tmp_path / "mine.py").write_text("def f(answer, target, row):\n    return False\n")
    changed = make(declared(tmp_path, scorer)).scoring.version
    assert changed != before
    assert make(declared(tmp_path, {**scorer, "weight": 2.0})).scoring.version != changed


def test_the_row_of_a_panel_follows_from_its_judges_rows(tmp_path: Path) -> None:
    judged = {"kind": "judge", "rubric": "?", "form": {"good": "yes/no"}}
    suite = make(declared(tmp_path, judged, panel=True))
    sample = Sample("quiz", "x", "1", "Why?")

    def row(judge: str, form: str) -> Any:
        asked = [Exchange(content_hash([each]), Reply(each)) for each in ("Because", form)]
        (made,) = suite.scoring.score(Item(sample, "m", judge), asked, {})["quiz_results"]
        return made

    forms = {"a": '{"good": "yes"}', "b": '{"good": "no"}', "c": '{"good": true}', "d": "hm"}
    rows = [row(judge, form) for judge, form in forms.items()]
    assert suite.scoring.derive is not None
    derived = suite.scoring.derive({"quiz_results": pl.DataFrame(rows)}, {})
    (panel,) = derived.rows["quiz_results"]
    assert (panel["judge"], panel["correct"], panel["score"]) == ("panel:a+b+c+d", True, pytest.approx(2 / 3))
    assert panel["cost_usd"] is None
    (item,) = derived.items
    assert item["judge"] == "panel:a+b+c+d"
    again = suite.scoring.derive({"quiz_results": pl.DataFrame([*rows, panel])}, {})
    assert again.rows["quiz_results"] == [panel]
    rate = next(metric.estimator for metric in suite.metrics.own({}) if metric.name == "unreadable_rate")
    for judges, word, correct, unreadable in (
        *(("ab", None, None, 0), ("abd", None, None, 0), ("bd", None, False, 0)),  # "d" cannot be read
        *(("dd", "unreadable_judgement", None, 1), ("bb", "no_choice", False, 1)),
    ):
        members = [row(f"{judge}{place}", forms[judge]) for place, judge in enumerate(judges)]
        members = [each | {"unreadable": word or each["unreadable"]} for each in members]
        (panel,) = suite.scoring.derive({"quiz_results": pl.DataFrame(members)}, {}).rows["quiz_results"]
        assert pl.DataFrame([panel]).select(rate.inputs()["successes"]).item() == unreadable, judges
        assert panel["correct"] is correct


SLOW = "(?:a|aa)+$"
"""Tries every way to divide a text of a's, unless it is given up."""


@pytest.mark.parametrize(
    ("more", "scorer", "target"),
    [
        ({}, {"kind": "regex", "pattern": SLOW}, None),
        ({}, {"kind": "regex"}, SLOW),
        ({"reply": {"read": "regex", "pattern": SLOW}}, {"kind": "exact"}, "x"),
        ({}, {"kind": "is_json"}, [{"properties": {"x": {"pattern": SLOW}}}]),
        ({}, {"kind": "has_json"}, [{"patternProperties": {SLOW: {}}}]),
        ({}, {"kind": "has_json"}, [{"patternProperties": {SLOW: {}}, "additionalProperties": False}]),
    ],
)
def test_a_pattern_that_takes_too_long_is_named(
    more: dict[str, Any], scorer: dict[str, Any], target: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(texts, "SECONDS", 0.02)
    monkeypatch.setattr(texts, "_given_up", Counter())
    text = "a" * 60 + "b"
    reply = json.dumps({"x": text, text: 1}) if "json" in scorer["kind"] else text
    file = declared(tmp_path, scorer, **more)
    for _ in range(texts.MOST_GIVEN_UP + 1):  # the last without a search
        with pytest.raises(SuiteError, match=r"the pattern '\(\?:a\|aa\)\+\$' takes more than 0.02 s"):
            scores_of(file, {"target": target}, [Reply(reply)])


def test_a_schema_with_patterns_says_what_fits(tmp_path: Path) -> None:
    schema = {
        "properties": {"n": {"pattern": "^[0-9]+$"}},
        "patternProperties": {"^x_": {"type": "integer"}},
        "additionalProperties": False,
    }
    replies = {'{"n": "7", "x_a": 1}': 1, '{"n": "7a"}': 0, '{"x_a": "1"}': 0, '{"y_a": 1}': 0, "[]": 1}
    assert {reply: value(reply, [schema], tmp_path, kind="is_json") for reply in replies} == replies
    assert value("{n: &n [7, 7], m: [*n, *n]}", [{}], tmp_path, kind="has_json") == 0, "no alias is resolved"


@pytest.mark.parametrize("pattern", ["(", "colou{e}r", "(?:abc){i<=1}"])
def test_a_pattern_that_is_none_or_would_match_nearly_is_refused(pattern: str, tmp_path: Path) -> None:
    with pytest.raises(SuiteError, match="pattern:"):
        declared(tmp_path, {"kind": "regex", "pattern": pattern})
