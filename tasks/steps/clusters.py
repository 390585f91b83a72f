"""Clusters: which rows of a run are dependent, as its samples say; the same input in two datasets is one cluster."""

from collections.abc import Iterable

import polars as pl


def with_clusters(rows: pl.DataFrame, samples: pl.DataFrame) -> pl.DataFrame:
    """Give result rows the column `cluster`: what their sample shares with others, and else the sample itself.

    Args:
        rows: Result rows, by `sample_hash`; one whose sample is not known keeps its own cluster, where it has one.
        samples: Samples, of which sample_hash, dataset, sample_id, cluster and input are read.
    """
    named = _named(samples)
    shared = named.filter(pl.col("input") != "").select("cluster", "input").unique()
    shared = shared.filter(pl.len().over("input") > 1).sort("input", "cluster")
    pairs = shared.group_by("input", maintain_order=True).agg("cluster")["cluster"]
    merged = _components(pairs.to_list())
    of_sample = named.select("sample_hash", pl.col("cluster").replace(merged).alias("of sample"))
    own = pl.col("cluster") if "cluster" in rows.columns else pl.lit(None, pl.String)
    joined = rows.join(of_sample, on="sample_hash", how="left", maintain_order="left")
    return joined.with_columns(cluster=pl.coalesce("of sample", own, "sample_hash")).drop("of sample")


def shared_inputs(rows: pl.DataFrame, samples: pl.DataFrame) -> list[str]:
    """Say which datasets of a run have inputs in common, which count as one unit each."""
    ours = samples.join(rows, on="sample_hash", how="semi").filter(pl.col("input") != "")
    shared = ours.group_by("input").agg(pl.col("dataset").unique().sort()).filter(pl.col("dataset").list.len() > 1)
    counts = shared.group_by("dataset").len().sort("dataset")
    return [
        f"{count} input{'' if count == 1 else 's'} of {' and '.join(datasets)} are the same: each counts as one unit"
        for datasets, count in counts.iter_rows()
    ]


def _named(samples: pl.DataFrame) -> pl.DataFrame:
    inside = pl.coalesce("cluster", "sample_id")
    name = pl.concat_str("dataset", inside, separator="/").alias("cluster")
    return samples.select("sample_hash", name, "input").unique("sample_hash", maintain_order=True)


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
