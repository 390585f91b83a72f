"""The `evalake` command as a user runs it: a process of its own, or, where that is not the point, a call."""

import json
import os
import subprocess
import sys
import warnings
from contextlib import chdir, redirect_stderr, redirect_stdout, suppress
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any
from unittest.mock import patch

from evalake.cli import terminal as process_environment
from evalake.cli.main import main
from tests.environment import environment_kept

ROOT = Path(__file__).resolve().parents[3]
WIDTH = {"COLUMNS": "160"}


def evalake(*arguments: object, folder: Path, **environment: str) -> "subprocess.CompletedProcess[str]":
    """Run the command in a folder, as a process: where streams, signals, servers or its start are what is tested."""
    words = [sys.executable, "-m", "evalake.cli", *map(str, arguments)]
    whole = {**os.environ, "PYTHONPATH": str(ROOT), **WIDTH, **environment}
    return subprocess.run(words, cwd=folder, env=whole, capture_output=True, text=True, timeout=600)


def evalake_here(*arguments: object, folder: Path, **environment: str) -> "subprocess.CompletedProcess[str]":
    """Run the command in a folder, in this process: same output and exit code, without seconds of imports.

    Environment, arguments, folder and streams are put back. What the command does to the process that is its own
    (`evalake.cli.terminal.prepare`) is not done to the one of the tests.
    """
    words = ["evalake", *map(str, arguments)]
    out, err = (TextIOWrapper(BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    with (
        chdir(folder),
        environment_kept({**WIDTH, **environment}),
        patch.object(sys, "argv", words),
        patch.object(process_environment, "prepare"),
        warnings.catch_warnings(action="ignore"),
        redirect_stdout(out),
        redirect_stderr(err),
    ):
        try:
            main()
        except SystemExit as ended:
            code = ended.code
    assert isinstance(code, int)
    return subprocess.CompletedProcess(words, code, *(_written(stream) for stream in (out, err)))


def _written(stream: TextIOWrapper) -> str:
    assert isinstance(stream.buffer, BytesIO)
    return stream.buffer.getvalue().decode()


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


def said_at(terminal: int) -> str:
    """Read all that is written to a terminal until its other end is closed, and close this one."""
    said = b""
    with suppress(OSError):  # which ends it
        while piece := os.read(terminal, 65536):
            said += piece
    os.close(terminal)
    return said.decode()
