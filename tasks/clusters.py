"""Clusters: which rows of a run are dependent, as its samples say; the same input in two datasets is one cluster."""

from collections.abc import Iterable, Mapping
from math import ceil

import polars as pl

from evalake.contracts.tables import RUN_ITEMS, SAMPLES
from evalake.metrics.columns import STRATUM
from evalake.sdk import Suite
from evalake.storage.lake import Lake

Versions = Mapping[str, int | None]  # table to version; None where the table does not exist yet

ITEMS_AT_ONCE = 25_000  # whose rows are joined, which bounds memory


def parts_of(lake: Lake, run_id: str, versions: Versions) -> list[pl.Expr | None]:
    """Divide the items of a run into parts, as conditions of `sample_hash`; a small run is one part, without any."""
    items = lake.pinned(RUN_ITEMS, versions).filter(pl.col("run_id") == run_id).select(pl.len()).collect().item()
    parts = ceil(items / ITEMS_AT_ONCE)
    return [None] if parts < 2 else [pl.col("sample_hash").hash() % parts == part for part in range(parts)]


def run_samples(lake: Lake, suite: Suite, run_id: str, versions: Versions, part: pl.Expr | None = None) -> pl.LazyFrame:
    """Read the samples of a run, or of a part of its items."""
    ours = () if part is None else (part,)
    items = lake.pinned(RUN_ITEMS, versions).filter(pl.col("run_id") == run_id, *ours).select("sample_hash")
    samples = lake.pinned(SAMPLES, versions).filter(pl.col("suite") == suite.name, *ours)
    return samples.join(items, on="sample_hash", how="semi").unique("sample_hash")


def with_twins(lake: Lake, suite: Suite, run_id: str, versions: Versions) -> pl.DataFrame:
    """Read the samples of a run whose input another has, too; of all others, only a digest is in memory."""
    digest = pl.col("input").hash()
    read = [run_samples(lake, suite, run_id, versions, part) for part in parts_of(lake, run_id, versions)]
    digests = pl.concat([each.select(digest).collect(engine="streaming") for each in read])["input"].sort()
    repeated = digest.is_in(digests.filter(digests == digests.shift()).implode())
    columns = ("sample_hash", "dataset", "sample_id", "cluster", "input")
    return pl.concat([each.filter(repeated).select(columns).collect(engine="streaming") for each in read])


def with_clusters(rows: pl.DataFrame, samples: pl.DataFrame, twins: Mapping[str, str]) -> pl.DataFrame:
    """Give result rows the column `cluster`: what their sample shares with others, and else the sample itself.

    Args:
        rows: Result rows, by `sample_hash`; one whose sample is not known keeps its own cluster, where it has one.
        samples: Samples with sample_hash, dataset, sample_id and cluster.
        twins: What `twins_of` finds in all samples of a run.
    """
    of_sample = samples.select("sample_hash", _cluster().replace(twins).alias("of sample")).unique("sample_hash")
    own = pl.col("cluster") if "cluster" in rows.columns else pl.lit(None, pl.String)
    joined = _with_one(rows, of_sample)
    return joined.with_columns(cluster=pl.coalesce("of sample", own, "sample_hash")).drop("of sample")


def twins_of(samples: pl.DataFrame) -> dict[str, str]:
    """Map clusters to the first of all that equal inputs connect them with; others are left out."""
    shared = samples.filter(pl.col("input") != "").select("input", cluster=_cluster()).unique()
    shared = shared.filter(pl.len().over("input") > 1).sort("input", "cluster")
    return _components(shared.group_by("input", maintain_order=True).agg("cluster")["cluster"].to_list())


def _with_one(rows: pl.DataFrame, of_sample: pl.DataFrame) -> pl.DataFrame:
    """Add a column of samples to result rows, whose other columns are not copied."""
    return rows.with_columns(
        rows.select("sample_hash")
        .join(of_sample, on="sample_hash", how="left", maintain_order="left")
        .drop("sample_hash")
    )


def with_strata(rows: pl.DataFrame, samples: pl.DataFrame) -> pl.DataFrame:
    """Give result rows of a draw the stratum of their sample: its dataset, label and category (`tasks.extract`)."""
    of_sample = samples.select(
        "sample_hash", pl.struct("dataset", "label", "category").struct.json_encode().alias(STRATUM)
    )
    return _with_one(rows, of_sample)


def shared_inputs(rows: pl.DataFrame, samples: pl.DataFrame) -> list[str]:
    """Say which datasets of a run have inputs in common: each counts as one unit. Rows may name samples by hash."""
    is_text = rows.schema["sample_hash"] == pl.String
    named = samples.with_columns(named=pl.col("sample_hash") if is_text else pl.col("sample_hash").hash())
    ours = named.join(rows, left_on="named", right_on="sample_hash", how="semi").filter(pl.col("input") != "")
    shared = ours.group_by("input").agg(pl.col("dataset").unique().sort()).filter(pl.col("dataset").list.len() > 1)
    counts = shared.group_by("dataset").len().sort("dataset")
    return [
        f"{count} input{'' if count == 1 else 's'} of {' and '.join(datasets)} are the same: each counts as one unit"
        for datasets, count in counts.iter_rows()
    ]


def _cluster() -> pl.Expr:
    """Build the name of a sample's cluster, as `unit_of` has it."""
    inside = pl.coalesce("cluster", "sample_id")
    of_all = pl.when(inside.str.starts_with("/")).then(inside.str.strip_prefix("/"))
    return of_all.otherwise(pl.concat_str("dataset", inside, separator="/"))


def _components(groups: Iterable[list[str]]) -> dict[str, str]:
    """Map each name in any group to the first of all names that groups connect it with."""
    parent: dict[str, str] = {}

    def root(name: str) -> str:
        while parent.setdefault(name, name) != name:
            parent[name] = parent[parent[name]]
            name = parent[name]
        return name

    for group in groups:
        roots = sorted(map(root, group))
        for other in roots[1:]:
            parent[other] = roots[0]
    return {name: root(name) for name in parent}
