"""Read results of promptfoo (`promptfoo eval --output results.json`)."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from evalake.core.errors import SourceError
from evalake.core.hashing import content_hash
from evalake.models.request import Reply
from evalake.sdk.tool_results import Headline, Scored, ToolResults, ToolSample, as_score
from evalake.suites.declared.formats.values import as_count, as_list, as_mapping, as_text, conversation, count_further

OVERALL = "promptfoo"
"""The scorer that stands for promptfoo's own verdict over all assertions of a test."""

_ERROR = 2  # of `failureReason`: no assertion was checked
# fmt: off
_FIELDS = frozenset({
    "cost", "description", "error", "failureReason", "gradingResult", "id", "latencyMs", "metadata",
    "namedScores", "prompt", "promptId", "promptIdx", "provider", "response", "score", "success", "testCase",
    "testIdx", "tokenUsage", "vars",
})
# fmt: on
_LONGEST_NAME = 40  # characters of a prompt's label that names a variant


def is_document(document: Any) -> bool:
    """Tell whether a decoded JSON document is results of promptfoo."""
    inner = as_mapping(as_mapping(document).get("results"))
    return isinstance(inner.get("results"), list) and "stats" in inner


def read_document(document: Mapping[str, Any], name: str) -> ToolResults:
    """Read a decoded results file. Raises SourceError where it holds no result."""
    inner, config = as_mapping(document.get("results")), as_mapping(document.get("config"))
    rows = [each for each in as_list(inner["results"]) if isinstance(each, dict)]
    if not rows:
        raise SourceError(f"{name} holds no result")
    variants = _variants(rows)
    left_over = Counter({"results that are no object": len(as_list(inner["results"])) - len(rows)})
    names = _test_names(rows)
    seen: Counter[Any] = Counter()
    samples = []
    for row in sorted(
        rows, key=lambda each: (as_count(each.get("testIdx")) or 0, as_count(each.get("promptIdx")) or 0)
    ):
        count_further(row, _FIELDS, left_over)
        sample_id, variant, model = names[_test(row)], variants[_prompt(row)], _model(row)
        repeat = seen[sample_id, variant, model]
        seen[sample_id, variant, model] += 1
        samples.append(_sample(row, sample_id, variant, model, repeat, left_over))
    task = as_text(config.get("description")) or name.partition(".")[0]
    about = as_mapping(document.get("metadata"))
    evaluation = as_text(document.get("evalId")) or content_hash([task, inner.get("timestamp")])
    return ToolResults(
        tool=f"promptfoo {about.get('promptfooVersion', '')}".strip(),
        task=task,
        evaluation=evaluation,
        began=as_text(about.get("evaluationCreatedAt")) or as_text(inner.get("timestamp")) or "",
        task_id=evaluation,
        dataset=task,
        samples=samples,
        headlines=list(_headlines(inner, rows)),
        left_over=+left_over,
    )


def _model(row: Mapping[str, Any]) -> str:
    provider = row.get("provider")
    if isinstance(provider, str):
        return provider
    return as_text(as_mapping(provider).get("label")) or as_text(as_mapping(provider).get("id")) or "unnamed provider"


def _prompt(row: Mapping[str, Any]) -> str:
    prompt = as_mapping(row.get("prompt"))
    return as_text(prompt.get("label")) or as_text(row.get("promptId")) or as_text(prompt.get("raw")) or ""


def _variants(rows: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Name the prompt variants: by a short label of the user's, else by number."""
    prompts = dict.fromkeys(_prompt(row) for row in sorted(rows, key=lambda r: as_count(r.get("promptIdx")) or 0))
    if len(prompts) == 1:
        return dict.fromkeys(prompts, "direct")
    return {
        prompt: prompt if 0 < len(prompt) <= _LONGEST_NAME and " " not in prompt.strip() else f"prompt_{number}"
        for number, prompt in enumerate(prompts, start=1)
    }


def _test(row: Mapping[str, Any]) -> str:
    """Identify a test by what it gives and expects: repeats of one test are equal in both."""
    test = as_mapping(row.get("testCase"))
    return content_hash([row.get("vars"), test.get("assert"), test.get("description")])


def _test_names(rows: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    names: dict[str, str] = {}
    for row in sorted(rows, key=lambda each: as_count(each.get("testIdx")) or 0):
        names.setdefault(_test(row), f"test_{(as_count(row.get('testIdx')) or 0) + 1}")
    return names


def _sample(
    row: Mapping[str, Any], sample_id: str, variant: str, model: str, repeat: int, left_over: Counter[str]
) -> ToolSample:
    test, response = as_mapping(row.get("testCase")), as_mapping(row.get("response"))
    given = {name: value for name, value in as_mapping(row.get("vars")).items() if name != "sessionId"}
    failed = row.get("failureReason") == _ERROR
    error = as_text(response.get("error")) or (as_text(row.get("error")) if failed else None)
    usage = as_mapping(response.get("tokenUsage"))
    reply = Reply(
        text=None if response.get("output") is None else as_text(response["output"]),
        finish_reason=as_text(response.get("finishReason")),
        input_tokens=as_count(usage.get("prompt")),
        output_tokens=as_count(usage.get("completion")),
        reasoning_tokens=as_count(as_mapping(usage.get("completionDetails")).get("reasoning")),
        cost_usd=as_score(row.get("cost")) or None,  # 0 stands for a price that it does not know
        latency_ms=as_score(row.get("latencyMs")),
    )
    graded = as_mapping(row.get("gradingResult"))
    overall = Scored(
        OVERALL,
        None if failed else row.get("score"),
        None if failed else as_score(row.get("score")),
        None if failed else row.get("success") is True,
        explanation=as_text(graded.get("reason")),
    )
    only = next(iter(given.values())) if len(given) == 1 else None
    return ToolSample(
        sample_id=sample_id,
        input=only if isinstance(only, str) else json.dumps(given, ensure_ascii=False, sort_keys=True),
        target={"assert": as_list(test.get("assert")), "description": test.get("description")},
        model=model,
        messages=[] if (raw := as_text(as_mapping(row.get("prompt")).get("raw"))) is None else conversation(raw),
        reply=reply,
        scores=[overall, *([] if failed else _assertions(graded, as_mapping(row.get("namedScores")), left_over))],
        repeat=repeat,
        prompt_variant=variant,
        metadata={**as_mapping(test.get("metadata")), **given},
        error=error,
    )


def _assertions(
    graded: Mapping[str, Any], named_scores: Mapping[str, Any], left_over: Counter[str]
) -> Iterator[Scored]:
    """Yield what each assertion said, named by its metric or its type; a second one of a name is numbered."""
    names: Counter[str] = Counter()
    for part in map(as_mapping, as_list(graded.get("componentResults"))):
        assertion = as_mapping(part.get("assertion"))
        name = as_text(assertion.get("metric")) or as_text(assertion.get("type"))
        if name is None:
            left_over["results of assertion sets"] += 1
            continue
        names[name] += 1
        numbered = name if names[name] == 1 else f"{name}_{names[name]}"
        numbered = f"{numbered}_assertion" if numbered == OVERALL else numbered
        score, reason = part.get("score"), as_text(part.get("reason"))
        yield Scored(numbered, score, as_score(score), part.get("pass") is True, explanation=reason)
    left_over.update({"named scores": len(named_scores.keys() - names.keys())} if named_scores.keys() - names else {})


def _headlines(inner: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> Iterator[Headline]:
    """Recount what passed, in all, and by provider and prompt with the sum of scores."""
    stats = as_mapping(inner.get("stats"))
    passed = sum(row.get("success") is True for row in rows)
    errors = sum(row.get("failureReason") == _ERROR for row in rows)
    counted = {"successes": passed, "failures": len(rows) - passed - errors, "errors": errors}
    for name, ours in counted.items():
        if (said := as_score(stats.get(name))) is not None:
            yield Headline(f"{name} of {len(rows)}", said, float(ours))
    for number, prompt in enumerate(map(as_mapping, as_list(inner.get("prompts")))):
        metrics, of_prompt = as_mapping(prompt.get("metrics")), [r for r in rows if r.get("promptIdx") == number]
        sums = {
            "testPassCount": float(sum(row.get("success") is True for row in of_prompt)),
            "score": sum(as_score(row.get("score")) or 0.0 for row in of_prompt),
        }
        for name, total in sums.items():
            if (said := as_score(metrics.get(name))) is not None:
                yield Headline(f"{name} of {prompt.get('provider')}, prompt {number + 1}", said, total)
