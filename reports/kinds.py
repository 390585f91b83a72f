"""Every kind of figure that a suite may declare: how it is tabulated, and how it is drawn where it is a plot."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from reports import tables
from reports.bars import draw_bars, draw_by_judge, draw_decisions, draw_statistics
from reports.drawing import Drawing
from reports.heat_maps import draw_agreement, draw_heat_map
from reports.reliability import draw_reliability
from reports.report import Report
from reports.scatter import draw_scatter
from reports.tables import Table
from suites.base.figures import (
    AgreementMatrix,
    Bars,
    ByJudge,
    Decisions,
    HeatMap,
    Ranking,
    Reliability,
    Scatter,
    Statistics,
)


@dataclass(frozen=True, slots=True)
class Kind:
    """`tabulate` and `draw` take the report and the figure; `draw` is, or gives, None for a table."""

    tabulate: Callable[[Report, Any], Table]
    draw: Callable[[Report, Any], Drawing | None] | None = None
    terminal: Literal["no", "values", "intervals"] = "values"  # what of it a terminal shows


KINDS: Mapping[type, Kind] = {
    Ranking: Kind(tables.ranking_table, terminal="intervals"),
    Scatter: Kind(tables.scatter_table, draw_scatter, terminal="no"),
    Bars: Kind(tables.bars_table, draw_bars),
    HeatMap: Kind(tables.heat_map_table, draw_heat_map),
    Reliability: Kind(tables.reliability_table, draw_reliability),
    AgreementMatrix: Kind(tables.agreement_table, draw_agreement),
    ByJudge: Kind(tables.by_judge_table, draw_by_judge),
    Statistics: Kind(tables.statistics_table, draw_statistics),
    Decisions: Kind(tables.decisions_table, draw_decisions),
}
