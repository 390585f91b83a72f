"""The judge canary, with a real judge server: noise begins no version, a shift does, no answer is paid twice."""

from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest
from prefect.blocks.system import Secret

from evalake.contracts.tables import CALLS
from evalake.contracts.tables.metrics import JUDGE_CANARIES, JUDGE_VERSIONS
from evalake.flows.judges import canary
from evalake.storage.lake import Lake
from evalake.suites.registry import suite
from evalake.suites.session_review.prompts import templates
from evalake.tasks.canary import REPLICATES, CanaryError
from tests.servers.judges import NoisyJudge
from tests.servers.model_server import ModelServer

JUDGE = "hosted_vllm/judge"
FIRST = date(2026, 11, 20)
SESSIONS = 8
CALLS_EACH = 2  # the score, then the missing tools


class WatchedJudge:
    """A lake, and a judge that is watched."""

    def __init__(self, folder: Path, server: ModelServer) -> None:
        self.server, self.mind = server, NoisyJudge()
        server.rule(reply=self.mind)
        self.lake = Lake(str(folder / "lake"))
        self._configuration = folder / "evalake.toml"
        self.configure()

    def configure(self, parameters: str = "", limits: str = "") -> None:
        model = f'[models."{JUDGE}"]\napi_base = "{self.server.api_base}"\n{parameters}'
        self._configuration.write_text(f"[providers.hosted_vllm]\nattempts = 1\n{limits}{model}")

    def on(self, day: int) -> dict[str, Any]:
        """The row of the canary of a day, counted from the first, with how many calls it took."""
        before = len(self.server.seen)
        (row,) = canary(
            suites=["session_review"],
            judges=[JUDGE],
            day=FIRST + timedelta(day),
            lake=self.lake.uri,
            configuration_file=str(self._configuration),
        )
        return {**row, "calls": len(self.server.seen) - before}

    def versions(self) -> list[int]:
        return self.lake.frame(JUDGE_VERSIONS).collect().sort("day")["version"].to_list()


@pytest.fixture
def watch(tmp_path: Path, model_server: ModelServer) -> WatchedJudge:
    return WatchedJudge(tmp_path, model_server)


def test_noise_begins_no_version_and_a_shift_begins_one(watch: WatchedJudge) -> None:
    first = watch.on(0)
    assert (first["version"], first["moved"], first["p_value"]) == (1, False, None)
    assert first["calls"] == SESSIONS * REPLICATES * CALLS_EACH
    with pytest.raises(CanaryError, match="run the canary for a later day"):
        watch.on(-1)
    quiet = [watch.on(day) for day in (1, 2)]
    assert [row["version"] for row in quiet] == [1] * 2
    assert {row["calls"] for row in quiet} == {SESSIONS * CALLS_EACH}  # asked again each day, and no more than once
    assert all(row["p_value"] > 0.01 and row["noise"] > 0 for row in quiet)

    watch.mind.shift = 20
    moved = watch.on(3)
    assert (moved["version"], moved["moved"], moved["answers"]) == (2, True, REPLICATES)
    assert moved["p_value"] <= 0.0001
    assert moved["distance"] > 2 * moved["noise"]
    assert moved["calls"] == SESSIONS * REPLICATES * CALLS_EACH  # which are the new version's to be compared with
    after = watch.on(4)
    assert (after["version"], after["moved"], after["calls"]) == (2, False, SESSIONS * CALLS_EACH)
    assert watch.versions() == [1, 2]
    last_steady = watch.lake.frame(JUDGE_CANARIES).filter(version=1).collect()["judged_at"].max()
    assert watch.lake.frame(JUDGE_VERSIONS).filter(version=2).collect()["since"].item() == last_steady


def test_a_day_is_asked_once_and_only_for_what_is_missing(watch: WatchedJudge) -> None:
    Secret(value="the-key-of-the-judge").save("judges-key", overwrite=True, _sync=True)  # type: ignore[call-arg]
    watch.configure(limits='api_key_secret = "judges-key"\n')
    watch.on(0)
    watch.server.rule(contains="Review the investigation", faults=({"kind": "server_error"},), reply=watch.mind)
    watch.server.rule(contains=templates()["missing_tools"], reply=watch.mind)
    with pytest.raises(CanaryError, match="8 items got no answer"):
        watch.on(1)
    assert watch.lake.frame(JUDGE_CANARIES).collect().height == 1  # nothing is known of that day
    again = watch.on(1)
    assert again["calls"] == SESSIONS * CALLS_EACH
    assert watch.on(1)["calls"] == 0  # another run for the day
    assert watch.on(0)["calls"] == 0
    keys = watch.lake.frame(CALLS).select("prompt_hash", "replicate").collect()
    assert keys.n_unique() == keys.height
    assert sorted(keys["replicate"].unique())[:2] == [2026112000, 2026112001]
    assert {seen.authorization for seen in watch.server.seen} == {"Bearer the-key-of-the-judge"}


def test_an_attempt_that_died_before_it_landed_its_row_finds_the_same(watch: WatchedJudge) -> None:
    watch.on(0)
    watch.mind.shift = 20
    moved = watch.on(1)
    watch.lake.open(JUDGE_CANARIES).delete("day = '2026-11-21'")
    again = watch.on(1)
    assert (again["calls"], again["p_value"], again["moved"]) == (0, moved["p_value"], True)
    assert watch.versions() == [1, 2]


def test_other_requests_renew_the_answers_of_a_version_and_begin_none(watch: WatchedJudge) -> None:
    watch.on(0)
    watch.configure("parameters = { temperature = 0.5 }\n")
    watch.mind.shift = 20
    renewed = watch.on(1)
    told = [renewed[name] for name in ("version", "moved", "p_value", "answers")]
    assert told == [1, False, None, REPLICATES]
    assert watch.versions() == [1, 1]
    assert watch.on(2)["p_value"] > 0.01


def test_no_version_begins_with_answers_that_nobody_can_read(watch: WatchedJudge) -> None:
    watch.server.rule(reply="I cannot say.")
    with pytest.raises(CanaryError, match=f"none of the {SESSIONS * REPLICATES} answers of {JUDGE} to session_review"):
        watch.on(0)
    assert not watch.lake.exists(JUDGE_VERSIONS)


def test_a_suite_without_a_judge_is_not_watched_in_silence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known = suite("session_review")
    silent = replace(known, conversation=replace(known.conversation, default_judges=()))
    monkeypatch.setitem(canary.fn.__globals__, "find_suite", lambda _: silent)
    with pytest.raises(CanaryError, match="session_review: it has no judge of its own"):
        canary(suites=["session_review"], day=FIRST, lake=str(tmp_path / "lake"))


def test_the_embedded_baselines_never_move(tmp_path: Path) -> None:
    for day in (FIRST, FIRST + timedelta(1)):
        rows = canary(day=day, lake=str(tmp_path / "lake"))
    assert [(row["suite"], row["version"], row["distance"]) for row in rows] == [
        ("session_review", 1, 0.0),
        ("solidity_audit", 1, 0.0),
    ]
