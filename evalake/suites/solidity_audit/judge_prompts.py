"""The prompts of solidity_audit's judges: instructions, the form of the answer, and all material delimited as data.

What a judge sees is the contract, the ground truth and the audit; never who wrote the audit. The instructions come
first and alone in the system message. The blocks follow in order of trust, the audit last, so that nothing an audit
says can stand where a judge looks for something else.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from evalake.core.files import tables_beside
from evalake.models.request import Request
from evalake.sdk.sample import delimit_untrusted
from evalake.sdk.sources import storable
from evalake.suites.solidity_audit.prompts import TEXTS, numbered
from evalake.suites.solidity_audit.replies import Asked
from evalake.suites.solidity_audit.truth import LATER, GroundTruth

_TEXT = TEXTS["judge"]
_FORM = tables_beside(__file__, "form.toml")
LONGEST_AUDIT = 200_000  # characters; the judge is told where an audit is cut
LONGEST_REPLY_SHOWN = 20_000
SHORTEST_NAME = 4  # characters of a model's name that are worth hiding: shorter ones are words of their own

_NUMBERING_OF_JSON = ", which for an audit in JSON is the place in its list of findings"


def judge_request(
    judge: str,
    contract: str,
    truth: GroundTruth,
    audit: str | None,
    asked: Asked,
    model: str,
    rubric: str | None = None,
) -> Request:
    """Build the request that asks `judge` about an audit by `model`, whose name is hidden from it.

    A `rubric` of the user's own replaces the suite's; the task, the form and the fences stay.
    """
    task = _TEXT["vulnerable" if asked.target else "safe"].format(numbering="" if asked.verdict else _NUMBERING_OF_JSON)
    by = _rubric(asked) if rubric is None else f"\n{rubric}\n"
    system = _TEXT["role"] + task + by + (_TEXT["verdict"] if asked.verdict else "") + _TEXT["answer"]
    blocks = (
        delimit_untrusted("form", json.dumps(form(asked), indent=1)),
        delimit_untrusted("ground_truth", json.dumps(_known(truth), indent=1)),
        delimit_untrusted("contract", numbered(contract)),
        delimit_untrusted("audit", _shown(audit, model)),
    )
    user = "Judge the audit in the last block.\n\n" + "\n\n".join(blocks)
    return Request(judge, ({"role": "system", "content": system}, {"role": "user", "content": user}), {})


def _rubric(asked: Asked) -> str:
    classes = _TEXT["classes"].format(target=_TEXT["target_classes"] if asked.target else "")
    return classes + (_TEXT["scores"] if asked.target else "")


def repair_request(first: Request, reply: str | None, complaints: Sequence[str]) -> Request:
    """Build the same request with the judge's own reply and what is wrong with it, for one attempt to repair it."""
    excerpt = storable(reply or "").strip()[:LONGEST_REPLY_SHOWN] or "(nothing)"
    wrong = "\n".join(f"- {complaint}" for complaint in complaints)
    ask = (
        f"Your answer cannot be used:\n{wrong}\n\nGive the whole JSON object again, with these points put right and "
        "everything else as you judged it. Answer with the object alone."
    )
    messages = (*first.messages, {"role": "assistant", "content": excerpt}, {"role": "user", "content": ask})
    return Request(first.model, messages, first.parameters)


def form(asked: Asked) -> dict[str, Any]:
    """Build an example of the answer, field by field."""
    fields: dict[str, Any] = {"overall_verdict": _FORM["verdict"]} if asked.verdict else {}
    fields["findings"] = [_FORM["finding"]]
    return fields | ({"target_assessment": _FORM["target"]} if asked.target else {})


def _known(truth: GroundTruth) -> Mapping[str, Any]:
    known = truth.model_dump(exclude={"difficulty_tier", *LATER}, exclude_none=True)
    return known if truth.is_vulnerable else {"is_vulnerable": False}


def _shown(audit: str | None, model: str) -> str:
    """Hide the author's name in the audit, and cut it at LONGEST_AUDIT characters."""
    text = storable(audit or "")
    for name in {model, model.rpartition("/")[2]}:
        if len(name) >= SHORTEST_NAME:
            text = re.sub(rf"(?<![\w-]){re.escape(name)}(?![\w-])", "[the auditor]", text, flags=re.IGNORECASE)
    if len(text) > LONGEST_AUDIT:
        text = f"{text[:LONGEST_AUDIT]}\n[cut after {LONGEST_AUDIT} characters]"
    return text
