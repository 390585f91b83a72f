"""Import: recorded results take the way of a row from the reply on, as if their calls had just been answered."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from evalake.core.configuration import IMPORT, UNKNOWN, Configuration
from evalake.core.errors import SourceError, UsageError
from evalake.core.files import LARGEST_IN_ALL, FileRefusedError, Files
from evalake.core.hashing import canonical_json, content_hash
from evalake.core.redaction import redact
from evalake.labels.sheets import land_given, land_labels
from evalake.models.cost import Tokens, cost_usd
from evalake.models.endpoints import endpoint_at
from evalake.models.request import Reply
from evalake.reports.coverage import DEFAULT, Coverage, Tolerance, problems, remarks
from evalake.sdk import Dataset, Labels, Recorded, RecordedFolder, Suite
from evalake.sdk.json_in_text import json_object
from evalake.sdk.tool_results import ToolResults, WholeCall
from evalake.storage import ledger
from evalake.storage.forget import forgotten_samples
from evalake.storage.lake import Lake
from evalake.storage.ledger import Key, LedgerIndex
from evalake.suites.declared.formats.merge import merge
from evalake.suites.registry import suite as find_suite
from evalake.suites.registry import suite_of_task
from evalake.tasks.collect import derive
from evalake.tasks.converse import Conversation, call_row, exchange_of
from evalake.tasks.coverage import Source, cover, of_sources, save_coverage, with_refused
from evalake.tasks.extract import extract, read_datasets, without_forgotten
from evalake.tasks.measure import measure
from evalake.tasks.plan import write_manifest
from evalake.tasks.preflight import require_tables
from evalake.tasks.publish import Published, Refused, publish_conversations, quarantine
from evalake.tasks.runtime import runs
from evalake.tasks.runtime.context import RunContext
from evalake.tasks.runtime.runs import Run, Tally

UNREADABLE = "could not be read"
"""Why a recorded line or file is refused, in words that are counted."""

MOST_NAMED = 5  # files that are named for one reason, where nothing could be read
LONGEST_LINE = 16 * 2**20  # characters; a longer line is refused, not read into memory again and again


@dataclass
class _Read:
    """What the files hold: good lines, bad ones with what is wrong with them, and how many said nothing new."""

    recorded: list[Recorded] = field(default_factory=list)
    refused: list[Refused] = field(default_factory=list)
    repeated: int = 0
    forgotten: int = 0
    labels: list[Mapping[str, Any]] = field(default_factory=list)
    files: dict[str, int] = field(default_factory=dict)  # of folders: how many of their files were read
    skipped: dict[str, list[str]] = field(default_factory=dict)  # by reason: where
    remarks: list[str] = field(default_factory=list)  # on folders


@dataclass
class _Contents:
    """What earlier lines said of a sample or an item, and where: a line may repeat it, but not say otherwise."""

    known: dict[tuple[Any, ...], tuple[str, str]] = field(default_factory=dict)

    def before(self, line: Recorded, where: str) -> bool:
        """Tell whether the line was there already. Raises SourceError where it contradicts an earlier one."""
        item, sample = line.item, line.item.sample
        about = (sample.dataset, sample.sample_id)
        self._agree(about, sample.sample_hash, where, f"another sample {sample.sample_id} of {sample.dataset}")
        asked = (*about, item.model, item.judge, item.prompt_type, item.replicate)
        return self._agree(asked, content_hash(_identity(line)), where, "another result for the same item")

    def _agree(self, about: tuple[Any, ...], content: str, where: str, other: str) -> bool:
        is_known = about in self.known
        earlier, place = self.known.setdefault(about, (content, where))
        if earlier != content:
            raise SourceError(f"{place} has {other}")
        return is_known


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
    return _land(lake, suite, _read(suite, files), configuration or Configuration(), {**said, **labels}, tolerance)


def _land(
    lake: Lake,
    suite: Suite,
    read: _Read,
    configuration: Configuration,
    parameters: Mapping[str, Any],
    tolerance: Tolerance,
    calls: Sequence[tuple[int, WholeCall]] = (),
) -> str:
    """Land what was read as one run, and its whole calls, each with its replicate; returns the run's id."""
    started = datetime.now(UTC)
    read = _without_forgotten(lake, read)
    datasets = _datasets(read.recorded)
    content = [[_identity(line) for line in read.recorded], [line.payload for line in read.refused]]
    run_id = f"import-{content_hash([suite.name, *content])[:12]}"
    context = RunContext(run_id, suite.name, lake, configuration)
    run = Run(
        run_id=run_id,
        suite=suite.name,
        origin="import",
        parameters={**_of_folders(read), **parameters, **asdict(tolerance)},
        dataset_versions=runs.versions_of(datasets),
        models=sorted({line.item.model for line in read.recorded}),
        judges=sorted({line.item.judge for line in read.recorded if line.item.judge}),
        samples=sum(len(dataset.samples) for dataset in datasets),
        items=len(read.recorded),
        started_at=started,
    )
    runs.save(lake, run)
    refused = quarantine(lake, run_id, run_id, read.refused)
    refused += extract(lake, run_id, datasets).quarantined
    conversations = _keep_replies(context, read.recorded)
    _keep_calls(context, calls)
    write_manifest(context, conversations, run.dataset_versions)
    published = publish_conversations(context, conversations, "import") + derive(context, "import")
    replies = sum(len(conversation.answered) for conversation in conversations)
    tally = Tally(calls_from_ledger=replies, rows_already_present=read.repeated, rows_quarantined=refused)
    tally += Tally(items_done=len(conversations))
    labelled = land_labels(lake, Labels(read.labels, (), 0)) if read.labels else Published()
    snapshot_id = measure(context, _overruled(read.recorded, conversations))
    tally += published.tally
    covered = _covered(lake, suite, run, read)
    lacks = problems(covered, tolerance)
    message = _message(read, published, labelled, [*lacks, *remarks(covered, tolerance)])
    state = "incomplete" if lacks or tally.rows_quarantined else "completed"
    runs.save(lake, run.ended(state, tally=tally, snapshot_id=snapshot_id, message=message))
    return run_id


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
    by_suite: dict[str, list[ToolResults]] = {}
    for each in results:
        by_suite.setdefault((suite or suite_of_task(each.task)).name, []).append(each)
    return [
        _import_answers(lake, suite or find_suite(name), own, configuration or Configuration(), labels, tolerance)
        for name, own in by_suite.items()
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
    read, contents = _Read(), _Contents()
    for where, recorded in suite.data.read_answers(answers):
        try:
            _add(recorded, where, read, contents)
        except SourceError as error:
            reply = recorded.replies[0].text or ""
            read.refused.append(Refused(suite.results.table, reply, ("recorded_line",), f"{where}: {error}", where))
    if not read.recorded:
        raise SourceError(f"{', '.join(sorted({each.task for each in results}))} holds no answer to import")
    left_over = sum((Counter(each.left_over) for each in results), merged)
    headlines = [asdict(headline) for each in results for headline in each.headlines]
    parameters = {
        "tools": sorted({each.tool for each in results}),
        "evaluations": [each.evaluation for each in results],
        "headlines": headlines,
        "left_over": dict(left_over),
        **labels,
    }
    calls = [(each.sample.repeat, call) for each in answers for call in each.sample.calls]
    return _land(lake, suite, read, configuration, parameters, tolerance, calls)


def _read(suite: Suite, files: Sequence[Path]) -> _Read:
    read, contents = _Read(), _Contents()
    for file in files:
        folder = suite.data.read_folder(file) if suite.data.read_folder is not None and file.is_dir() else None
        if folder is not None:
            _add_folder(suite, folder, read, contents)
        else:
            guarded = Files(file, LARGEST_IN_ALL)
            for table in _tables(file):
                try:
                    guarded.check(table)
                except FileRefusedError as refused:
                    if table == file:
                        raise
                    reason = f"{table.name}: {refused.reason}"
                    read.refused.append(Refused(suite.results.table, "(not read)", ("recorded_line",), reason, reason))
                    continue
                _add_lines(suite, table, read, contents)
    if not read.recorded:
        why = "; ".join(_reasons(read))
        raise SourceError(f"{', '.join(map(str, files))} holds no recorded result of {suite.name}{why and f': {why}'}")
    return read


def _reasons(read: _Read) -> list[str]:
    """Say why nothing could be read: of folders the files by reason, else what was wrong with the first line."""
    if not read.skipped:
        return [refused.reason for refused in read.refused[:1]]
    return [
        f"{reason} ({', '.join(places[:MOST_NAMED])}{', …' if len(places) > MOST_NAMED else ''})"
        for reason, places in read.skipped.items()
    ]


def _tables(file: Path) -> list[Path]:
    """List the file itself, or the JSON Lines files in a folder."""
    return sorted(path for path in file.rglob("*.jsonl") if not path.is_dir()) if file.is_dir() else [file]


def _add_lines(suite: Suite, file: Path, read: _Read, contents: _Contents) -> None:
    for number, line in _lines(file):
        where = f"{file.name}:{number}"
        try:
            _add(_parse(suite, line), where, read, contents)
        except SourceError as error:
            payload, reason = _storable(line[:LONGEST_LINE]), f"{where}: {error}"
            read.refused.append(Refused(suite.results.table, payload, ("recorded_line",), reason, where))


def _add_folder(suite: Suite, folder: RecordedFolder, read: _Read, contents: _Contents) -> None:
    for where, recorded in folder.lines:
        try:
            _add(recorded, where, read, contents)
        except SourceError as error:
            reply = recorded.replies[-1].text or ""
            read.refused.append(Refused(suite.results.table, reply, ("recorded_file",), f"{where}: {error}", where))
    read.labels += folder.labels
    read.files |= folder.files
    read.remarks += folder.remarks
    for out in folder.skipped:
        read.skipped.setdefault(out.reason, []).append(out.where)
        if out.payload is not None:
            reason = f"{out.where}: {out.reason}"
            read.refused.append(Refused(suite.results.table, out.payload, ("recorded_file",), reason, out.where))


def _add(recorded: Recorded, where: str, read: _Read, contents: _Contents) -> None:
    if recorded.item.replicate > ledger.LARGEST_REPLICATE:
        raise SourceError(f"replicate: the ledger counts to {ledger.LARGEST_REPLICATE}")
    if contents.before(recorded, where):
        read.repeated += 1
    else:
        read.recorded.append(recorded)


def _of_folders(read: _Read) -> dict[str, Any]:
    """Describe the files of folders: how many were read, and which were left out why."""
    if not read.files and not read.skipped:
        return {}
    return {"folders": read.files, "left_out": read.skipped} | ({"remarks": read.remarks} if read.remarks else {})


def _without_forgotten(lake: Lake, read: _Read) -> _Read:
    """Leave out the results of samples that were forgotten, and count them."""
    forgotten = forgotten_samples(lake)
    kept = [line for line in read.recorded if line.item.sample.sample_hash not in forgotten]
    gone = len(read.recorded) - len(kept)
    if gone and not kept:
        raise SourceError("every sample that the files have results of was forgotten: nothing is imported")
    labels = [label for label in read.labels if label["sample_hash"] not in forgotten]
    return replace(read, recorded=kept, labels=labels, forgotten=gone)


def _lines(file: Path) -> Iterator[tuple[int, str]]:
    try:
        with file.open(encoding="utf-8-sig", errors="surrogateescape") as stream:
            yield from ((number, line) for number, line in enumerate(stream, start=1) if line.strip())
    except OSError as error:
        raise SourceError(f"cannot read {file}: {error.strerror}") from error


def _parse(suite: Suite, line: str) -> Recorded:
    if len(line) > LONGEST_LINE:
        raise SourceError(f"the line is longer than {LONGEST_LINE} characters")
    try:
        line.encode("utf-8")
        value = json.loads(line)
    except UnicodeEncodeError as error:
        raise SourceError("the line is not UTF-8") from error
    except (ValueError, RecursionError) as error:  # a number of thousands of digits is a plain ValueError
        raise SourceError(f"the line is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise SourceError("the line is not a JSON object")
    if value.get("suite", suite.name) != suite.name:
        raise SourceError(f"the line is of the suite {str(value['suite'])[:60]}, not {suite.name}")
    return suite.recorded(value)


def _storable(line: str) -> str:
    """Make a line storable in a table, with a mark in place of every byte that is not UTF-8."""
    return line.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _datasets(recorded: Sequence[Recorded]) -> tuple[Dataset, ...]:
    by_name: dict[str, dict[str, Any]] = {}
    for line in recorded:
        sample = line.item.sample
        by_name.setdefault(sample.dataset, {}).setdefault(sample.sample_hash, sample)
    return tuple(Dataset(name, tuple(samples.values())) for name, samples in sorted(by_name.items()))


# What tells one recorded reply from another; columns that the ledger got later change no import's identity
_IDENTIFYING = (
    "text",
    "finish_reason",
    "model_reported",
    "input_tokens",
    "cached_input_tokens",
    "output_tokens",
    "reasoning_tokens",
    "cost_usd",
    "latency_ms",
    "attempts",
    "error_kind",
)


def _identity(line: Recorded) -> list[Any]:
    item = line.item
    replies = [[getattr(reply, name) for name in _IDENTIFYING] for reply in line.replies]
    return [item.sample.sample_hash, item.model, item.judge, item.prompt_type, item.replicate, replies]


def _keep_replies(context: RunContext, recorded: Sequence[Recorded]) -> list[Conversation]:
    """Put the replies into the ledger, and build conversations of what it holds: the first reply of a key counts."""
    index = LedgerIndex.read(context.lake)
    lines = {
        Key(prompt_hash, line.item.replicate, IMPORT): (line, place)
        for line in reversed(recorded)
        for place, prompt_hash in enumerate(line.prompt_hashes)
    }
    known = index.fetch([key._replace(endpoint=endpoint) for key in lines for endpoint in (IMPORT, UNKNOWN)])
    kept = {
        key: known.get(key) or known.get(key._replace(endpoint=UNKNOWN)) or _row(context, *line, key, index)
        for key, line in lines.items()
    }
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
    """Put calls whose requests are whole into the ledger, as those that a run would make; what it holds stands."""
    index = LedgerIndex.read(context.lake)
    asked = {
        Key(call.request.prompt_hash, replicate, endpoint_at(call.request.model, call.address)): call
        for replicate, call in reversed(calls)
    }
    known = index.fetch(list(asked))
    fresh = [
        call_row(
            call.reply,
            key,
            call.request.model,
            call.request.canonical.decode(),
            revision=index.next_revision(key),
            origin="import",
            run_id=context.run_id,
        )
        for key, call in reversed(asked.items())
        if key not in known
    ]
    if fresh:
        ledger.append(context.lake, fresh)


def _overruled(recorded: Sequence[Recorded], conversations: Sequence[Conversation]) -> list[str]:
    """Warn readers of the metrics where lines say otherwise than the lake did before them."""
    pairs = [
        (line.replies[-1], conversation.answered[-1].outcome)
        for line, conversation in zip(recorded, conversations, strict=True)
    ]
    others = sum(isinstance(kept, Reply) and _content(kept) != _content(given) for given, kept in pairs)
    return (
        [f"{others} imported results differ from those the lake held of the same items, which stand"] if others else []
    )


def _content(reply: Reply) -> tuple[str | None, ...]:
    return reply.text, reply.finish_reason, reply.error_kind


def _row(context: RunContext, line: Recorded, place: int, key: Key, index: LedgerIndex) -> dict[str, Any]:
    reply = line.replies[place]
    asked = line.item.judge if place and line.item.judge else line.item.model
    identity = {"dataset": line.item.sample.dataset, "sample_id": line.item.sample.sample_id, "model": asked}
    request = line.requests[place] if line.requests else canonical_json(identity).decode()
    revision = index.next_revision(key)
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


def _covered(lake: Lake, suite: Suite, run: Run, read: _Read) -> list[Coverage]:
    """Count what came of the items and of what was refused, and keep it."""
    left_out = Counter({"repeated": read.repeated, "forgotten": read.forgotten})
    left_out += Counter({reason: len(places) for reason, places in read.skipped.items()})
    for each in read.refused:  # of folders, these are among the skipped, too
        if (reason := each.reason.partition(": ")[2]) in read.skipped:
            left_out[reason] -= 1
    refused = (json_object(each.payload) or {} for each in read.refused)
    items = [each.item for each in read.recorded]
    labels = {(item.model, item.judge or "", item.sample.dataset, item.sample.label) for item in items}
    covered = with_refused(cover(lake, suite, run.run_id, run.judges), refused, UNREADABLE, +left_out, labels)
    save_coverage(lake, run.run_id, covered)
    return covered


def _message(read: _Read, published: Published, labelled: Published, lacks: Sequence[str]) -> str | None:
    sentences = []
    if read.refused:
        count, what = len(read.refused), "file" if read.files else "line"
        sentences.append(
            f"{count} {what}{'' if count == 1 else 's'} could not be read, the first: {read.refused[0].reason}"
        )
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
    datasets = without_forgotten(lake, read_datasets(suite, sources))
    return land_samples(lake, suite, datasets, {"files": [redact(source) for source in sources], **labels}, started)


def land_samples(
    lake: Lake, suite: Suite, datasets: Sequence[Dataset], parameters: Mapping[str, Any], started: datetime
) -> str:
    """Land the samples of datasets as one run without items, named by their content; returns its id."""
    run_id = "import-" + content_hash([suite.name, [dataset.version for dataset in datasets]])[:12]
    run = Run(
        run_id=run_id,
        suite=suite.name,
        origin="import",
        parameters=parameters,
        dataset_versions=runs.versions_of(datasets),
        models=(),
        judges=(),
        samples=sum(len(dataset.samples) for dataset in datasets),
        items=0,
        started_at=started,
    )
    runs.save(lake, run)
    extracted = extract(lake, run_id, datasets)
    for dataset in datasets:
        land_given(lake, suite, dataset.labels, {each.sample_id: each.sample_hash for each in dataset.samples})
    covered = of_sources(map(Source.of, datasets))
    save_coverage(lake, run_id, covered)
    skipped = ", ".join(f"{count} {reason}" for reason, count in extracted.skipped.items())
    message = f"left out of the sources: {skipped}" if skipped else None
    tally = Tally(rows_quarantined=extracted.quarantined)
    state = "incomplete" if tally.rows_quarantined or problems(covered, DEFAULT) else "completed"
    runs.save(lake, run.ended(state, tally=tally, message=message))
    return run_id
