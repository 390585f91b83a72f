"""The report as an HTML file that needs no network, and the same as JSON beside it.

Names, commands and replies may be hostile: Jinja and `svg` escape them, `wording.visible` shows what would hide, and a
Content-Security-Policy lets nothing run but the page's own script, which it names by hash; nothing is fetched.
"""

import base64
import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import ceil
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from evalake.core.configuration import VIEWER_PORT, VIEWER_URL
from evalake.core.errors import UsageError
from evalake.core.files import make_folder, write_file
from evalake.reports.axes import Drawing
from evalake.reports.files import as_data, as_json
from evalake.reports.report import Report, facts, headline, warnings, why_unreliable
from evalake.reports.svg import Picture, alone, as_svg
from evalake.reports.tables import KINDS, Table, comparisons_table, coverage_table
from evalake.reports.wording import UNKNOWN, UNRELIABLE, multiplicity, one_line, visible

# Files of a report, each written whole or not at all.


def write_files(folder: Path, texts: Mapping[str, str]) -> Path:
    """Write texts into a folder, which is made where it is missing; returns the path of the last, or the folder.

    Files of an earlier report are replaced whole. Raises UsageError naming the folder where it cannot be written, or
    is not the user's alone.

    Args:
        folder: The folder.
        texts: What is written, by the file's name.
    """
    try:
        make_folder(folder, own=True)
        for name, text in texts.items():
            write_file(folder / name, text.encode("utf-8", "backslashreplace"))
    except OSError as error:
        raise UsageError(f"cannot write the report to {folder}: {error.strerror or error}") from error
    return folder / list(texts)[-1] if texts else folder


# Pages from templates: what was not written by us is escaped, and a name that a template lacks is an error.


LONGEST_TEXT = 600
_FOLDER = Path(__file__).parent / "templates"


def fill(template: str, **values: Any) -> str:
    """Fill a template, to which the pages' `style` and the filter `shown` for text of others are given too."""
    return environment().get_template(template).render(style=Markup(source("style.css")), **values)


@cache
def environment() -> Environment:
    """Make Jinja's environment, which knows the templates; each is compiled once."""
    made = Environment(
        loader=PackageLoader("evalake.reports"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["shown"] = _shown
    return made


def source(name: str) -> str:
    """Read a file that stands beside the templates."""
    return (_FOLDER / name).read_text(encoding="utf-8")


def _shown(value: object) -> str:
    return UNKNOWN if value is None else visible(value, LONGEST_TEXT)


# Pages that need neither network nor script, each with its data as JSON beside it: a roadmap, what a check found.


def write_roadmap(data: Mapping[str, Any], folder: Path) -> Path:
    """Write the page of what `as_data` of a roadmap gives, as `write_page` of a report does."""
    page = fill("roadmap.html.j2", roadmap=data)
    return write_files(folder, {"roadmap.json": as_json(data), "roadmap.html": page})


def write_data_docs(data: Mapping[str, Any], folder: Path) -> Path:
    """Write the page of what `evalake.admin.check` gathers: table by table and rule by rule, what a check found."""
    page = fill("data_docs.html.j2", check=data)
    return write_files(folder, {"data-docs.json": as_json(data), "data-docs.html": page})


# Where the viewer shows what a report tells: `evalake view` on this machine, unless another address is named.


def viewer_address() -> str:
    """Look up the address of the viewer, without a slash at its end."""
    return (os.environ.get(VIEWER_URL) or f"http://127.0.0.1:{VIEWER_PORT}").rstrip("/")


def run_address(run_id: str) -> str:
    """Build the address of a run's page."""
    return f"{viewer_address()}/runs/{quote(run_id, safe='')}"


def items_address(run_id: str, **filters: str | None) -> str:
    """Build the address of a run's items under these filters; filters that are None are left out."""
    wanted = urlencode({name: value for name, value in filters.items() if value is not None}, errors="replace")
    return f"{run_address(run_id)}/items" + (f"?{wanted}" if wanted else "")


def item_address(run_id: str, sample_hash: str) -> str:
    """Build the address of one item of a run."""
    return f"{items_address(run_id)}/{quote(sample_hash, safe='')}"


PAGE, DATA, FIGURES = "report.html", "report.json", "figures"

FULL, WIDE, PANEL, NARROW = 1180, 580, 341, 340
"""Pixels of a drawing's width: across the page, in one of two columns, beside other panels, and on a telephone."""

OPEN_PIXELS, WORDS_PIXELS, ROW_PIXELS = 1400, 160, 45
"""Height of the figures that are open beside the ranking, of a figure's words, and of a table's row."""
MOST_ROWS, MOST_WARNINGS = 8, 2  # rows of a table and warnings that are open

_HEIGHT = re.compile(r'viewBox="0 0 [\d.]+ ([\d.]+)"')


@dataclass(frozen=True, slots=True)
class Section:
    """One figure on the page."""

    title: str
    note: str
    table: Table
    drawing: Drawing | None

    @property
    def wide(self) -> bool:
        """Whether it takes the page's whole width."""
        return self.drawing is None or self.drawing.wide

    @property
    def is_empty(self) -> bool:
        """Whether it is a drawing with nothing to draw."""
        return self.drawing is not None and not self.drawing.panels


@dataclass(frozen=True, slots=True)
class Mistakes:
    """One model's mistakes: how many, and the first of them by group, each its item's address and a list of texts."""

    model: str
    address: str  # of the model's items
    total: int
    shown: int
    groups: tuple[tuple[str, int, tuple[tuple[str, tuple[str, ...]], ...]], ...]


def write_page(report: Report, folder: Path, *, figures: bool = False) -> Path:
    """Write `report.html` and `report.json` into `folder`, which is made where it is missing; returns the page's path.

    The page needs no other file. With `figures`, each drawing is also written to `figures/` as SVG, and as PNG where
    a converter is installed. Files of an earlier report are replaced whole. Raises UsageError naming the folder where
    it cannot be written.
    """
    write_files(folder.parent, {})  # whose owner could put another folder in the place of this one
    if figures:
        _write_figures(report, folder / FIGURES)
    return write_files(folder, {DATA: as_json(as_data(report)), PAGE: render(report)})


def pictures(report: Report) -> dict[str, Picture]:
    """Draw the figures of a report with title and legend, by title; those with nothing to draw are left out."""
    drawn: dict[str, Picture] = {}
    for figure in report.shown:
        drawing = _section(report, figure).drawing
        if drawing is None:
            continue
        for part, panel in drawing.panels.items():
            title = f"{figure.title}: {part}" if part else figure.title
            drawn[title] = alone(as_svg(panel, WIDE, f"f{len(drawn)}", title), WIDE, title, drawing.key)
    return drawn


def png_converter() -> str | None:
    """Find the program that converts figures to PNG; None where it is not installed."""
    return shutil.which("rsvg-convert")


def _write_figures(report: Report, folder: Path) -> None:
    drawn = {
        f"{k:02}-{re.sub('[^a-z0-9]+', '-', title.lower())[:80].strip('-')}": picture
        for k, (title, picture) in enumerate(pictures(report).items(), start=1)
    }
    write_files(folder, {f"{name}.svg": picture for name, picture in drawn.items()})
    converter = png_converter()
    for name in drawn if converter else ():
        picture = subprocess.run(
            [str(converter), "--zoom=2", "--background-color=white", str(folder / f"{name}.svg")],
            capture_output=True, check=False,
        )  # fmt: skip
        if picture.returncode:
            raise UsageError(f"{converter} cannot convert {folder / name}.svg: {picture.stderr.decode()[:300]}")
        write_file(folder / f"{name}.png", picture.stdout)


def render(report: Report) -> str:
    """Render the page, whose drawings are part of it."""
    script = source("save.js")
    every = [_section(report, figure) for figure in report.shown]
    sections = [section for section in every if not section.is_empty]
    drawings = [_drawings(k, section) for k, section in enumerate(sections)]
    opened = _open(sections, drawings)
    cells = [cell for section in sections for row in section.table.rows for cell in row]
    return fill(
        "page.html.j2",
        title=visible(report.title),
        run_id=visible(report.run["run_id"], 200),
        lines=headline(report),
        items=items_address(report.run["run_id"]),
        warnings=warnings(report),
        coverage=coverage_table(report) if report.coverage else None,
        facts=facts(report),
        sections=sections,
        comparisons=comparisons_table(report) if any(report.comparisons.values()) else None,
        mistakes=tuple(_mistakes(report)) if report.answers else None,
        mistakes_title=report.answers.title if report.answers else None,
        mistake_headings=[heading for _, heading in report.answers.shown] if report.answers else [],
        drawings=drawings,
        undrawn=[(each.title, " ".join(each.drawing.notes)) for each in every if each.drawing and each.is_empty],
        opened=opened,
        folded=[k for k in range(len(sections)) if k not in opened],
        most_rows=MOST_ROWS,
        most_warnings=MOST_WARNINGS,
        doubtful=any(cell.doubtful for cell in cells),
        by_chance=multiplicity(sum(1 for cell in cells if cell.interval and cell.n is not None)),
        unreliable=UNRELIABLE,
        why_unreliable=why_unreliable(subject.judge for subject in report.subjects),
        unknown=UNKNOWN,
        script=Markup(script),
        script_hash=f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'",
    )


def _section(report: Report, figure: Any) -> Section:
    kind = KINDS[type(figure)]
    drawing = kind.draw(report, figure) if kind.draw else None
    return Section(figure.title, figure.note, kind.tabulate(report, figure), drawing)


def _open(sections: Sequence[Section], drawings: Sequence[Sequence[tuple[str, Markup, Markup, Markup]]]) -> list[int]:
    """List the figures that are open: the first, which ranks, and each further one that fits into OPEN_PIXELS."""
    opened, taken, beside = [0][: len(sections)], 0.0, 0.0
    for k, (section, panels) in list(enumerate(zip(sections, drawings, strict=True)))[1:]:
        heights = [float(size[1]) for _, wide, *_ in panels if (size := _HEIGHT.search(wide))]
        each = max(heights, default=ROW_PIXELS * min(MOST_ROWS, len(section.table.rows)))
        height = WORDS_PIXELS + max(1, ceil(len(panels) / 3)) * each
        further = max(0.0, height - beside)  # beside the figure before, where that has half a row
        if taken + further <= OPEN_PIXELS:
            opened.append(k)
            taken += further
            beside = 0.0 if section.wide or beside else height
    return opened


def _drawings(k: int, section: Section) -> list[tuple[str, Markup, Markup, Markup]]:
    """Draw the panels of the k-th section.

    Each has its title, its drawing for a screen and for a telephone, and the file around the first that is saved.
    """
    drawing = section.drawing
    if drawing is None:
        return []
    wide = PANEL if len(drawing.panels) > 1 else FULL if drawing.wide else WIDE
    drawn = []
    for i, (title, figure) in enumerate(drawing.panels.items()):
        label = f"{drawing.alt} {title + '. ' if title else ''}The numbers follow as a table."
        on_screen, narrow = (Markup(as_svg(figure, width, f"f{k}-{i}-{width}", label)) for width in (wide, NARROW))
        around = Picture(f'<svg height="{_HEIGHT.findall(on_screen)[0]}"></svg>')
        named = f"{section.title}: {title}" if title else section.title
        drawn.append((title, on_screen, narrow, Markup(alone(around, wide, named, drawing.key))))
    return drawn


def _mistakes(report: Report) -> Iterator[Mistakes]:
    answers = report.answers
    if answers is None:
        return
    for subject, count, shown in report.mistakes():
        groups: dict[str, list[tuple[str, tuple[str, ...]]]] = {}
        for row in shown.iter_rows(named=True):
            texts = tuple(UNKNOWN if row[column] is None else visible(row[column], 600) for column, _ in answers.shown)
            address = item_address(report.run["run_id"], row["sample_hash"])
            groups.setdefault(_group(row, answers.group, answers.label), []).append((address, texts))
        listed = tuple((name, len(rows), tuple(rows)) for name, rows in sorted(groups.items()))
        items = items_address(report.run["run_id"], **subject._asdict())
        yield Mistakes(one_line(subject.name, 300), items, count, shown.height, listed)


def _group(row: dict[str, Any], *columns: str | None) -> str:
    """Read the value of the first of the columns that has one."""
    return next((visible(row[c], 80) for c in columns if c is not None and row[c] is not None), UNKNOWN)
