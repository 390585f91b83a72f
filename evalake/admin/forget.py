"""Forget: remove a person's or a customer's data from a lake, for good, while nothing writes to it.

What is to go is found first and kept, by hash, in the table `forgotten`; then it is removed table after table. So what
was cut off is taken up by the next call, and what was forgotten is not imported or asked about again.
"""

import json
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import polars as pl

from evalake.admin.maintain import require_idle
from evalake.contracts.contract import Contract
from evalake.contracts.engines.arrow import conform
from evalake.contracts.tables import CALLS, FORGOTTEN, QUARANTINE, SAMPLES
from evalake.core.errors import LakeError, UsageError
from evalake.core.files import is_run_name
from evalake.core.hashing import content_hash
from evalake.sdk.json_in_text import json_object
from evalake.storage.batch_jobs import UNDER_WAY, jobs
from evalake.storage.forget import (
    TEXTS,
    Choice,
    erase,
    files_to_go,
    forgotten_samples,
    holding,
    orphans,
    streamed,
    unfinished,
)
from evalake.storage.lake import Lake
from evalake.storage.landing import land
from evalake.storage.maintenance import require_no_links
from evalake.storage.migrations import require_current
from evalake.suites.registry import all_contracts, suite, suite_names, undeclared_tables
from evalake.tasks.runtime.artifacts import DEFAULT_REPORTS, reports_folder

# The samples that are to be forgotten, by hash, session or dataset.


def choose(lake: Lake, sample: str | None, session: str | None, dataset: str | None) -> Choice:
    """Find the samples that exactly one of the three names. Raises UsageError where it is not exactly one."""
    if sum(name is not None for name in (sample, session, dataset)) != 1 or "" in (sample, session, dataset):
        raise UsageError("say what to forget by exactly one of --sample, --session and --dataset")
    if sample is not None:
        which = pl.col("sample_hash") == sample
    elif session is not None:
        of_sessions = [name for name in suite_names(lake) if "session_id" in suite(name, lake).results.column]
        which = pl.col("suite").is_in(of_sessions) & (pl.col("sample_id") == session)
    else:
        which = pl.col("dataset") == dataset
    columns = ("sample_hash", "dataset", "dataset_version", "sample_id", *TEXTS)
    samples = lake.frame(SAMPLES).filter(which).select(columns).unique().collect()
    return Choice(samples, sample, session, dataset)


# The prompts that were asked about samples: by the tables that name both, by conversation, and by import.


def asked_about(lake: Lake, contracts: Iterable[Contract], samples: set[str]) -> tuple[set[str], set[str]]:
    """Find the prompts that were asked about these samples, and those that were asked about all others."""
    ours: set[str] = set()
    others: set[str] = set()
    for contract in contracts:
        if "sample_hash" not in contract.column:
            continue
        for name in ("prompt_hash", "judge_hash"):
            if name in contract.column:
                asked = lake.frame(contract).select("sample_hash", name).drop_nulls().unique().collect()
                mine = asked["sample_hash"].is_in(sorted(samples))
                ours.update(asked.filter(mine)[name])
                others.update(asked.filter(~mine)[name])
    return ours, others


def conversations(lake: Lake, prompts: set[str]) -> set[str]:
    """Find these prompts, and all earlier and later ones of the same conversations."""
    if not prompts:
        return set()
    whole: set[str] = set()
    begun: set[str] = set()
    for _, hashes in _beginnings(lake, pl.col("prompt_hash").is_in(sorted(prompts))):
        begun.update(hashes[:-1])
        whole.add(hashes[-1])
    connected = set(prompts)
    for prompt, hashes in _beginnings(lake):
        if hashes[-1] in begun or whole.intersection(hashes):
            connected.add(prompt)
    return connected


def imported(lake: Lake, choice: Choice) -> set[str]:
    """Find the prompt hashes of imported replies about these samples, whose requests name dataset and sample."""
    names = choice.names
    rows = lake.frame(CALLS).filter(pl.col("origin") == "import").select("prompt_hash", "request")
    requests = ((prompt, json.loads(request)) for prompt, request in streamed(rows))
    return {prompt for prompt, about in requests if (about.get("dataset"), about.get("sample_id")) in names}


def _beginnings(lake: Lake, which: pl.Expr | None = None) -> Iterator[tuple[str, list[str]]]:
    """Yield the prompt hash of each request in the ledger with a hash of each beginning of its messages."""
    calls = lake.frame(CALLS).filter(pl.col("origin") == "call")
    calls = calls if which is None else calls.filter(which)
    for prompt, request in streamed(calls.select("prompt_hash", "request")):
        if messages := json.loads(request).get("messages"):
            yield prompt, [content_hash(messages[:length]) for length in range(1, len(messages) + 1)]


# Refused lines in quarantine that are about samples: by their hash, their text or their name.


SHORTEST_TEXT = 12  # characters of an input that is looked for in refused lines: "ls" stands in many


def refused(lake: Lake, choice: Choice, kept: Collection[str]) -> set[str]:
    """Find the keys of rows in quarantine that hold a sample's hash, its input, a line of that, or its name."""
    texts = _chosen_texts(choice)
    # Other lines of a dataset version may be about other people
    versions = set() if _shares_versions(lake, choice) else set(choice.samples["dataset_version"])
    keys = holding(lake, choice, kept, lake.frame(QUARANTINE).select(key="row_key", text="payload"))
    for key, batch, payload in streamed(lake.frame(QUARANTINE).select("row_key", "batch_id", "payload")):
        if batch.rpartition(":")[2] in versions or _names(payload, choice) or any(text in payload for text in texts):
            keys.add(key)
    return keys


def _chosen_texts(choice: Choice) -> set[str]:
    inputs = {text for text in choice.samples["input"] if len(text) >= SHORTEST_TEXT}
    texts = {*choice.hashes, *inputs, *(json.dumps(text)[1:-1] for text in inputs)}
    texts |= {json.dumps(text, ensure_ascii=False)[1:-1] for text in inputs}
    session = choice.session
    return texts | ({session} if session and len(session) >= SHORTEST_TEXT else set())


def _shares_versions(lake: Lake, choice: Choice) -> bool:
    """Tell whether the dataset versions of the samples hold other samples, too."""
    of_versions = pl.col("dataset_version").is_in(choice.samples["dataset_version"].unique().to_list())
    other = ~pl.col("sample_hash").is_in(sorted(choice.hashes))
    return bool(lake.frame(SAMPLES).filter(of_versions, other).select(pl.len()).collect().item())


def _names(payload: str, choice: Choice) -> bool:
    """Tell whether a refused line is JSON that names one of the samples, or the session or dataset to forget."""
    if (value := json_object(payload)) is None:
        return False
    about = ((choice.dataset, value.get("dataset")), (choice.session, value.get("session_id")))
    if any(chosen is not None and chosen == named for chosen, named in about):
        return True
    return any(value.get("sample_id") == name and value.get("dataset", of) == of for of, name in choice.names)


# The rows of every table that go when samples are forgotten, by the values of one column of each table.


Hashes = dict[str, set[str]]  # by table, the values of its identifying column


def rows_of(lake: Lake, contracts: Sequence[Contract], choice: Choice) -> tuple[Hashes, int, int]:
    """Find everything that was made of the samples, by table, and count shared and orphan calls as `Forgotten` does."""
    prompts, kept = asked_about(lake, contracts, choice.hashes)
    shared = prompts & kept
    told_by_key = conversations(lake, prompts) | imported(lake, choice)
    told_by_key -= kept | conversations(lake, shared)
    found_by_text = orphans(lake, choice, told_by_key, kept)
    gone = told_by_key | found_by_text
    wanted: Hashes = {SAMPLES.table: choice.hashes, **_beside_results(lake, choice.hashes)}
    for contract in contracts:
        column = column_of(contract)
        if column == "sample_hash":
            wanted[contract.table] = _there(lake, contract, choice.hashes)
        elif column == "prompt_hash":
            wanted[contract.table] = _there(lake, contract, gone)
        elif contract is QUARANTINE:
            wanted[contract.table] = refused(lake, choice, kept)
    return {table: hashes for table, hashes in wanted.items() if hashes}, len(shared), len(found_by_text)


def column_of(contract: Contract) -> str:
    """Name the column by whose values rows of a table are forgotten."""
    for name in ("sample_hash", "prompt_hash"):
        if name in contract.column:
            return name
    return "row_key" if contract is QUARANTINE else contract.key[0]


def count_rows(lake: Lake, contracts: Iterable[Contract], wanted: Mapping[str, set[str]]) -> dict[str, int]:
    """Count the rows of each table that go."""
    return {
        contract.table: int(_rows(lake, contract, hashes).select(pl.len()).collect().item())
        for contract in contracts
        if (hashes := wanted.get(contract.table))
    }


def _rows(lake: Lake, contract: Contract, hashes: set[str]) -> pl.LazyFrame:
    return lake.frame(contract).filter(pl.col(column_of(contract)).is_in(sorted(hashes)))


def _beside_results(lake: Lake, samples: set[str]) -> Hashes:
    """Find the rows of suites' further tables that name their result and not its sample."""
    wanted: Hashes = {}
    for name in suite_names(lake):
        results, *further = suite(name, lake).contracts
        for contract in further:
            column = column_of(contract)
            if column not in ("sample_hash", "prompt_hash"):
                rows = lake.frame(results).filter(pl.col("sample_hash").is_in(sorted(samples))).select(column).collect()
                wanted[contract.table] = _there(lake, contract, set(rows[column]))
    return wanted


def _there(lake: Lake, contract: Contract, hashes: set[str]) -> set[str]:
    """Select the hashes that the table has."""
    column = column_of(contract)
    return set(_rows(lake, contract, hashes).select(column).unique().collect()[column]) if hashes else set()


# Places outside of the lake that may hold what was forgotten, for the user to look at.


ALWAYS = "backups made by other means, copies of reports, the sources of the datasets, Prefect's logs, providers"


def places(runs: Iterable[str] = ()) -> list[str]:
    """Name the places that keep texts: a backup, reports of the runs, task results of Prefect."""
    named = []
    if backup := os.environ.get("EVALAKE_BACKUP"):
        named.append(f"the backup {backup} (EVALAKE_BACKUP): back up to a new place, and delete this one")
    folders = dict.fromkeys((reports_folder().resolve(), Path(DEFAULT_REPORTS).resolve()))
    for report in (folder / run for folder in folders for run in sorted(filter(is_run_name, runs))):
        if report.exists():
            named.append(f"{report}: the report of a run with it; delete it, `evalake metrics` has its numbers")
    home = Path(os.environ.get("PREFECT_HOME") or Path.home() / ".prefect")
    if (results := Path(os.environ.get("PREFECT_LOCAL_STORAGE_PATH") or home / "storage")).exists():
        named.append(f"{results}: results of Prefect tasks; older versions kept replies in them")
    return [*named, ALWAYS]


def runs_of(lake: Lake, contracts: Iterable[Contract], samples: Iterable[str]) -> set[str]:
    """Find the runs that have an item or a result of these samples."""
    hashes = sorted(samples)
    runs: set[str] = set()
    for contract in contracts:
        if "sample_hash" in contract.column:
            rows = lake.frame(contract).filter(pl.col("sample_hash").is_in(hashes))
            for name in ("run_id", "landed_by_run"):
                if name in contract.column:
                    runs.update(rows.select(name).unique().collect()[name])
    return runs


@dataclass(frozen=True)
class Forgotten:
    """The removed rows, or with a dry run those that would be removed."""

    samples: set[str]
    rows: dict[str, int]  # by table
    shared_calls: int  # prompts that stay, for kept samples have the same
    orphan_calls: int  # prompts that no result names any more, found by the samples' text in them
    look_at: list[str]  # places outside of the lake that may hold it
    files: tuple[str, ...] = ()  # with a dry run, those that would be removed, by their path within the lake


def forget(
    lake: Lake,
    *,
    sample: str | None = None,
    session: str | None = None,
    dataset: str | None = None,
    dry_run: bool = False,
) -> Forgotten:
    """Remove samples and all that was made of them; exactly one of the three says which.

    Goes on with what an earlier call was cut off from, too. Raises UsageError where the lake has nothing of that name,
    LakeError while a run is under way or a batch job is open, where the folder of a table holds links, or where a table
    that no suite here declares has rows of them.
    """
    choice = choose(lake, sample, session, dataset)
    _require_idle(lake)
    contracts = all_contracts(lake)
    require_current(lake, contracts)
    wanted, shared_calls, orphan_calls = rows_of(lake, contracts, choice)
    for table, hashes in unfinished(lake).items():
        wanted.setdefault(table, set()).update(hashes)
    if not any(wanted.values()):
        if sample is not None and sample in forgotten_samples(lake):
            raise UsageError(f"the sample {sample[:12]} was forgotten already")
        given = {"sample": sample, "session": session, "dataset": dataset}
        named = " or ".join(f"{what} {name!r}" for what, name in given.items() if name is not None)
        lists = "`evalake sql 'select * from samples'` lists the samples"
        raise UsageError(f"the lake {lake.uri} has no {named}: {lists}")
    samples = wanted.get(SAMPLES.table, set())
    undeclared = undeclared_tables(lake)
    _require_no_rows(lake, undeclared, samples)
    look_at = [
        *(
            f"the table {table} of this lake, which no suite here declares: look for the data in it"
            for table in undeclared
        ),
        *places(runs_of(lake, contracts, samples)),
    ]
    counts = count_rows(lake, contracts, wanted)
    tables = list(_tables(lake, contracts, wanted))
    for table, _, _ in tables:  # before anything is removed
        require_no_links(lake, table)
    files: tuple[str, ...] = ()
    if dry_run:
        files = tuple(f"{table[0]}/{path}" for table in tables for path in files_to_go(lake, *table))
    else:
        _remove(lake, contracts, wanted)
    return Forgotten(samples, counts, shared_calls, orphan_calls, look_at, files)


def _require_idle(lake: Lake) -> None:
    """Raise LakeError while a run is under way, or replies of a batch job may come, which would bring texts back."""
    require_idle(lake, "forget")
    if waiting := sorted({job.run_id for job in jobs(lake, pl.col("state").is_in(UNDER_WAY))}):
        raise LakeError(
            f"the lake {lake.uri} cannot forget while batch jobs are open ({', '.join(waiting[:3])}): wait for their "
            "end, or `evalake cancel RUN`; then continue the run, or run the flow collect, which lands their replies"
        )


def _require_no_rows(lake: Lake, undeclared: Iterable[str], samples: set[str]) -> None:
    """Raise LakeError where rows of samples are in a table that no suite here declares: they would stay there."""
    for name in undeclared:
        table = lake.find(name)
        if table is not None and "sample_hash" in {field.name for field in table.schema().fields}:
            rows = pl.scan_delta(table).filter(pl.col("sample_hash").is_in(sorted(samples)))
            if rows.head(1).collect().height:
                raise LakeError(
                    f"the table {name} of the lake {lake.uri} holds these samples, but no installed suite declares it: "
                    "forget them where its suite is installed"
                )


def _tables(lake: Lake, contracts: Iterable[Contract], wanted: Hashes) -> Iterator[tuple[str, str, set[str]]]:
    """Yield name, column and values of every table that rows are removed from, former ones before the present."""
    for contract in contracts:
        if going := wanted.get(contract.table):
            column = column_of(contract)
            for former in contract.former_tables:
                if (old := lake.find(former)) and column in {field.name for field in old.schema().fields}:
                    yield former, column, going
            yield contract.table, column, going


def _remove(lake: Lake, contracts: Iterable[Contract], wanted: Hashes) -> None:
    now = datetime.now(UTC)
    _note(lake, ((table, each, now, None) for table, hashes in wanted.items() for each in hashes))
    _require_idle(lake)  # a run that begins from now on finds the note, and is refused
    present = {contract.table for contract in contracts}
    for table, column, going in list(_tables(lake, contracts, wanted)):
        version = erase(lake, table, column, going)
        if table in present:
            _note(lake, ((table, each, now, version) for each in going))


def _note(lake: Lake, rows: Iterable[tuple[str, str, datetime, int | None]]) -> None:
    land(lake, FORGOTTEN, conform([dict(zip(FORGOTTEN.column, row, strict=True)) for row in rows], FORGOTTEN))
