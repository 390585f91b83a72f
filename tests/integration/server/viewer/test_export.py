"""A run as a folder of files, opened as files in a real browser: no server is asked, and hostile text stays text."""

from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Page, expect

from evalake.core.errors import LakeError, UsageError
from evalake.server.viewer import export
from evalake.server.viewer.run_index import RunIndexes
from tests.cases import cases_beside
from tests.integration.server.viewer.conftest import Open
from tests.integration.server.viewer.world import AUDITOR, BAD, CONTRACT, GOOD, HOSTILE, JUDGE, REASON, World

CASES = cases_beside(__file__, "exported.json")

Exported = Callable[[str], str]


@pytest.fixture(scope="module")
def exported(world: World, tmp_path_factory: pytest.TempPathFactory) -> Exported:
    """Export a run in small files; returns the address of its page."""
    pages: dict[str, str] = {}

    def address(run_id: str) -> str:
        if run_id not in pages:
            with pytest.MonkeyPatch.context() as patch:
                for name, items in (("IN_LIST", 8), ("IN_FILE", 4), ("IN_BATCH", 12)):
                    patch.setattr(export, name, items)
                folder = tmp_path_factory.mktemp("exports") / "a folder"
                pages[run_id] = export.export_run(RunIndexes(world.lake), run_id, folder, lambda *_: None).as_uri()
        return pages[run_id]

    return address


def ids(page: Page) -> list[str]:
    """The samples that the list shows, in order."""
    expect(page.locator("section[aria-label=Samples] .pager, .empty").first).to_be_visible()
    return page.locator("tbody a.id").all_text_contents()


def test_the_run_is_shown_with_its_figures(look: Open, exported: Exported, world: World) -> None:
    visit = look(exported(world.verdicts))
    expect(visit.page.get_by_role("table", name="Headline metrics")).to_contain_text(GOOD)
    visit.page.get_by_text("All figures").click()
    expect(visit.page.get_by_role("table", name="All figures")).to_contain_text("balanced accuracy")
    visit.page.get_by_label("Figures of").select_option("by category")
    parts = visit.page.get_by_role("table", name="All figures by category")
    expect(parts.get_by_role("row", name="malicious detection rate").first).to_be_visible()
    assert visit.obstacles() == []
    assert visit.hosts == {""}


def test_what_is_not_in_the_folder_is_no_link(look: Open, exported: Exported, world: World) -> None:
    page = look(exported(world.verdicts)).page
    expect(page.get_by_role("link", name="Where models differ")).to_be_visible()
    expect(page.get_by_text("Compare models")).to_be_hidden()
    assert page.get_by_role("link", name="Runs", exact=True).count() == 0


def test_walking_from_the_run_to_its_items_and_from_one_to_the_next(
    look: Open, exported: Exported, world: World
) -> None:
    page = look(exported(world.verdicts)).page
    page.get_by_role("link", name="Where models differ").click()
    page.get_by_role("link", name="sample-00").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("sample-00")
    page.get_by_role("link", name="Next").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("sample-03")
    page.keyboard.press("j")
    expect(page.get_by_role("heading", level=1)).to_have_text("sample-06")
    expect(page.get_by_role("navigation", name="Neighbouring samples")).to_contain_text("3 of 10")
    page.keyboard.press("k")
    expect(page.get_by_role("heading", level=1)).to_have_text("sample-03")
    page.go_back()
    expect(page.get_by_role("heading", level=1)).to_have_text("sample-06")
    page.reload()
    expect(page.get_by_role("heading", level=1)).to_have_text("sample-06")
    page.get_by_role("link", name="bad").click()  # a place on this page
    expect(page.get_by_role("heading", name=BAD)).to_be_in_viewport()
    page.keyboard.press("u")
    assert "sample-06" in ids(page)


@pytest.mark.parametrize("wanted", [*CASES["wanted"], f"model={GOOD}&correct=true"])
def test_filters_and_orders_find_what_the_server_finds(
    look: Open, exported: Exported, http: httpx.Client, world: World, wanted: str
) -> None:
    run = f"/runs/{world.verdicts}"
    said = http.get(f"{run}/items?{wanted}").json()
    page = look(f"{exported(world.verdicts)}?{run}/items?{wanted}").page
    assert ids(page) == [each["sample_id"] for each in said["items"]]


def test_a_filter_is_chosen_as_on_a_server(look: Open, exported: Exported, world: World) -> None:
    page = look(f"{exported(world.verdicts)}?/runs/{world.verdicts}/items").page
    page.get_by_label("Category").select_option("upload")
    expect(page.locator("tbody a.id")).to_have_count(7)
    page.get_by_role("searchbox").fill("secret2")
    expect(page.locator("tbody a.id")).to_have_text(["sample-02", "sample-22", "sample-26"])
    assert page.url.endswith("/items?category=upload&q=secret2")


def test_another_run_is_said_not_to_be_there(look: Open, exported: Exported, world: World) -> None:
    page = look(f"{exported(world.verdicts)}?/runs/{world.verdicts}/items?differ=run:{world.changed}").page
    expect(page.get_by_role("alert")).to_contain_text("This folder holds one run")


def test_the_whole_conversation_is_there(look: Open, exported: Exported, world: World) -> None:
    page = look(exported(world.audits)).page
    page.get_by_role("link", name="Read its 1 sample").click()
    page.get_by_role("link", name="bank-1").click()
    expect(page.get_by_role("heading", name=AUDITOR)).to_be_visible()
    expect(page.locator(".code")).to_contain_text(CONTRACT.splitlines()[1].strip())
    expect(page.get_by_role("heading", name=JUDGE).first).to_be_visible()
    expect(page.get_by_role("table", name="In detail")).to_contain_text(REASON)


def test_hostile_text_stays_text(look: Open, exported: Exported, world: World) -> None:
    visit = look(f"{exported(world.verdicts)}?/runs/{world.verdicts}/items?q=elsewhere.example")
    visit.page.get_by_role("link", name="sample-04").click()
    expect(visit.page.get_by_text(HOSTILE).first).to_be_visible()
    assert visit.page.locator("main img, main script").count() == 0
    assert visit.obstacles() == []


def test_a_missing_file_is_said_and_read_again(look: Open, world: World, tmp_path: Path) -> None:
    page_file = export.export_run(RunIndexes(world.lake), world.verdicts, tmp_path / "run", lambda *_: None)
    data = tmp_path / "run" / "data" / "items" / "0.js"
    text = data.read_text()
    data.unlink()
    page = look(page_file.as_uri()).page
    page.get_by_role("link", name="Read its 30 samples").click()
    page.get_by_role("link", name="sample-00").click()
    expect(page.get_by_role("alert")).to_contain_text("data/items/0.js of this folder is missing or damaged")
    data.write_text(text)
    page.get_by_role("button", name="Try again").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("sample-00")


def test_an_earlier_export_is_replaced_by_another(world: World, tmp_path: Path) -> None:
    indexes = RunIndexes(world.lake)
    export.export_run(indexes, world.verdicts, tmp_path, lambda *_: None)
    told: list[tuple[int, int]] = []
    page = export.export_run(indexes, world.audits, tmp_path, lambda *each: told.append(each))

    assert world.audits in page.read_text()
    assert [each.name for each in (tmp_path / "data" / "items").iterdir()] == ["0.js"]
    assert told == [(1, 1)]
    assert not (tmp_path / ".partial").exists()


@pytest.mark.parametrize("name", ["index.html", "notes.txt"])
def test_a_folder_of_somebody_elses_is_left_alone(world: World, tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("mine")

    with pytest.raises(UsageError, match=f"holds {name}, which no export wrote"):
        export.export_run(RunIndexes(world.lake), world.audits, tmp_path, lambda *_: None)
    assert [each.name for each in tmp_path.iterdir()] == [name]


def test_an_export_that_leads_elsewhere_is_left_alone(world: World, tmp_path: Path) -> None:
    (mine := tmp_path / "mine").write_text("mine")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "evalake-export.json").symlink_to(mine)
    with pytest.raises(UsageError, match=r"holds evalake-export\.json"):
        export.export_run(RunIndexes(world.lake), world.audits, tmp_path / "out", lambda *_: None)
    assert mine.read_text() == "mine"


def test_notes_that_were_laid_into_an_export_are_not_lost(world: World, tmp_path: Path) -> None:
    export.export_run(RunIndexes(world.lake), world.audits, tmp_path, lambda *_: None)
    (tmp_path / "notes.txt").write_text("mine")

    with pytest.raises(UsageError, match=r"holds notes\.txt"):
        export.export_run(RunIndexes(world.lake), world.audits, tmp_path, lambda *_: None)


def test_an_export_that_fails_leaves_the_earlier_one_whole(world: World, tmp_path: Path) -> None:
    indexes = RunIndexes(world.lake)
    page = export.export_run(indexes, world.audits, tmp_path, lambda *_: None)
    before = page.read_text()

    def no_space(*_: int) -> None:
        raise OSError(28, "No space left on device")

    with pytest.raises(LakeError, match="No space left on device"):
        export.export_run(indexes, world.verdicts, tmp_path, no_space)
    assert page.read_text() == before
    assert not (tmp_path / ".partial").exists()
