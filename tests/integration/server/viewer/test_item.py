"""One item whole: what was read out of its answers, and what stands beside it."""

import json
from typing import Any

import httpx

from tests.integration.server.viewer.world import AUDITOR, BAD, CONTRACT, GOOD, HOSTILE, REASON, World


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
