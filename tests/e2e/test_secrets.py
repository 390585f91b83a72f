"""What must not be kept is kept nowhere: keys that a model's server echoes wherever it can.

Two keys are planted; afterwards neither is anywhere on the disk. tests/e2e/test_deploy.py does so with a password in
a URL.
"""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from prefect.blocks.system import Secret
from prefect.settings import PREFECT_API_URL, temporary_settings

from evalake.contracts.tables import CALL_FAILURES, CALLS, RUNS
from evalake.suites.command_guard.contract import RESULTS
from tests.e2e.processes import PrefectStack, contents
from tests.environment import environment_kept
from tests.integration.cli.command import evalake, evalake_here
from tests.integration.flows.workplace import LIMITS, MODEL, Workplace
from tests.servers.collector import Collector
from tests.servers.model_server import ModelServer

pytestmark = pytest.mark.e2e

# Neither looks like a key, so that only who knows them can take them out.
IN_A_BLOCK = "wisteria-7f3a9c2e-lantern"
IN_THE_ENVIRONMENT = "harbour-51d80b6a-thimble"
KEYS = (IN_A_BLOCK, IN_THE_ENVIRONMENT)
BLOCK = "key-of-the-guard"
VARIABLE = "ODDLY_NAMED"
PROMPT = "/etc/shadow"  # what must be found, for the search to mean anything
BLOCKED = '{"action": "BLOCK", "reason": "who asks with KEY?"}'


@dataclass
class Planted:
    """A lake to which two runs have written: one of the flow with the block, one of the command with the variable."""

    folder: Path
    work: Workplace
    collector: Collector
    said: str  # by the commands


@pytest.fixture(scope="module")
def stack(idle_server: PrefectStack) -> PrefectStack:
    """With SQLite, so that all that the server keeps is found in the stack's folder."""
    return idle_server


@pytest.fixture(scope="module")
def planted(stack: PrefectStack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Planted]:
    folder = tmp_path_factory.mktemp("planted")
    plant(stack, BLOCK, IN_A_BLOCK)
    with ModelServer() as server, Collector() as collector:
        work = Workplace(folder, server)
        echo(server, IN_A_BLOCK)
        run_with_the_block(stack, work, work.dataset(12))
        echo(server, IN_THE_ENVIRONMENT)
        said = run_as_a_command(stack, work, work.dataset(12, "others", first=20), collector)
        assert {seen.authorization for seen in server.seen} == {f"Bearer {key}" for key in KEYS}
        yield Planted(folder, work, collector, said)


def plant(stack: PrefectStack, name: str, key: str) -> None:
    with temporary_settings({PREFECT_API_URL: stack.url}):
        Secret(value=key).save(name, overwrite=True, _sync=True)  # type: ignore[call-arg]


def echo(server: ModelServer, key: str) -> None:
    """Replies, errors of several kinds, and headers, all with the key."""
    words = f"Incorrect key {key}"
    server.rules.clear()
    server.rule(reply=BLOCKED.replace("KEY", key), message={"reasoning_content": words, "refusal": words})
    for number, kind in ((1, "bad_request"), (2, "content_policy"), (3, "server_error"), (4, "rate_limit")):
        fault = {"kind": kind, "times": 0, "message": words, "headers": {"x-your-key": key}}
        for first in (0, 20):
            server.rule(contains=f"# {first + number:05d}", faults=[fault])


def run_with_the_block(stack: PrefectStack, work: Workplace, dataset: str) -> None:
    """As a worker's process does, whose results and logs go to the stack."""
    work.configure(limits=f'{LIMITS}api_key_secret = "{BLOCK}"\n')
    reports = {"EVALAKE_REPORTS": stack.environment["EVALAKE_REPORTS"]}
    with environment_kept(reports), stack.here(stack.folder / "home" / "storage"):
        assert work.run(dataset)["flow_state"] == "Failed"


def run_as_a_command(stack: PrefectStack, work: Workplace, dataset: str, collector: Collector) -> str:
    """With everything switched on that says something, in the loudest way."""
    work.configure()
    text = work.configuration.read_text()
    work.configuration.write_text(text.replace("api_base", f'api_key_env = "{VARIABLE}"\napi_base'))
    environment = {
        **stack.environment,
        VARIABLE: IN_THE_ENVIRONMENT,
        "EVALAKE_LOG_FORMAT": "json",
        **collector.environment,
        "PREFECT_LOGGING_LEVEL": "DEBUG",
        "LITELLM_LOG": "DEBUG",
    }
    at = ("--lake", work.lake.uri)
    order = ("command_guard", "--models", MODEL, "--dataset", dataset, "--config", work.configuration, "--debug")
    ran = evalake("run", *order, *at, folder=work.folder, **environment)
    assert ran.returncode == 1, ran.stderr  # of each kind of error, some calls were given up on
    said = [ran]
    for command in (("metrics",), ("runs",), ("sql", "from replies", "--format", "json"), ("check",)):
        said.append(evalake_here(*command, *at, folder=work.folder))
    newest = work.rows(RUNS).sort("started_at")["run_id"][-1]
    said.append(evalake_here("report", newest, "--out", work.folder / "report", *at, folder=work.folder))
    assert [done.returncode for done in said[1:]] == [0] * 5, [done.stderr for done in said]
    return "".join(done.stdout + done.stderr for done in said)


def texts(folder: Path) -> Iterator[tuple[str, str]]:
    """Everything below a folder in words, with its place: files as they are, tables and databases unpacked."""
    for path, content in contents(folder):
        place = str(path.relative_to(folder))
        yield place, content.decode("utf-8", "replace")
        if path.suffix == ".parquet":
            yield f"{place} (rows)", json.dumps(pl.read_parquet(path).to_dicts(), default=str)
        elif path.suffix == ".db":
            yield f"{place} (rows)", _dump(path)


def _dump(database: Path) -> str:
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        tables = [name for (name,) in connection.execute("select name from sqlite_master where type = 'table'")]
        rows: list[Any] = [connection.execute(f'select * from "{table}"').fetchall() for table in tables]
    return str(rows)


def test_no_key_is_in_the_lake_its_logs_or_the_reports(planted: Planted) -> None:
    found = dict(texts(planted.folder))
    assert [place for place, text in found.items() if any(key in text for key in KEYS)] == []
    for table in (CALLS, RESULTS):
        assert any(place.startswith(f"lake/{table.table}/") and PROMPT in text for place, text in found.items())
    assert any("_delta_log" in place for place in found)
    assert any(place.startswith("report/") for place in found)


def test_no_key_is_in_prefects_database_results_and_logs(planted: Planted, stack: PrefectStack) -> None:
    found = dict(texts(stack.folder))
    assert [place for place, text in found.items() if any(key in text for key in KEYS)] == []
    (database,) = [text for place, text in found.items() if place.endswith("prefect.db (rows)")]
    assert BLOCK in database  # the block is there, and its value is not to be read
    assert "calls were given up on" in database  # so are logs and states of the runs
    results = [text for place, text in found.items() if "/storage/" in place]
    assert results  # of batches, which hold no reply
    assert not any("action" in text for text in results)


def test_no_key_is_in_what_was_said_or_sent(planted: Planted) -> None:
    sent = b"".join(planted.collector.bodies).decode("utf-8", "replace")
    assert "evalake.prompt_hash" in sent
    assert "HTTP 400: " in planted.said
    assert [key for key in KEYS for text in (planted.said, sent) if key in text] == []


def test_what_was_echoed_is_kept_without_the_keys(planted: Planted) -> None:
    rows = planted.work.rows(CALLS)
    replies = rows["response"].drop_nulls().to_list()
    assert rows.filter(pl.col("response").is_null())["finish_reason"].to_list() == ["content_filter"] * 2
    assert (len(replies), set(replies)) == (16, {BLOCKED.replace("KEY", "[redacted]")})
    failures = planted.work.rows(CALL_FAILURES)["message"].to_list()
    assert len(failures) == 6
    assert all("Incorrect key [redacted]" in message for message in failures)


def test_a_block_is_read_by_every_run(
    stack: PrefectStack, model_server: ModelServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model_server.rule(reply='{"action": "BLOCK"}')
    work = Workplace(tmp_path, model_server)
    work.configure(limits=f'{LIMITS}api_key_secret = "changing"\n')
    monkeypatch.setenv("EVALAKE_REPORTS", str(tmp_path / "reports"))
    with stack.here(tmp_path / "results"):
        for number, key in enumerate(("the-first-key-of-it", "the-second-key-of-it")):
            plant(stack, "changing", key)
            assert work.run(work.dataset(1, f"d{number}", first=number))["state"] == "completed"
    assert [seen.authorization for seen in model_server.seen] == [
        "Bearer the-first-key-of-it",
        "Bearer the-second-key-of-it",
    ]


@pytest.fixture
def no_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """None starts in this process: what is refused beforehand needs none, and each would live as long as the tests."""
    monkeypatch.setattr("evalake.server.local.server.TemporaryServer", lambda: None)


@pytest.mark.usefixtures("no_server")
@pytest.mark.parametrize(
    ("has_server", "said"),
    [
        (True, "evalake: the Prefect server has no Secret block nowhere: create it under Blocks"),
        (False, "evalake: the Secret block nowhere is on a Prefect server: set PREFECT_API_URL"),
    ],
)
def test_a_block_that_cannot_be_read_is_one_clear_line(
    stack: PrefectStack, model_server: ModelServer, tmp_path: Path, has_server: bool, said: str
) -> None:
    work = Workplace(tmp_path, model_server)
    work.configure(limits=f'{LIMITS}api_key_secret = "nowhere"\n')
    order = ("run", "command_guard", "--models", MODEL, "--dataset", work.dataset(1), "--lake", work.lake.uri)
    with temporary_settings({PREFECT_API_URL: stack.url} if has_server else {}):
        where = {"PREFECT_API_URL": stack.url} if has_server else {}
        done = evalake_here(*order, "--config", work.configuration, folder=tmp_path, **where)
    assert done.returncode == 2
    assert [line for line in done.stderr.splitlines() if line.startswith("evalake: ")] == [said]
    assert not model_server.seen
