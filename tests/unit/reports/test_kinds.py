"""Every kind of figure that a suite may declare has a table, and a drawing where it is a plot."""

from typing import get_args

import pytest

from evalake.reports.axes import Drawing
from evalake.reports.tables import KINDS, Table
from evalake.sdk.figures import ByPart, Decisions, Figure, Ranking, Statistics
from tests.unit.reports.judged import AGREEMENT, BY_JUDGE, DECISIONS, KAPPA, RELIABILITY, of_two_judges
from tests.unit.reports.samples import DETECTION, FIGURES, report, two_models

BY_PART = ByPart("Detection, part by part", DETECTION, "category")
ALL: tuple[Figure, ...] = (
    *FIGURES,
    BY_PART,
    RELIABILITY,
    AGREEMENT,
    BY_JUDGE,
    Statistics("Of all", (KAPPA,)),
    DECISIONS,
)


def test_each_member_of_figure_is_a_kind() -> None:
    assert set(KINDS) == set(get_args(Figure)) == {type(figure) for figure in ALL}


@pytest.mark.parametrize("figure", ALL, ids=lambda figure: figure.title)
def test_it_is_tabulated_and_drawn_whatever_is_known(figure: Figure) -> None:
    kind = KINDS[type(figure)]
    for built in (two_models(), of_two_judges(), report([])):
        table = kind.tabulate(built, figure)
        assert isinstance(table, Table)
        assert table.caption == figure.title
        drawing = None if kind.draw is None else kind.draw(built, figure)
        assert drawing is None or isinstance(drawing, Drawing)
        assert drawing is None or drawing.alt
        assert drawing is None or drawing.panels or drawing.notes or not built.subjects, "why there is none is said"


def test_a_terminal_shows_the_intervals_of_the_ranking_alone_and_no_points() -> None:
    shown = {kind.__name__: how.terminal for kind, how in KINDS.items()}
    assert [name for name, how in shown.items() if how == "intervals"] == [Ranking.__name__]
    assert [name for name, how in shown.items() if how == "no"] == ["Scatter"]
    assert shown[Decisions.__name__] == "values"
