"""A lake in a bucket: commands and every part of the store against an S3 server over HTTP."""

import json
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import polars as pl
import pytest

from evalake.contracts.tables import CALLS
from evalake.core.errors import LakeError, QueryError
from evalake.storage import ledger
from evalake.storage.cached_table import inventory
from evalake.storage.integrity import find_tampering, inspect
from evalake.storage.lake import Lake
from evalake.storage.landing import Landed, land
from evalake.storage.ledger import LedgerIndex, LedgerWriter
from evalake.storage.maintenance import maintain
from evalake.storage.migrations import migrate, pending
from evalake.storage.secret import ensure_secret, read_secret
from evalake.storage.sql.query import query
from evalake.suites.command_guard.contract import RESULTS
from evalake.suites.registry import all_contracts
from tests.e2e.buckets import SECRET, Bucket, bucket_of
from tests.golden.lakes.archives import ARCHIVES, unpack
from tests.integration.cli.command import evalake, evalake_here
from tests.integration.flows.workplace import MODEL, Workplace
from tests.integration.storage.rows import TOYS, call, key_of, toy
from tests.integration.storage.sql.engine import answered

pytestmark = pytest.mark.e2e

# By a column more, by other rows, by other names of columns and of the table
MIGRATED = ("calls", "human_labels", "judge_canaries", "judge_epochs")


@pytest.fixture(scope="module")
def bucket(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bucket]:
    with bucket_of(tmp_path_factory.mktemp("bucket")) as running:
        yield running


@pytest.fixture
def lake(bucket: Bucket, request: pytest.FixtureRequest) -> Lake:
    """A prefix of its own for every test."""
    return Lake(f"s3://lake/{abs(hash(request.node.nodeid))}/deep", bucket.options)


def toys(*keys: str, state: str = "final") -> pl.DataFrame:
    return pl.DataFrame([toy(key, model="openai/gpt é", state=state) for key in keys])


def test_rows_land_once_and_are_read_at_any_version(lake: Lake) -> None:
    assert land(lake, TOYS, toys("a", "b")) == Landed(inserted=2)
    version = lake.version(TOYS)
    assert land(lake, TOYS, toys("b", "c")) == Landed(inserted=1, already_present=1)
    assert sorted(lake.frame(TOYS).collect()["key"]) == ["a", "b", "c"]
    assert sorted(lake.frame(TOYS, version).collect()["key"]) == ["a", "b"]
    assert inventory(lake, [TOYS, CALLS])["rows"].to_list() == [3]


def test_the_secret_is_made_once_whoever_asks_at_the_same_moment(lake: Lake) -> None:
    assert read_secret(lake) is None
    with ThreadPoolExecutor(8) as makers:
        made = set(makers.map(lambda _: ensure_secret(lake), range(8)))
    assert made == {read_secret(lake)}


def test_the_ledger_and_its_index(lake: Lake) -> None:
    with LedgerWriter(lake) as writer:
        for n in range(30):
            writer.put(call(n))
    ledger.append(lake, [call(0, response="later")])
    index = LedgerIndex.read(lake)
    ledger.compact(lake)
    for known in (index, LedgerIndex.read(lake)):
        found = known.fetch([key_of(call(n)) for n in range(40)])
        assert {row["response"] for row in found.values()} == {"yes"}
        assert len(found) == 30


def test_maintenance_and_integrity(lake: Lake, bucket: Bucket) -> None:
    for key in "abc":
        land(lake, TOYS, toys(key))
    (done,) = maintain(lake, [TOYS], retention_hours=0)
    assert (done.files_before, done.files_after, done.files_removed) == (3, 1, 3)
    assert inspect(lake, TOYS).damage == list(find_tampering(lake, TOYS)) == []
    prefix = lake.uri.removeprefix("s3://lake/")
    (data,) = [key for key in bucket.keys(f"{prefix}/toys/model=") if key.endswith(".parquet")]
    bucket.client.delete_object(Bucket="lake", Key=data)
    (gone,) = inspect(lake, TOYS).damage
    assert data.rsplit("/", 1)[1] in gone.problem
    bucket.client.delete_object(Bucket="lake", Key=f"{prefix}/toys/_delta_log/{2:020}.json")
    (missing,) = inspect(lake, TOYS).damage
    assert f"{2:020}.json" in missing.problem


def test_an_older_lake_is_migrated_as_one_in_a_folder_is(bucket: Bucket, tmp_path: Path) -> None:
    unpack(ARCHIVES[0], tmp_path)
    here, there = Lake(str(tmp_path / "lake")), Lake("s3://lake/older", bucket.options)
    for table in Path(here.uri).iterdir():
        if table.name not in MIGRATED:
            shutil.rmtree(table)
    for path in Path(here.uri).rglob("*"):
        if path.is_file():
            bucket.client.put_object(Bucket="lake", Key=f"older/{path.relative_to(here.uri)}", Body=path.read_bytes())
    contracts = [each for each in all_contracts() if {each.table, *each.former_tables} & {*MIGRATED}]
    for lake in (there, here):
        assert pending(lake, contracts)
        migrate(lake, contracts)
        assert pending(lake, contracts) == []
    assert len(commits_below(bucket, "older")) == len(list(Path(here.uri).glob("*/_delta_log/*.json")))
    for contract in contracts:
        rows, expected = (lake.frame(contract).collect() for lake in (there, here))
        assert rows.sort(rows.columns).equals(expected.sort(rows.columns)), contract.table


def commits_below(bucket: Bucket, prefix: str) -> list[str]:
    """The commits to all tables of a lake in the bucket."""
    return [key for key in bucket.keys(f"{prefix}/") if "/_delta_log/" in key and key.endswith(".json")]


def test_queries_cannot_reach_the_bucket_themselves(lake: Lake, bucket: Bucket) -> None:
    """What else is out of their reach: tests/integration/storage/sql/test_process.py."""
    land(lake, TOYS, toys("a"))
    before = bucket.keys("")
    for sql in (
        "select * from read_parquet('s3://lake/x/*.parquet')",
        "copy (select 1) to 's3://lake/out.parquet'",
        "create secret (type s3, key_id 'a', secret 'b')",
    ):
        with pytest.raises(QueryError):
            answered(lake, [TOYS], sql)
    assert bucket.keys("") == before
    assert query(lake, [TOYS], "select count(*) as n from toys")["n"].to_list() == [1]


def test_a_bucket_that_is_not_there_is_named_in_one_line_without_keys(bucket: Bucket) -> None:
    with pytest.raises(LakeError, match="s3://nowhere/lake") as refusal:
        Lake("s3://nowhere/lake", bucket.options).exists(TOYS)
    assert "\n" not in str(refusal.value)
    assert SECRET not in str(refusal.value)
    assert SECRET not in repr(Lake("s3://nowhere/lake", bucket.options))


def test_the_commands_work_on_a_bucket_and_leave_no_key_behind(
    bucket: Bucket, prefect_api: str, work: Workplace, tmp_path: Path
) -> None:
    """The first run is a process of its own; what follows is called here. Maintenance is above."""
    commands = Commands(bucket, "runs/deep", tmp_path, {"PREFECT_API_URL": prefect_api, **bucket.options})
    told = ("--config", str(work.configuration))
    order = ("run", "command_guard", "--models", MODEL, "--dataset", work.dataset(5), "--json", *told)
    first, second = json.loads(commands.run(*order, by=evalake)), json.loads(commands.run(*order))
    assert (first["state"], first["calls"]) == ("completed", {"made": 5, "from_ledger": 0, "failed": 0})
    assert (second["state"], second["calls"]) == ("completed", {"made": 0, "from_ledger": 5, "failed": 0})
    assert second["rows"] == {"landed": 0, "already_present": 5, "quarantined": 0}
    assert work.asked() == 5
    verdicts = f"select verdict, count(*) as n from {RESULTS.table} group by verdict"
    assert json.loads(commands.run("sql", verdicts, "--format", "json")) == [{"verdict": "BLOCK", "n": 5}]
    assert json.loads(commands.run("check", "--json"))["healthy"] is True
    assert not commands.holding(SECRET)
    beside = {"commands.jsonl", "evalake.toml", "evalake-reports"}  # and no lake
    assert {path.name for path in tmp_path.iterdir()} == beside


Command = Callable[..., "subprocess.CompletedProcess[str]"]


class Commands:
    """Commands with one lake of the bucket, and what they said."""

    def __init__(self, bucket: Bucket, prefix: str, folder: Path, environment: Mapping[str, str]) -> None:
        self._bucket, self._prefix, self._folder = bucket, prefix, folder
        self._environment = {**environment, "EVALAKE_LAKE": f"s3://lake/{prefix}"}
        self._said: list[str] = []

    def run(self, *arguments: str, by: Command = evalake_here) -> str:
        """What a command printed, which must end well."""
        done = by(*arguments, folder=self._folder, **self._environment)
        assert done.returncode == 0, done.stdout + done.stderr
        self._said.append(done.stdout + done.stderr)
        return done.stdout

    def holding(self, secret: str) -> list[str]:
        """The objects of the lake in which a secret stands, and the output in which it does."""
        objects = self._bucket.keys(f"{self._prefix}/")
        assert objects
        client = self._bucket.client
        kept = {key: client.get_object(Bucket="lake", Key=key)["Body"].read() for key in objects}
        return [each for each in self._said if secret in each] + [key for key in kept if secret.encode() in kept[key]]
