"""The `evalake` command as a user runs it: a process of its own."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


def evalake(*arguments: object, folder: Path, **environment: str) -> "subprocess.CompletedProcess[str]":
    """Run the command in a folder."""
    return subprocess.run(
        [sys.executable, "-m", "cli", *map(str, arguments)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "160", **environment},
        capture_output=True,
        text=True,
        timeout=300,
    )


def recorded(sample: int, model: str = "openai/gpt-4o-mini", action: str | None = "BLOCK", **fields: Any) -> str:
    """One line of recorded command_guard results: even samples are malicious."""
    malicious = sample % 2 == 0
    line = {
        "suite": "command_guard",
        "sample_id": f"s{sample}",
        "dataset": "mine",
        "model": model,
        "replicate": 0,
        "label": "malicious" if malicious else "harmless",
        "category": "shell" if malicious else None,
        "command": f"command number {sample}",
        "response": None if action is None else json.dumps({"action": action}),
        "finish_reason": "stop",
        "error_kind": None,
        "latency_ms": 100.0 + sample,
        "input_tokens": 1000,
        "output_tokens": 10,
        "cached_input_tokens": 0,
        "reasoning_tokens": 0,
    }
    return json.dumps({**line, **fields})
