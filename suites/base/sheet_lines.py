"""The lines of a sheet, from what a suite declares: the results that were drawn, and what people are to be shown.

No line holds the sample's name, which may give away the label ("bank-07/patched"). Landed labels have the name again,
looked up by the sample's hash.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from contracts.tables import CALLS, SAMPLES
from contracts.tables.calls import CALL_KEY
from contracts.tables.human_labels import HUMAN_LABELS
from suites.base.drawing import draw
from suites.base.labelling import ANSWER, Labelling, Seen, Stage
from suites.base.sheets import Line

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
    claims = tuple(name for stage in labelling.stages for name in stage.claims)
    answers = tuple(question.heading for question in labelling.questions)
    return (*IDENTITY, *DRAWN, *labelling.material, *claims, "fill_in", *answers, "note", "annotator")


def candidates(labelling: Labelling, results: pl.DataFrame, labels: pl.DataFrame) -> pl.DataFrame:
    """Find the units of a run that nobody has labelled yet, with `weight`: how informative a label would be."""
    units = results.filter(labelling.counted).group_by(labelling.unit).agg(weight=labelling.worth.cast(pl.Float64))
    done = labels.filter(pl.col("suite") == labelling.suite).select(labelling.unit).unique()
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
    answers = list(_answers(labelling, results, drawn, tables, np.random.default_rng(seed)))
    below = [_below(stage, tables) for stage in labelling.stages]
    rows: dict[bool, list[Line]] = {True: [], False: []}
    for shared, share, seen in answers:
        for stage, parts in zip(labelling.stages, below, strict=True):
            if stage.where(seen):
                chance = shared["inclusion_probability"] * (share if stage.about == ANSWER else 1.0)
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
    """Group the rows that a stage asks about, such as findings, by answer and judgement."""
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
    own = [stage for stage in labelling.stages if (stage.each is not None) == below]
    return [stage for stage in own if stage.fill_in == line.get("fill_in")] or own
