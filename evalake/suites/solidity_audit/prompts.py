"""The prompts of solidity_audit's subjects: a structured audit, a colleague's question, a false assurance, a probe.

A structured audit may show the protocol's documents, too, and have its reasoning written down first. Each hands over
the contract as data, its lines numbered, in a fence of its own (see evalake/sdk/sample.py).
"""

from collections.abc import Mapping

from evalake.core.files import tables_beside
from evalake.models.request import Request
from evalake.sdk.sample import delimit_untrusted
from evalake.sdk.suite import EXAMPLES, example_messages
from evalake.suites.solidity_audit.truth import BOTH, CHAIN_OF_THOUGHT, KNOWLEDGE, PROTOCOL_CONTEXT, STRUCTURED

# What a prompt of one's own may say, of the subject and of its judge.

RUBRIC = "rubric"
"""In which order a judge decides a class, and what each level of a score asks for."""

PARTS = ("system", "user", EXAMPLES, RUBRIC)
"""The system text, the question before the contract, worked examples; and the judge's rubric."""


PROMPT_TYPES = ("direct", "naturalistic", "adversarial", CHAIN_OF_THOUGHT, PROTOCOL_CONTEXT, BOTH, KNOWLEDGE)

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
