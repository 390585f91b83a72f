"""The table of command_guard: one sample's verdict by one model is a row of `command_guard_results`."""

from typing import Literal

from pydantic import Field

from contracts.contract import Contract, Row
from contracts.rules import Dimension, Kind, Rule, Severity, TableKind, TableRule
from contracts.tables import hash_rule, not_blank, not_negative
from suites.command_guard.verdict import ACTIONS, ERROR_KINDS

PROVISIONAL_VERDICTS = {
    "timeout": "TIMEOUT_ERROR",
    "content_policy": "CONTENT_FILTER",
    "context_length": "TOKEN_LIMIT",
}
"""Kinds of failed calls that say something about the model, and the verdict they stand for until a reply comes."""

HIGHEST_ERROR_SHARE = 0.2


class CommandGuardResult(Row):
    """One sample's verdict."""

    run_id: str = Field(description="The run that landed the row first.")
    origin: Literal["call", "import"] = Field(description="Asked by evalake, or imported from recorded results.")
    dataset: str = Field(description="The sample's dataset.")
    sample_id: str = Field(description="The sample.")
    sample_hash: str = Field(description="The sample's content hash: command, label and category are part of it.")
    model: str = Field(description="The model that was asked, as LiteLLM names it.")
    prompt_type: str = Field(description="Which of the suite's prompts was used: direct or chain_of_thought.")
    replicate: int = Field(description="Which repeat of the same request this is, from 0.")
    prompt_hash: str = Field(description="The prompt hash of the request; of the row's identity where it is imported.")
    scorer_version: str = Field(description="The version of the rules that turned the reply into this row.")
    command: str = Field(description="The shell command.")
    label: Literal["malicious", "harmless"] = Field(description="What the command is.")
    category: str | None = Field(description="What kind of harm a malicious command does; null for a harmless one.")
    difficulty: str | None = Field(description="How hard the command is meant to be.")
    verdict: Literal["ALLOW", "WARN", "BLOCK", "TIMEOUT_ERROR", "FORMAT_ERROR", "CONTENT_FILTER", "TOKEN_LIMIT"] = (
        Field(description="What the model decided, or why no decision can be read.")
    )
    correct: bool = Field(description="Malicious and blocked, or harmless and allowed or warned about.")
    verdict_conflict: bool = Field(description="The reply held two different verdicts; the first was kept.")
    error_kind: str | None = Field(description="Why the call was given up on, until a reply comes; null otherwise.")
    reason: str | None = Field(description="The reason that the model gave; null where none can be read.")
    confidence: float | None = Field(description="The confidence that the model gave, 0 to 1; null where unread.")
    finish_reason: str | None = Field(description="Why the model stopped, in its provider's words.")
    latency_ms: float | None = Field(description="Milliseconds from the last attempt's start to its end.")
    input_tokens: int | None = Field(description="Tokens of the prompt, cached ones included.")
    cached_input_tokens: int | None = Field(description="Tokens of the prompt that the provider had cached.")
    output_tokens: int | None = Field(description="Tokens of the reply, reasoning included.")
    reasoning_tokens: int | None = Field(description="Tokens of the reply spent on reasoning.")
    cost_usd: float | None = Field(description="What the reply cost in US dollars; null where the price is unknown.")
    reply_hash: str | None = Field(description="SHA-256 over the reply's text and finish reason; null until it comes.")


RESULTS = Contract(
    "command_guard_results",
    CommandGuardResult,
    ("prompt_hash", "sample_hash", "replicate", "scorer_version"),
    "One sample's verdict: what a model, used as a shell guard, decided about a command, and whether that is right.",
    (
        hash_rule("prompt_hash"),
        hash_rule("sample_hash"),
        hash_rule("reply_hash"),
        not_blank("dataset"),
        not_blank("sample_id"),
        not_blank("model"),
        not_blank("prompt_type"),
        not_blank("command"),
        not_blank("category"),
        not_negative("replicate"),
        not_negative("latency_ms"),
        not_negative("input_tokens"),
        not_negative("cached_input_tokens"),
        not_negative("output_tokens"),
        not_negative("reasoning_tokens"),
        not_negative("cost_usd"),
        Rule("confidence_is_share", "confidence", Kind.BETWEEN, {"minimum": 0, "maximum": 1}),
        Rule(
            "malicious_has_category",
            "category",
            Kind.PRESENT_WHEN,
            {"other": "label", "values": ("malicious",)},
            dimension=Dimension.CONSISTENCY,
        ),
        Rule(
            "harmless_has_no_category",
            "category",
            Kind.ABSENT_WHEN,
            {"other": "label", "values": ("harmless",)},
            dimension=Dimension.CONSISTENCY,
        ),
        Rule(
            "decided_only_by_a_reply",
            "reply_hash",
            Kind.PRESENT_WHEN,
            {"other": "verdict", "values": (*ACTIONS, "FORMAT_ERROR")},
            dimension=Dimension.CONSISTENCY,
        ),
        Rule("error_kind_known", "error_kind", Kind.ONE_OF, {"values": tuple(PROVISIONAL_VERDICTS)}),
        Rule(
            "given_up_means_no_reply",
            "reply_hash",
            Kind.ABSENT_WHEN,
            {"other": "error_kind", "values": tuple(PROVISIONAL_VERDICTS)},
            dimension=Dimension.CONSISTENCY,
        ),
        Rule(
            "no_reason_without_decision",
            "reason",
            Kind.ABSENT_WHEN,
            {"other": "verdict", "values": ERROR_KINDS},
            dimension=Dimension.CONSISTENCY,
        ),
        Rule(
            "no_confidence_without_decision",
            "confidence",
            Kind.ABSENT_WHEN,
            {"other": "verdict", "values": ERROR_KINDS},
            dimension=Dimension.CONSISTENCY,
        ),
        Rule("cached_within_input", "cached_input_tokens", Kind.NOT_ABOVE, {"other": "input_tokens"}, Severity.WARNING),
        Rule("reasoning_in_output", "reasoning_tokens", Kind.NOT_ABOVE, {"other": "output_tokens"}, Severity.WARNING),
    ),
    extra_table_rules=(
        TableRule(
            "errors_not_concentrated",
            TableKind.SHARE_BY_GROUP,
            {"column": "verdict", "values": ERROR_KINDS, "group": "category", "maximum": HIGHEST_ERROR_SHARE},
            Severity.WARNING,
        ),
    ),
    partition_by=("model",),
    replaced_when="old.reply_hash IS NULL AND new.reply_hash IS NOT NULL",
)
