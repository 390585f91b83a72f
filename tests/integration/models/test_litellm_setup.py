"""LiteLLM as it is imported: without a network, without a file of the working directory, and quiet."""

import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

from evalake.models import litellm_internals

ROOT = Path(__file__).resolve().parents[3]
CODE = """
import logging, socket

def refuse(*_: object) -> None:
    raise AssertionError("the network was used")

socket.socket.connect = refuse
from evalake.models.litellm_setup import load
litellm = load()
assert load() is litellm
import os
print(os.environ.get("LEFT_LYING"), litellm.telemetry, len(litellm.model_cost) > 1000)
logging.getLogger("LiteLLM").warning("this is of no interest")
logging.getLogger("LiteLLM").error("api_key=sk-abcdefgh12345678 was refused")
"""


def test_its_import_asks_no_network_reads_no_file_and_logs_errors_without_keys(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("LEFT_LYING=here")
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", CODE], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120
    )
    assert (done.returncode, done.stdout) == (0, "None False True\n"), done.stderr
    assert "was refused" in done.stderr
    assert "sk-abcdefgh12345678" not in done.stderr
    assert "of no interest" not in done.stderr


def test_litellm_is_of_the_version_in_which_its_inner_names_were_seen() -> None:
    assert version("litellm").startswith(f"{litellm_internals.SEEN_IN}."), "look through litellm_internals.py again"
