"""Review: a batch of a run's results as a form for a person, and what the person says as labels."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any

from prefect.input import RunInput
from pydantic import Field, StringConstraints, create_model

from evalake.labels.sheets import labelling_of, lines_to_label, suite_of
from evalake.sdk import Labelling, Labels
from evalake.sdk.sheets import Line, questions_about, read_labels
from evalake.storage.lake import Lake

LONGEST_TITLE = 200
LONGEST_MATERIAL = 20_000  # characters of a prompt or an answer that are shown

Answers = Mapping[str, Any]

Annotator = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=r"\S")]


@dataclass(frozen=True)
class ReviewSheet:
    """What is to be reviewed: the lines of a sheet without the texts that they are about, as they were drawn."""

    lake: Lake
    suite: str
    lines: Sequence[Line]

    @classmethod
    def draw(cls, lake: Lake, run_id: str, size: int) -> tuple["ReviewSheet", str]:
        """Draw at most `size` results of the run that nobody has labelled; returns their texts, too, as Markdown.

        Raises as `lines_to_label` does.
        """
        suite, lines = suite_of(lake, run_id), lines_to_label(lake, run_id, size)
        labelling = labelling_of(suite, lake)
        texts = labelling.material
        short = [{name: value for name, value in line.items() if name not in texts} for line in lines]
        return cls(lake, suite, short), material(labelling, lines)

    def form(self, answers: Answers, problems: Sequence[str]) -> type[RunInput]:
        """Build the form: who fills it in, and the suite's questions about each line, with the answers given so far."""
        labelling = labelling_of(self.suite, self.lake)
        fields: dict[str, Any] = {
            name: (
                questions_about(labelling, line),
                Field(
                    default=answers.get(name, {}),
                    title=f"{number}. {title(line)}",
                    json_schema_extra={"position": number},
                ),
            )
            for number, (name, line) in enumerate(self._named(), start=1)
        }
        named: dict[str, Any] = {"title": "Your name", "json_schema_extra": {"position": 0}}
        if "annotator" in answers:
            named["default"] = answers["annotator"]
        form = create_model("Review", __base__=RunInput, annotator=(Annotator, Field(**named)), **fields)
        return form.with_initial_data(description="\n\n".join(self._introduction(problems)))

    def labels(self, answers: Answers, when: datetime) -> Labels:
        """Read the labels of a filled-in form. Line numbers of refusals are those of the form."""
        filled = [{**line, **_mapping(answers.get(name))} for name, line in self._named()]
        return read_labels(
            labelling_of(self.suite, self.lake), enumerate(filled, start=1), str(answers.get("annotator", "")), when
        )

    def _named(self) -> Iterator[tuple[str, Line]]:
        return ((f"line_{number}", line) for number, line in enumerate(self.lines, start=1))

    def _introduction(self, problems: Sequence[str]) -> Iterator[str]:
        if problems:
            yield "**Please correct what you said:**\n\n" + "\n".join(f"* {problem}" for problem in problems)
        yield "Leave empty what you do not want to say. What it is about is in the artifact of this run."
        yield "\n".join(f"{number}. {_quoted(title(line))}" for number, (_, line) in enumerate(self._named(), start=1))


def title(line: Line) -> str:
    """Describe a line in words: whose answer about which sample it is, and of a finding, what it claims."""
    whole = f"{line['sample_id']}, {line['model']}"
    if line.get("finding_id") is None:
        return whole
    claims = [str(value) for name, value in line.items() if name.endswith("_claimed") and value]
    return " ".join(f"{whole}, finding {line['finding_id']}: {', '.join(claims)}".split())[:LONGEST_TITLE]


def material(labelling: Labelling, lines: Sequence[Line]) -> str:
    """Write what the lines of a sheet are about, as Markdown: the same texts once, in the order of the lines."""
    parts: dict[str, str] = {}
    for number, line in enumerate(lines, start=1):
        texts = [(name, line[name]) for name in labelling.material if line.get(name)]
        shown = "\n\n".join(f"{name.replace('_', ' ')}:\n\n{_block(text)}" for name, text in texts)
        if shown:
            parts.setdefault(shown, f"## {number}. {_quoted(title(line))}")
    return "\n\n".join(f"{heading}\n\n{shown}" for shown, heading in parts.items()) or "The lake holds nothing of this."


def _quoted(text: str) -> str:
    """Write the text as Markdown that shows it and does nothing else."""
    return f"`{text.replace('`', chr(39))}`"


def _block(text: str) -> str:
    """Write the text as a Markdown block of its own, which nothing in the text can end."""
    cut = text[:LONGEST_MATERIAL] + ("\n[…]" if len(text) > LONGEST_MATERIAL else "")
    return "\n".join(f"    {line}" for line in cut.splitlines())


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
