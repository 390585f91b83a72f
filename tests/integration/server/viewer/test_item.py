"""An item: its answers, its conversation, and the list it stands in."""

import json
import shutil
from pathlib import Path
from typing import Any

import httpx
import pytest

from evalake.server.viewer import run_index
from evalake.server.viewer.conversation import tool_calls
from evalake.server.viewer.items import WantedPage, item_page
from evalake.server.viewer.run_index import RunIndexes
from evalake.storage.lake import Lake
from evalake.tasks.publish import Refused, quarantine
from evalake.tasks.runtime.context import RunContext
from tests.cases import cases_beside
from tests.integration.server.viewer.world import (
    AUDIT,
    AUDITOR,
    BAD,
    COMMANDS,
    CONTRACT,
    GOOD,
    HOSTILE,
    JUDGE,
    JUDGEMENT,
    REASON,
    SILENT,
    UNREADABLE,
    World,
)

CASES = cases_beside(__file__, "items.json")

# One item whole: what was read out of its answers, and what stands beside it.


def item(http: httpx.Client, run_id: str, sample_id: str, **wanted: str) -> dict[str, Any]:
    """An item of a run, by the name of its sample."""
    known = http.get(f"/runs/{run_id}/items", params={"limit": 500}).json()["items"]
    item_id = next(each["item_id"] for each in known if each["sample_id"] == sample_id)
    answer = http.get(f"/runs/{run_id}/items/{item_id}", params=wanted)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def calls_of(whole: dict[str, Any], model: str) -> list[dict[str, Any]]:
    """The calls of a model's answer, in order."""
    answer = next(each for each in whole["answers"] if each["model"] == model)
    by_id = {call["call_id"]: call for call in whole["calls"]}
    return [by_id[each] for each in answer["calls"]]


def test_what_was_read_out_of_it_stands_with_the_judges_reason(http: httpx.Client, world: World) -> None:
    whole = item(http, world.audits, "bank-1")
    answer = next(each for each in whole["answers"] if each["model"] == AUDITOR)
    values = {fact["name"]: fact["value"] for fact in answer["values"]}
    [finding] = [{fact["name"]: fact["value"] for fact in row} for row in answer["details"]]

    assert (answer["verdict"], answer["correct"], values["target_found"]) == ("vulnerable", True, True)
    assert (finding["classification"], finding["reason"]) == ("TARGET_MATCH", REASON)
    assert "repaired_judgement" in answer["flags"]
    assert whole["input"] == CONTRACT
    assert whole["label"] == "vulnerable"


def test_recorded_replies_are_there_as_they_came_however_hostile(http: httpx.Client, world: World) -> None:
    whole = item(http, world.verdicts, "sample-04")

    assert [answer["model"] for answer in whole["answers"]] == [BAD, GOOD]
    assert all(
        HOSTILE in fact["value"] for answer in whole["answers"] for fact in answer["values"] if fact["name"] == "reason"
    )
    assert all(call["messages"] == [] and call["origin"] == "import" for call in whole["calls"])


def test_neighbours_are_those_that_the_filters_keep(http: httpx.Client, world: World) -> None:
    whole = item(http, world.verdicts, "sample-03", differ="models")
    beside = [item(http, world.verdicts, name, differ="models")["item_id"] for name in ("sample-00", "sample-06")]

    assert (whole["number"], whole["total"]) == (2, 10)
    assert [whole["previous"], whole["next"]] == beside


def test_an_item_that_the_filters_leave_out_says_so_and_leads_to_them(http: httpx.Client, world: World) -> None:
    whole = item(http, world.verdicts, "sample-01", differ="models")

    assert (whole["number"], whole["previous"]) == (None, None)
    assert whole["next"] == item(http, world.verdicts, "sample-00")["item_id"]


def test_the_answer_that_a_filter_came_from_is_marked(http: httpx.Client, world: World) -> None:
    whole = item(http, world.verdicts, "sample-00", filter="verdict = 'ALLOW'")

    assert {answer["model"]: answer["matches"] for answer in whole["answers"]} == {BAD: True, GOOD: False}
    assert {answer["matches"] for answer in item(http, world.verdicts, "sample-00")["answers"]} == {None}


def test_a_finding_stands_at_the_function_that_it_names(http: httpx.Client, world: World) -> None:
    whole = item(http, world.audits, "bank-1")
    [remark] = [each for answer in whole["answers"] for each in answer["remarks"]]

    assert "function withdraw" in whole["input_text"].split("\n")[remark["line"] - 1]
    assert REASON in remark["text"]


def test_samples_with_near_texts_come_nearest_first(http: httpx.Client, world: World) -> None:
    like = item(http, world.verdicts, "sample-04")["item_id"]
    first = http.get(f"/runs/{world.verdicts}/items", params={"like": like, "limit": 3}).json()
    second = http.get(f"/runs/{world.verdicts}/items", params={"like": like, "after": first["next"]}).json()

    assert first["items"][0]["item_id"] == like
    assert all(each["input"].startswith("cat /etc/Secret") for each in (*first["items"], *second["items"]))
    assert len({each["item_id"] for each in (*first["items"], *second["items"])}) == first["total"] == 15
    assert http.get(f"/runs/{world.verdicts}/items", params={"like": "nothing"}).json()["total"] == 0


def test_a_request_is_shown_as_it_was_sent_with_why_it_cannot_be_asked_again(http: httpx.Client, world: World) -> None:
    call = calls_of(item(http, world.audits, "bank-1"), AUDITOR)[0]
    shown = http.get(f"/requests/{call['prompt_hash']}").json()

    assert json.loads(shown["request"])["messages"][-1]["content"] == call["messages"][-1]["content"]
    assert (shown["curl"], shown["python"]) == (None, None)
    assert "unknown" in shown["why"]
    assert http.get("/requests/nothing").status_code == 404


def test_an_unknown_item_is_not_found(http: httpx.Client, world: World) -> None:
    assert http.get(f"/runs/{world.verdicts}/items/nothing").status_code == 404


# The conversation about a sample, call by call: as it was said, with what failed and what was said before.


def test_the_whole_conversation_is_there_to_the_repaired_judgement(http: httpx.Client, world: World) -> None:
    whole = item(http, world.audits, "bank-1")
    audit, first, repaired = calls_of(whole, AUDITOR)

    assert (audit["by"], first["by"], repaired["by"]) == ("subject", "judge", "judge")
    assert "2|   function withdraw() public" in audit["messages"][-1]["content"]
    assert audit["text"] == AUDIT
    assert audit["thinking"] == "The call comes before the balance is set."
    assert audit["thinking"] not in audit["answer"]
    assert [call["text"] for call in (first, repaired)] == [UNREADABLE, JUDGEMENT]
    assert UNREADABLE in [message["content"] for message in repaired["messages"]]
    assert {call["model"] for call in (first, repaired)} == {JUDGE}
    assert (audit["attempts"], audit["input_tokens"], audit["cost_usd"], audit["latency_ms"]) == (2, 100, 0.01, 1500.0)


def test_every_earlier_answer_to_the_same_prompt_is_told(http: httpx.Client, world: World) -> None:
    audit = calls_of(item(http, world.audits, "bank-1"), AUDITOR)[0]

    assert [(each["text"], each["replicate"], each["run_id"]) for each in audit["others"]] == [
        ("an earlier audit", 1, "an-earlier-run")
    ]


def test_a_call_that_was_given_up_on_says_why(http: httpx.Client, world: World) -> None:
    whole = item(http, world.audits, "bank-1")
    answer = next(each for each in whole["answers"] if each["model"] == SILENT)
    [call] = calls_of(whole, SILENT)

    assert (answer["verdict"], answer["correct"], answer["error"]) == (None, None, "rate_limit")
    assert (call["error_kind"], call["error"], call["attempts"], call["text"]) == (
        "rate_limit",
        "too many requests",
        5,
        None,
    )


def test_tool_calls_are_told_apart_from_what_was_said_whatever_their_form() -> None:
    well = {"id": "1", "type": "function", "function": {"name": "look", "arguments": '{"at": 1}'}}

    assert [(each.name, each.arguments) for each in tool_calls([well, {"odd": True}, "text"])] == [
        ("look", '{"at": 1}'),
        ("", '{"odd": true}'),
        ("", "text"),
    ]
    assert tool_calls(None) == tool_calls({"name": "look"}) == []


# Items: filtered, sorted and paged by the server; a filter keeps items of which any shown answer matches.


def items(http: httpx.Client, run_id: str, **wanted: Any) -> dict[str, Any]:
    """A page of items."""
    answer = http.get(f"/runs/{run_id}/items", params=wanted)
    assert answer.status_code == 200, answer.text
    page: dict[str, Any] = answer.json()
    return page


def names(page: dict[str, Any]) -> list[str]:
    """The samples of a page, in order."""
    return [item["sample_id"] for item in page["items"]]


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


@pytest.mark.parametrize(("wanted", "found"), CASES["found"])
def test_items_are_found(http: httpx.Client, world: World, wanted: dict[str, str], found: list[str]) -> None:
    assert names(items(http, world.verdicts, limit=500, **wanted)) == found


def test_a_run_does_not_differ_from_itself(http: httpx.Client, world: World) -> None:
    assert items(http, world.verdicts, differ=f"run:{world.verdicts}")["total"] == 0


def test_the_most_often_wrong_come_first(http: httpx.Client, world: World) -> None:
    page = items(http, world.verdicts, sort="wrong", order="desc", limit=500)
    wrong = [sum(answer["correct"] is False for answer in item["answers"]) for item in page["items"]]

    assert wrong == sorted(wrong, reverse=True)
    assert wrong[0] == 2
    assert wrong[-1] == 0


@pytest.mark.parametrize("wanted", CASES["refused"])
def test_what_cannot_be_meant_is_refused_with_a_reason(
    http: httpx.Client, world: World, wanted: dict[str, str]
) -> None:
    answer = http.get(f"/runs/{world.verdicts}/items", params=wanted)

    assert answer.status_code in (400, 422)
    assert answer.json()["detail"]


def test_a_refused_row_marks_its_answer_alone(audits: RunContext, tmp_path: Path) -> None:
    shutil.copytree(audits.lake.uri, tmp_path / "lake")
    lake, run_id = Lake(str(tmp_path / "lake")), audits.run_id
    row = audits.lake.frame(audits.suite.results).head(1).collect().to_dicts()[0]
    payload = json.dumps(
        {name: row[name] for name in ("model", "sample_hash", "prompt_hash", "judge_hash", "replicate")}
    )
    quarantine(lake, run_id, "b", [Refused(audits.suite.results.table, payload, ("rule",), "broken")])
    assert RunIndexes(lake).of(run_id).answers["quarantined"].sum() == 1


def test_an_unknown_run_is_not_found(http: httpx.Client) -> None:
    assert [http.get(f"/runs/{path}").status_code for path in ("nothing/items", "nothing")] == [404, 404]
