"""Cells: rows that contribute alike to a composite metric, found once in a frame and counted in every group."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl

from metrics import bootstrap
from metrics.bootstrap import Units
from metrics.composite import Composite
from metrics.intervals import Array, Integers, percentile


@dataclass(frozen=True, eq=False)
class Cells:
    """The distinct contributions of a frame's rows, in an order that depends on nothing but their values.

    row             the cell of each row of the frame
    vector          [cells, sums]  the contributions; the last column is the denominator's
    level, stratum  [cells]  which of `levels` its label is (0: none), and its stratum
    levels          the values of `by`, ascending
    kind            [cells]  equal for cells that differ in the sums `varying` only
    """

    row: pl.Series
    vector: Array
    level: Integers
    levels: pl.Series
    stratum: Integers
    kind: Integers
    varying: tuple[int, ...]


def find_cells(frame: pl.DataFrame, composite: Composite, column: Mapping[str, str]) -> Cells:
    """The cells of `composite`, whose inputs are the columns of `frame` that `column` names."""
    contributions = [column[f"sum {name}"] for name in composite.sums] + [column["n"]]
    names = [f"sum{j}" for j in range(len(contributions))]
    labels = frame[column["by"]] if "by" in column else pl.repeat(None, frame.height, dtype=pl.Int64, eager=True)
    strata = pl.col(column["strata"]).rank("dense").fill_null(0) if "strata" in column else pl.lit(0)
    rows = frame.select(
        strata.cast(pl.Int64).alias("stratum"),
        labels.rank("dense").fill_null(0).cast(pl.Int64).alias("level"),
        # + 0.0 makes one number of 0.0 and -0.0
        **{name: pl.col(c).cast(pl.Float64).fill_null(0.0) + 0.0 for name, c in zip(names, contributions, strict=True)},
    )
    cell = rows.select(pl.struct(pl.all()).rank("dense") - 1).to_series().rename("cell")
    table = rows.with_columns(cell).unique("cell").sort("cell")
    exact = [name for c, name in zip(contributions, names, strict=True) if frame.schema[c] == pl.Boolean]
    return Cells(
        row=cell,
        vector=table.select(names).to_numpy(),
        level=table["level"].to_numpy(),
        levels=labels.unique().drop_nulls().sort(),
        stratum=table["stratum"].to_numpy(),
        kind=table.select(pl.struct("stratum", *exact).rank("dense").cast(pl.Int64)).to_series().to_numpy(),
        varying=tuple(j for j, name in enumerate(names) if name not in exact),
    )


@dataclass(frozen=True, eq=False)
class GroupCells:
    """How many rows of each cell one group has; of each cluster and cell where there are clusters."""

    cell: Integers
    count: Integers
    cluster: Integers | None

    def units(self, cells: Cells, composite: Composite, rng: np.random.Generator) -> Units:
        level = cells.level[self.cell]
        if composite.bins is not None:
            level = self._binned(cells.levels, level, composite)
        label = np.unique(level, return_inverse=True)[1].ravel()
        stratum, vector = cells.stratum[self.cell], cells.vector[self.cell]
        if self.cluster is not None:
            return bootstrap.clusters(self.cluster, self.count, stratum, label, vector, rng)
        return bootstrap.cells(self.count, stratum, label, cells.kind[self.cell], vector, cells.varying)

    def _binned(self, levels: pl.Series, level: Integers, composite: Composite) -> Integers:
        assert composite.bins is not None
        occurring = np.unique(level[level > 0])
        rows = np.bincount(level, weights=self.count, minlength=len(levels) + 1).astype(np.float64)
        bins = np.zeros(len(levels) + 1, dtype=np.int64)
        if occurring.size:
            values = levels.to_numpy().astype(np.float64)[occurring - 1]
            bins[occurring] = 1 + np.asarray(composite.bins(values, rows[occurring]), dtype=np.int64)
        return bins[level]


def group_cells(groups: pl.Series, cells: Cells, cluster: pl.Series | None) -> Mapping[int, GroupCells]:
    """The cells of every group; `groups` numbers each row's group, null for none."""
    keys = [groups.rename("group"), cells.row] + ([] if cluster is None else [cluster.rename("cluster")])
    by = [key.name for key in keys]
    counted = pl.DataFrame(keys).drop_nulls("group").group_by(by).len("count").sort(by)
    return {
        int(group[0]): GroupCells(
            cell=part["cell"].to_numpy().astype(np.int64),
            count=part["count"].to_numpy().astype(np.int64),
            cluster=None if cluster is None else part["cluster"].to_numpy().astype(np.int64),
        )
        for group, part in counted.partition_by("group", as_dict=True).items()
    }


def estimate_group(
    composite: Composite, cells: Cells, group: GroupCells, draws: int, rng: np.random.Generator
) -> tuple[float, float, float, float, float]:
    """(value, n, se, ci_low, ci_high) of a composite in one group; NaN where undefined, n = 0 where the value is."""
    units = group.units(cells, composite, rng)
    actual = bootstrap.actual_sums(units)
    value = float(composite.evaluate(composite.function, actual[:, :, :-1])[0])
    if np.isnan(value):
        return value, 0.0, np.nan, np.nan, np.nan
    n = float(actual[0, :, -1].sum())
    if n < 2:
        return value, n, np.nan, np.nan, np.nan
    resampled = bootstrap.drawn_sums(units, draws, rng)
    drawn = np.concatenate([composite.evaluate(composite.function, sums[:, :, :-1]) for sums in resampled])
    se, low, high = percentile(drawn)
    if composite.standard_error is not None:
        se = float(composite.evaluate(composite.standard_error, actual[:, :, :-1])[0])
    return value, n, se, low, high
