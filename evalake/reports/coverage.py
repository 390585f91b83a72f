"""Coverage: of what a run asked, how much is answered, what is missing and why, and whether that is too much.

One rule decides, and every surface shows the same rows: terminal, page, viewer, JSON, artifact and table.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import compress
from math import ceil
from typing import Any

from evalake.reports.wording import UNKNOWN, one_line

MAX_MISSING = 0.05
"""The share of a model's items that may be missing, unless the order says otherwise."""

MOST_UNREADABLE = 0.5
"""The share of a model's replies that may hold no verdict, unless the order accepts them."""

FREQUENT = 0.2
"""The share of a model's replies without a verdict of one kind from which a warning names that kind."""

IN_QUARANTINE = "in quarantine"
"""The kind of an item whose row broke its contract."""

NOT_ASKED = "not asked"
"""The kind of an item without a failed call: a ceiling or a stop kept it from a row."""

STOOD_IN = "judged by another in its place"
"""The kind of an item that a fallback has judged: missing for its judge, and no problem of the run."""

NOT_IN_LOG = "not in its log"
"""The kind of an answer that the log of another tool was to have, and ended before."""

LONGEST_NAME = 200


@dataclass(frozen=True, slots=True)
class Coverage:
    """What came of the items of one model, as one judge saw them, in one dataset.

    `asked` is `answered` and `missing`; `without_verdict` are answered ones whose reply holds no verdict. An empty
    model or dataset is that of imported lines that name none.
    """

    model: str
    judge: str | None
    dataset: str
    asked: int = 0
    answered: int = 0
    without_verdict: int = 0
    missing: int = 0
    without_verdict_kinds: Mapping[str, int] = field(default_factory=dict)
    missing_kinds: Mapping[str, int] = field(default_factory=dict)
    left_out: Mapping[str, int] = field(default_factory=dict)  # rows of the source, by a documented reason
    refused: Mapping[str, int] = field(default_factory=dict)  # rows of the source that could not be read, by reason
    source_rows: int | None = None
    lost_labels: tuple[str, ...] = ()

    @property
    def who(self) -> str:
        """The model, and who judged it where somebody did."""
        model = one_line(self.model, LONGEST_NAME) if self.model else "the import"
        return model if self.judge is None else f"{model} judged by {one_line(self.judge, LONGEST_NAME)}"

    @property
    def is_whole(self) -> bool:
        """Whether every item has a verdict, and every row of the source is an item."""
        return not (self.missing or self.without_verdict or self.left_out or self.refused or self.lost_labels)


@dataclass(frozen=True, slots=True)
class Tolerance:
    """What a run may lack and still be complete."""

    max_missing: float = MAX_MISSING
    accept_unreadable: bool = False


DEFAULT = Tolerance()


def pooled(rows: Iterable[Coverage]) -> list[Coverage]:
    """Sum the rows of each model and judge over the datasets; left out and refused rows stay with their source."""
    sums: dict[tuple[str, str | None], list[Coverage]] = {}
    for row in rows:
        sums.setdefault((row.model, row.judge), []).append(row)
    return [_sum(model, judge, of) for (model, judge), of in sums.items()]


def _sum(model: str, judge: str | None, rows: Sequence[Coverage]) -> Coverage:
    return Coverage(
        model,
        judge,
        "",
        asked=sum(row.asked for row in rows),
        answered=sum(row.answered for row in rows),
        without_verdict=sum(row.without_verdict for row in rows),
        missing=sum(row.missing for row in rows),
        without_verdict_kinds=_added(row.without_verdict_kinds for row in rows),
        missing_kinds=_added(row.missing_kinds for row in rows),
    )


def _added(counts: Iterable[Mapping[str, int]]) -> Mapping[str, int]:
    return dict(sum(map(Counter, counts), Counter()))


def problems(rows: Sequence[Coverage], tolerance: Tolerance) -> list[str]:
    """List what makes a run incomplete, a sentence each; nothing where it lacks no more than it may."""
    whole = _unjudged(rows)
    nothing = {row.who for row in whole if row.asked and not row.answered}  # all their labels are lost
    return [
        *(_lacks(row, tolerance) for row in whole if _lacks_too_much(row, tolerance)),
        *(_lost(row) for row in rows if row.lost_labels and tolerance.max_missing < 1 and row.who not in nothing),
        *(_unreadable(row) for row in whole if _is_unreadable(row) and not tolerance.accept_unreadable),
    ]


def remarks(rows: Sequence[Coverage], tolerance: Tolerance) -> list[str]:
    """List what a reader must know of a run beside its problems: what it lacks within the tolerance, and why."""
    whole = _unjudged(rows)
    return [
        *(_lacks(row, tolerance) for row in whole if row.missing and not _lacks_too_much(row, tolerance)),
        *(_lost(row) for row in rows if row.lost_labels and tolerance.max_missing >= 1),
        *(_frequent(row) for row in whole if _is_frequent(row, tolerance)),
    ]


def _unjudged(rows: Iterable[Coverage]) -> list[Coverage]:
    """Sum the rows as `pooled` does; what a fallback has judged is not missing."""
    return [
        replace(
            row,
            missing=row.missing - row.missing_kinds.get(STOOD_IN, 0),
            missing_kinds={kind: n for kind, n in row.missing_kinds.items() if kind != STOOD_IN},
        )
        for row in pooled(rows)
    ]


def _lacks_too_much(row: Coverage, tolerance: Tolerance) -> bool:
    return row.asked > 0 and row.missing / row.asked > tolerance.max_missing


def _is_unreadable(row: Coverage) -> bool:
    return row.answered > 0 and row.without_verdict / row.answered > MOST_UNREADABLE


def _is_frequent(row: Coverage, tolerance: Tolerance) -> bool:
    told = _is_unreadable(row) and not tolerance.accept_unreadable
    return (
        not told and row.answered > 0 and max(row.without_verdict_kinds.values(), default=0) > FREQUENT * row.answered
    )


def _lacks(row: Coverage, tolerance: Tolerance) -> str:
    said = f"{row.who} lacks {_of(row.missing, row.asked)} items: {counted(row.missing_kinds)}"
    most = percent(tolerance.max_missing, 1)
    if not _lacks_too_much(row, tolerance):
        return f"{said} ({most} may be missing)"
    return f"{said}; only {most} may be missing{_accepted(row, ceil(100 * row.missing / row.asked) / 100)}"


def _lost(row: Coverage) -> str:
    labels = " and ".join(one_line(label, LONGEST_NAME) for label in row.lost_labels)
    said = f"{row.who} has no answer to any {labels} item of {_source(row)}, so its metrics lack that label"
    return f"{said}{_accepted(row, 1)}"


def _accepted(row: Coverage, share: float) -> str:
    """Say how to accept what is missing; nothing where rows are in quarantine or unasked, which is never complete."""
    return "" if {IN_QUARANTINE, NOT_ASKED} & row.missing_kinds.keys() else f" (--max-missing {share:g} accepts this)"


def _unreadable(row: Coverage) -> str:
    return (
        f"{row.who}: {_of(row.without_verdict, row.answered)} replies hold no verdict: "
        f"{counted(row.without_verdict_kinds)} (--accept-unreadable takes them as wrong answers)"
    )


def _frequent(row: Coverage) -> str:
    frequent = {kind: n for kind, n in row.without_verdict_kinds.items() if n > FREQUENT * row.answered}
    said = f"{row.who}: {_of(sum(frequent.values()), row.answered)} replies hold no verdict: {counted(frequent)}"
    return f"{said}; they count as wrong answers"


def lines(rows: Sequence[Coverage]) -> Iterator[str]:
    """Write what came of a run's items: a line for each row that lacks something, and one for all others."""
    whole = [row for row in rows if row.is_whole]
    for row in rows:
        if not row.is_whole:
            yield _line(row)
    if whole:
        asked = sum(row.asked for row in whole)
        whose = (
            f"{whole[0].who} in {_source(whole[0])}"
            if len(whole) == 1
            else f"{len(whole)} combinations of model, judge and source"
        )
        yield f"{whose}: all of {asked:,} asked items answered, each with a verdict"


def _line(row: Coverage) -> str:
    parts = []
    if row.asked:
        parts.append(f"{row.asked:,} asked, {row.answered:,} answered ({percent(row.answered, row.asked)})")
    if row.without_verdict:
        parts.append(
            f"{_share(row.without_verdict, row.asked)} without a verdict: {counted(row.without_verdict_kinds)}"
        )
    if row.missing:
        parts.append(f"{_share(row.missing, row.asked)} missing: {counted(row.missing_kinds)}")
    parts += _of_source(row)
    whose = f"{row.who} in {_source(row)}" if row.model or row.dataset else row.who
    return f"{whose}: {'; '.join(parts)}"


def _of_source(row: Coverage) -> Iterator[str]:
    """Yield what became of the source's rows that are no items."""
    for said, counts in (("left out of the source", row.left_out), ("refused", row.refused)):
        if counts:
            total = sum(counts.values())
            share = f"{total:,}" if not row.source_rows else _share(total, row.source_rows)
            yield f"{share} {said}: {counted(counts)}"
    if row.lost_labels:
        yield f"no {' and no '.join(one_line(label, LONGEST_NAME) for label in row.lost_labels)} item answered"


def _source(row: Coverage) -> str:
    return one_line(row.dataset, LONGEST_NAME) if row.dataset else UNKNOWN


def counted(counts: Mapping[str, int]) -> str:
    """Write counts in words, the largest first."""
    largest = sorted(counts.items(), key=lambda each: (-each[1], each[0]))
    return ", ".join(f"{count:,} {one_line(name, LONGEST_NAME)}" for name, count in largest)


def percent(part: float, whole: float) -> str:
    """Write a share in per cent; a dash where there is no whole."""
    return f"{100 * part / whole:.1f} %" if whole else UNKNOWN


def _of(part: int, whole: int) -> str:
    return f"{part:,} of {whole:,} ({percent(part, whole)})"


def _share(part: int, whole: int) -> str:
    return f"{part:,} ({percent(part, whole)})"


def as_table(rows: Sequence[Coverage]) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Write the rows as headings and texts; columns that say nothing of any row are left out."""
    texts = [_cells(row) for row in rows]
    said = [any(cells[place] != UNKNOWN for cells in texts) for place in range(len(_COLUMNS))]
    return tuple(compress(_COLUMNS, said)), [tuple(compress(cells, said)) for cells in texts]


_COLUMNS = ("model", "judge", "source", "asked", "answered", "without verdict", "missing", "lost labels", "source rows")


def _cells(row: Coverage) -> tuple[str, ...]:
    return (
        one_line(row.model, LONGEST_NAME) if row.model else row.who,
        UNKNOWN if row.judge is None else one_line(row.judge, LONGEST_NAME),
        _source(row),
        f"{row.asked:,}",
        _share(row.answered, row.asked),
        _with_kinds(row.without_verdict, row.asked, row.without_verdict_kinds),
        _with_kinds(row.missing, row.asked, row.missing_kinds),
        ", ".join(one_line(label, LONGEST_NAME) for label in row.lost_labels) or UNKNOWN,
        "; ".join(_of_source(row)) or UNKNOWN,
    )


def _with_kinds(part: int, whole: int, kinds: Mapping[str, int]) -> str:
    return _share(part, whole) if not part else f"{_share(part, whole)}: {counted(kinds)}"


def as_objects(rows: Sequence[Coverage]) -> list[dict[str, Any]]:
    """Build what JSON has of the rows: their fields, and the shares of missing and unreadable ones, null of nothing."""
    return [
        asdict(row)
        | {
            "missing_share": row.missing / row.asked if row.asked else None,
            "without_verdict_share": row.without_verdict / row.answered if row.answered else None,
        }
        for row in rows
    ]


def from_table(row: Mapping[str, Any]) -> Coverage:
    """Read a row of `run_coverage`."""
    read = {name: json.loads(row[name]) for name in ("without_verdict_kinds", "missing_kinds", "left_out", "refused")}
    counts = {name: row[name] for name in ("asked", "answered", "without_verdict", "missing", "source_rows")}
    return Coverage(
        row["model"], row["judge"] or None, row["dataset"], **counts, **read, lost_labels=tuple(row["lost_labels"])
    )


def to_table(row: Coverage) -> dict[str, Any]:
    """Build the columns of `run_coverage` but its run."""
    kinds = ("without_verdict_kinds", "missing_kinds", "left_out", "refused")
    written = {name: json.dumps(dict(getattr(row, name)), sort_keys=True, ensure_ascii=False) for name in kinds}
    return asdict(row) | written | {"judge": row.judge or "", "lost_labels": list(row.lost_labels)}
