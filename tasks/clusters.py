"""Clusters: which rows of a run are dependent, as its samples say; the same input in two datasets is one cluster."""

from collections.abc import Iterable, Mapping

import polars as pl

from evalake.contracts.tables import RUN_ITEMS, SAMPLES
from evalake.contracts.tables.runs import ITEM_KEY
from evalake.metrics.columns import STRATUM
from evalake.sdk import Suite
from evalake.storage.lake import Lake

Versions = Mapping[str, int | None]  # table to version; None where the table does not exist yet


def item_hash(suite: Suite) -> pl.Expr:
    """Hash the item that an item or result row is of, as `item`: a join by 8 bytes a row, where texts take hundreds.

    Among ten million rows two have one hash by chance in one run of some 300,000.
    """
    return pl.struct([name for name in ITEM_KEY if name in suite.results.column]).hash().alias("item")


def sample_hash() -> pl.Expr:
    """Hash the name of a row's sample, as `named`, likewise."""
    return pl.col("sample_hash").hash().alias("named")


def run_samples(lake: Lake, suite: Suite, run_id: str, versions: Versions) -> pl.LazyFrame:
    """Read the samples of a run; one that several versions of its dataset hold is there several times."""
    items = lake.pinned(RUN_ITEMS, versions).filter(pl.col("run_id") == run_id)
    ours = items.select(sample_hash()).collect(engine="streaming")["named"]
    samples = lake.pinned(SAMPLES, versions).filter(pl.col("suite") == suite.name)
    return samples.filter(sample_hash().is_in(ours.implode()))


def with_twins(lake: Lake, suite: Suite, run_id: str, versions: Versions) -> pl.DataFrame:
    """Read the samples of a run whose input another has, too; of all others, only a digest is in memory."""
    samples, digest = run_samples(lake, suite, run_id, versions), pl.col("input").hash()
    known = samples.select(digest, sample_hash()).collect(engine="streaming").sort("input", "named")
    before = known.shift()  # a sample may be there several times
    twins = known.filter((known["input"] == before["input"]) & (known["named"] != before["named"]))
    repeated = digest.is_in(twins["input"].implode())
    columns = ("sample_hash", "dataset", "sample_id", "cluster", "input")
    return samples.filter(repeated).select(columns).collect(engine="streaming")


def with_clusters(rows: pl.LazyFrame, samples: pl.LazyFrame, twins: Mapping[str, str]) -> pl.LazyFrame:
    """Give result rows the column `cluster`: what their sample shares with others, and else the sample itself.

    Args:
        rows: Result rows, by `sample_hash`; one whose sample is not known keeps its own cluster, where it has one.
            Where samples are named by hashes, so are clusters.
        samples: Samples with sample_hash, dataset, sample_id and cluster.
        twins: What `twins_of` finds in all samples of a run.
    """
    names, schema = _cluster().replace(twins), rows.collect_schema()
    known = [name for name in ("cluster", "sample_hash") if name in schema]
    if schema["sample_hash"] != pl.String:
        if not twins and known == ["sample_hash"] and _are_alone(samples):
            return rows.with_columns(cluster="sample_hash")  # the join would take 100 MB for a million rows
        names = names.hash()
    joined = _with_one(rows, samples.select("sample_hash", names.alias("of sample")))
    return joined.with_columns(cluster=pl.coalesce("of sample", *known)).drop("of sample")


def _are_alone(samples: pl.LazyFrame) -> bool:
    """Tell whether no sample names a cluster; a name that begins with / is one of all datasets."""
    names_one = pl.col("cluster").is_not_null() | pl.col("sample_id").str.starts_with("/")
    return not samples.select(names_one.any()).collect(engine="streaming").item()


def twins_of(samples: pl.DataFrame) -> dict[str, str]:
    """Map clusters to the first of all that equal inputs connect them with; others are left out."""
    shared = samples.filter(pl.col("input") != "").select("input", cluster=_cluster()).unique()
    shared = shared.filter(pl.len().over("input") > 1).sort("input", "cluster")
    return _components(shared.group_by("input", maintain_order=True).agg("cluster")["cluster"].to_list())


def _with_one(rows: pl.LazyFrame, of_sample: pl.LazyFrame) -> pl.LazyFrame:
    """Add a column of samples to result rows."""
    is_named = rows.collect_schema()["sample_hash"] == pl.String
    known = of_sample.with_columns(sample_hash()).drop("sample_hash").unique("named")
    rows = rows.with_columns(sample_hash() if is_named else pl.col("sample_hash").alias("named"))
    return rows.join(known, on="named", how="left", maintain_order="left").drop("named")


def with_strata(rows: pl.LazyFrame, samples: pl.LazyFrame) -> pl.LazyFrame:
    """Give result rows of a draw the stratum of their sample: its dataset, label and category (`tasks.extract`)."""
    stratum = pl.struct("dataset", "label", "category").struct.json_encode().cast(pl.Categorical)
    return _with_one(rows, samples.select("sample_hash", stratum.alias(STRATUM)))


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
