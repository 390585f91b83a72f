"""The conversation about an item: the subject audits, the judge judges, and may repair its judgement once."""

from collections.abc import Mapping, Sequence
from typing import Any

from evalake.models.request import Reply, Request
from evalake.sdk import Exchange, Item
from evalake.sdk.suite import own_prompt, require_known
from evalake.suites.solidity_audit.judge_prompts import judge_request, repair_request
from evalake.suites.solidity_audit.prompts import PROMPT_TYPES, RUBRIC, render
from evalake.suites.solidity_audit.replies import contradictions, read_judgement
from evalake.suites.solidity_audit.score import asked, subject_error
from evalake.suites.solidity_audit.truth import KNOWLEDGE, truth_of


def converse(item: Item, answered: Sequence[Exchange], options: Mapping[str, Any]) -> Request | None:
    """Build the next request; None when there is no more to ask. Of the options, only the user's prompts change it."""
    own = own_prompt(options, item.prompt_type)
    if not answered:
        require_known(item.prompt_type, options, PROMPT_TYPES)
        return render(item.sample.input, item.model, item.prompt_type, own)
    audit = answered[0].outcome
    if item.prompt_type == KNOWLEDGE or item.judge is None or not isinstance(audit, Reply) or len(answered) > 2:
        return None
    if subject_error(item, audit) is not None:  # there is nothing to judge
        return None
    wanted = asked(item.sample, item.prompt_type)
    truth, rubric = truth_of(item.sample), own.get(RUBRIC)
    first = judge_request(item.judge, item.sample.input, truth, audit.text, wanted, item.model, rubric)
    if len(answered) == 1:
        return first
    judged = answered[1].outcome
    if not isinstance(judged, Reply):
        return None
    reading = read_judgement(judged.text, wanted)
    complaints = reading.flaws if reading.judgement is None else contradictions(reading.judgement)
    return repair_request(first, judged.text, complaints) if complaints else None
