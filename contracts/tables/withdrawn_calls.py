"""The table `withdrawn_calls`: replies that answer no longer, so that their calls are asked again."""

from datetime import datetime

from pydantic import Field

from contracts.contract import Contract, RowModel
from contracts.rule import hash_rule, not_blank, not_negative
from contracts.tables.calls import CALL_KEY


class WithdrawnCallRow(RowModel):
    """One reply that was withdrawn."""

    prompt_hash: str = Field(description="The request.")
    replicate: int = Field(description="Which repeat of it.")
    endpoint: str = Field(description="The endpoint that answered.")
    reply_revision: int = Field(description="The revision of the reply; the next one has one more.")
    model: str = Field(description="The model that answered.")
    kind: str = Field(description="What was suspicious: empty, error-finish.")
    withdrawn_at: datetime = Field(description="When it was withdrawn.")


WITHDRAWN_CALLS = Contract(
    "withdrawn_calls",
    WithdrawnCallRow,
    (*CALL_KEY, "reply_revision"),
    "Replies that answer no longer. They stay in `calls`; the next reply to the same call has a higher revision.",
    (hash_rule("prompt_hash"), not_negative("replicate"), not_negative("reply_revision"), not_blank("kind")),
)
