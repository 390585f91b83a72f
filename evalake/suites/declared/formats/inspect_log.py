"""Read a log of Inspect: `.eval`, a zip whose members are deflated or zstandard-compressed, or `.json`."""

import io
import json
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import comb
from statistics import fmean, median, mode
from typing import Any, cast

from evalake.core.errors import SourceError
from evalake.core.files import MEGABYTE
from evalake.core.hashing import content_hash
from evalake.models.failures import excerpt
from evalake.models.request import Reply, Request
from evalake.sdk import tool_results
from evalake.sdk.tool_results import Headline, Scored, ToolResults, ToolSample, WholeCall
from evalake.suites.declared.formats import values
from evalake.suites.declared.formats.values import as_count, as_list, as_mapping, as_text, objects

if sys.version_info >= (3, 14):
    import zipfile
else:
    from backports.zstd import zipfile

LARGEST_MEMBER = 256 * 2**20  # bytes of a member when unpacked
TIGHTEST = 500  # how many times its packed size a large member may unpack to
LARGEST_IN_ALL = 2 * 2**30  # bytes of all members that are read
LARGEST_REFERRED = 8 * LARGEST_IN_ALL  # letters of all texts that are referred to, each as often as it is
MOST_MEMBERS = 200_000
LONGEST_NAME = 60  # characters of the name of a variant

_HEADER, _START, _SAMPLES = "header.json", "_journal/start.json", "samples/"
_ATTACHMENT = "attachment://"
_LETTERS = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0}
_MEANS = ("accuracy", "mean")
_REDUCERS: Mapping[str, Callable[..., float]] = {"mean": fmean, "median": median, "mode": mode, "max": max}
# Events that hold nothing but what samples and their messages hold, or say where others begin and end
_KEPT = frozenset({"model", "tool", "score", "sample_init", "state", "span_begin", "span_end", "step"})
_FINISHES: Mapping[str | None, str] = {"max_tokens": "length", "model_length": "length"}  # as providers say it
NUMBERS = values.TOOLS["inspect"]["numbers"]
# Parameters of Inspect's requests that are part of nothing that is asked
_TRANSPORT = frozenset({"messages", "model", "extra_headers", "stream", "timeout", "extra_body"})


def read_archive(content: bytes, name: str) -> ToolResults:
    """Read a `.eval` file. Raises SourceError where it is no whole log, or unpacks to more than the bounds."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = _Members(archive, name)
            header = members.read(_HEADER) if _HEADER in members else members.read(_START)
            samples = (members.read(each) for each in members if each.startswith(_SAMPLES))
            return _read_log(header, samples, name)
    except SourceError:
        raise
    except Exception as error:  # zip, zlib and zstandard each have exceptions of their own
        raise SourceError(f"{name} is a damaged .eval file: {type(error).__name__}: {error}") from error


def is_archive(content: bytes) -> bool:
    """Tell whether a zip file is a log of Inspect, by the names of its members."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            return not {_HEADER, _START}.isdisjoint(archive.NameToInfo)
    except (zipfile.BadZipFile, OSError, ValueError):
        return False


def read_document(document: Mapping[str, Any], name: str) -> ToolResults:
    """Read a decoded `.json` log."""
    return _read_log(document, objects(document, "samples"), name)


def is_document(document: Any) -> bool:
    """Tell whether a decoded JSON document is a log of Inspect."""
    return isinstance(document, dict) and isinstance(document.get("eval"), dict) and "task" in document["eval"]


@dataclass
class _Members:
    """The members of an archive, each read once and no further than the bounds."""

    archive: Any
    name: str
    left: int = LARGEST_IN_ALL

    def __post_init__(self) -> None:
        if len(self.archive.NameToInfo) > MOST_MEMBERS:
            raise SourceError(f"{self.name} has more than {MOST_MEMBERS} members")

    def __iter__(self) -> Iterator[str]:
        return iter(self.archive.NameToInfo)  # of several members of one name the last: a sample that was retried

    def __contains__(self, member: str) -> bool:
        return member in self.archive.NameToInfo

    def read(self, member: str) -> Mapping[str, Any]:
        """Read and decode a member. Raises SourceError where it is too large or no JSON object."""
        packed = self.archive.NameToInfo[member].compress_size
        most = min(LARGEST_MEMBER, self.left, max(16 * MEGABYTE, packed * TIGHTEST))
        with self.archive.open(member) as stream:
            content = stream.read(most + 1)
        if len(content) > most:
            raise SourceError(f"{self.name}: {member} unpacks to more than {most} bytes")
        self.left -= len(content)
        decoded = values.read_json(content, f"{self.name}: {member}")
        if not isinstance(decoded, dict):
            raise SourceError(f"{self.name}: {member} is no JSON object")
        return decoded


@dataclass
class _Room:
    """How much a log may still refer to: a text that stands in it once may be referred to again and again."""

    name: str
    left: int

    def take(self, value: Any) -> Any:
        """Return a value that is referred to. Raises SourceError where there is no room for it."""
        self.left -= len(value if isinstance(value, str) else json.dumps(value))
        if self.left < 0:
            raise SourceError(
                f"{self.name} refers to its texts so often that they are more than {LARGEST_REFERRED} letters"
            )
        return value


def _read_log(header: Mapping[str, Any], logged: Iterable[Mapping[str, Any]], name: str) -> ToolResults:
    evaluation, results = as_mapping(header, "eval"), as_mapping(header, "results")
    task, model = as_text(evaluation, "task"), as_text(evaluation, "model")
    if not task or not model:
        raise SourceError(f"{name} is no log of Inspect: it names no task or no model")
    if header.get("version") == 1:
        raise SourceError(f"{name} is a log of Inspect's version 1: convert it by `inspect log convert`")
    left_over: Counter[str] = Counter()
    address = as_text(evaluation, "model_base_url")
    expected = [
        scorer.rpartition("/")[2]  # without its package, as samples name it
        for each in objects(evaluation, "scorers")
        if (scorer := as_text(each, "name"))
    ]
    room = _Room(name, LARGEST_REFERRED)
    read = (_sample(each, model, address, expected, left_over, room) for each in logged)
    variant = _variant(evaluation) or "direct"
    samples = tool_results.decide([replace(each, prompt_variant=variant) for each in read])
    named, planned = as_list(evaluation, "dataset.sample_ids"), 0
    lacks = len(named) - len({each.sample_id for each in samples})
    if (status := as_text(header, "status") or "started") != "success":  # a log that did not end has no header
        why = excerpt(" ".join((as_text(header, "error.message") or "").split()))
        left_over[f"end of the log, whose status is {status}{why and f': {why}'}"] = 1
        left_over["samples that the log lacks"] = max(lacks, 0)
        planned = len(named) * (as_count(values.at(evaluation, "config.epochs")) or 1)
    return ToolResults(
        tool=f"Inspect {as_mapping(evaluation, 'packages').get('inspect_ai', '')}".strip(),
        task=task.rpartition("/")[2],
        evaluation=as_text(evaluation, "eval_id") or as_text(evaluation, "run_id") or "",
        began=as_text(evaluation, "created") or "",
        task_id=as_text(evaluation, "task_id") or "",
        dataset=as_text(evaluation, "dataset.name") or task.rpartition("/")[2],
        samples=samples,
        headlines=_headlines(results, samples, model, as_list(evaluation, "config.epochs_reducer")),
        left_over=left_over,
        planned=planned,
    )


def _sample(
    logged: Mapping[str, Any],
    model: str,
    address: str | None,
    scorers: Sequence[str],
    left_over: Counter[str],
    room: _Room,
) -> ToolSample:
    attached = as_mapping(logged, "attachments")
    logged = cast(Mapping[str, Any], _attached({k: v for k, v in logged.items() if k != "attachments"}, attached, room))
    if logged.get("id") is None:
        raise SourceError(f"{room.name} has a sample without an id")
    events = objects(logged, "events")
    of_model = [each for each in events if each.get("event") == "model" and each.get("model") == model]
    scoring = _scoring_spans(events)
    turns = [each for each in of_model if each.get("span_id") not in scoring and each.get("role") != "grader"]
    total = as_mapping(as_mapping(logged, "model_usage").get(model))  # also of a scorer that asked the same model
    usage = total if len(turns) == len(of_model) else _summed([as_mapping(each, "output.usage") for each in turns])
    messages = [values.chat_message(each) for each in objects(logged, "messages")]
    asked = messages[:-1] if messages and messages[-1]["role"] == "assistant" else messages
    error = as_text(logged, "error.message") or _limit(logged)
    answer = _reply(as_mapping(logged, "output"), usage, turns)
    scores = [each for named in as_mapping(logged, "scores").items() for each in _scores(*named)]
    if not scores and answer.text is not None and error is None:
        error = "no scorer has scored it"
    gave = [f"{each.scorer}." for each in scores]
    for scorer in scorers or ([] if scores else ["none"]):
        if not any(each.startswith(f"{scorer}.") for each in gave):
            scores.append(Scored(scorer, None, None, None))
    values.count_further(logged, values.TOOLS["inspect"]["fields"], left_over)
    _count_left_over(logged, events, left_over)
    return ToolSample(
        sample_id=str(logged["id"]),
        input=_input(logged.get("input")),
        target={"target": logged.get("target"), **({"choices": c} if (c := logged.get("choices")) else {})},
        model=model,
        messages=asked,
        reply=answer,
        scores=scores,
        repeat=max(0, (as_count(logged.get("epoch")) or 1) - 1),
        metadata=as_mapping(logged, "metadata"),
        error=error,
        calls=[call for turn in turns if (call := _whole_call(turn, logged, address, room)) is not None],
    )


def _variant(evaluation: Mapping[str, Any]) -> str:
    """Name the variant of a task by the arguments that it was given, other than those that say no."""
    given = as_mapping(evaluation.get("task_args_passed", evaluation.get("task_args")))
    name = ",".join(f"{key}={as_text(value)}" for key, value in sorted(given.items()) if value not in (None, False, ""))
    return name if len(name) <= LONGEST_NAME else f"{name[:LONGEST_NAME]}…{content_hash(name)[:8]}"


def _attached(value: Any, attached: Mapping[str, Any], room: _Room) -> Any:
    """Put the attachments of a sample where it refers to them."""
    if isinstance(value, str):
        is_reference = value.startswith(_ATTACHMENT)
        return room.take(attached.get(value.removeprefix(_ATTACHMENT), value)) if is_reference else value
    if isinstance(value, dict):
        return {name: _attached(each, attached, room) for name, each in value.items()}
    return [_attached(each, attached, room) for each in value] if isinstance(value, list) else value


def _limit(logged: Mapping[str, Any]) -> str | None:
    limit = as_mapping(logged, "limit")
    reached = limit and not logged.get("scores")
    return f"the {limit.get('type')} limit of {limit.get('limit')} was reached" if reached else None


def _input(given: Any) -> str:
    """Write a sample's input as text: as it is, or the last message of a conversation with those before it."""
    if isinstance(given, str):
        return given
    messages = [values.chat_message(each) for each in objects(given)]
    if len(messages) == 1:
        return str(messages[0]["content"])
    return "\n\n".join(f"{each['role']}: {each['content']}" for each in messages)


def _reply(output: Mapping[str, Any], usage: Mapping[str, Any], turns: Sequence[Mapping[str, Any]]) -> Reply:
    choice, message = as_mapping(output, "choices.0"), as_mapping(output, "choices.0.message")
    text, reasoning = values.content_text(message.get("content")) if message else (None, None)
    usage = usage or as_mapping(output, "usage")
    sent, *others = (as_count(usage.get(f"input_tokens{end}")) for end in ("", "_cache_read", "_cache_write"))
    whole = (sent or 0) + sum(each or 0 for each in others)
    if sent is not None and usage.get("total_tokens") == whole + (as_count(usage.get("output_tokens")) or 0):
        usage = {**usage, "input_tokens": whole}  # the cached ones are counted apart
    times = [tool_results.as_score(values.at(turn, "output.time")) for turn in turns or [{"output": output}]]
    return values.as_reply(
        text,
        usage,
        NUMBERS,
        finish_reason=_FINISHES.get(stop := as_text(choice, "stop_reason"), stop),
        model_reported=as_text(output, "model"),
        latency_ms=sum(t for t in times if t is not None) * 1000 if times and None not in times else None,
        reasoning=reasoning,
        tool_calls=json.dumps(values.chat_message(message)["tool_calls"]) if message.get("tool_calls") else None,
    )


def _scoring_spans(events: Sequence[Mapping[str, Any]]) -> set[Any]:
    """Find the spans in which scorers work: calls in them are none of the subject."""
    spans = [each for each in events if each.get("event") == "span_begin"]
    found = {each.get("id") for each in spans if each.get("type") in ("scorer", "scorers")}
    while within := {each.get("id") for each in spans if each.get("parent_id") in found} - found:
        found |= within
    return found


def _summed(usages: Sequence[Mapping[str, Any]]) -> dict[str, int | None]:
    """Add up the usage of turns; a count that a turn does not state is unknown."""
    names = {name: [as_count(each.get(name)) for each in usages] for each in usages for name in each}
    return {name: None if None in counts else sum(c for c in counts if c is not None) for name, counts in names.items()}


def _scores(scorer: str, given: Any) -> Iterator[Scored]:
    """Yield the values of one scorer: several where its value has parts."""
    score = as_mapping(given)
    value = score.get("value")
    several = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else None
    for named, each in [(scorer, value)] if several is None else [(f"{scorer}.{part}", of) for part, of in several]:
        letter = _LETTERS.get(each) if isinstance(each, str) else None
        number = tool_results.as_score(each) if letter is None else letter
        correct = number == 1.0 if letter is not None or isinstance(each, bool) else None
        yield Scored(named, each, number, correct, as_text(score, "answer"), as_text(score, "explanation"))


def _whole_call(
    turn: Mapping[str, Any], logged: Mapping[str, Any], address: str | None, room: _Room
) -> WholeCall | None:
    """Build the call of a turn; None where its request is not whole, or has tools, which no request here has."""
    call, output = as_mapping(turn, "call"), as_mapping(turn, "output")
    asked, key = as_mapping(call, "request"), as_text(call, "call_key") or "messages"
    shared = as_list(logged, "events_data.calls")
    messages = as_list(asked.get(key)) or _referred(as_list(call, "call_refs"), shared, room)
    parameters = {n: v for n, v in asked.items() if n not in (*_TRANSPORT, key) and v is not None}
    plain = [
        {"role": each["role"], "content": each["content"]}
        for each in map(as_mapping, messages)
        if each.keys() == {"role", "content"} and isinstance(each["content"], str) and isinstance(each["role"], str)
    ]
    choices = as_list(output, "choices")
    if not plain or len(plain) < len(messages) or "tools" in parameters or asked.get("extra_body") or len(choices) != 1:
        return None
    if turn.get("error") or call.get("error"):
        return None
    reply = _reply(output, {}, [turn])
    if reply.text is None or reply.tool_calls is not None:
        return None
    return WholeCall(Request(str(turn["model"]), tuple(plain), parameters), values.address_of(address), reply)


def _referred(references: Sequence[Any], shared: Sequence[Any], room: _Room) -> list[Any]:
    """List the parts of a sample's shared data that ranges refer to."""
    ranges = [each for each in references if isinstance(each, list) and len(each) == 2]
    return [room.take(part) for start, end in ranges for part in shared[start:end]]


def _count_left_over(logged: Mapping[str, Any], events: Sequence[Mapping[str, Any]], left_over: Counter[str]) -> None:
    left_over.update(f"{each.get('event')} events" for each in events if each.get("event") not in _KEPT)
    left_over.update(["stores"] if logged.get("store") else [])
    left_over.update(["attempts before a retry"] * len(as_list(logged, "error_retries")))


def _headlines(
    results: Mapping[str, Any], samples: Sequence[ToolSample], model: str, reducers: Sequence[Any]
) -> list[Headline]:
    """Recompute the mean and its standard error by scorer, over samples whose epochs are averaged."""
    headlines = []
    for entry in objects(results, "scores"):
        scorer, name = str(entry.get("scorer")), str(entry.get("name"))
        reducer = str(entry.get("reducer") or next(iter(reducers), "mean"))
        known = tool_results.by_sample(samples, scorer if name == scorer else f"{scorer}.{name}").values()
        reduced = [_reduced(each, reducer) for each in known]
        values = [each for each in reduced if each is not None] if None not in reduced else []
        for metric in map(as_mapping, as_mapping(entry, "metrics").values()):
            said, what = tool_results.as_score(metric.get("value")), str(metric.get("name")).rpartition("/")[2]
            ours = tool_results.mean(values) if what in _MEANS else None
            if what in ("stderr", "std") and values:  # 0 of one sample, as Inspect has it
                ours = (tool_results.standard_error(values) or 0.0) * (1 if what == "stderr" else len(values) ** 0.5)
            if said is not None:
                over = "" if reducer == "mean" else f" ({reducer})"
                ours = None if metric.get("params") else ours
                headlines.append(Headline(f"{what} of {name}{over} by {model}", said, ours))
    return headlines


def _reduced(values: Sequence[float], reducer: str) -> float | None:
    """Reduce a sample's values over its epochs to one; None where the reducer is not known here."""
    if reducer in _REDUCERS:
        return float(_REDUCERS[reducer](values))
    if found := re.fullmatch(r"(at_least|pass_at)_(\d{1,4})", reducer):
        n, k, hits = len(values), int(found[2]), sum(value >= 1 for value in values)
        if found[1] == "at_least":
            return float(hits >= k)
        return 1 - comb(n - hits, k) / comb(n, k) if 0 < k <= n else None
    return None
