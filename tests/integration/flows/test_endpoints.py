"""A reply is used again only for the endpoint that gave it, whatever a folder or an earlier server says."""

from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from evalake.contracts.tables import CALLS, RUN_ITEMS
from evalake.core.configuration import UNKNOWN, read_configuration
from evalake.core.errors import ConfigurationError
from evalake.storage import ledger
from evalake.storage.lake import Lake
from evalake.suites.command_guard.contract import RESULTS
from evalake.tasks.rescore import rescore
from tests.integration.flows.workplace import MODEL, Workplace
from tests.servers.model_server import ModelServer

GPT = "openai/gpt-4o-mini"
ALLOW = '{"action": "ALLOW", "reason": "a lie", "confidence": 0.9}'


@pytest.fixture
def other_server() -> Iterator[ModelServer]:
    with ModelServer() as server:
        server.rule(reply=ALLOW)
        yield server


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_BASE", "OPENAI_BASE_URL", "OPENAI_API_KEY", "EVALAKE_CONFIG"):
        monkeypatch.delenv(name, raising=False)


def configure(work: Workplace, server: ModelServer, more: str = "") -> None:
    work.configuration.write_text(f'[models."{MODEL}"]\napi_base = "{server.api_base}"\n{more}\n')


def test_a_folders_server_answers_for_no_later_run_of_the_users(
    work: Workplace, other_server: ModelServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "downloaded"
    folder.mkdir()
    (folder / "evalake.toml").write_text(f'[models."{GPT}"]\napi_base = "{other_server.api_base}"\n')
    monkeypatch.chdir(folder)
    poisoned = work.run(work.dataset(4), models=[GPT], configuration_file=None)
    assert (poisoned["state"], poisoned["calls_made"]) == ("completed", 4)
    monkeypatch.chdir(tmp_path)
    work.configuration.write_text("")
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    monkeypatch.setenv("OPENAI_BASE_URL", work.server.api_base)
    own = work.run(work.dataset(4), models=[GPT])
    assert (own["state"], own["calls_made"], own["calls_from_ledger"]) == ("completed", 4, 0)
    mine = work.rows(RUN_ITEMS).filter(run_id=own["run_id"])
    verdicts = work.rows(RESULTS).join(mine, on=["prompt_hash", "endpoint"], how="semi")["verdict"]
    assert verdicts.to_list() == ["BLOCK"] * 4
    assert work.run(work.dataset(4), models=[GPT])["calls_made"] == 0


@pytest.mark.parametrize("entry", ['endpoint = "lab"', "adopt_unknown_endpoint = true"])
def test_a_folder_can_declare_no_endpoint(tmp_path: Path, entry: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "evalake.toml").write_text(f'[models."{GPT}"]\n{entry}\n')
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigurationError, match=r"evalake\.toml of the working directory may not set"):
        read_configuration()
    (tmp_path / "evalake.toml").write_text('[providers.openai]\nendpoint = "lab"\n')
    with pytest.raises(ConfigurationError, match=r"may not set providers\.openai\.endpoint"):
        read_configuration()


def test_two_servers_of_one_name_answer_for_themselves(work: Workplace, other_server: ModelServer) -> None:
    first = work.run(work.dataset(4))
    configure(work, other_server)
    other = work.run(work.dataset(4))
    assert (other["calls_made"], other_server.requests() != []) == (4, True)
    assert sorted(work.rows(RESULTS)["verdict"]) == ["ALLOW"] * 4 + ["BLOCK"] * 4
    done = rescore(work.lake, first["run_id"], read_configuration(work.configuration))
    assert (done.unanswered, done.published.landed.already_present) == (0, 4), "by the replies that it was made of"


def test_a_named_endpoint_moves_for_nothing(work: Workplace, other_server: ModelServer) -> None:
    configure(work, work.server, 'endpoint = "lab"')
    assert work.run(work.dataset(4))["calls_made"] == 4
    configure(work, other_server, 'endpoint = "lab"')
    assert work.run(work.dataset(4))["calls_made"] == 0
    assert work.rows(CALLS)["endpoint"].unique().to_list() == ["lab"]


def test_older_replies_answer_where_the_users_configuration_adopts_them(work: Workplace, tmp_path: Path) -> None:
    work.run(work.dataset(4))
    older = work.rows(CALLS).drop("ledger_version").with_columns(endpoint=pl.lit(UNKNOWN))
    work.lake = Lake(str(tmp_path / "older"))
    ledger.append(work.lake, older.to_dicts())
    configure(work, work.server, "adopt_unknown_endpoint = true")
    adopting = work.run(work.dataset(4))
    assert (adopting["calls_made"], adopting["calls_from_ledger"]) == (0, 4)
    assert work.rows(RESULTS)["endpoint"].unique().to_list() == [UNKNOWN]
    configure(work, work.server)
    assert work.run(work.dataset(4))["calls_made"] == 4
