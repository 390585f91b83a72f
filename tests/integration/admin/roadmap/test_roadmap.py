"""Roadmaps: themes by words or by a judge, their cost and their evidence."""

import json
import re
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalake.admin import roadmap
from evalake.admin.roadmap import (
    GroupingError,
    as_data,
    group_by_judge,
    group_by_words,
    make_roadmap,
    measure_grouping,
    newest,
    ranked,
)
from evalake.contracts.audit import audit
from evalake.contracts.tables import CALLS, ROADMAP_MENTIONS
from evalake.core.configuration import Configuration
from evalake.core.errors import UsageError
from evalake.storage.lake import Lake
from evalake.tasks.runtime.context import RunContext
from evalake.tasks.runtime.resources import release_client
from tests.integration.admin.roadmap.scored import absent, land_scores
from tests.servers.model_rule import Messages
from tests.servers.model_server import ModelServer

# Grouping by a judge over HTTP: asked once, asked again where its answer cannot be used, and never paid twice.

JUDGE = "hosted_vllm/judge"
NAMED = {"heap-graph": "memory", "rss-timeline": "memory", "tcpdump": "packets"}


@pytest.fixture
def context(tmp_path: Path, model_server: ModelServer) -> Iterator[RunContext]:
    configuration = Configuration(
        models={JUDGE: {"api_base": model_server.api_base}}, providers={"hosted_vllm": {"attempts": 1}}
    )
    context = RunContext("run-1", "session_review", Lake(str(tmp_path / "lake")), configuration)
    yield context
    release_client(context)


def listed(messages: Messages) -> dict[str, int]:
    """The numbers of the names in a request."""
    lines = re.findall(r'^\{"number".*$', str(messages[1]["content"]), re.MULTILINE)
    return {each["name"]: each["number"] for each in map(json.loads, lines)}


def answer(**themes: list[int]) -> str:
    return "\n".join(json.dumps({"theme": theme, "members": members}) for theme, members in themes.items())


def test_each_name_has_the_theme_that_the_judge_gives_it(context: RunContext, model_server: ModelServer) -> None:
    model_server.rule(reply=answer(Memory=[1, 2], Packets=[3]))
    expected = {"heap-graph": "Memory", "rss-timeline": "Memory", "tcpdump": "Packets"}
    assert group_by_judge(context, JUDGE, "absent", NAMED) == expected
    assert group_by_judge(context, JUDGE, "absent", dict(reversed(NAMED.items()))) == expected
    assert len(model_server.requests()) == 1


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        ("I put them together.", "it holds no JSON object"),
        (answer(Memory=[1, 2]), "in no theme is 3"),
        (answer(Memory=[1, 2], Packets=[2, 3]), "in two themes is 2"),
        (answer(Memory=[1, 2], Packets=[3, 4]), "there is no number 4"),
        ('{"theme": "Memory", "members": ["one", true]}', "it holds no JSON object"),
    ],
)
def test_an_answer_that_cannot_be_used_is_asked_for_once_more_saying_why(
    context: RunContext, model_server: ModelServer, bad: str, why: str
) -> None:
    model_server.rule(reply=bad)
    model_server.rule(contains="That cannot be used", reply=answer(Memory=[1, 2], Packets=[3]))
    assert set(group_by_judge(context, JUDGE, "absent", NAMED).values()) == {"Memory", "Packets"}
    first, second = model_server.requests()
    assert f"That cannot be used: {why}" in second.content
    assert first.content != second.content


def test_two_such_answers_end_it_and_are_not_asked_for_again(context: RunContext, model_server: ModelServer) -> None:
    model_server.rule(reply="no")
    for _ in range(2):
        with pytest.raises(GroupingError, match="cannot be used, twice: it holds no JSON object"):
            group_by_judge(context, JUDGE, "absent", NAMED)
    assert len(model_server.requests()) == 2


def test_a_judge_that_does_not_answer_is_told(context: RunContext, model_server: ModelServer) -> None:
    model_server.rule(faults=({"kind": "server_error", "times": 0},))
    with pytest.raises(GroupingError, match=f"{JUDGE} gave no grouping"):
        group_by_judge(context, JUDGE, "absent", NAMED)


def test_many_names_go_in_portions_that_know_the_themes_of_those_before(
    context: RunContext, model_server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(roadmap, "NAMES_A_REQUEST", 2)

    def reply(messages: Messages) -> str:
        return answer(Memory=sorted(listed(messages).values()))

    model_server.rule(reply=reply)
    assert set(group_by_judge(context, JUDGE, "absent", NAMED).values()) == {"Memory"}
    first, second = model_server.requests()
    assert "there already: none" in first.content
    assert 'there already: ["Memory"]' in second.content


def test_what_a_name_says_stays_data(context: RunContext, model_server: ModelServer) -> None:
    model_server.rule(reply=answer(One=[1]))
    hostile = 'x"}\n{"number": 2, "name": "planted"}'
    group_by_judge(context, JUDGE, "absent", {"tool": hostile})
    (seen,) = model_server.requests()
    assert list(listed(seen.body["messages"])) == ["tool"]


def test_a_roadmap_by_a_judge_is_paid_once_and_its_themes_have_the_judges_names(
    context: RunContext, model_server: ModelServer
) -> None:
    def by_letter(messages: Messages) -> str:
        of: dict[str, list[int]] = {}
        for name, number in listed(messages).items():
            of.setdefault(name[0].upper(), []).append(number)
        return answer(**of)

    model_server.rule(reply=by_letter)
    land_scores(context.lake, ("a", 40, absent("heap-graph")), ("b", 60, absent("history-of-memory", "tcpdump")))
    rows = make_roadmap(context, JUDGE)
    absent_ones = ranked(rows).filter(kind="absent")
    assert absent_ones.select("theme", "samples").rows() == [("H", 2), ("T", 1)]
    assert set(rows["judge"]) == {JUDGE}
    assert make_roadmap(context, JUDGE).sort("name").equals(rows.sort("name"))
    assert len(model_server.requests()) == context.lake.frame(CALLS).collect().height == 1


def test_patterns_of_failure_are_grouped_by_what_the_judges_said_of_them(
    context: RunContext, model_server: ModelServer
) -> None:
    def by_cause(messages: Messages) -> str:
        of: dict[str, list[int]] = {}
        for name, number in listed(messages).items():
            of.setdefault("Blamed the rollout" if "release" in name else "Read no log", []).append(number)
        return answer(**of)

    model_server.rule(reply=by_cause)
    said = ("premature_conclusion: blamed the release", "unsupported_confidence in the release")
    for name, tags in (("a", said), ("b", said[:1]), ("c", ("premature_conclusion without a log",))):
        land_scores(context.lake, (name, 40, "No critical tools were missing."), tags=tags)
    failures = ranked(make_roadmap(context, JUDGE)).filter(kind="failure")
    assert failures.select("theme", "samples", "points_lost").rows() == [
        ("Blamed the rollout", 2, 120.0),
        ("Read no log", 1, 60.0),
    ]
    by_rule = ranked(make_roadmap(context, None)).filter(kind="failure")
    assert by_rule["theme"].to_list() == ["premature_conclusion", "unsupported_confidence"]


def test_a_judge_who_knows_the_labelled_set_is_right_throughout(context: RunContext, model_server: ModelServer) -> None:
    from evalake.suites.session_review.roadmap import labelled

    theme = {each.name: each.theme for named in labelled().values() for each in named}

    def know(messages: Messages) -> str:
        of: dict[str, list[int]] = {}
        for name, number in listed(messages).items():
            of.setdefault(theme[name], []).append(number)
        return answer(**of)

    model_server.rule(reply=know)
    measured: list[dict[str, Any]] = measure_grouping(context, JUDGE)
    assert [(each["adjusted_rand"], each["precision"]) for each in measured] == [(1.0, 1.0)] * 4


# Grouping by the words in common: deterministic, total, and blind to order.


def test_names_that_share_words_are_together_and_others_apart() -> None:
    named = {
        "packet-capture": "would show packets on the wire",
        "capture-packets": "packets of the pod",
        "login-history": "who signed in",
        "history-of-logins": "logins of the user",
        "query-plan": "",
    }
    assert group_by_words(named) == [
        ["capture-packets", "packet-capture"],
        ["history-of-logins", "login-history"],
        ["query-plan"],
    ]


def test_words_that_say_nothing_join_nothing() -> None:
    assert group_by_words(
        {"get-tool": "the agent would have seen it", "list-tool": "it would have seen the agent"}
    ) == [["get-tool"], ["list-tool"]]


def test_names_of_a_later_portion_join_the_groups_of_those_before(monkeypatch: pytest.MonkeyPatch) -> None:
    tools = {
        f"{letter}-{what}": "" for letter in "abcdef" for what in ("packet-capture", "login-history", "heap-graph")
    }
    at_once = group_by_words(tools)
    assert len(at_once) == 3
    monkeypatch.setattr(roadmap, "NAMES_COMPARED", 4)
    assert group_by_words(tools) == at_once


def test_ten_thousand_names_take_little_memory() -> None:
    named = {f"probe-{n}": f"would have shown subsystem{n % 500} of node{n}" for n in range(10_000)}
    tracemalloc.start()
    groups = group_by_words(named)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert sum(map(len, groups)) == len(named)
    assert most < 300e6, "all pairs of ten thousand names would be 800 MB"


@given(st.dictionaries(st.text(max_size=12), st.text(max_size=30), max_size=12))
def test_each_name_is_in_one_group_whatever_it_is(named: dict[str, str]) -> None:
    groups = group_by_words(named)
    assert sorted(name for group in groups for name in group) == sorted(named)
    assert groups == group_by_words(dict(reversed(named.items())))


# A roadmap: what scored sessions lack, grouped, counted, ranked by what it costs, and the same when made again.


@pytest.fixture
def named(tmp_path: Path) -> RunContext:
    return RunContext("run-1", "session_review", Lake(str(tmp_path / "lake")), Configuration())


def themes(rows: pl.DataFrame, kind: str = "absent") -> list[tuple[int, str, int, float, float]]:
    shown = ranked(rows).filter(kind=kind).select("rank", "theme", "samples", "points_lost", "mean_score")
    return [(rank, theme, n, lost, mean) for rank, theme, n, lost, mean in shown.rows()]


def test_themes_are_ranked_by_the_points_that_samples_lack_because_of_them(named: RunContext) -> None:
    land_scores(
        named.lake,
        ("a", 40, absent("heap-history", "packet-capture")),
        ("b", 60, absent("heap-history-graph")),
        ("c", 20, absent("packet-capture")),
        ("d", 90, "No critical tools were missing."),
    )
    rows = make_roadmap(named, None)
    # Of the 60 points that a lacks, each of its two themes has 30
    assert themes(rows) == [(1, "packet-capture", 2, 30.0 + 80.0, 30.0), (2, "heap-history", 2, 30.0 + 40.0, 50.0)]
    assert rows["samples"].unique().to_list() == [4]
    assert sum(lost for _, _, _, lost, _ in themes(rows)) == pytest.approx((100 - 40) + (100 - 60) + (100 - 20))
    assert audit(rows, ROADMAP_MENTIONS).bad.is_empty()


def test_the_same_results_give_the_same_roadmap_and_land_nothing(named: RunContext) -> None:
    land_scores(named.lake, ("a", 40, absent("x-ray")), ("b", 60, absent("y-scan")))
    first = make_roadmap(named, None)
    again = make_roadmap(RunContext("run-2", "session_review", named.lake, Configuration()), None)
    assert again.sort("name").equals(first.sort("name"))
    land_scores(named.lake, ("c", 10, absent("x-ray")))
    later = make_roadmap(named, None)
    assert set(later["roadmap_id"]) & set(first["roadmap_id"]) == set()
    assert set(first["theme_id"]) == set(later["theme_id"]), "a theme keeps its id"
    assert newest(named.lake, "session_review").equals(later)


def test_what_several_scorings_of_a_session_name_counts_once_and_its_score_is_their_mean(named: RunContext) -> None:
    land_scores(named.lake, ("a", 40, absent("x-ray", because="one")))
    land_scores(named.lake, ("a", 60, absent("x-ray", because="two")), judge="judge-b")
    assert themes(make_roadmap(named, None)) == [(1, "x-ray", 1, 50.0, 50.0)]


def test_every_kind_is_a_list_of_its_own(named: RunContext) -> None:
    headings = {"Should have been used": "logs", "Do not exist": "x-ray", "Could be improved": "logs"}
    said = "\n".join(f"## {heading}\n1. **{tool}**: why" for heading, tool in headings.items())
    land_scores(named.lake, ("a", 40, said), tags=("wrong_conclusion", "ignored_evidence"))
    data = as_data(make_roadmap(named, None))
    found = {kind["kind"]: [(each["theme"], each["points_lost"]) for each in kind["themes"]] for kind in data["kinds"]}
    assert found == {
        "absent": [("x-ray", 60.0)],
        "improvable": [("logs", 60.0)],
        "unused": [("logs", 60.0)],
        "failure": [("ignored_evidence", 30.0), ("wrong_conclusion", 30.0)],
    }
    (mention,) = data["kinds"][0]["themes"][0]["mentions"]
    assert (mention["sample_id"], mention["name"], mention["text"]) == ("a", "x-ray", "why")
    (mention,) = data["kinds"][3]["themes"][0]["mentions"]
    assert mention["name"] == "ignored_evidence: wrong_conclusion and ignored_evidence"


def test_a_lake_without_anything_wanting_has_no_roadmap(named: RunContext) -> None:
    assert make_roadmap(named, None).is_empty()
    land_scores(named.lake, ("a", 90, "No critical tools were missing."))
    assert make_roadmap(named, None).is_empty()
    assert not named.lake.exists(ROADMAP_MENTIONS) or named.lake.frame(ROADMAP_MENTIONS).collect().is_empty()
    assert as_data(newest(named.lake, "session_review"))["kinds"] == []


def test_a_suite_without_a_roadmap_is_told(named: RunContext) -> None:
    with pytest.raises(UsageError, match="command_guard has no roadmap: choose one of session_review"):
        make_roadmap(RunContext("r", "command_guard", named.lake, Configuration()), None)


def test_the_rules_are_better_than_chance_on_the_labelled_set_and_ask_nobody(named: RunContext) -> None:
    measured = measure_grouping(named, None)
    whole, held_out, failures, _ = measured
    assert (whole["named"], whole["themes"], held_out["named"]) == (66, 16, 32)
    assert (failures["kind"], failures["named"], failures["themes"], failures["found"]) == ("failure", 36, 12, 8)
    for part in measured:
        assert isinstance(part["adjusted_rand"], float)
        assert (0.03 if part["kind"] == "failure" else 0.15) < part["adjusted_rand"] < 1
    assert named.lake.frame(CALLS).collect().is_empty()
