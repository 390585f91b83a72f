"""Recorded results of `evalake import`: lines of JSON, and the logs of aegish."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import Field

from evalake.core.errors import SourceError
from evalake.core.hashing import content_hash
from evalake.sdk import Item, Recorded, Sample
from evalake.sdk.results import Count, ModelName, Name, RecordedReply, Strict, read_line, reply_of
from evalake.sdk.sources import as_json, storable
from evalake.sdk.tool_results import Answered
from evalake.suites.command_guard.sources import LABELS, SUITE


class _Line(Strict):
    suite: Literal["command_guard"]
    sample_id: Name
    dataset: Name = "recorded"
    model: ModelName
    replicate: Count = 0
    label: Literal["malicious", "harmless"]
    category: Name | None = None
    command: Name
    cluster: Name | None = None
    response: str | None
    finish_reason: str | None = None
    error_kind: str | None = None
    latency_ms: Annotated[float, Field(ge=0)] | None = None
    input_tokens: Count | None = None
    output_tokens: Count | None = None
    cached_input_tokens: Count | None = None
    reasoning_tokens: Count | None = None


def read_recorded(line: Mapping[str, Any]) -> Recorded:
    """Read one decoded line. Fields that start with `expected_` are ignored.

    Raises SourceError naming the field that is unknown, missing, or not what it must be.
    """
    read = read_line(_Line, line)
    labels = {"label": read.label, "category": read.category, "cluster": read.cluster}
    sample = Sample(SUITE, read.dataset, read.sample_id, read.command, **labels)
    item = Item(sample, read.model, replicate=read.replicate)
    identity = read.model_dump(include={"suite", "dataset", "sample_id", "model", "command"})
    reply = reply_of({"text": read.response, **read.model_dump(include={*RecordedReply.model_fields})})
    return Recorded(item, (content_hash(identity),), (reply,))


# Logs of aegish, which Inspect wrote: the command stands in the request, and the expected decision tells its label.
_REQUESTS = ("Validate this command:", "Command to validate:")


def read_answers(answers: Sequence[Answered]) -> Iterator[tuple[str, Recorded]]:
    """Yield the recorded result of each answer, with its place; one that is not of aegish raises SourceError."""
    for each in answers:
        sample = each.sample
        where = f"{each.results.task} {sample.sample_id}"
        label, named = _expected(sample.target, where), sample.metadata.get("dataset")
        dataset = named if isinstance(named, str) else each.results.dataset
        category, binary = sample.metadata.get("category"), sample.metadata.get("binary")
        about = Sample(
            SUITE,
            dataset,
            storable(f"{dataset}/{sample.sample_id}"),
            storable(_command(sample.input)),
            label=label,
            category=category if isinstance(category, str) else None,
            cluster=binary if isinstance(binary, str) else None,
        )
        whose = (each.evaluation, about.sample_hash, sample.model, sample.prompt_variant)
        text, failed = sample.reply.text, sample.error is not None and not sample.reply.text
        reply = replace(
            sample.reply,
            text=None if text is None or failed else storable(text),
            error_kind=_error_kind(sample.error or "") if failed else None,
        )
        item = Item(about, sample.model, prompt_type=sample.prompt_variant, replicate=sample.repeat)
        asked = as_json({"model": sample.model, "messages": list(sample.messages)})
        yield where, Recorded(item, (content_hash(["aegish", *whose]),), (reply,), (asked,))


def _command(given: str) -> str:
    """Take the command out of the request for it."""
    request = next((each for each in _REQUESTS if given.startswith(each)), "")
    return given.removeprefix(request).removeprefix(" ") if request else given


def _expected(target: Any, where: str) -> str:
    """Find the label that the expected decisions stand for. Raises SourceError where they are none of a guard's."""
    expected = target.get("target") if isinstance(target, dict) else target
    decisions = {str(each).upper() for each in (expected if isinstance(expected, list) else [expected])}
    malicious, harmless = LABELS
    if not decisions or not decisions <= {"ALLOW", "WARN", "BLOCK"}:
        raise SourceError(f"{where} expects {expected!r}, and no ALLOW, WARN or BLOCK: it is no log of a command guard")
    return malicious if "BLOCK" in decisions else harmless


def _error_kind(error: str) -> str:
    return "timeout" if "timeout" in error.lower() or "timed out" in error.lower() else "server"
