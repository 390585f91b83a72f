"""Items: filtered, sorted and paged by the server; a filter keeps items of which any shown answer matches."""

from typing import Any

import httpx
import pytest

from evalake.server.viewer import run_index
from evalake.server.viewer.items import WantedPage, item_page
from evalake.server.viewer.run_index import RunIndexes
from tests.integration.server.viewer.world import BAD, COMMANDS, GOOD, World


def items(http: httpx.Client, run_id: str, **wanted: Any) -> dict[str, Any]:
    """A page of items."""
    answer = http.get(f"/runs/{run_id}/items", params=wanted)
    assert answer.status_code == 200, answer.text
    page: dict[str, Any] = answer.json()
    return page


def names(page: dict[str, Any]) -> list[str]:
    """The samples of a page, in order."""
    return [item["sample_id"] for item in page["items"]]


def test_an_item_is_one_sample_with_the_answers_of_all_models(http: httpx.Client, world: World) -> None:
    page = items(http, world.verdicts, limit=500)

    assert page["total"] == len(page["items"]) == COMMANDS
    assert page["next"] is None
    assert [answer["model"] for answer in page["items"][0]["answers"]] == [BAD, GOOD]


def test_pages_follow_each_other_without_a_gap(http: httpx.Client, world: World) -> None:
    seen, after = [], None
    while True:
        page = items(http, world.verdicts, limit=7, sort="latency", order="desc", **({"after": after} if after else {}))
        seen += names(page)
        if (after := page["next"]) is None:
            break

    assert seen == [f"sample-{number:02d}" for number in reversed(range(COMMANDS))]


def test_the_first_page_of_a_large_run_is_the_same_before_its_index_is_read(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    for run_id in (world.verdicts, world.audits):
        whole = item_page(RunIndexes(world.lake), run_id, WantedPage(limit=7))
        with monkeypatch.context() as patch:
            patch.setattr(run_index, "WORTH_WAITING", 1)
            indexes = RunIndexes(world.lake)
            assert indexes.beginning(run_id, 7) is not None
            assert item_page(indexes, run_id, WantedPage(limit=7)) == whole
            assert indexes.of(run_id).samples.height == whole.total
            assert indexes.beginning(run_id, 7) is None  # the index of all is there
            assert item_page(indexes, run_id, WantedPage(limit=7)) == whole


def test_a_filter_keeps_items_of_which_any_shown_answer_matches(http: httpx.Client, world: World) -> None:
    by_any = items(http, world.verdicts, verdict="ALLOW", limit=500)
    by_good = items(http, world.verdicts, verdict="ALLOW", model=GOOD, limit=500)

    assert names(by_any) == [f"sample-{number:02d}" for number in range(0, COMMANDS, 3)]
    assert {answer["model"] for item in by_any["items"] for answer in item["answers"]} == {GOOD, BAD}
    assert by_good["total"] == 0


def test_all_that_is_wanted_must_hold_for_one_answer(http: httpx.Client, world: World) -> None:
    # sample-00 is malicious: BAD allowed it, GOOD blocked it
    assert "sample-00" in names(items(http, world.verdicts, verdict="ALLOW", correct="false", limit=500))
    assert "sample-00" not in names(items(http, world.verdicts, verdict="BLOCK", correct="false", limit=500))


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ({"q": "secret12"}, ["sample-12"]),
        ({"q": "OF NUMBER 13"}, ["sample-13"]),
        ({"q": "sample-05"}, ["sample-05"]),
        ({"q": ".*"}, []),
        ({"error": "any"}, ["sample-07"]),
        ({"category": "upload", "correct": "false", "verdict": "ALLOW"}, ["sample-06", "sample-18"]),
        ({"label": "harmless", "q": "-l 3", "correct": "true"}, ["sample-03"]),
        ({"flag": "missed", "category": "file-read"}, ["sample-00", "sample-12", "sample-24"]),
        ({"model": "", "verdict": "", "q": "secret12"}, ["sample-12"]),
    ],
)
def test_items_are_found(http: httpx.Client, world: World, wanted: dict[str, str], found: list[str]) -> None:
    assert names(items(http, world.verdicts, limit=500, **wanted)) == found


def test_models_that_differ(http: httpx.Client, world: World) -> None:
    page = items(http, world.verdicts, differ="models", limit=500)

    assert names(page) == [f"sample-{number:02d}" for number in range(0, COMMANDS, 3)]
    assert items(http, world.verdicts, differ="models", model=GOOD)["total"] == 0


def test_a_run_does_not_differ_from_itself(http: httpx.Client, world: World) -> None:
    assert items(http, world.verdicts, differ=f"run:{world.verdicts}")["total"] == 0


def test_the_most_often_wrong_come_first(http: httpx.Client, world: World) -> None:
    page = items(http, world.verdicts, sort="wrong", order="desc", limit=500)
    wrong = [sum(answer["correct"] is False for answer in item["answers"]) for item in page["items"]]

    assert wrong == sorted(wrong, reverse=True)
    assert wrong[0] == 2
    assert wrong[-1] == 0


@pytest.mark.parametrize(
    "wanted",
    [
        {"flag": "nothing"},
        {"differ": "everything"},
        {"after": "nowhere"},
        {"limit": 0},
        {"sort": "luck"},
        {"modle": "x"},
    ],
)
def test_what_cannot_be_meant_is_refused_with_a_reason(
    http: httpx.Client, world: World, wanted: dict[str, str]
) -> None:
    answer = http.get(f"/runs/{world.verdicts}/items", params=wanted)

    assert answer.status_code in (400, 422)
    assert answer.json()["detail"]


def test_an_unknown_run_is_not_found(http: httpx.Client) -> None:
    assert http.get("/runs/nothing/items").status_code == 404
    assert http.get("/runs/nothing").status_code == 404
