"""Every kind of figure that a suite may declare: how it is tabulated, and how it is drawn where it is a plot."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from evalake.reports import tables
from evalake.reports.axes import Drawing
from evalake.reports.bars import draw_bars, draw_by_judge, draw_by_part, draw_decisions, draw_statistics
from evalake.reports.heat_maps import draw_agreement, draw_heat_map
from evalake.reports.report import Report
from evalake.reports.scatter import draw_reliability, draw_scatter
from evalake.reports.tables import Table
from evalake.sdk import figures


@dataclass(frozen=True, slots=True)
class Kind:
    """`tabulate` and `draw` take the report and the figure; `draw` is, or gives, None for a table."""

    tabulate: Callable[[Report, Any], Table]
    draw: Callable[[Report, Any], Drawing | None] | None = None
    terminal: Literal["no", "values", "intervals"] = "values"  # what of it a terminal shows


KINDS: Mapping[type, Kind] = {
    figures.Ranking: Kind(tables.ranking_table, terminal="intervals"),
    figures.Scatter: Kind(tables.scatter_table, draw_scatter, terminal="no"),
    figures.Bars: Kind(tables.bars_table, draw_bars),
    figures.HeatMap: Kind(tables.heat_map_table, draw_heat_map),
    figures.ByPart: Kind(tables.heat_map_table, draw_by_part),
    figures.Reliability: Kind(tables.reliability_table, draw_reliability),
    figures.AgreementMatrix: Kind(tables.agreement_table, draw_agreement),
    figures.ByJudge: Kind(tables.by_judge_table, draw_by_judge),
    figures.Statistics: Kind(tables.statistics_table, draw_statistics),
    figures.Decisions: Kind(tables.decisions_table, draw_decisions),
}
