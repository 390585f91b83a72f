"""Landing: each key once, whatever is repeated, raced or interrupted."""

from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import replace

import polars as pl
import pytest

from evalake.contracts.contract import ALWAYS, fits_folder
from evalake.core.errors import ContractError, SchemaMismatchError
from evalake.storage import landing
from evalake.storage.lake import Lake
from evalake.storage.landing import Landed, land, land_together
from tests.integration.storage.rows import TOYS, toy
from tests.processes import process_context


@pytest.fixture(autouse=True, params=[ALWAYS, TOYS.replaced_when], ids=["keys are looked for first", "merged at once"])
def merged_at_once(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Which tables' rows are merged without looking for their keys before: both ways are to end alike."""
    monkeypatch.setattr(landing, "ALWAYS", request.param)
    return str(request.param)


def frame(*rows: dict[str, object]) -> pl.DataFrame:
    return pl.DataFrame(
        list(rows), schema={"key": pl.String, "model": pl.String, "state": pl.String, "size": pl.Float64}
    )


def test_rows_land_once_however_often_they_are_landed(lake: Lake) -> None:
    rows = frame(toy("a"), toy("b"))
    assert land(lake, TOYS, rows) == Landed(inserted=2)
    assert land(lake, TOYS, rows) == Landed(already_present=2)
    assert land(lake, TOYS, frame(toy("b"), toy("c"))) == Landed(inserted=1, already_present=1)
    assert sorted(lake.frame(TOYS).collect()["key"]) == ["a", "b", "c"]


@pytest.mark.parametrize("count", [1, 3])
def test_rows_that_are_never_replaced_are_appended_however_few_they_are(lake: Lake, count: int) -> None:
    never_replaced = replace(TOYS, replaced_when=None)
    keys = [f"new {number}" for number in range(count)]
    land(lake, never_replaced, frame(toy("a", size=1.0)))
    done = land(lake, never_replaced, frame(toy("a", size=2.0), *map(toy, keys)))
    assert done == Landed(inserted=count, already_present=1)
    assert land(lake, never_replaced, frame(*map(toy, keys))) == Landed(already_present=count)
    rows = lake.frame(TOYS).collect()
    assert sorted(rows["key"]) == sorted(["a", *keys])
    assert rows.filter(key="a")["size"].to_list() == [1.0]
    history = [commit["operation"] for commit in lake.open(TOYS).history()]
    assert history == ["WRITE", "WRITE", "ADD CONSTRAINT", "CREATE TABLE"]  # none where nothing is new


def test_the_first_row_of_a_key_within_a_batch_counts(lake: Lake) -> None:
    assert land(lake, TOYS, frame(toy("a", size=1.0), toy("a", size=2.0))) == Landed(inserted=1)
    assert lake.frame(TOYS).collect()["size"].to_list() == [1.0]


@pytest.mark.parametrize("letter", ["a", "/", "\U0001f40d"])
def test_the_longest_name_that_fits_a_folder_lands(lake: Lake, letter: str) -> None:
    name = next(letter * length for length in range(300, 0, -1) if fits_folder(letter * length))
    assert land(lake, TOYS, frame(toy("a", model=name))) == Landed(inserted=1)
    assert lake.frame(TOYS).collect()["model"].to_list() == [name]


def test_a_row_is_replaced_only_as_its_contract_allows(lake: Lake) -> None:
    land(lake, TOYS, frame(toy("a", state="early", size=1.0)))
    assert land(lake, TOYS, frame(toy("a", state="early", size=2.0))) == Landed(already_present=1)
    assert land(lake, TOYS, frame(toy("a", state="final", size=3.0))) == Landed(replaced=1)
    assert land(lake, TOYS, frame(toy("a", state="early", size=4.0))) == Landed(already_present=1)
    assert lake.frame(TOYS).collect()["size"].to_list() == [3.0]


def test_present_rows_are_merged_only_where_one_is_replaced(lake: Lake, merged_at_once: str) -> None:
    land(lake, TOYS, frame(toy("a", state="early"), toy("b", state="final")))
    assert land(lake, TOYS, frame(toy("a", state="early"), toy("c"))) == Landed(inserted=1, already_present=1)
    merges = [commit["operation"] for commit in lake.open(TOYS).history()].count("MERGE")
    assert merges == (0 if merged_at_once == ALWAYS else 2)
    both = frame(toy("a", state="final"), toy("b", state="early"), toy("d"))
    assert land(lake, TOYS, both) == Landed(inserted=1, replaced=1, already_present=1)
    assert lake.frame(TOYS).collect().sort("key")["state"].to_list()[:2] == ["final", "final"]
    unknown_to_polars = replace(TOYS, replaced_when="levenshtein(old.state, new.state) > 0")
    assert land(lake, unknown_to_polars, frame(toy("a", state="early"))) == Landed(replaced=1)


def test_threads_land_together_what_came_meanwhile_in_one_commit(lake: Lake) -> None:
    land(lake, TOYS, frame(toy("old", size=1.0)))
    before = lake.open(TOYS).version()
    with ThreadPoolExecutor(20) as threads:
        for each in [threads.submit(land_together, lake, TOYS, frame(toy(f"{number % 15}"))) for number in range(20)]:
            each.result()
    keys = lake.frame(TOYS).collect()["key"].to_list()
    assert sorted(keys) == sorted(["old", *(str(number) for number in range(15))])
    assert lake.open(TOYS).version() < before + 15


def test_what_is_landed_together_is_refused_together(lake: Lake) -> None:
    with pytest.raises(SchemaMismatchError):
        land_together(lake, TOYS, frame(toy("a")).drop("size"))
    land_together(lake, TOYS, frame(toy("a")))  # which does not wait for the one that was refused
    with pytest.raises(ContractError):
        land_together(lake, TOYS, frame(toy("b", size=-1.0)))
    assert lake.frame(TOYS).collect()["key"].to_list() == ["a"]


@pytest.mark.parametrize(
    ("rows", "named"),
    [
        (frame(toy("a")).drop("size"), "size"),
        (frame(toy("a")).with_columns(extra=1), "extra"),
        (frame(toy("a")).with_columns(size=pl.lit("large")), "size"),
    ],
)
def test_a_frame_of_another_schema_is_refused_by_name(lake: Lake, rows: pl.DataFrame, named: str) -> None:
    with pytest.raises(SchemaMismatchError, match=named):
        land(lake, TOYS, rows)


def test_the_table_itself_refuses_what_slipped_past_the_audit(lake: Lake) -> None:
    with pytest.raises(ContractError, match="toys") as refusal:
        land(lake, TOYS, frame(toy("secret-value", size=-1.0)))
    assert "secret-value" not in str(refusal.value)
    assert lake.frame(TOYS).collect().is_empty()


def _land_many(uri: str, first: int, merged_at_once: str) -> int:
    landing.ALWAYS = merged_at_once  # type: ignore[attr-defined]
    landed = [
        land(Lake(uri), TOYS, frame(*(toy(f"k{n}") for n in range(start, start + 20))))
        for start in range(first, first + 100, 20)
    ]
    return sum(one.inserted for one in landed)


def test_processes_that_land_overlapping_keys_give_each_row_once(lake: Lake, merged_at_once: str) -> None:
    with ProcessPoolExecutor(4, mp_context=process_context()) as pool:
        inserted = list(pool.map(_land_many, [lake.uri] * 4, [0, 0, 40, 60], [merged_at_once] * 4))
    keys = lake.frame(TOYS).collect()["key"]
    assert keys.n_unique() == keys.len() == sum(inserted) == 160
