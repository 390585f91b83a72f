"""The table `samples`: every dataset item, by the version of its dataset."""

from pydantic import Field

from contracts.contract import Contract, RowModel
from contracts.rule import TableKind, TableRule, hash_rule, not_blank, not_negative


class SampleRow(RowModel):
    """One dataset item."""

    suite: str = Field(description="The suite the sample belongs to.")
    dataset: str = Field(description="The name of its dataset.")
    dataset_version: str = Field(description="SHA-256 over the sample hashes of the dataset, in order.")
    sample_id: str = Field(description="The item's name, unique within its dataset version.")
    sample_hash: str = Field(description="SHA-256 over everything that defines the sample: input, target and labels.")
    position: int = Field(description="Its place in the dataset, from 0.")
    input: str = Field(description="What the model is asked about: text, or JSON where it has parts.")
    target: str | None = Field(description="The ground truth as JSON, where it is more than a label.")
    label: str | None = Field(description="The right answer's class.")
    category: str | None = Field(description="The kind of item, by which metrics are sliced.")
    severity: str | None = Field(description="How much the item matters.")
    difficulty: str | None = Field(description="How hard the item is meant to be.")
    cluster: str | None = Field(description="Items of one cluster (such as twins) are resampled together.")
    note: str | None = Field(description="Why the label is what it is.")


SAMPLES = Contract(
    "samples",
    SampleRow,
    ("dataset_version", "sample_id"),
    "Dataset items, one version of a dataset beside the other.",
    (hash_rule("dataset_version"), hash_rule("sample_hash"), not_blank("sample_id"), not_negative("position")),
    extra_table_rules=(TableRule("not_empty", TableKind.ROW_COUNT, {"minimum": 1, "maximum": None}),),
)
