"""What a form asks a person about one line of a sheet: about an audit as a whole, or about one of its findings."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from suites.base.questions import Questions
from suites.solidity_audit.taxonomy import Classification

Share = Annotated[float, Field(ge=0, le=1)]
Note = Annotated[str, Field(max_length=2000)]


VERDICT, TARGET_FOUND, CLASSIFICATION = "verdict", "target_found, rcir, ava, fsv", "classification"
"""What is to be filled in: of an audit, blind; of an audit beside the truth; of one of its findings, likewise."""


class AboutVerdict(Questions):
    """What the audit concludes, whatever the truth is. What is left empty is not said."""

    verdict: Literal["vulnerable", "safe"] | None = Field(None, title="What does the audit say that the contract is?")
    note: Note | None = Field(None, title="Why do you say so?")


class AboutTarget(Questions):
    """Whether the audit finds what is known, and how well. What is left empty is not said."""

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


class AboutAudit(AboutVerdict, AboutTarget):
    """The audit as a whole."""


class AboutFinding(Questions):
    """One finding. What is left empty is not said."""

    classification: Classification | None = Field(None, title="What is this finding?")
    note: Note | None = Field(None, title="Why do you say so?")


def questions(line: Mapping[str, Any]) -> type[BaseModel]:
    """The questions about a line of a sheet; their answers are columns of it.

    A line of before, which does not say what to fill in, is asked everything about the audit.
    """
    if line["finding_id"] is not None:
        return AboutFinding
    asked: Mapping[str, type[BaseModel]] = {VERDICT: AboutVerdict, TARGET_FOUND: AboutTarget}
    return asked.get(line.get("fill_in") or "", AboutAudit)
