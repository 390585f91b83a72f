"""The judge's conversation as a pure function: the review, reminders until it ends in a total, the missing tools."""

from collections.abc import Mapping, Sequence
from typing import Any

from core.errors import ConfigurationError, UsageError
from providers.request import Reply, Request
from suites.base import Exchange, Item
from suites.base.own_prompts import require_known
from suites.base.untrusted import ANY_FENCE, fence
from suites.session_review.prompts import request_text, templates_of
from suites.session_review.replies.scores import ATTEMPTS, read_total
from suites.session_review.session import Session, load
from suites.session_review.session_text import FittedConversation, fit
from suites.session_review.sources.material import text as storable

PROMPT_TYPES = ("direct",)

OPTIONS: Mapping[str, Any] = {"context_tokens": 100_000}
"""context_tokens: how long a conversation with the judge may get, its answers included; sessions are fitted to it."""

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
    answers = [answer.outcome.text for answer in answered if isinstance(answer.outcome, Reply)]
    turns = first_turn(answers)
    is_scored = bool(turns) and read_total(turns[-1]) is not None
    if len(answers) > len(turns) or (len(turns) == ATTEMPTS and not is_scored):
        return None
    require_known(item.prompt_type, options, PROMPT_TYPES)
    texts = templates_of(options, item.prompt_type)
    messages = [{"role": "system", "content": texts["system"]}]
    asked = opening(item, options, texts)
    for answer in turns:
        messages += [
            {"role": "user", "content": asked},
            {"role": "assistant", "content": storable(answer) or NO_ANSWER},
        ]
        asked = texts["reminder"]
    if is_scored:
        asked = texts["missing_tools"]
    return Request(item.judge, (*messages, {"role": "user", "content": asked}), {})


def first_turn(answers: Sequence[str | None]) -> Sequence[str | None]:
    """Select the attempts at the first turn: up to the first with a total, three at most; the second turn follows."""
    for number, answer in enumerate(answers[:ATTEMPTS], start=1):
        if read_total(answer) is not None:
            return answers[:number]
    return answers[:ATTEMPTS]


def opening(item: Item, options: Mapping[str, Any], texts: Mapping[str, str]) -> str:
    """Write the first user message by these templates: criteria, alert, and the session fitted to the context."""
    session, mark = load(item.sample.input), item.fence or fence(item.sample.input)
    return request_text(mark, session.alert, fitted(session, options, texts, mark).text, texts)


def fitted(
    session: Session, options: Mapping[str, Any], texts: Mapping[str, str], mark: str = ANY_FENCE
) -> FittedConversation:
    """Fit the session to its judge's context beside these templates, and tell what was cut, whatever its mark is."""
    tokens = options.get("context_tokens", OPTIONS["context_tokens"])
    if not isinstance(tokens, int) or tokens <= ANSWER_TOKENS:
        raise ConfigurationError(f"suites.session_review.context_tokens must be a number above {ANSWER_TOKENS}")
    around = sum(map(len, texts.values())) + len(session.alert)
    return fit(session, (tokens - ANSWER_TOKENS) * CHARACTERS_PER_TOKEN - around, mark)
