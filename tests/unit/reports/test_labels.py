"""Names of points are put where they overlap nothing; where there is no such place, that is said."""

from evalake.reports.scatter import place_labels


def test_labels_keep_inside_the_plot_and_off_each_other() -> None:
    assert "left" in place_labels([(0.99, 0.5)], [20])[0][0]
    assert "right" in place_labels([(0.01, 0.5)], [20])[0][0]
    assert "bottom" in place_labels([(0.01, 0.99)], [20])[0][0]
    places, crowded = place_labels([(0.5, 0.5)] * 4, [10] * 4)
    assert len(set(places)) == 4
    assert not crowded
    assert place_labels([(0.5, 0.5)] * 4, [40] * 4)[1], "labels as long as that reach over the edge of a telephone"
