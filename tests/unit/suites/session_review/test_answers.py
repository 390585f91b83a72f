"""Answers and rows of sessions: contracts, people, viewing."""

import json
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest

from evalake.contracts.audit import audit
from evalake.contracts.engines.arrow import conform
from evalake.contracts.tables import SAMPLES
from evalake.core.hashing import content_hash
from evalake.models.request import Reply
from evalake.reports.report import Report
from evalake.sdk import Dataset, Exchange, Seen
from evalake.sdk.figures import Bars
from evalake.server.viewer.run_index import PREVIEW, beginnings
from evalake.storage.lake import Lake
from evalake.storage.landing import land
from evalake.suites.session_review.contract import MISSING_TOOLS, RESULTS
from evalake.suites.session_review.metrics import BANDS
from evalake.suites.session_review.people import BUDGET, LABELLING, SESSION
from evalake.suites.session_review.replies import CATEGORIES
from evalake.suites.session_review.score import begun
from evalake.suites.session_review.session import FINAL_ANALYSIS, AgentMessage, dump
from evalake.suites.session_review.sources.generic import read_generic
from evalake.suites.session_review.sources.read import read_dataset
from evalake.suites.session_review.suite import SUITE, add_columns
from evalake.tasks.extract import extract, sample_rows
from tests.cases import cases_beside
from tests.unit.reports.samples import RUN, SNAPSHOT
from tests.unit.suites.declared import converse_with_baselines
from tests.unit.suites.session_review.scored import LANDED, REVIEW, broken, scored
from tests.unit.suites.session_review.support import item, sample, session, talk

CASES = cases_beside(__file__, "answers.json")

# A report lists sessions, worst first, with what they were about and the judge's words.

SCHEMA: dict[str, Any] = {
    "model": pl.String, "judge": pl.String, "session_id": pl.String, "sample_hash": pl.String, "replicate": pl.Int64,
    "total_score": pl.Int64, "failure_tags": pl.List(pl.String), "missing_tools": pl.List(pl.String),
}  # fmt: skip


def listed(*scores: int | None) -> pl.DataFrame:
    of = sample(session(AgentMessage(text="I look at the pods.")))
    rows: list[tuple[Any, ...]] = [
        ("agents", "j", f"s-{k}", of.sample_hash, 0, score, ["loops", "guesses"], []) for k, score in enumerate(scores)
    ]
    known = sample_rows(Dataset("recorded", (of,)), [of])
    return add_columns(pl.DataFrame(rows, schema=SCHEMA, orient="row"), {SAMPLES.table: known.lazy()})


def test_a_session_is_told_in_words() -> None:
    (row,) = listed(40).to_dicts()
    assert row["session"] == "Disk · disk full · I look at the pods."
    assert (row["band"], row["failures"], row["tools"]) == ("0 to 49", "loops, guesses", "")


def test_every_session_is_listed_the_worst_first() -> None:
    metrics = pl.DataFrame(
        [("agents", "j", "score_mean", "all", "", 50.0, 3, None, None, False)],
        schema=["model", "judge", "metric", "slice", "slice_value", "value", "n", "ci_low", "ci_high", "reliable"],
        orient="row",
    )
    built = Report(
        "Sessions",
        RUN,
        SNAPSHOT,
        metrics,
        SUITE.presentation.figures,
        answers=SUITE.presentation.answers,
        results=listed(90, None, 50, 49),
    )
    ((_, _, rows),) = built.mistakes()
    assert rows.select("band", "session_id").rows() == [
        ("not scored", "s-1"),
        ("0 to 49", "s-3"),
        ("50 to 74", "s-2"),
        ("75 to 100", "s-0"),
    ]


# The tables refuse a scoring that contradicts itself, and a scoring goes on to its end and never back.


@pytest.mark.parametrize(("changes", "rule"), CASES["contradictions"])
def test_the_contract_refuses_rows_that_contradict_themselves(changes: dict[str, Any], rule: str) -> None:
    row, tools = scored(REVIEW, "None.")
    (rules,) = broken({**row, **changes}, tools)
    assert rule in rules


EARLY, LATE = datetime(2026, 3, 1, 12, tzinfo=UTC), datetime(2026, 3, 1, 13, tzinfo=UTC)


@pytest.mark.parametrize(
    ("times", "rules"),
    [
        ({}, []),
        ({"asked_at": EARLY}, []),
        ({"asked_at": EARLY, "started_at": EARLY, "completed_at": LATE}, []),
        ({"asked_at": LATE, "started_at": EARLY}, [["starts_after_asked"]]),
        ({"started_at": LATE, "completed_at": EARLY}, [["ends_after_start"]]),
    ],
)
def test_a_scoring_is_asked_for_begun_and_ended_in_this_order(times: dict[str, Any], rules: list[list[str]]) -> None:
    row, tools = scored(REVIEW, "None.")
    assert [list(each) for each in broken({**row, **times}, tools)] == rules


@pytest.mark.parametrize(
    ("changes", "rule"), [({"position": -1}, "position_not_negative"), ({"tool_name": " "}, "tool_name_not_blank")]
)
def test_a_missing_tool_has_a_place_and_a_name(changes: dict[str, Any], rule: str) -> None:
    row, (tool,) = scored(REVIEW, "1. **heap-dump**: shows the leak")
    (rules,) = broken(row, [{**tool, **changes}])
    assert list(rules) == [rule]


def in_state(state: str) -> dict[str, Any]:
    """A scoring in a state, by the name that `STEPS` has for it."""
    row, _ = scored(REVIEW, "None.")
    if state in ("pending", "in_progress"):
        row_of = begun(item(), Exchange(row["prompt_hash"], Reply(None)))
        return {**row_of, "score_id": row["score_id"], "status": state}
    if state == "without tools":
        return {**row, "missing_tools": None, "missing_tools_analysis": None}
    if state in ("timeout", "no_total"):
        return {**row, "status": "failed", "total_score": None, "error_kind": state, "error_message": "no"}
    return row if state == "completed" else {**row, "total_score": 11}


STEPS = CASES["steps"]


def test_a_scoring_goes_on_to_its_end_and_never_back(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path / "lake"))

    def rows(states: Iterable[str]) -> list[dict[str, Any]]:
        return [{**in_state(state), **LANDED, "score_id": content_hash(n)} for n, state in enumerate(states)]

    befores, afters = (rows(states) for states in ([old for old, _, _ in STEPS], [new for _, new, _ in STEPS]))
    for each in (befores, afters):
        frame = conform(each, RESULTS)
        assert audit(frame, RESULTS).bad.is_empty()
        land(lake, RESULTS, frame)
    told = ("status", "total_score", "error_kind", "missing_tools_analysis")
    kept = {row["score_id"]: [row[name] for name in told] for row in lake.frame(RESULTS).collect().to_dicts()}
    for step, before, after in zip(STEPS, befores, afters, strict=True):
        expected = after if step[2] else before
        assert kept[expected["score_id"]] == [expected[name] for name in told], step


# What experts are shown of a session: the text that its judge reads, shortened as for one, and no judgement.


def test_experts_are_asked_for_the_points_that_a_judge_gives_and_shown_the_session_alone() -> None:
    assert [question.name for question in LABELLING.questions] == ["score", *CATEGORIES]
    assert [question.most for question in LABELLING.questions] == [100, 25, 25, 25, 25]
    assert LABELLING.material == ("session",)
    assert SESSION.blind


@pytest.mark.parametrize("number", range(3))
def test_a_session_is_shown_up_to_its_end(number: int) -> None:
    sample = read_dataset("starter").samples[number]
    (show,) = SESSION.shown.values()
    text = show(Seen({"total_score": 71}, {"dataset": sample.dataset, "input": sample.input}, "71"))
    assert text is not None
    assert FINAL_ANALYSIS in text
    assert len(text) <= BUDGET
    assert show(Seen({}, {}, None)) is None


# A session as lists show it: what was alerted and how the agent began, in words.

SAID = [{"role": "assistant", "content": "I look\n at the pods. " + "x" * 500}]


def brief(**fields: Any) -> str:
    session = read_generic({"session_id": "s", "status": "completed", "alert": "a", "messages": SAID, **fields})
    tell = SUITE.presentation.viewing.input_brief
    assert tell is not None
    return tell(dump(session))


@pytest.mark.parametrize(("alert", "words"), CASES["words"])
def test_alert_and_first_words_are_told(alert: Any, words: str) -> None:
    told = brief(alert=alert if isinstance(alert, str) else json.dumps(alert), alert_type="DiskFull")
    assert told == f"DiskFull · {words} · I look at the pods. …"


def test_what_is_no_session_is_told_as_it_is() -> None:
    tell = SUITE.presentation.viewing.input_brief
    assert tell is not None
    assert tell("no JSON") == "no JSON"


def test_lists_of_the_viewer_hold_no_json(tmp_path: Any) -> None:
    lake = Lake(str(tmp_path / "lake"))
    dataset = read_dataset("starter")
    extract(lake, "r", [dataset])
    index: Any = SimpleNamespace(suite=SUITE)
    found = beginnings(lake, index, [sample.sample_hash for sample in dataset.samples])
    assert found.keys() == {sample.sample_hash for sample in dataset.samples}
    assert all("{" not in text and len(text) <= PREVIEW for text in found.values())
    assert any(text.startswith("HighErrorRate · checkout: error rate above 5 % · I start") for text in found.values())


def test_the_judges_words_stand_at_the_turn_the_quotation_or_the_tool_that_they_speak_of() -> None:
    tools = "# TOOLS AVAILABLE\n- logs.search: x\n- db.sessions: y\n"
    turns = "## 1 AGENT SAYS\nIt is the pool.\n## 2 TOOL CALL logs.search\n"
    text = f"{tools}{turns}# FINAL ANALYSIS\nPool."
    analysis = """General words, placed nowhere.
- 4 points: turn 1 guesses.
- "It is the pool" has no evidence.
- logs.search was called too late.
- 3 points: the conclusion is thin.
- nothing to place here"""
    missing = [{"tool_name": "db.sessions", "rationale": "shows sessions"}]
    place = SUITE.presentation.viewing.remarks
    assert place is not None

    placed = place(text, {"score_analysis": analysis}, missing)
    assert [line for line, _ in placed] == [4, 5, 6, 7, 3]
    assert placed[-1][1] == "db.sessions was missed: shows sessions"
    assert place(text, {"score_analysis": None}, []) == []


# The suite as one object: by its own baselines starter sessions become rows that keep their contracts.

STARTER = {sample.sample_id: sample for sample in SUITE.data.read(*SUITE.data.starter).samples}


@pytest.mark.parametrize("name", STARTER)
def test_starter_sessions_come_to_rows_that_keep_their_contracts(name: str) -> None:
    asked, answered = converse_with_baselines(
        SUITE, STARTER[name], *SUITE.conversation.default_models, *SUITE.conversation.default_judges
    )
    rows = SUITE.scoring.score(asked, answered, SUITE.options)
    for contract in SUITE.contracts:
        landed = conform([{**each, "landed_by_run": "r", "origin": "call"} for each in rows[contract.table]], contract)
        assert audit(landed, contract).bad.is_empty()
    (scoring,) = rows[RESULTS.table]
    assert (scoring["session_id"], scoring["status"], scoring["model"]) == (name, "completed", "agents")
    assert (scoring["attempts"], scoring["breakdown_consistent"]) == (1, True)
    assert scoring["failure_tags"] is not None
    assert len(str(scoring["score_analysis"]).split()) >= 200
    tools = [tool["tool_name"] for tool in rows[MISSING_TOOLS.table] if tool["kind"] != "improvable"]
    assert scoring["missing_tools"] == list(dict.fromkeys(tools))


def test_usual_replies_take_a_conversation_its_usual_way() -> None:
    """By them calls are counted before any is made: one review, one question for tools."""
    requests, answered = talk(item(), *SUITE.conversation.usual_replies, "never asked")
    assert len(requests) == len(answered) == len(SUITE.conversation.usual_replies) == 2
    assert SUITE.scoring.score(item(), answered, SUITE.options)[RESULTS.table][0]["status"] == "completed"


def test_figures_name_bands_and_categories_as_metrics_have_them() -> None:
    bars = {figure.title: figure.quantities for figure in SUITE.presentation.figures if isinstance(figure, Bars)}
    bands, categories = bars["Scores by band"], bars["Mean points by category, of 25"]
    assert [(each.metric, each.label) for each in bands] == [
        (f"score_band_{name}_rate", f"{lowest} to {highest}") for name, (lowest, highest) in BANDS.items()
    ]
    assert [each.metric for each in categories] == [f"category_mean_{name}" for name in CATEGORIES]
