"""What people wrote into a sheet or a form, as rows of `human_labels`; and the form, from what a suite declares."""

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, GetJsonSchemaHandler, create_model
from pydantic_core import CoreSchema

from contracts.tables.human_labels import answered
from core.errors import SourceError
from core.hashing import content_hash
from suites.base.labelling import ANSWER, YES_NO, Labelling, Labels, Question, Refusal, Stage
from suites.base.sheet_lines import stage_of
from suites.base.sheets import Line, NumberedLine
from suites.base.sources import is_storable

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
    number = labelling.stages.index(stages[0]) if len(stages) == 1 else "s"
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
                labels = [row for stage in labelling.stages for row in _labels(labelling, stage, line, annotator, when)]
            except SourceError as error:
                refused.append(Refusal(where, str(error)))
            else:
                rows |= {row["label_id"]: row for row in labels}
    return Labels(list(rows.values()), refused, empty)


def _labels(
    labelling: Labelling, stage: Stage, line: Line, annotator: str, when: datetime
) -> Sequence[Mapping[str, Any]]:
    """Read the answers of a line to the questions of one stage."""
    who = _text(line, "annotator") or _text(line, FORMER_ANNOTATOR) or annotator
    finding = _whole(line, "finding_id")
    answers = {question.name: _answer(line, question) for question in stage.questions}
    given = [question.heading for question in stage.questions if answers[question.name] is not None]
    if given and stage.each is not None and finding is None:
        raise SourceError(f"{given[0]} is for the lines of findings, which have a finding_id")
    identity = {name: _needed(line, name) for name in ("sample_id", "sample_hash", "model", "prompt_type")}
    replicate = _whole(line, "replicate") or 0
    judge_hash = _text(line, "judge_hash") if finding is not None else None
    item = [_needed(line, "prompt_hash"), identity["sample_hash"], replicate]
    about = item if stage.about == ANSWER else [None, identity["sample_hash"], None]
    word = {
        "label_id": content_hash([labelling.suite, *about, judge_hash, finding, who]),
        "suite": labelling.suite,
        **identity,
        "judge": _text(line, "judge") if finding is not None else None,
        "replicate": replicate,
        "finding_id": finding,
        "annotator": who,
        "inclusion_probability": _number(line, "inclusion_probability", 1.0),
        "draw": _text(line, "draw"),
        "labelled_at": when,
        "note": _text(line, "note"),
    }
    return answered(word, answers)


def _absent(value: Any) -> bool:
    return value is None or (isinstance(value, str) and not value.strip())


def _answer(line: Line, question: Question) -> str | float | None:
    if not question.answers:
        return _number(line, question.heading, question.most)
    if question.answers == YES_NO:
        return _yes_no(line, question.heading)
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


def _choice(line: Line, name: str, allowed: Sequence[str]) -> str | None:
    value = _text(line, name)
    known = {word.lower(): word for word in allowed}
    if value is not None and value.lower() not in known:
        raise SourceError(f"{name} is {ascii(value)[:60]}: write one of {', '.join(allowed)}")
    return None if value is None else known[value.lower()]


def _yes_no(line: Line, name: str) -> str | None:
    value = line.get(name)
    if _absent(value):
        return None
    yes, no = YES_NO
    known = {"yes": yes, "true": yes, "1": yes, "no": no, "false": no, "0": no}
    answer = known.get(str(value).strip().lower())
    if answer is None:
        raise SourceError(f"{name} is {ascii(value)[:60]}: write yes or no")
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
