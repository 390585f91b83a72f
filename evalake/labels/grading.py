"""Grade and review: a draw one line at a time or as a form, agreement between people, and what they dispute.

A draw is known by its hash, which the labels keep. It is among what was unlabelled when its first label came, so it is
made again from the labels before that, and goes on for each person who has not answered all of it. An answer that was
corrected has a later time than the first one, so it may be one of those before.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import combinations
from typing import TYPE_CHECKING, Annotated, Any

import polars as pl
from pydantic import Field, StringConstraints, create_model

from evalake.contracts.tables import HUMAN_LABELS
from evalake.contracts.tables.people import DISPUTES, YES, answered
from evalake.core.errors import UsageError
from evalake.core.hashing import content_hash
from evalake.labels.sheets import labelling_of, land_labels, lines_to_label, material_of, suite_of, tables_of, word_on
from evalake.metrics.agreement import WEIGHED_PAIRS, agreement_table
from evalake.sdk import Labelling, Labels, Suite, sheets
from evalake.sdk.dataset import draw
from evalake.sdk.people import LABEL, Question, paired, with_people
from evalake.sdk.sheets import Line
from evalake.storage.lake import Lake
from evalake.storage.landing import Landed
from evalake.tasks.runtime.context import SEED

if TYPE_CHECKING:
    from prefect.input import RunInput


@dataclass(frozen=True)
class Grading:
    """A run as people grade it: its result rows, and all labels."""

    lake: Lake
    suite: Suite
    labelling: Labelling
    tables: Mapping[str, pl.DataFrame]

    @classmethod
    def read(cls, lake: Lake, suite: Suite, run_id: str) -> "Grading":
        """Read the parts of a run's lines. Raises UsageError where its suite asks people nothing."""
        labelling = labelling_of(suite.name, lake)
        return cls(lake, suite, labelling, tables_of(lake, run_id))

    @property
    def labels(self) -> pl.DataFrame:
        """What people said of results of the suite."""
        return self.tables[HUMAN_LABELS.table].filter(pl.col("suite") == self.suite.name)

    def draws(self, size: int) -> Iterator[list[Line]]:
        """Yield the begun draws of this size, newest first, then a new draw from unlabelled results."""
        begun = self.labels.drop_nulls("draw").group_by("draw").agg(pl.col("labelled_at").min())
        for draw_hash, since in begun.sort("labelled_at", descending=True).iter_rows():
            before, of_draw = pl.col("labelled_at") < since, pl.col("draw")
            earlier = before | of_draw.is_in(begun.filter(before)["draw"].implode())
            others = of_draw.ne_missing(draw_hash)
            tries = (self._drawn(size, self.labels.filter(each), draw_hash) for each in (before, earlier, others))
            yield from next(filter(None, map(list, tries)), [])
        yield from self._drawn(size, self.labels)

    def _drawn(self, size: int, labels: pl.DataFrame, known: str | None = None) -> Iterator[list[Line]]:
        """Yield the lines of a draw; nothing where it is not the one that is known."""
        units = draw(sheets.candidates(self.labelling, self._results, labels), size, SEED)
        if not units.is_empty() and known in (None, units["draw"][0]):
            shown = material_of(self.lake, self._results.join(units, on=self.labelling.unit, how="semi"))
            tables = {**self.tables, **shown, HUMAN_LABELS.table: labels}
            yield sheets.lines_to_fill_in(self.labelling, self._results, tables, size, SEED)

    def about(self, sample_hash: str) -> list[Line]:
        """Write the lines about every answer to one sample: picked, not drawn."""
        ours = self._results.filter(pl.col("sample_hash") == sample_hash)
        return sheets.lines_about(self.labelling, ours, {**self.tables, **material_of(self.lake, ours)})

    @property
    def _results(self) -> pl.DataFrame:
        return self.tables[self.suite.results.table]


def answered_by(labelling: Labelling, line: Line, annotator: str, known: frozenset[str]) -> bool:
    """Tell whether a person has answered a question of a line; `known` are ids of labels."""
    return any(
        content_hash([sheets.word_id(labelling, stage, line, annotator), question.name]) in known
        for stage in sheets.stage_of(labelling, line)
        for question in stage.questions
    )


def is_blind(labelling: Labelling, line: Line) -> bool:
    """Tell whether a line is asked before anything else of its sample may be seen."""
    return any(stage.blind for stage in sheets.stage_of(labelling, line))


def texts_of(labelling: Labelling, line: Line) -> dict[str, str]:
    """Find the content of a line, by heading: its texts, and the claims of a finding."""
    names = [name for stage in sheets.stage_of(labelling, line) for name in (*stage.shown, *stage.claims)]
    return {name: str(line[name]) for name in dict.fromkeys(names) if line.get(name) not in (None, "")}


# Agreement between people


def between_people(lake: Lake, suite: Suite, run_id: str) -> pl.DataFrame:
    """Measure how far every two people agree who answered the same questions of a run, as `agreement_table` does.

    Everything that both labelled counts alike. Raises UsageError where no two people answered the same.
    """
    labelling = labelling_of(suite.name, lake)
    tables = tables_of(lake, run_id)
    labels = tables[HUMAN_LABELS.table].filter(pl.col("suite") == suite.name)
    units = tables[suite.results.table].select("sample_hash", "cluster").unique("sample_hash", keep="first")
    pairs = [pl.DataFrame(schema=WEIGHED_PAIRS)]
    for stage in labelling.asked:
        about = [*stage.about, *(("judge", "finding_id") if stage.each else ())]
        ours = labels.join(tables[suite.results.table].select(stage.about).unique(), on=stage.about, how="semi")
        for question in stage.questions:
            said = ours.filter(pl.col("question") == question.name).sort("labelled_at", "label_id")
            said = said.unique([*about, "annotator"], keep="last", maintain_order=True).join(units, on="sample_hash")
            pairs += _pairs(said, about, question)
    every = pl.concat(pairs)
    if every.is_empty():
        raise UsageError(f"no two people have answered the same questions of run {run_id}: label one draw by two")
    return agreement_table(every, list(dict.fromkeys(question.decision for question in labelling.questions)))


def _pairs(said: pl.DataFrame, about: Sequence[str], question: Question) -> Iterator[pl.DataFrame]:
    """Pair the answers of every two people to one question."""
    by_person = {str(name): rows for (name,), rows in said.sort("annotator").group_by("annotator", maintain_order=True)}
    for one, other in combinations(by_person, 2):
        both = by_person[one].join(by_person[other], on=about, suffix="_2", nulls_equal=True)
        columns = {"answer": "answer" if question.answers else "score", "human": "answer_2", "human_score": "score_2"}
        whose = pl.lit(f"{one} and {other}")
        yield paired(both.select("cluster", **columns, whose=whose, human_weight=pl.lit(1.0)), question)


# Disputes: a person holds a sample's ground truth to be wrong


def dispute(
    lake: Lake, suite: Suite, sample: Mapping[str, Any], annotator: str, *, is_wrong: bool, note: str | None
) -> Landed:
    """Keep that a person disputes a sample's ground truth, or no longer does."""
    sample_id, sample_hash, model = (str(sample[name]) for name in ("sample_id", "sample_hash", "model"))
    word = word_on(suite, sample_id, sample_hash, model, annotator, datetime.now(UTC), note)
    return land_labels(lake, Labels(answered(word, {DISPUTES: is_wrong}), [], 0)).landed


def disputed(lake: Lake, suite: Suite, run_id: str) -> pl.DataFrame:
    """Find the samples of a run whose ground truth people dispute, or answer otherwise: sample_hash, who, why.

    Who answers a question otherwise than the dataset's label does so blind or not; `why` says what each says.
    """
    tables = tables_of(lake, run_id)
    results = tables[suite.results.table]
    labels = tables[HUMAN_LABELS.table].filter(pl.col("suite") == suite.name)
    flags = labels.filter(pl.col("question") == DISPUTES).sort("labelled_at")
    flags = flags.unique(["sample_hash", "annotator"], keep="last", maintain_order=True).filter(pl.col("answer") == YES)
    flags = flags.join(results.select("sample_hash").unique(), on="sample_hash", how="semi")
    why = pl.concat_str(pl.lit("disputed"), pl.concat_str(pl.lit(": "), "note").fill_null(""))
    parts = [flags.select("sample_hash", who=pl.col("annotator"), why=why)]
    if suite.people is not None:
        parts += _otherwise(suite.people, results, labels)
    return pl.concat(parts).sort("sample_hash", "who", "why")


def _otherwise(labelling: Labelling, results: pl.DataFrame, labels: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """Yield the answers of most people that differ from the dataset's own label, question by question."""
    if labels.is_empty():
        return
    known = with_people(results.lazy(), labels.lazy(), labelling).collect()
    told = [each for stage in labelling.stages if stage.each is None for each in stage.questions if each.answers]
    for question in told:
        if LABEL not in question.told:
            continue
        human = pl.col(f"human_{question.name}")
        rows = known.with_columns(label_says=question.told[LABEL]).filter(human != pl.col("label_says"))
        says = pl.format("{}: people say {}, the label {}", pl.lit(question.decision), human, "label_says")
        rows = rows.unique("sample_hash", keep="first", maintain_order=True)
        yield rows.select("sample_hash", who=pl.lit("people"), why=says)


# Review: a batch of a run's results as a form for a person, and what the person says as labels.

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

    def form(self, answers: Answers, problems: Sequence[str]) -> "type[RunInput]":
        """Build the form: who fills it in, and the suite's questions about each line, with the answers given so far."""
        from prefect.input import RunInput

        labelling = labelling_of(self.suite, self.lake)
        fields: dict[str, Any] = {}
        for number, (name, line) in enumerate(self._named(), start=1):
            place: dict[str, Any] = {"title": f"{number}. {title(line)}", "json_schema_extra": {"position": number}}
            fields[name] = sheets.questions_about(labelling, line), Field(default=answers.get(name, {}), **place)
        named: dict[str, Any] = {"title": "Your name", "json_schema_extra": {"position": 0}}
        if "annotator" in answers:
            named["default"] = answers["annotator"]
        form = create_model("Review", __base__=RunInput, annotator=(Annotator, Field(**named)), **fields)
        return form.with_initial_data(description="\n\n".join(self._introduction(problems)))

    def labels(self, answers: Answers, when: datetime) -> Labels:
        """Read the labels of a filled-in form. Line numbers of refusals are those of the form."""
        given = {name: answer for name, answer in answers.items() if isinstance(answer, Mapping)}
        filled = [{**line, **given.get(name, {})} for name, line in self._named()]
        return sheets.read_labels(
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
    """Write the texts behind a sheet's lines as Markdown: each text once, in the order of the lines."""
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
