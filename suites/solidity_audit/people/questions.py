"""What a form asks a person about one line of a sheet: about an audit as a whole, or about one of its findings."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from suites.base.questions import Questions
from suites.solidity_audit.taxonomy import Classification

Share = Annotated[float, Field(ge=0, le=1)]
Note = Annotated[str, Field(max_length=2000)]


class AboutAudit(Questions):
    """The audit as a whole. What is left empty is not said."""

    verdict: Literal["vulnerable", "safe"] | None = Field(None, title="What does the audit say that the contract is?")
    target_found: Literal["yes", "no"] | None = Field(None, title="Does it name the known vulnerability?")
    rcir: Share | None = Field(
        None, title="How well does it identify the root cause?", description="From 0 (not at all) to 1 (exactly)."
    )
    ava: Share | None = Field(
        None, title="How valid is the attack that it describes?", description="From 0 (impossible) to 1 (it works)."
    )
    fsv: Share | None = Field(
        None, title="Would the fix that it suggests work?", description="From 0 (not at all) to 1 (wholly)."
    )
    note: Note | None = Field(None, title="Why do you say so?")


class AboutFinding(Questions):
    """One finding. What is left empty is not said."""

    classification: Classification | None = Field(None, title="What is this finding?")
    note: Note | None = Field(None, title="Why do you say so?")


def questions(line: Mapping[str, Any]) -> type[BaseModel]:
    """The questions about a line of a sheet; their answers are columns of it."""
    return AboutAudit if line["finding_id"] is None else AboutFinding
