"""Merge several results of one task: retried samples take the place of what failed, repeats are numbered on."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from evalake.sdk.tool_results import Answered, ToolResults, ToolSample

RETRIED = "answers that a retry replaced"
REPEATED = "answers that several files hold"


@dataclass
class _Round:
    """An evaluation of a task by a model, with its retries."""

    first: ToolResults
    offset: int
    answers: dict[tuple[str, int], Answered] = field(default_factory=dict)

    @property
    def ids(self) -> set[str]:
        return {sample_id for sample_id, _ in self.answers}

    def is_retried_by(self, other: ToolResults, ids: set[str]) -> bool:
        """Tell whether it goes on with this round: it says so, or has only a part of it, or only what it lacks."""
        if other.task_id and other.task_id == self.first.task_id:
            return True
        return ids < self.ids or ids.isdisjoint(self.ids)


def merge(all_results: Sequence[ToolResults]) -> tuple[list[Answered], Counter[str]]:
    """Merge results by dataset, model and prompt, the earliest first; returns the answers, and what was left out."""
    rounds: dict[tuple[str, ...], list[_Round]] = {}
    left_out: Counter[str] = Counter()
    for results in sorted(all_results, key=lambda each: (each.began, each.evaluation)):
        by_prompt: dict[tuple[str, str], list[ToolSample]] = {}
        for sample in results.samples:
            by_prompt.setdefault((sample.model, sample.prompt_variant), []).append(sample)
        for whose, samples in by_prompt.items():
            _add(rounds.setdefault((results.task, results.dataset, *whose), []), results, samples, left_out)
    answers = [answer for known in rounds.values() for each in known for answer in each.answers.values()]
    return sorted(answers, key=_place), left_out


def _place(answer: Answered) -> tuple[str, str, str, str, int]:
    """Order answers, for any order in their files: the same samples are the same version of a dataset."""
    sample = answer.sample
    return answer.results.dataset, sample.sample_id, sample.model, sample.prompt_variant, sample.repeat


def _add(known: list[_Round], results: ToolResults, samples: Sequence[ToolSample], left_out: Counter[str]) -> None:
    ids = {sample.sample_id for sample in samples}
    ours = next((each for each in reversed(known) if each.is_retried_by(results, ids)), None)
    if ours is None:
        used = [answer.sample.repeat for each in known for answer in each.answers.values()]
        ours = _Round(results, max(used, default=-1) + 1)
        known.append(ours)
    for sample in samples:
        key = (sample.sample_id, sample.repeat)
        earlier = ours.answers.get(key)
        if earlier is not None:
            is_same = earlier.sample.reply.text == sample.reply.text and earlier.sample.error == sample.error
            left_out[REPEATED if is_same else RETRIED] += 1
            if is_same or (is_answered(earlier.sample) and not is_answered(sample)):
                continue
        numbered = replace(sample, repeat=sample.repeat + ours.offset)
        ours.answers[key] = Answered(numbered, results, ours.first.evaluation)


def is_answered(sample: ToolSample) -> bool:
    """Tell whether a sample has an answer: no error, and a reply with a text."""
    return sample.error is None and bool(sample.reply.text and sample.reply.text.strip())
