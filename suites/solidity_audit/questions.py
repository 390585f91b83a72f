"""What a form asks a person about one line of a sheet: about an audit as a whole, or about one of its findings."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from suites.solidity_audit.taxonomy import Classification

Share = Annotated[float, Field(ge=0, le=1)]
Note = Annotated[str, Field(max_length=2000)]


class _Questions(BaseModel):
    model_config = ConfigDict(extra="forbid")


class AboutAudit(_Questions):
    """The audit as a whole. What is left empty is not said."""

    verdict: Literal["vulnerable", "safe"] | None = Field(None, description="What the audit says of the contract.")
    target_found: Literal["yes", "no"] | None = Field(None, description="Does it name the known vulnerability?")
    rcir: Share | None = Field(None, description="How well it identifies the root cause, 0 to 1.")
    ava: Share | None = Field(None, description="How valid the attack that it describes is, 0 to 1.")
    fsv: Share | None = Field(None, description="Whether the fix that it suggests would work, 0 to 1.")
    note: Note | None = Field(None, description="Why you say so.")


class AboutFinding(_Questions):
    """One finding. What is left empty is not said."""

    classification: Classification | None = Field(None, description="What the finding is.")
    note: Note | None = Field(None, description="Why you say so.")


def questions(line: Mapping[str, Any]) -> type[BaseModel]:
    """The questions about a line of a sheet; their answers are columns of it."""
    return AboutAudit if line["finding_id"] is None else AboutFinding
