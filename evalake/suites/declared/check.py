"""What a check of a suite's file shows: a prompt as it is sent, and how the first sample would be scored."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from evalake.core.errors import EvalakeError, SuiteError
from evalake.models.request import Reply
from evalake.sdk.sources import as_text, summary
from evalake.suites.declared.file import MistakesError, SuiteFile, placed, read_suite_file
from evalake.suites.declared.judge import question
from evalake.suites.declared.make import Talk, make, right, scores_of, totals
from evalake.suites.declared.parts import Kind, Scorer
from evalake.suites.declared.replies import read_answer
from evalake.suites.declared.samples import row_of
from evalake.suites.declared.scorers import applies, expected_of, function_of
from evalake.suites.declared.templates import template


def lines_of(path: Path) -> Iterator[str]:
    """Say what a suite's file declares. Raises SuiteError where the file, its dataset or its prompts are wrong."""
    file = read_suite_file(path)
    if mistakes := list(_mistakes(file)):
        raise MistakesError(mistakes)
    yield from file.notes
    suite = make(file)
    datasets = [suite.data.read(source) for source in file.sources]
    for dataset in datasets:
        counts = summary(dataset)
        yield f"{dataset.name}: {len(dataset.samples)} samples"
        yield from (f"  left out: {count} {reason}" for reason, count in counts.skipped.items())
    sample = datasets[0].samples[0]
    columns = row_of(sample, file)
    yield f"columns: {', '.join(name for name, value in columns.items() if value is not None)}"
    rows = [row_of(each, file) for each in datasets[0].samples]
    if lost := [name for name in file.slices if all(row.get(name) is None for row in rows)]:
        there = ", ".join(columns)
        raise MistakesError([f"{placed(path, 'slices')}: no sample has a column {lost[0]!r}; there are {there}"])
    talk = Talk(file)
    for prompt_type in file.prompts:
        yield f"\nprompt {prompt_type} of the sample {sample.sample_id}:"
        for message in talk.prompter.messages(prompt_type, columns):
            yield f"[{message['role']}] {message['content']}"
    yield from _scored(file, talk, columns)


def _mistakes(file: SuiteFile) -> Iterator[str]:
    """Find what the file names and is not there: files, templates, functions, datasets."""
    talk = Talk(file)
    for name in file.prompts:
        try:
            template(talk.prompter.text(name))
        except SuiteError as error:
            yield f"{placed(file.path, 'prompts', name)}: {error}"
    for number, scorer in enumerate(file.scorers):
        try:
            if scorer.kind == "python":
                function_of(file, scorer)
            for text in (scorer.rubric, scorer.expected):
                template(text or "")
        except SuiteError as error:
            yield f"{placed(file.path, 'scorers', str(number))}: {error}"
    for source in file.sources:
        try:
            make(file).data.read(source)
        except EvalakeError as error:
            yield f"{placed(file.path, 'dataset')}: {error}"


def _scored(file: SuiteFile, talk: Talk, columns: dict[str, Any]) -> Iterator[str]:
    """Say how the first sample is scored where the model replies with its target."""
    used = [each for each in file.scorers if each.kind != "judge" and applies(each, columns)]
    expected = [value for each in used for value in expected_of(each, columns)] or [columns["target"]]
    reply = as_text(expected[0]) or "(some reply)"
    answer = read_answer(reply, file.reply)
    yield f"\na model that replies {reply!r} is read as {answer.text!r}" + (
        f" ({answer.unreadable})" if answer.unreadable else ""
    )
    judging = [each for each in file.judges_by_model if applies(each, columns)]
    for judge in judging:
        yield f"\nthe judge of {judge.called} is asked:"
        for message in question(judge, columns, talk.asked(next(iter(file.prompts)), columns), reply):
            yield f"[{message['role']}] {message['content']}"
    replies = [Reply(reply), *(Reply(_best(each)) for each in judging)]
    scored = scores_of(file, columns, replies)
    for scorer in file.scorers:
        if (each := scored.get(scorer.called)) is not None:
            verdict = {True: "right", False: "wrong", None: "cannot say"}[right(scorer, each)]
            value = "no value" if each.value is None else f"{each.value:g}"
            yield f"{scorer.called}: {value}, {verdict}{f' ({each.why})' if each.why else ''}"
        else:
            yield f"{scorer.called}: does not score this sample"
    whole = totals(file, scored)
    yield f"correct: {whole['correct']}, score: {whole['score']}"


def _best(scorer: Scorer) -> str:
    """Fill in a judge's form with the best value of each field."""
    import json

    kinds = {name: Kind.of(kind) for name, kind in scorer.form.items()}
    best = {
        name: "(why)" if kind.is_text else kind.words[0] if kind.words else kind.high for name, kind in kinds.items()
    }
    return json.dumps(best)
