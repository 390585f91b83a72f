"""The grammar of a gate's rules: what each form means, and what is said of what has none."""

import pytest

from evalake.core.errors import UsageError
from evalake.decisions.rules import Change, Level, Target, read_rule, require_known

KNOWN = {Target("accuracy"), Target("accuracy", "dataset", "mine"), Target("recall")}


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("accuracy >= 0.85", Level("accuracy >= 0.85", Target("accuracy"), 0.85, at_least=True)),
        ("accuracy>=85%", Level("accuracy>=85%", Target("accuracy"), 0.85, at_least=True)),
        ("latency_ms_p50 <= 2e3", Level("latency_ms_p50 <= 2e3", Target("latency_ms_p50"), 2000.0, at_least=False)),
        (
            "  no  significant drop in accuracy ",
            Change("no significant drop in accuracy", Target("accuracy"), down=True, margin=None),
        ),
        ("no significant rise in fpr", Change("no significant rise in fpr", Target("fpr"), down=False, margin=None)),
        (
            "no drop over 2% in accuracy[category = remote code]",
            Change(
                "no drop over 2% in accuracy[category = remote code]",
                Target("accuracy", "category", "remote code"),
                down=True,
                margin=0.02,
            ),
        ),
    ],
)
def test_every_form_is_read(text: str, meant: Level | Change) -> None:
    assert read_rule(text) == meant


@pytest.mark.parametrize(
    "text", ["", "accuracy", "accuracy > 0.8", "accuracy >= high", "no drop in accuracy", "no drop over -1 in accuracy"]
)
def test_what_is_no_rule_is_refused_with_the_forms(text: str) -> None:
    with pytest.raises(UsageError, match=r"no significant drop in METRIC|margin is 0 or more"):
        read_rule(text)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("acuracy >= 1", "did you mean accuracy.*Known: accuracy, recall"),
        ("accuracy[data=mine] >= 1", "no slice data, but all, dataset"),
        ("accuracy[dataset=yours] >= 1", "dataset has no yours, but mine"),
    ],
)
def test_what_was_not_measured_is_named_with_what_was(text: str, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        require_known(read_rule(text), KNOWN)
    require_known(read_rule("accuracy[dataset=mine] >= 1"), KNOWN)
