"""The report in a terminal: what ran, who reaches the target, and the suite's figures as tables."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, JustifyMethod, RenderResult
from rich.padding import Padding
from rich.table import Table as Grid
from rich.text import Text

from evalake.reports.report import Report, headline, warnings, why_unreliable
from evalake.reports.tables import KINDS, Cell, Table
from evalake.reports.wording import UNKNOWN, UNRELIABLE, multiplicity, visible

STYLES = {"": "", "pass": "bold green", "fail": "bold red"}
KEY_WIDTH = 34
"""What the names of models have at least before they are folded."""

MANY = 20
"""Intervals of one table from which on about one misses its value by chance."""

HEADING_WIDTH = 12
_PARTS = re.compile(r"[^-_/: ]*[-_/: ]|[^-_/: ]+")

GAP = 2
"""Blanks between columns."""


MOST_MODELS = 15
"""Rows of the ranking in a brief summary."""


class Summary:
    """A rich renderable of the report; tables that are wider than the console continue below.

    Without `whole` only the best models of the ranking. Tables without a value, or of zeros only, are left out.
    """

    def __init__(self, report: Report, *, whole: bool) -> None:
        self.report = report
        self.whole = whole

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        report = self.report
        yield Text(report.title, style="bold")
        yield from map(Text, headline(report))
        for warning in warnings(report):
            yield Text(f"! {warning}", style="yellow")
        tables = [
            (figure, kind.tabulate(report, figure), kind.terminal == "intervals")
            for figure in report.shown
            if (kind := KINDS[type(figure)]).terminal != "no"
        ]
        told = [(table, intervals) for figure, table, intervals in tables if figure is report.ranking or _tells(table)]
        first = [(replace(table, rows=table.rows[:MOST_MODELS]), intervals) for table, intervals in told[:1]]
        shown = told if self.whole else first
        sheets = [_Sheet(table, options.max_width, intervals) for table, intervals in shown]
        for sheet in sheets:
            yield from sheet.render(options.max_width)
        if not self.whole and told and (more := len(told[0][0].rows) - MOST_MODELS) > 0:
            yield Text(f" … and {more} more lines: --full", style="dim")
        yield Text("")
        yield from map(Text, _legend(sheets, report))
        if more := len(told) - len(shown):
            yield Text(f"{more} more table{'s' * (more > 1)}: --full")


def _tells(table: Table) -> bool:
    """Whether a table holds a value other than zero."""
    values = (cell.text.partition(" ")[0] for row in table.rows for cell in row[table.key + 1 :])
    return any(character in "123456789" for value in values for character in value)


class _Sheet:
    """A table as lines of text. Intervals stand behind their values if that fits, and below them if not."""

    def __init__(self, table: Table, width: int, intervals: bool) -> None:
        self.table = table
        self.texts = [[_text(cell, " " if intervals else None) for cell in row] for row in table.rows]
        if intervals and len(self.blocks(width)) > 1:
            self.texts = [[_text(cell, "\n") for cell in row] for row in table.rows]

    def render(self, width: int) -> Iterator[Padding | Text]:
        yield Text("")
        yield Text(self.table.caption, style="bold")
        for number, columns in enumerate(self.blocks(width)):
            yield Padding(self._grid(columns, width - 1), (1 if number else 0, 0, 0, 1), expand=False)

    def blocks(self, width: int) -> list[list[int]]:
        """Group the columns that fit beside each other, as far as they do; those up to the key begin every block."""
        widths = [self._width(i) + GAP for i in range(len(self.table.headings))]
        fixed = list(range(self.table.key + 1))
        room = width - 1 + GAP - sum(min(widths[i], KEY_WIDTH + GAP) for i in fixed)
        blocks: list[list[int]] = [[]]
        for i in range(len(fixed), len(widths)):
            if blocks[-1] and sum(widths[j] for j in [*blocks[-1], i]) > room:
                blocks.append([])
            blocks[-1].append(i)
        return [[*fixed, *block] for block in blocks]

    def _width(self, i: int) -> int:
        texts = [_heading(self.table.headings[i]), *(row[i] for row in self.texts)]
        return max(cell_len(line) for text in texts for line in text.split("\n"))

    def _grid(self, columns: Sequence[int], width: int) -> Grid:
        key_width = max(KEY_WIDTH, width - sum(self._width(i) + GAP for i in columns if i != self.table.key))
        grid = Grid(box=None, pad_edge=False, padding=(0, GAP, 0, 0), header_style="dim")
        for i in columns:
            key = i == self.table.key
            heading = Text(_heading(self.table.headings[i]))
            justify: JustifyMethod = "left" if key else "right"
            grid.add_column(heading, justify=justify, overflow="fold", max_width=key_width if key else None)
        for cells, texts in zip(self.table.rows, self.texts, strict=True):
            shown = [_folded(text, key_width) if i == self.table.key else text for i, text in enumerate(texts)]
            grid.add_row(*(Text(shown[i], style=STYLES[cells[i].mood]) for i in columns))
        return grid


def _text(cell: Cell, before_interval: str | None) -> str:
    value = cell.text + UNRELIABLE * cell.doubtful
    return value if before_interval is None or not cell.interval else f"{value}{before_interval}{cell.interval}"


def _heading(text: str) -> str:
    """Break a heading where words end, so that numbers decide how wide a column is."""
    return _folded(text, HEADING_WIDTH)


def _folded(text: str, width: int) -> str:
    """Break a text into lines of at most `width` cells, where words or parts of names end as far as these fit."""
    lines = [""]
    for part in _PARTS.findall(text):
        if lines[-1] and cell_len(lines[-1] + part.rstrip()) > width:
            lines.append("")
        lines[-1] += part
    return "\n".join(line.rstrip() for line in lines)


def _legend(sheets: Sequence[_Sheet], report: Report) -> Iterator[str]:
    cells = [cell for sheet in sheets for row in sheet.table.rows for cell in row]
    texts = [text for sheet in sheets for row in sheet.texts for text in row]
    if any("[" in text for text in texts):
        yield "[ ] 95 % interval"
    if any("letters" in sheet.table.headings for sheet in sheets):
        yield "letters: models that share one are not significantly apart (5 %, Holm over all pairs)"
    if any(cell.interval and cell.n is None for cell in cells):
        yield "by [ ]: the limits that decided, which are exact and hold whatever is missing"
    if (intervals := sum(1 for cell in cells if cell.interval and cell.n is not None)) >= MANY:
        yield multiplicity(intervals)
    yield f"n, units and interval of every value: evalake metrics --run {visible(report.run['run_id'], 100)} --all"
    if any(cell.doubtful for cell in cells):
        yield f"{UNRELIABLE} {why_unreliable(subject.judge for subject in report.subjects)}"
    if any(cell.text == UNKNOWN for cell in cells):
        yield f"{UNKNOWN} unknown or undefined"
