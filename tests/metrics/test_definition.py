"""The definition hash: stable where nothing changed, another wherever something did."""

import os
import subprocess
import sys
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import polars as pl
import pytest

from contracts.errors import MetricError
from metrics import Composite, Count, Mean, Metric, Quantile, Rate, Sums, definition_hash
from metrics.intervals import Array
from tests.metrics.audit import AUDIT_METRICS
from tests.metrics.guard import GUARD_METRICS

FACTOR = 2.0


def halved(s: Sums) -> Array:
    return s["x"] / FACTOR


def documented(s: Sums) -> Array:
    """Says what it does."""
    return s["x"] / 3  # and why


def weighted(s: Sums, weight: float) -> Array:
    return s["x"] * weight + halved(s)


@dataclass(frozen=True)
class Weighted:
    weight: float

    def __call__(self, s: Sums) -> Array:
        return s["x"] * self.weight


x = pl.col("x")
BASE = Metric("m", Rate(x > 0, x.is_not_null()))


def composite(function: object) -> Metric:
    return Metric("m", Composite(function, {"x": x}))  # type: ignore[arg-type]


def test_it_is_the_same_in_every_process() -> None:
    code = (
        "from metrics import definition_hash; from tests.metrics import audit, guard;"
        "print(definition_hash(guard.GUARD_METRICS), definition_hash(audit.AUDIT_METRICS))"
    )
    root = Path(__file__).parents[2]
    for hash_seed in ("0", "1"):
        environment = os.environ | {"PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(root)}
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=root, env=environment
        )
        assert done.stdout.split() == [definition_hash(GUARD_METRICS), definition_hash(AUDIT_METRICS)]


@pytest.mark.parametrize(
    "changed",
    [
        replace(BASE, name="other"),
        replace(BASE, tier=1),
        replace(BASE, slices=("all", "kind")),
        replace(BASE, estimator=Rate(x > 1, x.is_not_null())),
        replace(BASE, estimator=Rate(x > 0)),
        replace(BASE, estimator=Count(x > 0, x.is_not_null())),
    ],
)
def test_it_changes_with_everything_that_decides_a_value(changed: Metric) -> None:
    assert definition_hash([changed]) != definition_hash([BASE])


def test_it_changes_with_parameters_and_the_end_of_a_long_list() -> None:
    different = [
        [Metric("m", Quantile(x, 0.5))],
        [Metric("m", Quantile(x, 0.9))],
        [Metric("m", Mean(x))],
        [Metric("m", Mean(x, complete=True))],
        [Metric("m", Rate(x.is_in(list(range(200)))))],
        [Metric("m", Rate(x.is_in([*range(199), 777])))],
        [composite(partial(weighted, weight=0.25))],
        [composite(partial(weighted, weight=0.75))],
        [composite(Weighted(0.25))],
        [composite(Weighted(0.75))],
        [composite(halved)],
        [],
    ]
    assert len({definition_hash(metrics) for metrics in different}) == len(different)


def test_it_does_not_change_with_descriptions() -> None:
    assert definition_hash([replace(BASE, description="what it says")]) == definition_hash([BASE])


def rewritten(folder: Path, name: str, text: str) -> object:
    """The function `halved` of a module with this text."""
    (folder / f"{name}.py").write_text(text)
    sys.path.insert(0, str(folder))
    try:
        return __import__(name).halved
    finally:
        sys.path.remove(str(folder))
        sys.modules.pop(name)


def test_it_follows_the_code_of_functions_what_they_name_and_nothing_else(tmp_path: Path) -> None:
    texts = {
        "plain": "FACTOR = 2.0\ndef helper(x):\n    return x / FACTOR\ndef halved(s):\n    return helper(s['x'])\n",
        "commented": "FACTOR = 2.0\ndef helper(x):\n    '''Doc.'''\n    return x / FACTOR  # why\n"
        "def halved(s):\n    return helper(s['x'])\n",
        "constant": "FACTOR = 3.0\ndef helper(x):\n    return x / FACTOR\ndef halved(s):\n    return helper(s['x'])\n",
        "helper": "FACTOR = 2.0\ndef helper(x):\n    return x // FACTOR\ndef halved(s):\n    return helper(s['x'])\n",
    }
    hashes = {}
    for name, text in texts.items():
        (tmp_path / name).mkdir()
        hashes[name] = definition_hash([composite(rewritten(tmp_path / name, "functions_under_test", text))])
    assert hashes["plain"] == hashes["commented"]
    assert len(set(hashes.values())) == 3


def test_what_has_no_stable_text_is_refused() -> None:
    offset = 1.0

    def closed(s: Sums) -> Array:
        return s["x"] + offset

    for function in (lambda s: s["x"], closed):
        with pytest.raises(MetricError, match="Metric m: use a named function without closure"):
            definition_hash([composite(function)])
    with pytest.raises(MetricError, match="Metric m: its expression calls Python code"):
        definition_hash([Metric("m", Mean(x.map_elements(hash, return_dtype=pl.Int64)))])
    with pytest.raises(MetricError, match="a set cannot be part"):
        definition_hash([composite(partial(weighted, weight={1}))])
