"""The parts of SUI as a snapshot has them: weighed as the suite weighs them, they come to SUI itself."""

import pytest

from evalake.suites.solidity_audit.truth import COMPONENTS, DEFAULTS, INDEX, REASONING
from tests.unit.suites.solidity_audit.support import SAFE, finding, found, frame_of, judgement, line, missed, values_of


def test_the_parts_by_their_weights_are_sui() -> None:
    wrong = missed(finding(1, "HALLUCINATED"), confidence=0.6)
    lines = [line(0, judged=found(0.5)), line(1, judged=wrong), line(2, SAFE, judgement(said=False))]
    names = ("sui", "f2", "target_detection_rate", "finding_precision", "ece", *REASONING)
    values = {name: row["value"] for name, row in values_of(frame_of(lines), *names).items()}
    parts, weights = INDEX.components(values), INDEX.weights(DEFAULTS)
    assert parts.keys() == weights.keys() == set(COMPONENTS)
    whole = sum(weights[name] * (parts[name] or 0) for name in COMPONENTS)
    assert None not in parts.values()
    assert values["sui"] == pytest.approx(whole / sum(weights.values()))


def test_a_part_that_is_undefined_is_none() -> None:
    assert INDEX.components({}) == dict.fromkeys(COMPONENTS)
    assert INDEX.components({"ece": None, "f2": None, "mean_rcir": None}) == dict.fromkeys(COMPONENTS)


@pytest.mark.parametrize(
    ("metrics", "reasoning"),
    [
        ({"mean_rcir": 0.2, "mean_ava": 0.6, "mean_fsv": None, "target_detection_rate": 0.5}, 0.4),
        ({"target_detection_rate": 0.0}, 0.0),  # vulnerable contracts there are, and no target was found
        ({"target_detection_rate": 0.5}, None),  # found, and nobody scored the reasoning
        ({"target_detection_rate": None}, None),
    ],
)
def test_reasoning_is_the_mean_of_what_is_scored(metrics: dict[str, float | None], reasoning: float | None) -> None:
    measured = INDEX.components(metrics)["avg_reasoning"]
    assert measured == (None if reasoning is None else pytest.approx(reasoning))


def test_calibration_is_what_the_error_leaves() -> None:
    assert INDEX.components({"ece": 0.25})["calibration"] == 0.75
