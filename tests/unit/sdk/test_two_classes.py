"""What the values of a label column mean: by their words, by the column's name, or by a mapping, and else refused."""

import pytest

from evalake.core.errors import SourceError
from evalake.sdk.tabular import TwoClasses

CLASSES = TwoClasses(
    "label",
    "malicious",
    "harmless",
    words={"bad": "malicious", "good": "harmless"},
    truths={"malicious": "malicious", "bad": "malicious", "safe": "harmless"},
)


@pytest.mark.parametrize(
    ("column", "values", "meanings", "classes"),
    [
        ("label", ["malicious", "harmless"], None, ["malicious", "harmless"]),
        ("label", ["Bad", "GOOD "], None, ["malicious", "harmless"]),
        ("is_malicious", ["1", "0"], None, ["malicious", "harmless"]),
        ("isMalicious", ["True", "no"], None, ["malicious", "harmless"]),
        ("safe", ["yes", "0.0"], None, ["harmless", "malicious"]),
        ("risk", ["High", "low"], {"high": "malicious", "*": "harmless"}, ["malicious", "harmless"]),
        ("risk", ["1.0", "0.0"], {"1": "bad", "0": "good"}, ["malicious", "harmless"]),
        ("label", ["*"], {"*": "harmless"}, ["harmless"]),
    ],
)
def test_each_value_is_a_class(
    column: str, values: list[str], meanings: dict[str, str | None] | None, classes: list[str]
) -> None:
    understood, _ = CLASSES.understand("set.csv", column, values, meanings)
    assert [understood[value] for value in values] == classes


@pytest.mark.parametrize(
    ("column", "values", "meanings", "words"),
    [
        ("label", ["1", "0", "0"], None, "neither malicious nor harmless: '0' (2), '1' (1)"),
        ("not_safe", ["1"], None, "neither malicious nor harmless"),
        ("safe_or_bad", ["1"], None, "neither malicious nor harmless"),
        ("label", ["evil"], None, "'evil' (1)"),
        ("label", ["x", "y"], {"x": "malicious"}, "neither malicious nor harmless: 'y' (1). "),
        ("label", ["1"], {"yes": "malicious"}, "fits no row; the column 'label' has '1' (1)"),
        ("label", ["1"], {"1": "evil"}, "gives label the value 'evil'"),
    ],
)
def test_what_is_not_understood_is_refused_with_what_was_found(
    column: str, values: list[str], meanings: dict[str, str | None] | None, words: str
) -> None:
    with pytest.raises(SourceError) as caught:
        CLASSES.understand("set.csv", column, values, meanings)
    assert words in str(caught.value)


def test_what_was_understood_is_said_where_it_is_not_plain() -> None:
    assert CLASSES.understand("set.csv", "label", ["harmless"], None)[1] is None
    said = CLASSES.understand("set.csv", "bad", ["1", "0", "1"], None)[1]
    assert said == "label from the column 'bad': '1' is malicious (2), '0' is harmless (1)"
