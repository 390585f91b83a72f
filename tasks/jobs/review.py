"""Review: a batch of a run's results as a form for a person, and what the person says as labels."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any

import polars as pl
from prefect.input import RunInput
from pydantic import Field, StringConstraints, create_model

from contracts.tables import CALLS
from storage.lake import Lake
from storage.ledger import replies
from suites.base import Labels
from suites.base.sheets import Line
from tasks.jobs.label import labelling_of, lines_to_label, suite_of

LONGEST_TITLE = 200
LONGEST_MATERIAL = 20_000  # characters of a prompt or an answer that are shown

Answers = Mapping[str, Any]

Annotator = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=r"\S")]


@dataclass(frozen=True)
class Batch:
    """What is to be reviewed: the lines of a sheet, which stay as they were drawn whatever is labelled meanwhile."""

    suite: str
    lines: Sequence[Line]

    @classmethod
    def draw(cls, lake: Lake, run_id: str, size: int) -> "Batch":
        """Draw at most `size` results of the run that nobody has labelled. Raises as `lines_to_label` does."""
        return cls(suite_of(lake, run_id), lines_to_label(lake, run_id, size))

    def form(self, answers: Answers, problems: Sequence[str]) -> type[RunInput]:
        """The form: who fills it in, and the suite's questions about each line, with the answers given so far."""
        questions = labelling_of(self.suite).questions
        fields: dict[str, Any] = {
            name: (
                questions(line),
                Field(default=answers.get(name, {}), title=title(line), json_schema_extra={"position": number}),
            )
            for number, (name, line) in enumerate(self._named(), start=1)
        }
        named: dict[str, Any] = {"title": "Your name", "json_schema_extra": {"position": 0}}
        if "annotator" in answers:
            named["default"] = answers["annotator"]
        form = create_model("Review", __base__=RunInput, annotator=(Annotator, Field(**named)), **fields)
        return form.with_initial_data(description="\n\n".join(self._introduction(problems)))

    def labels(self, answers: Answers, when: datetime) -> Labels:
        """What a filled-in form says. Line numbers of refusals are those of the form."""
        filled = [{**line, **_mapping(answers.get(name))} for name, line in self._named()]
        return labelling_of(self.suite).read(enumerate(filled, start=1), str(answers.get("annotator", "")), when)

    def _named(self) -> Iterator[tuple[str, Line]]:
        return ((f"line_{number}", line) for number, line in enumerate(self.lines, start=1))

    def _introduction(self, problems: Sequence[str]) -> Iterator[str]:
        if problems:
            yield "**Please correct what you said:**\n\n" + "\n".join(f"* {problem}" for problem in problems)
        yield "Leave empty what you do not want to say. What was asked and answered is in the artifact of this run."
        yield "\n".join(f"{number}. {_quoted(title(line))}" for number, (_, line) in enumerate(self._named(), start=1))


def title(line: Line) -> str:
    """A line in words: whose answer about which sample it is, and for a finding, what it claims."""
    whole = f"{line['sample_id']}, {line['model']}"
    if line.get("finding_id") is None:
        return whole
    claims = [str(value) for name, value in line.items() if name.endswith("_claimed") and value]
    return " ".join(f"{whole}, finding {line['finding_id']}: {', '.join(claims)}".split())[:LONGEST_TITLE]


def material(lake: Lake, batch: Batch) -> str:
    """What the models of a batch were asked and what they answered, as Markdown."""
    keys = pl.DataFrame(
        [(line["prompt_hash"], line["replicate"]) for line in batch.lines],
        schema={"prompt_hash": pl.String, "replicate": pl.Int64},
        orient="row",
    )
    wanted = pl.col("prompt_hash").is_in(keys["prompt_hash"].unique().implode())
    known = replies(lake.frame(CALLS).filter(wanted)).select("prompt_hash", "replicate", "request", "response")
    calls = {(row["prompt_hash"], row["replicate"]): row for row in known.collect().iter_rows(named=True)}
    parts = []
    for line in batch.lines:
        call = calls.get((line["prompt_hash"], line["replicate"]))
        if line.get("finding_id") is None and call is not None:
            shown = [_block(text) for text in (_asked(call["request"]), call["response"]) if text]
            parts.append("\n\n".join([f"## {_quoted(title(line))}", *shown]))
    return "\n\n".join(parts) or "The ledger holds nothing of this."


def _asked(request: str) -> str | None:
    """The last message of a request; None for an imported one, which was never rendered."""
    known = json.loads(request)
    messages = known.get("messages") if isinstance(known, dict) else None
    return str(messages[-1]["content"]) if messages else None


def _quoted(text: str) -> str:
    """The text as Markdown that shows it and does nothing else."""
    return f"`{text.replace('`', chr(39))}`"


def _block(text: str) -> str:
    """The text as a Markdown block of its own, which nothing in the text can end."""
    cut = text[:LONGEST_MATERIAL] + ("\n[…]" if len(text) > LONGEST_MATERIAL else "")
    return "\n".join(f"    {line}" for line in cut.splitlines())


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
