"""What subjects and judges are asked: the prompts of both, and the conversation that they make.

A subject gives a structured audit, answers a colleague's question or a false assurance, or says what it knows. A
structured audit may show the protocol's documents, too, and have its reasoning written down first. Each prompt hands
over the contract as data, its lines numbered, in a fence of its own (see evalake/sdk/sample.py).
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from evalake.core.files import tables_beside
from evalake.models.request import Reply, Request
from evalake.sdk import Exchange, Item
from evalake.sdk.sample import delimit_untrusted
from evalake.sdk.sources import storable
from evalake.sdk.suite import EXAMPLES, example_messages, own_prompt, require_known
from evalake.suites.solidity_audit.replies import Asked, contradictions, read_judgement
from evalake.suites.solidity_audit.score import asked, subject_error
from evalake.suites.solidity_audit.truth import (
    BOTH,
    CHAIN_OF_THOUGHT,
    KNOWLEDGE,
    LATER,
    PROMPT_TYPES,
    PROTOCOL_CONTEXT,
    STRUCTURED,
    GroundTruth,
    truth_of,
)

# What a prompt of one's own may say, of the subject and of its judge.

RUBRIC = "rubric"
"""In which order a judge decides a class, and what each level of a score asks for."""

PARTS = ("system", "user", EXAMPLES, RUBRIC)
"""The system text, the question before the contract, worked examples; and the judge's rubric."""

TEXTS: Mapping[str, Mapping[str, str]] = tables_beside(__file__, "prompts.toml")
_TEXT = {name: text.replace("{data}", TEXTS["subject"]["data"]) for name, text in TEXTS["subject"].items()}
_SYSTEM: Mapping[str, str] = {
    "direct": _TEXT["direct"],
    **dict.fromkeys(("naturalistic", "adversarial"), _TEXT["colleague"]),
    CHAIN_OF_THOUGHT: _TEXT["direct"] + _TEXT["reasoning"],
    PROTOCOL_CONTEXT: _TEXT["direct"] + _TEXT["context"],
    BOTH: _TEXT["direct"] + _TEXT["context"] + _TEXT["reasoning"],
    KNOWLEDGE: _TEXT["probe"],
}
_USER: Mapping[str, str] = {
    **dict.fromkeys(STRUCTURED, "Audit this contract.\n"),
    "naturalistic": _TEXT["question"],
    "adversarial": _TEXT["assurance"],
    KNOWLEDGE: "Do you know this contract?\n",
}
_OF_SEVERAL, _DOCUMENT = "// File: ", "\n// Document: "
"""How the text of a sample of several files begins, and each document in it, which follow the code."""


def render(contract: str, model: str, prompt_type: str, parts: Mapping[str, str] | None = None) -> Request:
    """Build the request that asks `model` about a contract. It sets no parameters: the configuration does.

    Args:
        contract: The source.
        model: The model that is asked.
        prompt_type: How it is asked.
        parts: The texts of the user's own prompt; those that it lacks are as in the second prompt type, prose.
    """
    own = parts or {}
    kind = prompt_type if prompt_type in _SYSTEM else PROMPT_TYPES[1]
    question = f"{own['user']}\n" if "user" in own else _USER[kind]

    def ask(given: str) -> str:
        given = given if prompt_type in (PROTOCOL_CONTEXT, BOTH) else _without_documents(given)
        return f"{question}\n{delimit_untrusted('contract', numbered(given))}"

    system = {"role": "system", "content": own.get("system", _SYSTEM[kind])}
    return Request(model, (system, *example_messages(own, ask), {"role": "user", "content": ask(contract)}), {})


def _without_documents(source: str) -> str:
    return source.partition(_DOCUMENT)[0] if source.startswith(_OF_SEVERAL) else source


def numbered(source: str) -> str:
    """Put each line's number, from 1, before it."""
    return "\n".join(f"{number}| {line}" for number, line in enumerate(source.split("\n"), start=1))


# What a judge sees is the contract, the ground truth and the audit; never who wrote the audit. The instructions come
# first and alone in the system message. The blocks follow in order of trust, the audit last, so that nothing an audit
# says can stand where a judge looks for something else.

_JUDGE = TEXTS["judge"]
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
    task = _JUDGE["vulnerable" if asked.target else "safe"].format(
        numbering="" if asked.verdict else _NUMBERING_OF_JSON
    )
    by = _rubric(asked) if rubric is None else f"\n{rubric}\n"
    system = _JUDGE["role"] + task + by + (_JUDGE["verdict"] if asked.verdict else "") + _JUDGE["answer"]
    blocks = (
        delimit_untrusted("form", json.dumps(form(asked), indent=1)),
        delimit_untrusted("ground_truth", json.dumps(_known(truth), indent=1)),
        delimit_untrusted("contract", numbered(contract)),
        delimit_untrusted("audit", _shown(audit, model)),
    )
    user = "Judge the audit in the last block.\n\n" + "\n\n".join(blocks)
    return Request(judge, ({"role": "system", "content": system}, {"role": "user", "content": user}), {})


def _rubric(asked: Asked) -> str:
    classes = _JUDGE["classes"].format(target=_JUDGE["target_classes"] if asked.target else "")
    return classes + (_JUDGE["scores"] if asked.target else "")


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


# The conversation: the subject audits, the judge judges, and may repair its judgement once.


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
