"""Read results of promptfoo (`promptfoo eval --output results.json`)."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from evalake.core.errors import SourceError
from evalake.core.hashing import content_hash
from evalake.sdk.tool_results import Headline, Scored, ToolResults, ToolSample, as_score, decide
from evalake.suites.declared.formats import values
from evalake.suites.declared.formats.values import as_list, as_mapping, as_text, at, objects

OVERALL = "promptfoo"
"""The scorer that stands for promptfoo's own verdict over all assertions of a test."""

_ERROR = 2  # of `failureReason`: no assertion was checked
_LONGEST_NAME = 40  # characters of a prompt's label that names a variant


def is_document(document: Any) -> bool:
    """Tell whether a decoded JSON document is results of promptfoo."""
    inner = as_mapping(document, "results")
    return isinstance(inner.get("results"), list) and "stats" in inner


def read_document(document: Mapping[str, Any], name: str) -> ToolResults:
    """Read a decoded results file. Raises SourceError where it holds no result."""
    inner = as_mapping(document, "results")
    rows = [each for each in as_list(inner, "results") if isinstance(each, dict)]
    if not rows:
        raise SourceError(f"{name} holds no result")
    left_over = Counter({"results that are no object": len(as_list(inner, "results")) - len(rows)})
    names, variants = _test_names(rows), _variants(rows)
    seen: Counter[tuple[str, str, str]] = Counter()
    samples = []
    for row in sorted(rows, key=lambda each: (_number(each, "testIdx"), _number(each, "promptIdx"))):
        values.count_further(row, values.TOOLS["promptfoo"]["fields"], left_over)
        whose = names[_test(row)], variants[_prompt(row)], _model(row)
        samples.append(_sample(row, whose, seen[whose], left_over))
        seen[whose] += 1
    task = as_text(document, "config.description") or name.partition(".")[0]
    evaluation = as_text(document, "evalId") or content_hash([task, inner.get("timestamp")])
    return ToolResults(
        tool=f"promptfoo {as_mapping(document, 'metadata').get('promptfooVersion', '')}".strip(),
        task=task,
        evaluation=evaluation,
        began=as_text(document, "metadata.evaluationCreatedAt") or as_text(inner, "timestamp") or "",
        task_id=evaluation,
        dataset=task,
        samples=decide(samples),
        headlines=list(_headlines(inner, rows)),
        left_over=+left_over,
    )


def _number(row: Mapping[str, Any], name: str) -> int:
    return values.as_count(row.get(name)) or 0


def _model(row: Mapping[str, Any]) -> str:
    if isinstance(provider := row.get("provider"), str):
        return provider
    return as_text(provider, "label") or as_text(provider, "id") or "unnamed provider"


def _prompt(row: Mapping[str, Any]) -> str:
    return as_text(row, "prompt.label") or as_text(row, "promptId") or as_text(row, "prompt.raw") or ""


def _variants(rows: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Name the prompt variants: by a short label of the user's, else by number."""
    prompts = dict.fromkeys(_prompt(row) for row in sorted(rows, key=lambda each: _number(each, "promptIdx")))
    if len(prompts) == 1:
        return dict.fromkeys(prompts, "direct")
    return {
        prompt: prompt if 0 < len(prompt) <= _LONGEST_NAME and " " not in prompt.strip() else f"prompt_{number}"
        for number, prompt in enumerate(prompts, start=1)
    }


def _test(row: Mapping[str, Any]) -> str:
    """Identify a test by what it gives and expects: repeats of one test are equal in both."""
    return content_hash([row.get("vars"), at(row, "testCase.assert"), at(row, "testCase.description")])


def _test_names(rows: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    names: dict[str, str] = {}
    for row in sorted(rows, key=lambda each: _number(each, "testIdx")):
        names.setdefault(_test(row), f"test_{_number(row, 'testIdx') + 1}")
    return names


def _sample(row: Mapping[str, Any], whose: tuple[str, str, str], repeat: int, left_over: Counter[str]) -> ToolSample:
    given = {name: value for name, value in as_mapping(row, "vars").items() if name != "sessionId"}
    failed, graded = row.get("failureReason") == _ERROR, as_mapping(row, "gradingResult")
    why, score, raw = as_text(graded, "reason"), row.get("score"), as_text(row, "prompt.raw")
    scores = [Scored(OVERALL, None, None, None, explanation=why)]
    if not failed:
        overall = _scored(OVERALL, score, row.get("success"), why)
        scores = [overall, *_assertions(graded, as_mapping(row, "namedScores"), left_over)]
    only = next(iter(given.values())) if len(given) == 1 else None
    return ToolSample(
        sample_id=whose[0],
        input=only if isinstance(only, str) else json.dumps(given, ensure_ascii=False, sort_keys=True),
        target={"assert": as_list(row, "testCase.assert"), "description": at(row, "testCase.description")},
        model=whose[2],
        messages=[] if raw is None else values.conversation(raw),
        reply=values.as_reply(
            as_text(row, "response.output"),
            row,
            values.TOOLS["promptfoo"]["numbers"],
            finish_reason=as_text(row, "response.finishReason"),
            cost_usd=as_score(row.get("cost")) or None,  # 0 stands for a price that it does not know
        ),
        scores=scores,
        repeat=repeat,
        prompt_variant=whose[1],
        metadata={**as_mapping(row, "testCase.metadata"), **given},
        error=as_text(row, "response.error") or (as_text(row, "error") if failed else None),
    )


def _scored(scorer: str, score: Any, passed: Any, why: str | None) -> Scored:
    correct = passed if isinstance(passed, bool) else None
    value = passed if score is None else score
    return Scored(scorer, value, as_score(value), correct, explanation=why)


def _assertions(
    graded: Mapping[str, Any], named_scores: Mapping[str, Any], left_over: Counter[str]
) -> Iterator[Scored]:
    """Yield what each assertion said, named by its metric or its type; a second one of a name is numbered."""
    names: Counter[str] = Counter()
    for part in objects(graded, "componentResults"):
        name, score = as_text(part, "assertion.metric") or as_text(part, "assertion.type"), part.get("score")
        if name is None:
            left_over["results of assertion sets"] += 1
            continue
        scorer = values.numbered(name, names)
        scorer = f"{scorer}_assertion" if scorer == OVERALL else scorer
        yield _scored(scorer, score, part.get("pass"), as_text(part, "reason"))
    left_over.update({"named scores": len(named_scores.keys() - names.keys())} if named_scores.keys() - names else {})


def _headlines(inner: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> Iterator[Headline]:
    """Recount what passed, in all, and by provider and prompt with the sum of scores."""
    passed = sum(row.get("success") is True for row in rows)
    errors = sum(row.get("failureReason") == _ERROR for row in rows)
    counted = {"successes": passed, "failures": len(rows) - passed - errors, "errors": errors}
    for name, ours in counted.items():
        if (said := as_score(at(inner, f"stats.{name}"))) is not None:
            yield Headline(f"{name} of {len(rows)}", said, float(ours))
    for number, prompt in enumerate(objects(inner, "prompts")):
        of_prompt = [row for row in rows if row.get("promptIdx") == number]
        sums = {
            "testPassCount": float(sum(row.get("success") is True for row in of_prompt)),
            "score": sum(as_score(row.get("score")) or 0.0 for row in of_prompt),
        }
        for name, total in sums.items():
            if (said := as_score(at(prompt, f"metrics.{name}"))) is not None:
                yield Headline(f"{name} of {prompt.get('provider')}, prompt {number + 1}", said, total)
