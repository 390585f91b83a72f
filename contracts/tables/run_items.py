"""The table `run_items`: the manifest of each run."""

from pydantic import Field

from contracts.contract import Contract, RowModel
from contracts.rule import hash_rule, not_negative


class RunItemRow(RowModel):
    """One item of a run's manifest."""

    run_id: str = Field(description="The run.")
    item_id: str = Field(description="The item: SHA-256 over sample, model, judge, prompt type and replicate.")
    suite: str = Field(description="The suite.")
    dataset: str = Field(description="The sample's dataset.")
    dataset_version: str = Field(description="The version of the dataset.")
    sample_id: str = Field(description="The sample.")
    sample_hash: str = Field(description="The sample's content hash.")
    model: str = Field(description="The subject model.")
    judge: str | None = Field(description="The judge model, where there is one.")
    prompt_type: str = Field(description="Which of the suite's prompts was used.")
    replicate: int = Field(description="Which repeat.")
    prompt_hash: str = Field(description="The subject call's prompt hash.")
    judge_hash: str | None = Field(description="The judge call's prompt hash; null until it is known.")


ITEM_KEY = ("prompt_hash", "judge_hash", "sample_hash", "model", "judge", "replicate")
"""The columns by which an item finds its result row, as far as the table of results has them."""

RUN_ITEMS = Contract(
    "run_items",
    RunItemRow,
    ("run_id", "item_id"),
    "What each run consists of: sample x model x judge x replicate, and the prompt hash of each call.",
    (hash_rule("item_id"), hash_rule("prompt_hash"), hash_rule("sample_hash"), not_negative("replicate")),
    # A retry of an incomplete run may find another judgement than its first attempt did.
    replaced_when="new.judge_hash IS NOT NULL AND (old.judge_hash IS NULL OR old.judge_hash <> new.judge_hash)",
)
