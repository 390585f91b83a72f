"""The judge's prompts: sets of templates, filled in one pass, and the hash that tells criteria apart."""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from evalake.core.configuration import TEMPLATES
from evalake.core.errors import ConfigurationError, UsageError
from evalake.core.hashing import content_hash
from evalake.models.request import Reply, Request
from evalake.sdk import Exchange, Item
from evalake.sdk.sample import ANY_FENCE, fence
from evalake.sdk.suite import own_prompt, require_known
from evalake.suites.session_review.replies import ATTEMPTS, LAST_LINE, LAST_NUMBER, MODES, read_total
from evalake.suites.session_review.session import FittedConversation, Session, fit, load
from evalake.suites.session_review.sources.generic import text as storable

_FOLDER = Path(__file__).resolve().parent / "templates"
_PLACEHOLDER = re.compile(r"\{\{([a-z_]+)\}\}")


PROCESS_FIRST, OUTCOME_FIRST = "process_first", "outcome_first"
SETS = (PROCESS_FIRST, OUTCOME_FIRST)
"""The sets of templates that ship; the first is used where nothing is configured."""


@cache
def templates(of: str = PROCESS_FIRST) -> Mapping[str, str]:
    """Read every template of a set by its name: system, request, output_schema, reminder, missing_tools."""
    return _read(_FOLDER) if of == PROCESS_FIRST else {**templates(), **_read(_FOLDER / of)}


def _read(folder: Path) -> dict[str, str]:
    return {file.stem: file.read_text(encoding="utf-8").strip() for file in sorted(folder.glob("*.md"))}


PARTS = ("system", "request", "output_schema", "reminder", "missing_tools")
"""The parts that a configured prompt may replace; the suite's stand for the others."""

PROMPT_VERSION = "2"  # changes with what is put into the templates; 2: the mark is made by the lake's secret

_ASKED = {"mark", "alert", "conversation"}  # what a request has to hand over

# Prompts as TARSy's scoring document has them; they know no mark, and their form of the answer is put in by code
_OF_DOCUMENT = {
    "{{SESSION_CONVERSATION}}": "{{conversation}}",
    "{{ALERT_DATA}}": "{{alert}}",
    "{{OUTPUT_SCHEMA}}": "{{output_schema}}",
}
_SCHEMA_OF_DOCUMENT = "End your answer with one line that holds the total score alone, an integer from 0 to 100."


def _is_of_document(texts: Mapping[str, str]) -> bool:
    return any(placeholder in texts.get("request", "") for placeholder in _OF_DOCUMENT)


def templates_of(options: Mapping[str, Any], prompt_type: str) -> Mapping[str, str]:
    """Collect every template of a prompt type: those of the set in use, or what the configuration replaces them by."""
    chosen = options.get(TEMPLATES, PROCESS_FIRST)
    own = {**({} if isinstance(chosen, str) else chosen), **own_prompt(options, prompt_type)}
    texts = {**(templates(chosen) if isinstance(chosen, str) else templates()), **own}
    if not _is_of_document(texts):
        return texts
    schema, request = own.get("output_schema", _SCHEMA_OF_DOCUMENT), texts["request"]
    for theirs, ours in _OF_DOCUMENT.items():
        request = request.replace(theirs, ours)
    others = {name: text.replace("{{OUTPUT_SCHEMA}}", schema) for name, text in texts.items()}
    return {**others, "request": request, "output_schema": schema}


def total_mode(options: Mapping[str, Any], prompt_type: str) -> str:
    """Look up how totals are read: as configured, else by the last number where the prompt is the document's."""
    chosen = options.get(TEMPLATES)
    own = {**(chosen if isinstance(chosen, Mapping) else {}), **own_prompt(options, prompt_type)}
    mode = options.get("total") or (LAST_NUMBER if _is_of_document(own) else LAST_LINE)
    if mode not in MODES:
        raise ConfigurationError(f"suites.session_review.total must be {' or '.join(MODES)}, not {mode!r}")
    return str(mode)


def reads_total(options: Mapping[str, Any], prompt_type: str) -> Callable[[Reply], int | None]:
    """Build the function that reads a total of an answer."""
    mode = total_mode(options, prompt_type)
    return lambda reply: read_total(reply.text, mode, is_cut=reply.is_cut_off)


def check_prompt(parts: Mapping[str, str]) -> None:
    """Raise ConfigurationError where configured templates lack a needed placeholder, or have an unknown one."""
    for name, text in parts.items():
        wanted, there_are = set(_PLACEHOLDER.findall(text)), _ASKED | {"output_schema"} if name == "request" else set()
        if name == "request" and _is_of_document(parts):
            if lacks := next((each for each in list(_OF_DOCUMENT)[:2] if each not in text), None):
                raise ConfigurationError(f"{name} has no {lacks}, in whose place the session is put")
            continue
        if missing := sorted(_ASKED - wanted) if name == "request" else []:
            raise ConfigurationError(f"{name} has no {{{{{missing[0]}}}}}, in whose place the session is put")
        if unknown := sorted(wanted - there_are):
            raise ConfigurationError(f"nothing is known to put in the place of {{{{{unknown[0]}}}}} in {name}")


@cache
def criteria_hash() -> str:
    """Compute the criteria hash where nothing is configured: scores under others are not comparable."""
    return criteria_hash_of({}, "direct")


def criteria_hash_of(options: Mapping[str, Any], prompt_type: str) -> str:
    """Compute SHA-256 over every template of a prompt type, and the version of what fills them."""
    mode = total_mode(options, prompt_type)
    read_by = {} if mode == LAST_LINE else {"total": mode}
    return content_hash({**templates_of(options, prompt_type), "version": PROMPT_VERSION, **read_by})


def fill(template: str, values: Mapping[str, str]) -> str:
    """Replace the placeholders of a template, in one pass: a `{{…}}` within a value stays text.

    A placeholder without a value is a mistake in the template, and raises KeyError.
    """
    return _PLACEHOLDER.sub(lambda placeholder: values[placeholder[1]], template)


def request_text(mark: str, alert: str, conversation: str, texts: Mapping[str, str]) -> str:
    """Write the first turn's user message by these templates."""
    values = {"mark": mark, "alert": alert, "conversation": conversation, "output_schema": texts["output_schema"]}
    return fill(texts["request"], values)


# The judge's conversation as a pure function: the review, reminders until it ends in a total, the missing tools.


PROMPT_TYPES = ("direct",)

OPTIONS: Mapping[str, Any] = {"context_tokens": 100_000, "total": None}
"""context_tokens: how long a conversation with the judge may get, its answers included; sessions are fitted to it.
total: how the total is read, `last_line` or `last_number`; None: by the prompt."""

CHARACTERS_PER_TOKEN = 3  # low on purpose: logs and JSON take more tokens than prose does
ANSWER_TOKENS = 12_000  # kept free for the judge's answers and what follows them
NO_ANSWER = "(no answer)"


def converse(item: Item, answered: Sequence[Exchange], options: Mapping[str, Any]) -> Request | None:
    """Build the next request to the item's judge; None where the conversation is over.

    It is over when a call was given up on, when three attempts gave no total, and after the second turn.
    Raises UsageError for an item without a judge, ConfigurationError for a context in which nothing fits.
    """
    if item.judge is None:
        raise UsageError("session_review needs a judge: name one with --judges")
    if not all(isinstance(answer.outcome, Reply) for answer in answered):
        return None
    answers = [answer.outcome for answer in answered if isinstance(answer.outcome, Reply)]
    read = reads_total(options, item.prompt_type)
    turns = first_turn(answers, read)
    is_scored = bool(turns) and read(turns[-1]) is not None
    if len(answers) > len(turns) or (len(turns) == ATTEMPTS and not is_scored):
        return None
    require_known(item.prompt_type, options, PROMPT_TYPES)
    texts = templates_of(options, item.prompt_type)
    messages = [{"role": "system", "content": texts["system"]}]
    asked = opening(item, options, texts)
    for answer in turns:
        messages += [
            {"role": "user", "content": asked},
            {"role": "assistant", "content": storable(answer.text) or NO_ANSWER},
        ]
        asked = texts["reminder"]
    if is_scored:
        asked = texts["missing_tools"]
    return Request(item.judge, (*messages, {"role": "user", "content": asked}), {})


def first_turn(answers: Sequence[Reply], read: Callable[[Reply], int | None]) -> Sequence[Reply]:
    """Select the attempts at the first turn: up to the first with a total, three at most; the second turn follows."""
    for number, answer in enumerate(answers[:ATTEMPTS], start=1):
        if read(answer) is not None:
            return answers[:number]
    return answers[:ATTEMPTS]


def opening(item: Item, options: Mapping[str, Any], texts: Mapping[str, str]) -> str:
    """Write the first user message by these templates: criteria, alert, and the session fitted to the context."""
    session, mark = load(item.sample.input), item.fence or fence(item.sample.input)
    return request_text(mark, session.alert, fitted(session, options, texts, mark).text, texts)


def fitted(
    session: Session, options: Mapping[str, Any], texts: Mapping[str, str], mark: str = ANY_FENCE
) -> FittedConversation:
    """Fit the session to its judge's context beside these templates, and tell what was cut, for any mark."""
    tokens = options.get("context_tokens", OPTIONS["context_tokens"])
    if not isinstance(tokens, int) or tokens <= ANSWER_TOKENS:
        raise ConfigurationError(f"suites.session_review.context_tokens must be a number above {ANSWER_TOKENS}")
    around = sum(map(len, texts.values())) + len(session.alert)
    return fit(session, (tokens - ANSWER_TOKENS) * CHARACTERS_PER_TOKEN - around, mark)
