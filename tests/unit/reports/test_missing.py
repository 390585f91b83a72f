"""What a run lacks of a model is said in one sentence, with what that leaves open."""

from evalake.reports.ranking import Missing


def test_it_says_how_much_is_missing_why_and_what_that_leaves_open() -> None:
    missing = Missing("m", "j", 1200, 30, {"timeout": 20, "rate_limit": 10}, {"accuracy": (0.5, 0.75)})
    assert missing.sentence == (
        "m by j: 30 of 1,200 items are missing (20 timeout, 10 rate_limit); whatever they are: accuracy 0.5 to 0.75"
    )


def test_where_nothing_is_judged_or_bounded_nothing_is_said_of_that() -> None:
    assert Missing("m", None, 2, 1, {"timeout": 1}, {}).sentence == "m: 1 of 2 items are missing (1 timeout)"
