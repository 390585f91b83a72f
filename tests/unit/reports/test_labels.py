"""Names of points are put where they overlap nothing; where there is no such place, that is said."""

from evalake.reports.scatter import place_labels


def test_a_point_in_the_middle_has_its_name_at_the_first_side() -> None:
    assert place_labels([(0.5, 0.5)], [6]) == (["top right"], False)


def test_a_name_at_an_edge_goes_inwards() -> None:
    sides, crowded = place_labels([(0.99, 0.5), (0.5, 0.99), (0.01, 0.01)], [8, 8, 8])
    assert not crowded
    assert sides[0].endswith("left")
    assert sides[1].startswith("bottom")
    assert sides[2] == "top right"


def test_names_of_neighbours_go_apart() -> None:
    sides, crowded = place_labels([(0.5, 0.5), (0.5, 0.5)], [6, 6])
    assert sides[0] != sides[1]
    assert not crowded


def test_names_that_are_too_long_or_too_many_are_crowded() -> None:
    assert place_labels([(0.5, 0.5)], [60])[1]
    assert place_labels([(0.5, 0.5)] * 12, [10] * 12)[1]


def test_labels_keep_inside_the_plot_and_off_each_other() -> None:
    assert "left" in place_labels([(0.99, 0.5)], [20])[0][0]
    assert "right" in place_labels([(0.01, 0.5)], [20])[0][0]
    assert "bottom" in place_labels([(0.01, 0.99)], [20])[0][0]
    places, crowded = place_labels([(0.5, 0.5)] * 4, [10] * 4)
    assert len(set(places)) == 4
    assert not crowded
    assert place_labels([(0.5, 0.5)] * 4, [40] * 4)[1], "labels as long as that reach over the edge of a telephone"
