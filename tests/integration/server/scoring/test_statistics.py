"""Statistics and views of scorings."""

from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from evalake.admin.roadmap import make_roadmap
from evalake.contracts.contract import Row
from evalake.contracts.engines.arrow import conform
from evalake.contracts.tables import HUMAN_LABELS, ROADMAP_MENTIONS
from evalake.core.configuration import Configuration
from evalake.server.scoring.events import _in_words
from evalake.server.scoring.scorings import State
from evalake.server.scoring.statistics import Interval, Ratings, Statistics, statistics
from evalake.server.scoring.views import Score, score
from evalake.storage.lake import Lake
from evalake.storage.landing import land
from evalake.suites.session_review.contract import SessionScore
from evalake.suites.session_review.metrics import BANDS
from evalake.tasks.runtime.context import RunContext
from tests.cases import cases_beside
from tests.integration.admin.roadmap.scored import absent, land_scores
from tests.integration.server.scoring.conftest import complete
from tests.integration.server.services import Place, Service

CASES = cases_beside(__file__, "ends.json")

# Figures over all scorings.


def test_statistics_add_up(listed: Service, place: Place) -> None:
    complete(place, listed, "lists-green", 90)
    found = listed.http.get("/api/v1/scoring/statistics").json()
    counts = found["sessions"]
    assert counts["total"] == sum(count for name, count in counts.items() if name != "total")
    assert (
        sum(bucket["count"] for bucket in found["distribution"]) == found["scores"]["n"] == sum(found["bands"].values())
    )
    assert found["bands"].keys() == BANDS.keys()
    assert [bucket["low"] for bucket in found["distribution"]] == list(range(0, 100, 10))
    assert sum(point["n"] for point in found["trend"]) >= found["scores"]["n"]
    assert any(point["current"] for point in found["trend"])


def test_people_rate_what_was_scored_and_agreement_is_counted(listed: Service, place: Place) -> None:
    path = "/api/v1/scoring/sessions/{}/human-rating"
    before = listed.http.get("/api/v1/scoring/statistics").json()["agreement"]["n"]
    assert listed.http.put(path.format("lists-none"), json={"score": 50}).status_code == 404
    for wrong in ({"score": 101}, {"score": -1}, {"score": "x"}, {"score": None}, {}, {"score": 50, "by": "me"}):
        assert listed.http.put(path.format("lists-red"), json=wrong).status_code == 422
    for given in (80, 30):  # the second replaces the first
        assert listed.http.put(path.format("lists-red"), json={"score": given, "note": "<i>too kind</i>"}).is_success
        place.lake.open(HUMAN_LABELS).update({"labelled_at": "labelled_at + INTERVAL '1 day'"})  # of another clock
    ratings = listed.http.get(path.format("lists-red")).json()["ratings"]
    assert [(rating["score"], rating["rated_by"]) for rating in ratings] == [(30.0, "api-client")]
    assert listed.http.get("/api/v1/sessions/lists-red").json()["human_ratings"] == ratings
    agreement = listed.http.get("/api/v1/scoring/statistics").json()["agreement"]
    assert agreement["n"] == before + 1
    if before == 0:
        assert (agreement["mean_difference"], agreement["mean_absolute_difference"]) == (-10.0, 10.0)
        assert agreement["correlation"] is None


def test_the_roadmap_is_the_last_one_that_was_made_with_the_sessions_behind_it(
    listed: Service, place: Place, tmp_path: Path
) -> None:
    none = listed.http.get("/api/v1/scoring/roadmap").json()
    assert (none["roadmap_id"], none["sessions"], none["kinds"]) == (None, 0, [])
    elsewhere = Lake(str(tmp_path / "lake"))
    land_scores(elsewhere, ("wanting", 40, absent("x-ray", because="it would have shown it")))
    made = make_roadmap(RunContext("roadmap", "session_review", elsewhere, Configuration()), None)
    land(place.lake, ROADMAP_MENTIONS, conform(made.to_dicts(), ROADMAP_MENTIONS))
    found = listed.http.get("/api/v1/scoring/roadmap").json()
    assert (found["roadmap_id"], found["judge"], found["sessions"]) == (made["roadmap_id"][0], None, 1)
    (theme,) = (each for kind in found["kinds"] for each in kind["themes"])
    assert (theme["theme"], theme["sessions"], theme["mean_score"], theme["points_lost"]) == ("x-ray", 1, 40.0, 60.0)
    assert theme["mentions"] == [{"session_id": "wanting", "name": "x-ray", "text": "it would have shown it"}]


def scored(number: int, total: int, criteria: str = "new") -> dict[str, Any]:
    names = {"score_id": f"score-{number}", "sample_id": f"session-{number}", "sample_hash": f"hash-{number}"}
    at = datetime(2026, 11, 1, number % 24, tzinfo=UTC)
    more = {"status": "completed", "criteria_hash": criteria, "total_score": total, "completed_at": at}
    more |= {"judge": "judge", "prompt_type": "p", "replicate": 0, "missing_tools": [criteria], "failure_tags": []}
    return names | more


def figures(rows: Sequence[Row], ratings: Sequence[Row]) -> Statistics:
    of_session = {each["sample_id"]: [row for row in rows if row["sample_id"] == each["sample_id"]] for each in rows}
    return statistics([], State({row["score_id"]: row for row in rows}, of_session, {}, "new"), ratings)


def test_a_rating_counts_for_the_score_that_it_was_given_for(tmp_path: Path) -> None:
    of = {"sample_id": "s", "sample_hash": "a" * 64, "model": "m"}
    died = {**scored(0, 0), **of, "status": "failed"}
    old, new = ({**scored(n, 50 * n, criteria), **of} for n, criteria in enumerate(("old", "new"), start=1))
    ratings = Ratings(Lake(str(tmp_path / "lake")))
    for row, given in ((old, 10.0), (new, 20.0)):
        ratings.put(row, given, None, "ann")
    for rows in permutations((died, old, new)):
        agreement = figures(rows, ratings.all()).agreement
        assert (agreement.n, agreement.mean_difference) == (1, 80.0)


def test_means_have_intervals_criteria_are_never_mixed_and_few_pairs_have_no_correlation() -> None:
    scores = [scored(n, 50 + 2 * n) for n in range(12)] + [scored(n, 0, "old") for n in range(12, 20)]
    of = {"label_id": "from elsewhere", "annotator": "ann"}
    ratings = [{**row, **of, "score": row["total_score"] - 5.0 + n % 3} for n, row in enumerate(scores)]
    found = figures(scores, ratings)
    assert (found.scores.n, found.scores.obsolete, found.scores.mean, found.scores.lowest) == (12, 8, 61.0, 50)
    assert found.scores.ci_low is not None
    assert found.scores.ci_high is not None
    assert 50 < found.scores.ci_low < 61 < found.scores.ci_high < 72
    assert {point.criteria_hash: (point.n, point.units) for point in found.trend} == {"new": (12, 12), "old": (8, 8)}
    assert sum(bucket.count for bucket in found.distribution) == 12
    assert [(tool.tool_name, tool.sessions) for tool in found.missing_tools] == [("new", 12)]
    agreement = found.agreement
    assert (agreement.n, agreement.units) == (12, 12)
    assert agreement.mean_difference_ci.low is not None
    assert agreement.mean_difference_ci.low < 4.0
    assert agreement.correlation is not None
    assert agreement.correlation > 0.9
    assert agreement.correlation_ci.low is not None
    assert agreement.correlation_ci.low < agreement.correlation
    few = figures(scores[:9], ratings).agreement
    assert (few.n, few.correlation, few.correlation_ci) == (9, None, Interval(low=None, high=None))
    assert figures([], []).scores.mean is None


def test_a_scores_deviation_is_pooled_over_sessions_scored_again_by_the_same_judge_under_the_same_criteria() -> None:
    given = [("first", 60), ("first", 78), ("first", None), ("second", 50), ("second", 50), ("once", 99)]
    of = {"judge": "j", "criteria_hash": "c"}
    rows: list[dict[str, Any]] = [
        {**of, "session_id": name, "status": "completed" if total is not None else "failed", "total_score": total}
        for name, total in given
    ]
    rows += [{**rows[0], "judge": "other", "total_score": 10}, {**rows[3], "criteria_hash": "old", "total_score": 0}]
    assert State(by_id={str(n): row for n, row in enumerate(rows)}).deviations == {("j", "c"): (9.0, 2)}


# What the API says of a scoring that has failed: no analysis, and a reason in words.

ROW = {
    **dict.fromkeys(SessionScore.model_fields),
    **{"score_id": "a" * 64, "session_id": "s", "criteria_hash": "b" * 64, "judge": "j", "replicate": 0},
    **{"cut_chars": 0, "cut_interactions": 0, "status": "completed"},
}


@pytest.mark.parametrize("status", ["failed", "completed"])
def test_only_a_failed_scoring_has_no_analysis(status: str) -> None:
    row = {**ROW, "status": status, "score_analysis": "a first turn", "missing_tools_analysis": "a second"}
    shown = Score.model_validate(score(row, (), "", None, is_current=True))
    kept = (None, None) if status == "failed" else ("a first turn", "a second")
    assert (shown.score_analysis, shown.missing_tools_analysis) == kept


def test_a_tool_that_was_missed_is_told_apart_from_one_to_improve_and_unknown_from_none() -> None:
    unused = {"tool_name": "get-logs", "rationale": "the cause stood there", "kind": "unused"}
    improvable = {"tool_name": "get-logs", "rationale": "its output is cut", "kind": "improvable"}
    absent = {"tool_name": "memory-dump", "rationale": None, "kind": "absent"}
    row = {**ROW, "missing_tools": ["get-logs", "memory-dump", "of-a-lake-of-before"]}
    shown = Score.model_validate(score(row, (unused, improvable, absent), "", None, is_current=True))
    untold = {"tool_name": "of-a-lake-of-before", "rationale": None, "kind": None}
    assert [tool.model_dump() for tool in shown.missing_tools or ()] == [unused, absent, untold]
    assert [tool.model_dump() for tool in shown.tools_to_improve or ()] == [improvable]
    unknown = Score.model_validate(score(ROW, (), "", None, is_current=True))
    assert (unknown.missing_tools, unknown.tools_to_improve) == (None, None)


@pytest.mark.parametrize(("message", "words"), CASES["ends"])
def test_the_end_of_a_process_is_told_in_words(message: str | None, words: str) -> None:
    assert _in_words(message) == words


def test_lists_are_filtered_sorted_and_paged(listed: Service) -> None:
    def names(**parameters: Any) -> list[str]:
        answer = listed.http.get("/api/v1/sessions", params={"search": "NEEDLE", **parameters})
        assert answer.status_code == 200, answer.text
        return [entry["session_id"].removeprefix("lists-") for entry in answer.json()["sessions"]]

    for parameters, expected in CASES["listed"]:
        assert names(**parameters) == expected, parameters
    assert names(agent=["lister", "another"], session_status="completed") == names()
    assert names(sort="tool_calls", min_tool_calls=1, max_tool_calls=1)[0] == "failed"
    assert names(max_seconds=0, sort="duration") == names(sort="agent") == names(sort="alert_type")
    assert names(scored_by="api-client", sort="status")[0] == "failed"
    assert sorted(names(scored_by="api-client")) == ["failed", "green", "red", "yellow"]
    ended = listed.score("lists-red").json()["completed_at_us"]
    assert "red" in names(scored_from_us=ended, sort="scored_at")
    assert names(scored_to_us=ended - 60_000_000) == []
    page = listed.http.get("/api/v1/sessions", params={"search": "needle", "page_size": 2, "page": 3}).json()
    assert (page["total"], page["pages"], len(page["sessions"])) == (5, 3, 1)
    assert {"lister", "disk-agent"} <= set(page["choices"]["agents"])
    assert "DiskFull" in page["choices"]["alert_types"]
    assert page["choices"]["scored_by"] == ["api-client"]
    for wrong in ({"sort": "luck"}, {"min-score": 50}):
        assert listed.http.get("/api/v1/sessions", params=wrong).status_code == 422
