"""A dataset version has samples, each with a name and a place of its own."""

import pytest
from pydantic import ValidationError

from evalake.contracts.audit import audit
from evalake.contracts.engines.arrow import conform
from evalake.contracts.tables.ledger import SAMPLES, SampleRow
from tests.unit.contracts.tables.rows import sound


def test_a_dataset_without_samples_is_none() -> None:
    results = {result.rule_id: result.passed for result in audit(conform([], SAMPLES), SAMPLES).results}
    assert not results["not_empty"]


def test_its_row_model_is_closed_frozen_and_strict() -> None:
    values = sound(SAMPLES, position=0)
    made = SampleRow(**values)
    assert made.position == 0
    with pytest.raises(ValidationError):
        SampleRow(**{**values, "position": "0"})
    with pytest.raises(ValidationError):
        SampleRow(**values, extra="x")  # type: ignore[call-arg]
    with pytest.raises(ValidationError):
        SampleRow(**{name: value for name, value in values.items() if name != "target"})
    with pytest.raises(ValidationError):
        made.label = "other"  # type: ignore[misc]
