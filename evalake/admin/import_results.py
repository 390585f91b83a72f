"""Import: recorded results take the way of a row from the reply on, as if their calls had just been answered."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from datetime import UTC, datetime
from operator import attrgetter
from pathlib import Path
from typing import Any

from evalake.admin.recorded_files import UNREADABLE, Read, identity, of_folders, read_files
from evalake.contracts.contract import Row
from evalake.contracts.tables import RUNS
from evalake.core.configuration import IMPORT, UNKNOWN, Configuration
from evalake.core.errors import EvalakeError, LakeError, SourceError, UsageError
from evalake.core.hashing import canonical_json, content_hash
from evalake.core.redaction import redact
from evalake.labels.sheets import land_given, land_labels
from evalake.models.cost import Tokens, cost_usd
from evalake.models.endpoints import endpoint_at
from evalake.models.request import Reply
from evalake.reports.coverage import DEFAULT, Coverage, Tolerance, problems, remarks
from evalake.reports.wording import count_of
from evalake.sdk import Dataset, Labels, Recorded, Suite
from evalake.sdk.json_in_text import json_object
from evalake.sdk.tool_results import ToolResults, WholeCall
from evalake.storage import ledger
from evalake.storage.forget import forgotten_samples
from evalake.storage.lake import Lake
from evalake.storage.ledger import Key, LedgerIndex
from evalake.suites.declared.imported import absent, merge
from evalake.suites.registry import suite_of_task
from evalake.tasks.collect import derive
from evalake.tasks.converse import Conversation, call_row, exchange_of
from evalake.tasks.coverage import Source, cover, of_sources, save_coverage, with_absent, with_refused
from evalake.tasks.extract import extract, read_datasets, without_forgotten
from evalake.tasks.measure import measure
from evalake.tasks.plan import write_manifest
from evalake.tasks.preflight import require_tables
from evalake.tasks.publish import Published, publish_conversations, quarantine
from evalake.tasks.runtime import runs
from evalake.tasks.runtime.context import RunContext
from evalake.tasks.runtime.runs import Run, Tally

DIFFER = "differ from those the lake held of the same items, which stand"
ELSEWHERE = "and which the figures are of: import the file into another lake (--lake) to see its own"


def import_recorded(
    lake: Lake,
    suite: Suite,
    files: Sequence[Path],
    configuration: Configuration | None = None,
    labels: Mapping[str, Any] = runs.NO_LABELS,
    tolerance: Tolerance = DEFAULT,
) -> str:
    """Import files of recorded results as one run, named by their content; returns its id.

    Importing them again changes nothing but the metrics, where the suite's options are others. Bad lines go to
    quarantine with file and line number, the rest goes on. Raises SourceError where a file cannot be read, or holds not
    one good line, OlderLakeError where the lake is to be migrated. The run is incomplete where anything was refused, or
    more is missing than `tolerance` allows.
    """
    require_tables(lake, suite)
    said = {"files": [file.name for file in files]}
    return _land(lake, suite, read_files(suite, files), configuration or Configuration(), {**said, **labels}, tolerance)


def _land(
    lake: Lake,
    suite: Suite,
    read: Read,
    configuration: Configuration,
    parameters: Mapping[str, Any],
    tolerance: Tolerance,
    calls: Sequence[tuple[int, WholeCall]] = (),
) -> str:
    """Land the read results as one run, and its whole calls, each with its replicate; returns the run's id."""
    started = datetime.now(UTC)
    read = _without_forgotten(lake, read)
    datasets = _datasets(read.recorded)
    content = [[identity(line) for line in read.recorded], [line.payload for line in read.refused]]
    parameters = {**of_folders(read), **parameters, **asdict(tolerance)}
    run = _begun(lake, suite, content, datasets, parameters, started, read.recorded)
    return _carry_out(
        lake, run, lambda: _land_results(lake, suite, run, datasets, read, configuration, tolerance, calls)
    )


def _land_results(
    lake: Lake,
    suite: Suite,
    run: Run,
    datasets: Sequence[Dataset],
    read: Read,
    configuration: Configuration,
    tolerance: Tolerance,
    calls: Sequence[tuple[int, WholeCall]],
) -> Run:
    """Land the rows of a begun run; returns it as it has ended."""
    run_id, context = run.run_id, RunContext(run.run_id, suite.name, lake, configuration)
    lake.ensure(suite.results)  # which says what the suite is, where it has no code
    refused = quarantine(lake, run_id, run_id, read.refused)
    refused += extract(lake, run_id, datasets).quarantined
    conversations = _keep_replies(context, read.recorded)
    _keep_calls(context, calls)
    write_manifest(context, conversations, run.dataset_versions)
    published = publish_conversations(context, conversations, "import") + derive(context, "import")
    replies = sum(len(conversation.answered) for conversation in conversations)
    tally = Tally(calls_from_ledger=replies, rows_already_present=read.repeated, rows_quarantined=refused)
    tally += Tally(items_done=len(conversations))
    labelled = land_labels(lake, Labels(read.labels, (), 0), recorded=True) if read.labels else Published()
    differ = _differing(read.recorded, conversations)
    held = [f"{differ} imported results {DIFFER}"] if differ else []
    snapshot_id = measure(context, held)
    tally += published.tally
    covered = _covered(lake, suite, run, read)
    lacks = [*(f"{each} {ELSEWHERE}" for each in held), *problems(covered, tolerance)]
    message = _message(read, published, labelled, [*lacks, *remarks(covered, tolerance)])
    state = "incomplete" if lacks or tally.rows_quarantined else "completed"
    said = {**run.parameters, "differ": differ}
    return run.ended(state, tally=tally, snapshot_id=snapshot_id, message=message, parameters=said)


def _begun(
    lake: Lake,
    suite: Suite,
    content: Sequence[Any],
    datasets: Sequence[Dataset],
    parameters: Mapping[str, Any],
    started: datetime,
    recorded: Sequence[Recorded] = (),
) -> Run:
    """Save a run, named by its content, before its rows; one that is repeated keeps its snapshot meanwhile."""
    run_id = f"import-{content_hash([suite.name, *content])[:12]}"
    known = lake.frame(RUNS).filter(run_id=run_id).select("snapshot_id").collect()["snapshot_id"]
    run = Run(
        run_id=run_id,
        suite=suite.name,
        origin="import",
        parameters=parameters,
        dataset_versions=runs.versions_of(datasets),
        models=sorted({line.item.model for line in recorded}),
        judges=sorted({line.item.judge for line in recorded if line.item.judge}),
        samples=sum(len(dataset.samples) for dataset in datasets),
        items=len(recorded),
        started_at=started,
        snapshot_id=next(iter(known), None),
    )
    runs.save(lake, run)
    return run


def _carry_out(lake: Lake, run: Run, land_all: Callable[[], Run]) -> str:
    """Keep a begun run alive while its rows land, and save how it ended, by an error, too; returns its id."""
    try:
        with runs.alive(lake, run, Tally):
            ended = land_all()
    except BaseException as error:
        reason = str(error) if isinstance(error, EvalakeError) else f"{type(error).__name__}: {error}"
        with suppress(LakeError):  # its error is raised, and without heartbeats the run counts as lost
            runs.save(lake, run.ended("failed", message=f"{reason}; import it again"))
        raise
    runs.save(lake, ended)
    return run.run_id


def import_tool_results(
    lake: Lake,
    results: Sequence[ToolResults],
    suite: Suite | None = None,
    configuration: Configuration | None = None,
    labels: Mapping[str, Any] = runs.NO_LABELS,
    tolerance: Tolerance = DEFAULT,
) -> list[str]:
    """Import results of other tools, as one run of the suite, or one of each task's own; returns their ids.

    Raises UsageError where the suite takes no such results, SourceError where nothing can be imported.
    """
    by_suite: dict[str, tuple[Suite, list[ToolResults]]] = {}
    for each in results:
        own = suite or suite_of_task(each.task)
        by_suite.setdefault(own.name, (own, []))[1].append(each)
    return [
        _import_answers(lake, *own, configuration or Configuration(), labels, tolerance) for own in by_suite.values()
    ]


def _import_answers(
    lake: Lake,
    suite: Suite,
    results: Sequence[ToolResults],
    configuration: Configuration,
    labels: Mapping[str, Any],
    tolerance: Tolerance,
) -> str:
    if suite.data.read_answers is None:
        raise UsageError(f"{suite.name} takes no results of {results[0].tool}: leave out --suite")
    require_tables(lake, suite)
    answers, merged = merge(results)
    read = Read(absent=absent(results, answers))
    for where, recorded in suite.data.read_answers(answers):
        try:
            read.add(recorded, where)
        except SourceError as error:
            read.refuse(suite.results.table, where, error, recorded.replies[0].text or "")
    for each in results:
        for out in each.refused:
            read.refuse(suite.results.table, out.where, out.reason, out.payload or "")
    if not read.recorded:
        raise SourceError(f"{', '.join(sorted({each.task for each in results}))} holds no answer to import")
    parameters = {
        "tools": sorted({each.tool for each in results}),
        "evaluations": [each.evaluation for each in results],
        "headlines": [asdict(headline) for each in results for headline in each.headlines],
        "left_over": dict(sum((Counter(each.left_over) for each in results), merged)),
        **labels,
    }
    calls = [(each.sample.repeat, call) for each in answers for call in each.sample.calls]
    return _land(lake, suite, read, configuration, parameters, tolerance, calls)


def _without_forgotten(lake: Lake, read: Read) -> Read:
    """Leave out the results of samples that were forgotten, and count them."""
    forgotten = forgotten_samples(lake)
    kept = [line for line in read.recorded if line.item.sample.sample_hash not in forgotten]
    gone = len(read.recorded) - len(kept)
    if gone and not kept:
        raise SourceError("every sample that the files have results of was forgotten: nothing is imported")
    labels = [label for label in read.labels if label["sample_hash"] not in forgotten]
    return replace(read, recorded=kept, labels=labels, forgotten=gone)


def _datasets(recorded: Sequence[Recorded]) -> tuple[Dataset, ...]:
    by_name: dict[str, dict[str, Any]] = {}
    for line in recorded:
        sample = line.item.sample
        by_name.setdefault(sample.dataset, {}).setdefault(sample.sample_hash, sample)
    return tuple(Dataset(name, tuple(samples.values())) for name, samples in sorted(by_name.items()))


def _keep_replies(context: RunContext, recorded: Sequence[Recorded]) -> list[Conversation]:
    """Put the replies into the ledger, and build conversations from it.

    The first reply of a key counts, but an answer takes the place of an error, like that of a log that was unfinished,
    and of a judge's line without the audit that it judged.
    """
    index = LedgerIndex.read(context.lake)
    answers_first = sorted(recorded, key=lambda line: line.replies[0].text is None)
    lines = {
        Key(prompt_hash, line.item.replicate, IMPORT): (line, place)
        for line in reversed(answers_first)
        for place, prompt_hash in enumerate(line.prompt_hashes)
    }
    known = index.fetch([key._replace(endpoint=endpoint) for key in lines for endpoint in (IMPORT, UNKNOWN)])
    held = {key: known.get(key) or known.get(key._replace(endpoint=UNKNOWN)) for key in lines}
    kept: dict[Key, Row] = {}
    for key, (line, place) in lines.items():
        earlier, first = held[key], held[key._replace(prompt_hash=line.prompt_hashes[0])]
        if earlier is None:
            kept[key] = _row(context, line, place, key, index.next_revision(key))
        elif any(
            of is not None and of["error_kind"] is not None and line.replies[at].error_kind is None
            for at, of in ((0, first), (place, earlier))
        ):
            kept[key] = _row(context, line, place, key, earlier["reply_revision"] + 1)
        else:
            kept[key] = earlier
    if fresh := [row for row in reversed(kept.values()) if "ledger_version" not in row]:
        ledger.append(context.lake, fresh)
    return [
        Conversation(
            line.item,
            line.prompt_hashes[0],
            [exchange_of(kept[Key(h, line.item.replicate, IMPORT)]) for h in line.prompt_hashes],
        )
        for line in recorded
    ]


def _keep_calls(context: RunContext, calls: Sequence[tuple[int, WholeCall]]) -> None:
    """Put calls with whole requests into the ledger, like those of a run; earlier replies stay."""
    index, run_id = LedgerIndex.read(context.lake), context.run_id
    asked = {
        Key(call.request.prompt_hash, replicate, endpoint_at(call.request.model, call.address)): call
        for replicate, call in reversed(calls)
    }
    known = index.fetch(list(asked))
    fresh = []
    for key, call in reversed(asked.items()):
        if key not in known:
            asks, revision = call.request.canonical.decode(), index.next_revision(key)
            row = call_row(call.reply, key, call.request.model, asks, revision=revision, origin="import", run_id=run_id)
            fresh.append(row)
    if fresh:
        ledger.append(context.lake, fresh)


def _differing(recorded: Sequence[Recorded], conversations: Sequence[Conversation]) -> int:
    """Count the lines that say otherwise than the lake, whose first replies stand; no reply says nothing."""
    content = attrgetter("text", "finish_reason", "error_kind")
    kept = ([each.outcome for each in of.answered] for of in conversations)
    pairs = (zip(line.replies, of, strict=True) for line, of in zip(recorded, kept, strict=True))
    return sum(
        any(isinstance(of, Reply) and content(of) != content(given) for given, of in each if any(content(given)))
        for each in pairs
    )


def _row(context: RunContext, line: Recorded, place: int, key: Key, revision: int) -> dict[str, Any]:
    reply = line.replies[place]
    asked = line.item.judge if place and line.item.judge else line.item.model
    identity = {"dataset": line.item.sample.dataset, "sample_id": line.item.sample.sample_id, "model": asked}
    request = line.requests[place] if line.requests else canonical_json(identity).decode()
    row = call_row(reply, key, asked, request, revision=revision, origin="import", run_id=context.run_id)
    return {**row, "cost_usd": _cost(asked, reply)}


def _cost(model: str, reply: Reply) -> float | None:
    """Compute a reply's cost: as recorded, or by the price table; null where no reply came, or the price is unknown."""
    if reply.cost_usd is not None:
        return reply.cost_usd
    if reply.text is None and reply.output_tokens is None:
        return None
    tokens = Tokens(reply.input_tokens, reply.output_tokens, reply.cached_input_tokens, reply.reasoning_tokens)
    return cost_usd(model, tokens)


def _covered(lake: Lake, suite: Suite, run: Run, read: Read) -> list[Coverage]:
    """Count the outcomes of items and of refused lines, and keep the counts."""
    left_out = Counter({"repeated": read.repeated, "forgotten": read.forgotten})
    left_out += Counter({reason: len(places) for reason, places in read.skipped.items()})
    for each in read.refused:  # of folders, these are among the skipped, too
        if (reason := each.reason.partition(": ")[2]) in read.skipped:
            left_out[reason] -= 1
    pieces = (json_object(each.payload) or {} for each in read.refused)
    refused = ({**each, "label": suite.data.stated_label(each)} for each in pieces)
    items = [each.item for each in read.recorded]
    labels = {(item.model, item.judge or "", item.sample.dataset, item.sample.label) for item in items}
    covered = with_refused(cover(lake, suite, run.run_id, run.judges), refused, UNREADABLE, +left_out, labels)
    covered = with_absent(covered, read.absent)
    save_coverage(lake, run.run_id, covered)
    return covered


def _message(read: Read, published: Published, labelled: Published, lacks: Sequence[str]) -> str | None:
    sentences = []
    if read.refused:
        what = count_of(len(read.refused), "file" if read.files else "line")
        sentences.append(f"{what} could not be read, the first: {read.refused[0].reason}")
    if read.forgotten:
        sentences.append(f"{read.forgotten} results are of samples that were forgotten, and left out")
    if broken := published.quarantined + labelled.quarantined:
        sentences.append(f"{broken} rows break their contract (`select rules, origin from quarantine` tells which)")
    return "; ".join([*sentences, *lacks]) or None


# Import of samples: a suite that has no recorded results takes in the material it will judge.


def import_samples(lake: Lake, suite: Suite, sources: Sequence[str], labels: Mapping[str, Any] = runs.NO_LABELS) -> str:
    """Land the samples of all sources as one run without items, named by their content; returns its id.

    Raises SourceError where a source cannot be read or is empty, OlderLakeError where the lake is to be migrated.
    """
    started = datetime.now(UTC)
    require_tables(lake, suite)
    datasets = without_forgotten(lake, read_datasets(suite, sources, lake))
    return land_samples(lake, suite, datasets, {"files": [redact(source) for source in sources], **labels}, started)


def land_samples(
    lake: Lake, suite: Suite, datasets: Sequence[Dataset], parameters: Mapping[str, Any], started: datetime
) -> str:
    """Land the samples of datasets as one run without items, named by their content; returns its id."""
    run = _begun(lake, suite, [[dataset.version for dataset in datasets]], datasets, parameters, started)
    return _carry_out(lake, run, lambda: _land_datasets(lake, suite, run, datasets))


def _land_datasets(lake: Lake, suite: Suite, run: Run, datasets: Sequence[Dataset]) -> Run:
    """Land the rows of a begun run without items; returns it as it has ended."""
    extracted = extract(lake, run.run_id, datasets)
    for dataset in datasets:
        land_given(lake, suite, dataset.labels, {each.sample_id: each.sample_hash for each in dataset.samples})
    covered = of_sources(map(Source.of, datasets))
    save_coverage(lake, run.run_id, covered)
    skipped = ", ".join(f"{count} {reason}" for reason, count in extracted.skipped.items())
    message = f"left out of the sources: {skipped}" if skipped else None
    tally = Tally(rows_quarantined=extracted.quarantined)
    state = "incomplete" if tally.rows_quarantined or problems(covered, DEFAULT) else "completed"
    return run.ended(state, tally=tally, message=message)
