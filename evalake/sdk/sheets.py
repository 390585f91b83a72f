"""Sheets that people fill in: their lines as text, in CSV or JSON Lines, and back."""

import csv
import io
import json
import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Annotated, Any, Literal

import numpy as np
import polars as pl
from pydantic import BaseModel, ConfigDict, Field, GetJsonSchemaHandler, create_model
from pydantic_core import CoreSchema

from evalake.contracts.tables import CALLS, SAMPLES
from evalake.contracts.tables.ledger import CALL_KEY
from evalake.contracts.tables.people import DISPUTES, HUMAN_LABELS, answered
from evalake.core.errors import SourceError
from evalake.core.hashing import content_hash
from evalake.core.redaction import is_formula
from evalake.sdk.dataset import draw
from evalake.sdk.json_in_text import DoubledKeyError, decode_once
from evalake.sdk.people import ANSWER, YES_NO, Labelling, Labels, Question, Refusal, Seen, Stage
from evalake.sdk.sources import is_storable

SheetFormat = Literal["csv", "jsonl"]
Line = Mapping[str, Any]
NumberedLine = tuple[int, Line | str]
"""A line with its number; in place of one that cannot be read, what is wrong with it."""


def write_sheet(lines: Iterable[Line], columns: Sequence[str], form: SheetFormat) -> str:
    """Write a sheet. In CSV, a text that a spreadsheet would take for a formula is kept from being one by a `'`."""
    if form == "jsonl":
        return "".join(json.dumps(dict(line), ensure_ascii=False) + "\n" for line in lines)
    out = io.StringIO()
    writer = csv.DictWriter(out, columns)  # ends lines with CR LF, so that it quotes a cell that holds either
    writer.writeheader()
    writer.writerows({name: _as_text(line[name]) for name in columns} for line in lines)
    return out.getvalue()


def read_sheet(text: str, form: SheetFormat, needed: Collection[str]) -> Iterator[NumberedLine]:
    """Read the lines of a sheet.

    Args:
        text: The sheet.
        form: How it is written.
        needed: The columns without which a CSV file is no such sheet.

    Yields:
        The lines that are not empty.

    Raises:
        SourceError: The text is no sheet at all.
    """
    if form == "jsonl":
        for number, raw in enumerate(text.split("\n"), start=1):  # no other line end is one in JSON Lines
            if raw.strip():
                yield number, _json_line(raw)
        return
    reader = csv.reader(io.StringIO(text.removeprefix("\ufeff")), strict=True)
    try:
        header = next(reader, [])
        if missing := {*needed} - {*header}:
            raise SourceError(f"this is no sheet of labels: it has no column {min(missing)}")
        if twice := [name for name, times in Counter(header).items() if name and times > 1]:
            raise SourceError(f"the sheet has two columns named {twice[0]!r}: delete or rename one of them")
        for cells in reader:
            if cells:
                line = {name: cell.removeprefix("'") for name, cell in zip(header, cells, strict=False)}
                yield reader.line_num, line if len(cells) == len(header) else "it has more or fewer cells than columns"
    except csv.Error as error:
        raise SourceError(f"the sheet cannot be read as CSV in line {reader.line_num}: {error}") from error


def _as_text(value: Any) -> Any:
    """Write a cell that no spreadsheet runs: text that begins like a formula, or with `'` itself, gets a `'`."""
    if isinstance(value, str) and (value.startswith("'") or is_formula(value)):
        return f"'{value}"
    return value


def _json_line(raw: str) -> Line | str:
    try:
        value = decode_once(raw)
    except DoubledKeyError as error:
        return str(error)
    except (ValueError, RecursionError):
        return "it is not JSON"
    return value if isinstance(value, dict) else "it is not a JSON object"


# The lines of a sheet, from what a suite declares: the results that were drawn, and what people are to be shown.


IDENTITY = (*("sample_id", *ANSWER, "prompt_hash"), *("judge", "judge_hash", "finding_id"))
DRAWN = ("inclusion_probability", "draw")
NEEDED = ("prompt_hash", "sample_hash", "model")
"""The columns without which a file is no sheet."""

LONGEST_TEXT = 30_000
"""Characters of a text that a sheet shows: a cell of a spreadsheet holds few more."""

_ITEM = ("prompt_hash", "sample_hash", "replicate")
_JUDGED = (*_ITEM, "judge_hash")

Tables = Mapping[str, pl.DataFrame]


def columns(labelling: Labelling) -> tuple[str, ...]:
    """List the columns of a sheet."""
    claims = tuple(name for stage in labelling.asked for name in stage.claims)
    answers = tuple(question.heading for question in labelling.questions)
    return (*IDENTITY, *DRAWN, *labelling.material, *claims, "fill_in", *answers, "note", "annotator")


def candidates(labelling: Labelling, results: pl.DataFrame, labels: pl.DataFrame) -> pl.DataFrame:
    """Find the units of a run that nobody has labelled yet, with `weight`: how informative a label would be."""
    units = results.filter(labelling.counted).group_by(labelling.unit).agg(weight=labelling.worth.cast(pl.Float64))
    said = labels.filter(pl.col("suite") == labelling.suite, pl.col("question") != DISPUTES)
    done = said.select(labelling.unit).unique()
    return units.join(done, on=labelling.unit, how="anti").sort(labelling.unit)


def lines_to_fill_in(labelling: Labelling, results: pl.DataFrame, tables: Tables, size: int, seed: int) -> list[Line]:
    """Draw about `size` results and write the lines of a sheet about them, to be filled in.

    Args:
        labelling: What is asked.
        results: The run's result rows.
        tables: Rows of the suite's further tables, of `samples`, of `calls` with their replies and of `human_labels`.
        size: How many units are drawn.
        seed: The same seed draws the same units.

    Returns:
        The lines of blind stages, then those of the others, unit by unit.
    """
    drawn = draw(candidates(labelling, results, tables[HUMAN_LABELS.table]), size, seed)
    return _lines(labelling, _answers(labelling, results, drawn, tables, np.random.default_rng(seed)), tables)


def lines_about(labelling: Labelling, results: pl.DataFrame, tables: Tables) -> list[Line]:
    """Write the lines about every answer among `results`: picked, so without a probability or a draw."""
    units = results.filter(labelling.counted).select(_ITEM).unique(maintain_order=True)
    picked = units.with_columns(pl.lit(None).alias(name) for name in DRAWN)
    every = replace(labelling, unit=tuple(units.columns))
    lines = _lines(labelling, _answers(every, results, picked, tables, np.random.default_rng(0)), tables)
    once = {stage.fill_in for stage in labelling.asked if stage.about != ANSWER}
    known: dict[tuple[Any, ...], Line] = {}
    for number, line in enumerate(lines):
        known.setdefault((line["fill_in"], line["sample_hash"] if line["fill_in"] in once else number), line)
    return list(known.values())


def _lines(labelling: Labelling, answers: Iterable[tuple[dict[str, Any], float, Seen]], tables: Tables) -> list[Line]:
    """Write the lines of blind stages, then those of the others, answer by answer."""
    below = [_below(stage, tables) for stage in labelling.asked]
    rows: dict[bool, list[Line]] = {True: [], False: []}
    for shared, share, seen in answers:
        for stage, parts in zip(labelling.asked, below, strict=True):
            if stage.where(seen):
                chance = shared["inclusion_probability"]
                if chance is not None and stage.about == ANSWER:
                    chance *= share
                asked = dict.fromkeys(columns(labelling)) | shared | {"inclusion_probability": chance}
                texts = {heading: _cut(show(seen)) for heading, show in stage.shown.items()}
                claims = parts.get(tuple(seen.result[name] for name in _JUDGED), []) if stage.each else [{}]
                rows[stage.blind] += [asked | texts | claim | {"fill_in": stage.fill_in} for claim in claims]
    return [*rows[True], *rows[False]]


def _answers(
    labelling: Labelling, results: pl.DataFrame, drawn: pl.DataFrame, tables: Tables, rng: np.random.Generator
) -> Iterator[tuple[dict[str, Any], float, Seen]]:
    """Yield one answer of each drawn unit, drawn at random: its identity, its probability, and what may be shown."""
    first = results.filter(labelling.counted).sort("judge", "judge_hash").unique(_ITEM, keep="first")
    first = first.sort(*ANSWER, "prompt_hash")
    by_unit = first.partition_by(labelling.unit, as_dict=True)
    samples = {row["sample_hash"]: row for row in tables[SAMPLES.table].iter_rows(named=True)}
    calls = tables[CALLS.table].select(*CALL_KEY, "response").iter_rows()
    replies = {tuple(key): response for *key, response in calls}
    for unit in drawn.iter_rows(named=True):
        answers = by_unit[tuple(unit[name] for name in labelling.unit)]
        result = answers.row(int(rng.integers(answers.height)), named=True)
        identity = {name: result[name] for name in (*ANSWER, "prompt_hash")} | {name: unit[name] for name in DRAWN}
        identity["sample_id"] = blind_name(result["sample_hash"])
        reply = replies.get(tuple(result[name] for name in CALL_KEY))
        yield identity, 1 / answers.height, Seen(result, samples.get(result["sample_hash"], {}), reply)


def _below(stage: Stage, tables: Tables) -> dict[tuple[Any, ...], list[dict[str, Any]]]:
    """Group the rows that a stage asks about, like findings, by answer and judgement."""
    if stage.each is None:
        return {}
    shown = dict.fromkeys((*_JUDGED, *stage.claims, "judge", "finding_id"))
    return stage.each(tables).sort("finding_id").select(*shown).rows_by_key(_JUDGED, named=True, include_key=True)


def _cut(text: str | None) -> str | None:
    return text if text is None or len(text) <= LONGEST_TEXT else text[:LONGEST_TEXT] + "\n[…]"


def blind_name(sample_hash: str) -> str:
    """Make the name of a sample in a sheet, which tells it from others and says nothing about it."""
    return f"sample-{sample_hash[:12]}"


def stage_of(labelling: Labelling, line: Line) -> Sequence[Stage]:
    """Find the stages whose questions are for a line: its own, or all of its kind where it does not name one."""
    below = line.get("finding_id") is not None
    own = [stage for stage in labelling.asked if (stage.each is not None) == below]
    return [stage for stage in own if stage.fill_in == line.get("fill_in")] or own


# What people wrote into a sheet or a form, as rows of `human_labels`; and the form, from what a suite declares.


FORMER_ANNOTATOR = "labeller"  # the name of that column in older sheets

Note = Annotated[str, Field(max_length=2000)]


class Questions(BaseModel):
    """Questions that may each be left empty. The title of a field is the question, in words."""

    model_config = ConfigDict(extra="forbid")

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """Describe each field by its type alone: with null beside it, a form would first ask which one it is."""
        described = handler(core_schema)
        for field in handler.resolve_ref_schema(described).get("properties", {}).values():
            kinds = [kind for kind in field.get("anyOf", ()) if kind != {"type": "null"}]
            if len(kinds) == 1:
                del field["anyOf"]
                field.pop("default", None)
                field.update(kinds[0])
        return described


def questions_about(labelling: Labelling, line: Line) -> type[BaseModel]:
    """Build the form that asks about a line; the answers are columns of the line."""
    stages = stage_of(labelling, line)
    fields: dict[str, Any] = {
        question.heading: (_kind(question), Field(None, title=question.title, description=question.help or None))
        for stage in stages
        for question in stage.questions
    }
    fields["note"] = (Note | None, Field(None, title="Why do you say so?"))
    number = labelling.asked.index(stages[0]) if len(stages) == 1 else "s"
    form = create_model(f"Stage{number}", __base__=Questions, **fields)
    form.__doc__ = f"{' '.join(stage.words for stage in stages)} What is left empty is not said.".strip()
    return form


def _kind(question: Question) -> Any:
    if question.answers:
        return Literal[question.answers] | None
    return Annotated[float, Field(ge=0, le=question.most)] | None


def read_labels(labelling: Labelling, lines: Iterable[NumberedLine], annotator: str, when: datetime) -> Labels:
    """Read the labels of the lines of a sheet; a bad line is refused with its number.

    Args:
        labelling: What was asked.
        lines: The filled-in lines.
        annotator: Who filled in the lines that do not say so themselves.
        when: When they were filled in.
    """
    rows: dict[str, Mapping[str, Any]] = {}  # by label id: of two answers to one question the last counts
    refused: list[Refusal] = []
    empty = 0
    for number, line in lines:
        where = f"line {number}"
        if isinstance(line, str):
            refused.append(Refusal(where, line))
        elif all(_absent(line.get(question.heading)) for question in labelling.questions):
            empty += 1
        else:
            try:
                labels = [row for stage in labelling.asked for row in _labels(labelling, stage, line, annotator, when)]
                rows |= {row["label_id"]: row for row in labels}
            except SourceError as error:
                refused.append(Refusal(where, str(error)))
    return Labels(list(rows.values()), refused, empty)


def _labels(
    labelling: Labelling, stage: Stage, line: Line, annotator: str, when: datetime
) -> Sequence[Mapping[str, Any]]:
    """Read the answers of a line to the questions of one stage."""
    who = _text(line, "annotator") or _text(line, FORMER_ANNOTATOR) or annotator
    finding, chance = _whole(line, "finding_id"), _number(line, "inclusion_probability", 1.0)
    if chance == 0:
        raise SourceError("inclusion_probability is 0, but what was drawn had some chance: restore the sheet's number")
    answers = {question.name: _answer(line, question) for question in stage.questions}
    given = [question.heading for question in stage.questions if answers[question.name] is not None]
    if given and stage.each is not None and finding is None:
        raise SourceError(f"{given[0]} is for the lines of findings, which have a finding_id")
    word = {
        "label_id": word_id(labelling, stage, line, who),
        "suite": labelling.suite,
        **{name: _needed(line, name) for name in ("sample_id", "sample_hash", "model", "prompt_type")},
        "judge": _text(line, "judge") if finding is not None else None,
        "replicate": _whole(line, "replicate") or 0,
        "finding_id": finding,
        "annotator": who,
        "inclusion_probability": chance,
        "draw": _text(line, "draw"),
        "labelled_at": when,
        "note": _text(line, "note"),
    }
    return answered(word, answers)


def word_id(labelling: Labelling, stage: Stage, line: Line, annotator: str) -> str:
    """Identify what a line of a stage is about, and who speaks: by it a later answer replaces an earlier one."""
    finding = _whole(line, "finding_id")
    judge_hash = _text(line, "judge_hash") if finding is not None else None
    sample = _needed(line, "sample_hash")
    item = [_needed(line, "prompt_hash"), sample, _whole(line, "replicate") or 0]
    about = item if stage.about == ANSWER else [None, sample, None]
    return content_hash([labelling.suite, *about, judge_hash, finding, annotator])


def _absent(value: Any) -> bool:
    return value is None or (isinstance(value, str) and not value.strip())


def _answer(line: Line, question: Question) -> str | float | None:
    if not question.answers:
        return _number(line, question.heading, question.most)
    return _choice(line, question.heading, question.answers)


def _text(line: Line, name: str) -> str | None:
    value = line.get(name)
    if _absent(value):
        return None
    if not isinstance(value, str) or not is_storable(value):
        raise SourceError(f"{name} is not text that can be stored")
    return value.strip()


def _needed(line: Line, name: str) -> str:
    value = _text(line, name)
    if value is None:
        raise SourceError(f"{name} is missing: keep the columns of the sheet as they were exported")
    return value


_BOOLEANS = {"true": "yes", "1": "yes", "false": "no", "0": "no"}


def _choice(line: Line, name: str, allowed: Sequence[str]) -> str | None:
    is_yes_no = tuple(allowed) == YES_NO
    value = line.get(name) if is_yes_no else _text(line, name)
    if _absent(value):
        return None
    known = {word.lower(): word for word in allowed} | (_BOOLEANS if is_yes_no else {})
    if (answer := known.get(str(value).strip().lower())) is None:
        write = "yes or no" if is_yes_no else f"one of {', '.join(allowed)}"
        raise SourceError(f"{name} is {ascii(value)[:60]}: write {write}")
    return answer


def _number(line: Line, name: str, most: float) -> float | None:
    value = line.get(name)
    if _absent(value):
        return None
    try:
        number = math.nan if isinstance(value, bool) else float(str(value).strip().replace(",", "."))
    except ValueError:
        number = math.nan
    if not 0 <= number <= most:
        raise SourceError(f"{name} is {ascii(value)[:60]}: write a number from 0 to {most:g}")
    return number


def _whole(line: Line, name: str) -> int | None:
    value = line.get(name)
    if _absent(value):
        return None
    text = str(value).strip().removesuffix(".0")
    if isinstance(value, bool) or not text.removeprefix("-").isdecimal() or not text.isascii() or len(text) > 10:
        raise SourceError(f"{name} is {ascii(value)[:60]}: keep it as it was exported")
    return int(text)
