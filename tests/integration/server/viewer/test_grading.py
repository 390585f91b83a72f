"""Labelling on the pages: the draw of `evalake label`, blind first, by two people, and disputes of labels."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import expect

from evalake.contracts.tables import HUMAN_LABELS
from evalake.labels.sheets import lines_to_label
from evalake.server.settings import Settings
from evalake.storage.lake import Lake
from tests.integration.server.viewer.conftest import Open, served
from tests.integration.server.viewer.world import BAD, GOOD, _imported

LOOKS = ((1440, "light"), (390, "dark"))


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(str(tmp_path / "lake"))


@pytest.fixture
def run(lake: Lake, tmp_path: Path) -> str:
    return _imported(lake, tmp_path / "a.jsonl", [GOOD, BAD], lambda number: "BLOCK" if number % 3 else "ALLOW")


@pytest.fixture
def client(lake: Lake, run: str) -> Iterator[httpx.Client]:
    with served(Settings(lake=lake, token="right", writes=True)) as address:
        headers = {"authorization": "Bearer right", "origin": address}
        with httpx.Client(base_url=address, headers=headers, timeout=600) as client:
            yield client


def queue(client: httpx.Client, run: str, who: str, **asked: Any) -> Any:
    answer = client.get(f"/api/v1/runs/{run}/grading", params={"annotator": who, "size": 3, **asked})
    assert answer.status_code == 200, answer.text
    return answer.json()


def keep(client: httpx.Client, run: str, who: str, line: Any, **answers: Any) -> httpx.Response:
    given = {"annotator": who, "size": 3, "line": line["key"], "answers": answers, "note": None}
    return client.post(f"/api/v1/runs/{run}/grading", json=given)


def test_two_people_label_the_draw_of_the_command_and_their_agreement_is_measured(
    client: httpx.Client, run: str, lake: Lake
) -> None:
    sheet = lines_to_label(lake, run, 3)
    asked = []
    for who in ("ann", "bob"):
        while (now := queue(client, run, who))["next"]:
            line = now["next"]
            asked += [line] if who == "ann" else []
            names = [question["name"] for question in line["questions"]]
            said = "yes" if who == "ann" or line["number"] % 2 else "no"
            answer = keep(client, run, who, line, **dict.fromkeys(names, said))
            assert answer.json() == {"labels": len(names)}, answer.text
        assert (now["done"], now["total"]) == (len(sheet), len(sheet))

    blind = [line["blind"] for line in asked]
    assert blind == sorted(blind, reverse=True), "a blind line came after one that is not"
    assert all(
        set(line["texts"]) == {"command"} and "malicious" not in line["title"] for line in asked if line["blind"]
    )
    assert [line["key"]["sample_hash"] for line in asked] == [line["sample_hash"] for line in sheet]
    labels = lake.frame(HUMAN_LABELS).collect()
    assert labels["draw"].unique().to_list() == [sheet[0]["draw"]]
    assert set(labels["annotator"]) == {"ann", "bob"}
    chances = {line["sample_hash"]: line["inclusion_probability"] for line in sheet if line["fill_in"] == "malicious"}
    for row in labels.filter(question="malicious").iter_rows(named=True):
        assert row["inclusion_probability"] == chances[row["sample_hash"]]
    rows = {row["decision"]: row for row in client.get(f"/api/v1/runs/{run}/grading/agreement").json()}
    assert rows["malicious"]["judge"] == "ann and bob"
    assert (rows["malicious"]["n"], rows["malicious"]["agreement"]) == (3, pytest.approx(2 / 3))  # 1 and 3 are odd
    assert rows["malicious"]["kappa_low"] <= rows["malicious"]["kappa"] <= rows["malicious"]["kappa_high"]


def test_what_is_no_answer_is_refused_and_a_later_one_replaces_an_earlier(client: httpx.Client, run: str) -> None:
    line = queue(client, run, "ann")["next"]
    assert queue(client, run, "ann", after=1)["next"]["number"] == 2  # skipped
    for answers in ({"malicious": "perhaps"}, {"malicious": None}, {"decision_right": "yes"}):
        assert keep(client, run, "ann", line, **answers).status_code == 400
    assert keep(client, run, "ann", {"key": {**line["key"], "model": "other"}}, malicious="yes").status_code == 404
    for said in ("yes", "no", "yes"):
        assert keep(client, run, "ann", line, malicious=said).json() == {"labels": 1}


def test_a_disputed_label_is_listed_as_suspicious_until_it_is_taken_back(
    client: httpx.Client, run: str, lake: Lake
) -> None:
    drawn = lines_to_label(lake, run, 3)
    item = drawn[0]["sample_hash"]
    where = f"/api/v1/runs/{run}"
    for disputed, listed in ((True, [["ann: disputed: it only lists files"]]), (False, [])):
        given = {"annotator": "ann", "disputed": disputed, "note": "it only lists files"}
        assert client.post(f"{where}/items/{item}/dispute", json=given).json() == {"labels": 1}
        assert [each["reasons"] for each in client.get(f"{where}/opposed").json()["disputed"]] == listed
    again = [line["sample_hash"] for line in lines_to_label(lake, run, 3)]
    assert again == [line["sample_hash"] for line in drawn], "a dispute took a sample out of the draw"
    line = queue(client, run, "ann")["next"]
    label = client.get(f"{where}/items/{line['key']['sample_hash']}").json()["label"]
    keep(client, run, "ann", line, malicious="no" if label == "malicious" else "yes")
    (listed,) = client.get(f"{where}/opposed").json()["disputed"]
    assert listed["item_id"] == line["key"]["sample_hash"]


def test_a_person_labels_by_keyboard_and_sees_an_item_only_after_its_blind_question(
    look: Open, lake: Lake, run: str
) -> None:
    with served(Settings(lake=lake, token="right", writes=True)) as address:
        visit = look(f"{address}/runs/{run}/grade#token=right")
        page = visit.page
        page.get_by_label("Your name").fill("ann")
        page.keyboard.press("Enter")
        expect(page.get_by_text("0 of")).to_be_visible()
        expect(page.get_by_role("group", name="Is the command malicious?")).to_be_visible()
        assert visit.obstacles_of(LOOKS) == []
        page.keyboard.press("1")
        page.keyboard.press("Enter")
        expect(page.get_by_text("1 of")).to_be_visible()
        item = lines_to_label(lake, run, 30)[-1]["sample_hash"]
        page.goto(f"{address}/runs/{run}/items/{item}")
        expect(page.get_by_text("These questions are blind")).to_be_visible()
        expect(page.get_by_text("Ground truth", exact=True)).to_have_count(0)
        expect(page.get_by_role("heading", level=1)).to_have_text("Sample")
        page.keyboard.press("2")
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", name="Ground truth", exact=True)).to_be_visible()
        page.get_by_label("Why is the ground truth wrong?").fill("it only lists")
        page.get_by_role("button", name="Dispute the ground truth").click()
        expect(page.get_by_text("Its ground truth is disputed by ann.")).to_be_visible()
        assert visit.obstacles_of(LOOKS) == []
