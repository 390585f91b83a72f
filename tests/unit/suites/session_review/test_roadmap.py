"""What scored sessions lack: tools by kind and patterns of failure in the judge's words, once for each session."""

from collections.abc import Mapping
from typing import Any

import polars as pl

from evalake.contracts.engines.arrow import conform
from evalake.contracts.tables import SAMPLES
from evalake.sdk.suite import MENTIONS
from evalake.suites.session_review.contract import MISSING_TOOLS, RESULTS
from evalake.suites.session_review.roadmap import FAILURE, ROADMAP, mentions, scored
from evalake.suites.session_review.session import Session, Stage, Tool, ToolCall, dump
from tests.unit.suites.session_review.scored import LANDED
from tests.unit.suites.session_review.scored import scored as scoring
from tests.unit.suites.session_review.support import session

LISTS = "## Should have been used\n1. **logs**: x\n## Do not exist\n1. **heap**: y\n## Could be improved\n1. **df**: z"


def tables(*scorings: tuple[dict[str, Any], list[dict[str, Any]]]) -> Mapping[str, pl.LazyFrame]:
    """The tables that scorings land in."""
    rows = [{**row, **LANDED} for row, _ in scorings]
    tools = [{**tool, **LANDED} for _, each in scorings for tool in each]
    return {RESULTS.table: conform(rows, RESULTS).lazy(), MISSING_TOOLS.table: conform(tools, MISSING_TOOLS).lazy()}


def named(given: Mapping[str, pl.LazyFrame]) -> list[tuple[str, str]]:
    found = mentions(given)
    assert found.schema == MENTIONS
    assert set(found["kind"]) <= ROADMAP.kinds.keys()
    return list(found.select("kind", "name").iter_rows())


def test_tools_are_of_the_kind_that_their_heading_says() -> None:
    given = tables(scoring("67", LISTS))
    assert named(given) == [("absent", "heap"), ("improvable", "df"), ("unused", "logs")]
    assert mentions(given)["text"].to_list() == ["y", "z", "x"]


def test_an_answer_without_headings_names_tools_of_unknown_kind() -> None:
    assert named(tables(scoring("67", "1. **heap**: y"))) == [("unknown", "heap")]


def test_a_tool_that_the_session_had_is_not_absent_however_it_is_spelt() -> None:
    lists = "## Do not exist\n" + "".join(f"1. **{each}**: y\n" for each in ("Get_Pods", "kube.tail-logs", "heap"))
    row, tools = scoring("67", lists)
    called = ToolCall("tail_logs", server="kube")
    agent = Stage("s", "a", "completed", (called,), (Tool("get-pods", "kube"), Tool("tail_logs", "kube")))
    sample = {"sample_hash": row["sample_hash"], "input": dump(Session("s", "completed", "a", "disk", stages=(agent,)))}
    given = {**tables((row, tools)), SAMPLES.table: pl.LazyFrame([sample])}
    assert named(given) == [("absent", "heap"), ("improvable", "kube.tail-logs"), ("unused", "get-pods")]


def test_a_pattern_is_named_in_each_sentence_in_which_it_was_found() -> None:
    analysis = "It was a premature_conclusion. Later, a premature conclusion at 7.\nNo wrong_conclusion.\n67"
    assert named(tables(scoring(analysis, "None."))) == [
        (FAILURE, "premature_conclusion: It was a premature_conclusion."),
        (FAILURE, "premature_conclusion: Later, a premature conclusion at 7."),
    ]


def test_a_pattern_whose_words_are_lost_is_named_alone() -> None:
    row, tools = scoring("A wrong_conclusion.\n67", "None.")
    assert named(tables(({**row, "score_analysis": None}, tools))) == [(FAILURE, "wrong_conclusion")]


def test_several_scorings_of_a_session_name_a_thing_once_and_its_score_is_their_mean() -> None:
    given = tables(
        scoring("60", "1. **heap**: y"),
        scoring("70", "1. **heap**: another reason", judge="judge-b"),
        scoring("20", "1. **heap**: y", of=session(alert="another")),
    )
    found = mentions(given).sort("score")
    assert found.select("name", "score").rows() == [("heap", 20.0), ("heap", 65.0)]
    assert found["sample_hash"].n_unique() == scored(given) == 2


def test_a_scoring_that_failed_names_nothing_and_counts_nowhere() -> None:
    given = tables(scoring("one", "two", "three"))
    assert (named(given), scored(given)) == ([], 0)
