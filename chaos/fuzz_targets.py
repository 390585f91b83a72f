"""What is fuzzed: each target takes arbitrary bytes, and may raise documented errors only."""

import json
import tempfile
from collections.abc import Callable, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from evalake.core.configuration import read_configuration
from evalake.core.errors import EvalakeError
from evalake.core.redaction import redact, visible
from evalake.sdk.json_in_text import find_objects, split_thinking
from evalake.sdk.lenient_json import find_all
from evalake.sdk.results import read_recorded
from evalake.sdk.sheets import read_sheet
from evalake.server.scoring.events import Hub
from evalake.server.scoring.events import _decoded as decoded
from evalake.server.viewer.sql import Question
from evalake.suites.command_guard.replies import read_verdict
from evalake.suites.command_guard.sources import read_dataset as read_commands
from evalake.suites.session_review.replies import (
    read_categories,
    read_failure_tags,
    read_first_turn,
    read_missing_tools,
    read_total,
)
from evalake.suites.session_review.sources.generic import RefusedError
from evalake.suites.session_review.sources.read import read_body
from evalake.suites.session_review.sources.read import read_dataset as read_sessions
from evalake.suites.solidity_audit.replies import Asked, lines_in, read_judgement, read_prediction, words_in
from evalake.suites.solidity_audit.sources.read import read_dataset as read_contracts

DOCUMENTED = (EvalakeError, RefusedError, ValidationError)


def _parsers(text: str) -> None:
    read_verdict(text)
    read_prediction(text)
    for asked in (Asked(None, None), Asked(True, True), Asked(None, None, recorded=True)):
        read_judgement(text, asked)
    read_total(text)
    read_first_turn([text, text])
    read_categories(text)
    read_failure_tags(text)
    read_missing_tools(text)


def _extractors(text: str) -> None:
    list(islice(find_objects(text, "action"), 100))
    find_all(text, {"findings", "verdict"})
    split_thinking(text)
    lines_in(text)
    words_in(text)
    redact(text)
    visible(text)


def _importers(text: str) -> None:
    for form in ("csv", "jsonl"):
        _documented(lambda form=form: list(read_sheet(text, form, {"a"})))  # type: ignore[misc]
    body = _json(text)
    if isinstance(body, dict):
        for is_judged in (False, True):
            _documented(lambda is_judged=is_judged: read_recorded("any", body, is_judged=is_judged))  # type: ignore[misc]
    _documented(lambda: read_body(body))


def _files(text: str) -> None:
    with tempfile.TemporaryDirectory(dir=_memory()) as folder:
        for ending, read in (
            ("jsonl", read_commands),
            ("csv", read_commands),
            ("jsonl", read_contracts),
            ("json", read_sessions),
            ("jsonl", read_sessions),
        ):
            file = Path(folder) / f"x.{ending}"
            file.write_text(text, encoding="utf-8", errors="surrogatepass")
            _documented(lambda read=read, file=file: read(str(file)))  # type: ignore[misc]
        settings = Path(folder) / "evalake.toml"
        settings.write_text(text, encoding="utf-8", errors="surrogatepass")
        _documented(lambda: read_configuration(settings))


def _api(text: str) -> None:
    hub = Hub(lambda _: None, list)
    hub.receive(hub.join(), decoded(text))
    _documented(lambda: Question.model_validate_json(text.encode("utf-8", "surrogatepass")))


TARGETS: Mapping[str, Callable[[str], None]] = {
    "parsers": _parsers,
    "extractors": _extractors,
    "importers": _importers,
    "files": _files,
    "API": _api,
}

# What the first mutations start from.
SEEDS = (
    '{"action": "BLOCK", "reason": "x", "confidence": 0.5}',
    '{"verdict": "vulnerable", "findings": [{"finding_id": 1, "classification": "TARGET_MATCH"}]}',
    "Logical flow: 15/25\nConsistency: 15/25\nTool relevance: 15/25\nSynthesis quality: 15/25\n\n60",
    "1. **kubectl-logs**: the log.",
    "<think>a</think> ```json\n{}\n``` lines 3-5 of f()",
    '{"type": "subscribe", "channel": "session:a"}',
    '{"sample_id": "a", "command": "id", "label": "malicious", "category": "shell"}',
    '{"session_id": "a", "status": "completed", "messages": [{"role": "assistant", "content": "x"}]}',
    '[models."a/b"]\napi_base = "http://127.0.0.1"\nprice = { input = 1.0, output = 2.0 }\n',
    "a,b\n1,'=2\n",
)


def attack(target: str, content: bytes) -> None:
    """Pass these bytes, as text, to a target. Raises every error of it that is not documented."""
    _documented(lambda: TARGETS[target](content.decode("utf-8", "surrogateescape")))


def _documented(do: Callable[[], Any]) -> None:
    try:
        do()
    except DOCUMENTED:
        return


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _memory() -> str | None:
    return "/dev/shm" if Path("/dev/shm").is_dir() else None
