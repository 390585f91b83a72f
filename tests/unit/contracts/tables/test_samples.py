"""A dataset version has samples, each with a name and a place of its own."""

import pytest
from pydantic import ValidationError

from evalake.contracts.audit import audit
from evalake.contracts.engines.arrow import conform
from evalake.contracts.tables.ledger import SAMPLES, SampleRow
from tests.unit.contracts.tables.rows import broken_by, sound


def test_a_sample_has_a_name_a_hash_and_a_place() -> None:
    assert broken_by(SAMPLES, target=None, label=None, cluster=None) == []
    assert broken_by(SAMPLES, sample_id="") == ["sample_id_not_blank"]
    assert broken_by(SAMPLES, sample_hash="x") == ["sample_hash_is_sha256"]
    assert broken_by(SAMPLES, position=-1) == ["position_not_negative"]


def test_a_dataset_without_samples_is_none() -> None:
    results = {result.rule_id: result.passed for result in audit(conform([], SAMPLES), SAMPLES).results}
    assert not results["not_empty"]


def test_two_samples_of_a_version_with_one_name_are_refused() -> None:
    rows = [sound(SAMPLES, position=place) for place in (0, 1)]
    results = {result.rule_id: result.passed for result in audit(conform(rows, SAMPLES), SAMPLES).results}
    assert not results["key_unique"]


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
