"""What a check of a suite's file shows: a prompt as it is sent, and how the first sample would be scored."""

import json
import traceback
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from evalake.core.errors import ConfigurationError, EvalakeError, SuiteError
from evalake.models.request import Reply
from evalake.sdk.dataset import summary
from evalake.sdk.sources import as_text
from evalake.suites.declared.file import MistakesError, SuiteFile, read_suite_file
from evalake.suites.declared.make import Talk, make, right, scores_of, totals
from evalake.suites.declared.parts import Kind, Scorer
from evalake.suites.declared.replies import read_answer
from evalake.suites.declared.samples import Samples, example_rows, inside, row_of
from evalake.suites.declared.scorers import Case, applies, expected_of, function_of, question, score_by_rules
from evalake.suites.declared.texts import placed, template
from evalake.suites.places import places


def lines_of(path: Path) -> Iterator[str]:
    """Say what a suite's file declares. Raises SuiteError where the file, its dataset or its prompts are wrong."""
    file = read_suite_file(path)
    if mistakes := [*_name_taken(file), *_missing(file)] or list(_flaws_of_dataset(file)):
        raise MistakesError(mistakes)
    yield from file.notes
    suite = make(file)
    datasets = [suite.data.read(source) for source in file.sources]
    for dataset in datasets:
        counts = summary(dataset)
        yield f"{dataset.name}: {len(dataset.samples)} samples"
        yield from (f"  left out: {count} {reason}" for reason, count in counts.skipped.items())
    samples = [sample for dataset in datasets for sample in dataset.samples]
    rows = [row_of(each, file) for each in samples]
    first = next((n for n, row in enumerate(rows) if any(applies(each, row) for each in file.scorers)), 0)
    sample, columns = samples[first], rows[first]
    yield f"columns: {', '.join(name for name, value in columns.items() if value is not None)}"
    if mistakes := list(_flaws_of_scoring(file, rows, columns)):
        raise MistakesError(mistakes)
    talk = Talk(file)
    for prompt_type in file.prompts:
        yield f"\nprompt {prompt_type} of the sample {sample.sample_id}:"
        for message in talk.prompter.messages(prompt_type, columns):
            yield f"[{message['role']}] {message['content']}"
    yield from _scored(file, talk, columns)


def _name_taken(file: SuiteFile) -> Iterator[str]:
    try:
        other = places().get(file.called)
    except ConfigurationError as error:
        yield f"{placed(file.path, ['name'])}: {error}"
        return
    if other is not None and (other.file is None or other.file.resolve() != file.path.resolve()):
        yield f"{placed(file.path, ['name'])}: there is a suite {file.called} already, {other.description}: rename one"


def _missing(file: SuiteFile) -> Iterator[str]:
    """Find what the file names and is not there, and templates that are none."""
    prompter = Talk(file).prompter
    for name, prompt in file.prompts.items():
        where = ("prompts", name)
        field = "file" if prompt.file else "user"
        yield from _told(file, (*where, field), lambda name: template(prompter.text(name)), name)
        yield from _told(file, (*where, "system"), template, prompt.system or "")
        yield from _told(file, (*where, "answer"), template, prompt.answer)
        if prompt.examples is not None:
            examples = prompt.examples
            yield from _told(file, (*where, "examples"), lambda name: example_rows(file, inside(file, name)), examples)
    for number, scorer in enumerate(file.scorers):
        where = ("scorers", str(number))
        yield from _told(file, (*where, "rubric"), template, scorer.rubric or "")
        yield from _told(file, (*where, "expected"), template, scorer.expected or "")
        if scorer.kind == "python":
            yield from _told(file, (*where, "function"), function_of, file, scorer)


def _told(file: SuiteFile, where: Sequence[str], look: Callable[..., object], *about: Any) -> Iterator[str]:
    """Do something, and say where the file is wrong if it fails."""
    try:
        look(*about)
    except EvalakeError as error:
        yield f"{placed(file.path, where)}: {str(error).removeprefix(f'{file.path}: ')}"


def _flaws_of_dataset(file: SuiteFile) -> Iterator[str]:
    """Say why a source gives no sample: it, a column that it lacks, or a prompt that names another."""
    read = make(file).data.read
    for source in file.sources:
        for said in _told(file, ("dataset",), read, source):
            try:
                row = row_of(Samples(file)(source).samples[0], file)
            except EvalakeError:
                lost = [name for name, column in file.columns.items() if f"has no column {column!r}" in said]
                place = ("columns", lost[0]) if lost else ("dataset",)
                yield f"{placed(file.path, place)}: {said.partition(': dataset: ')[2]}"
                continue
            for name in file.prompts:
                yield from _told(file, ("prompts", name), Talk(file).prompter.messages, name, row)


def _flaws_of_scoring(file: SuiteFile, rows: Sequence[dict[str, Any]], columns: dict[str, Any]) -> Iterator[str]:
    """Try each scorer on a sample, and say what it raises; name columns that no sample has."""
    for name in file.slices:
        if all(row.get(name) is None for row in rows):
            yield f"{placed(file.path, ['slices'])}: no sample has a column {name!r}; there are {', '.join(columns)}"
    for number, scorer in enumerate(file.scorers):
        where = ("scorers", str(number))
        if not any(applies(scorer, row) for row in rows):
            yield f"{placed(file.path, [*where, 'where' if scorer.where else 'column'])}: no sample is scored by it"
        elif applies(scorer, columns):
            try:
                reply = _reply([scorer], columns)
                answer = read_answer(reply, file.reply)
                if scorer.kind == "judge":
                    question(scorer, columns, "", reply)
                elif answer.unreadable is None:
                    score_by_rules(scorer, file, Case(answer, reply, columns, expected_of(scorer, columns)))
            except SuiteError as error:
                field = "rubric" if scorer.kind == "judge" else "expected" if scorer.expected else "kind"
                yield f"{placed(file.path, [*where, field])}: {error}"
            except Exception as error:  # noqa: BLE001 - a user's function may raise anything
                last = traceback.extract_tb(error.__traceback__)[-1]
                raised = f"{last.filename}:{last.lineno}: {type(error).__name__}: {error}"
                yield f"{placed(file.path, [*where, 'function'])}: it failed at the first sample: {raised}"


def _reply(scorers: Sequence[Scorer], columns: dict[str, Any]) -> str:
    """Write the reply of a model that says what is expected."""
    used = [each for each in scorers if each.kind != "judge" and applies(each, columns)]
    expected = [value for each in used for value in expected_of(each, columns)] or [columns["target"]]
    return as_text(expected[0]) or "(some reply)"


def _scored(file: SuiteFile, talk: Talk, columns: dict[str, Any]) -> Iterator[str]:
    """Say how the first sample is scored where the model replies with its target."""
    reply = _reply(file.scorers, columns)
    answer = read_answer(reply, file.reply)
    yield f"\na model that replies {reply!r} is read as {answer.text!r}" + (
        f" ({answer.unreadable})" if answer.unreadable else ""
    )
    judging = [each for each in file.judges_by_model if applies(each, columns)]
    for judge in judging:
        yield f"\nthe judge of {judge.called} is asked:"
        for message in question(judge, columns, talk.prompter.asked(next(iter(file.prompts)), columns), reply):
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
    kinds = {name: Kind.of(kind) for name, kind in scorer.form.items()}
    return json.dumps({name: "(why)" if of.is_text else (*of.words, of.high)[0] for name, of in kinds.items()})
