"""The process of a query, taken over: what stands in for the engine tries what a fault in it would."""

import json
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from evalake.storage.sql.start import landlock_version

pytestmark = pytest.mark.usefixtures("landlock")

TAKEN_OVER = """
import json, os, socket, subprocess, sys, types

def attempt(what):
    try:
        what()
    except OSError as error:
        return type(error).__name__
    return "done"

def answer():
    folder, lake, port = os.environ["FOLDER"], os.environ["LAKE"], int(os.environ["PORT"])
    print(json.dumps({
        "a table": attempt(lambda: open(lake + "/runs/x.parquet").read()),
        "a table behind a link": attempt(lambda: open(lake + "/linked/x.parquet").read()),
        "a private key": attempt(lambda: open(folder + "/id_rsa").read()),
        "a file beside the code": attempt(lambda: open(folder + "/code/.env").read()),
        "the code": attempt(lambda: open(folder + "/code/package/__init__.py").read()),
        "the caller's environment": attempt(lambda: open(f"/proc/{os.getppid()}/environ").read()),
        "passwords": attempt(lambda: open("/etc/passwd").read()),
        "write into the lake": attempt(lambda: open(lake + "/runs/y", "w")),
        "remove from the lake": attempt(lambda: os.remove(lake + "/runs/x.parquet")),
        "a program": attempt(lambda: subprocess.run(["/bin/sh", "-c", "true"])),
        "a connection": attempt(lambda: socket.create_connection(("127.0.0.1", port), timeout=600)),
        "a server": attempt(lambda: socket.create_server(("127.0.0.1", 0))),
        "a signal": attempt(lambda: os.kill(os.getppid(), 0)),
    }))
    return 0

process = types.ModuleType("evalake.storage.sql.process")
process.answer = answer
sys.modules["evalake.storage.sql.process"] = process
"""
STARTED = f"{TAKEN_OVER}from evalake.storage.sql import start; start.answer_and_end()"


def _attempts(folder: Path, *, remote: bool = False) -> dict[str, str]:
    lake, tables = folder / "lake", folder / "elsewhere"
    for each in (lake / "runs", tables, folder / "code" / "package"):
        each.mkdir(parents=True)
    for name in ("lake/runs/x.parquet", "elsewhere/x.parquet", "id_rsa", "code/.env", "code/package/__init__.py"):
        (folder / name).touch()
    (lake / "linked").symlink_to(tables)
    path = [*filter(None, sys.path), str(Path.cwd()), str(folder / "code")]
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = str(server.getsockname()[1])
        environment = {"FOLDER": str(folder), "LAKE": str(lake), "PORT": port, "PYTHONPATH": ":".join(path)}
        request = json.dumps({"lake": None if remote else str(lake), "seconds": 300}).encode() + b"\n"
        return dict(json.loads(_started(request, environment)))


def _started(request: bytes, environment: dict[str, str]) -> bytes:
    command = [sys.executable, "-P", "-c", STARTED]
    done = subprocess.run(command, input=request, env=environment, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_process_that_is_taken_over_reads_the_lake_and_the_code_and_nothing_else(tmp_path: Path) -> None:
    attempts = _attempts(tmp_path)
    if landlock_version() < 6:  # which does not know signals
        attempts["a signal"] = "PermissionError"
    assert {name for name, outcome in attempts.items() if outcome == "done"} == {
        "a table",
        "a table behind a link",
        "the code",
    }
    assert set(attempts.values()) == {"done", "PermissionError"}


def test_for_a_remote_lake_it_may_make_connections_and_read_no_local_table(tmp_path: Path) -> None:
    attempts = _attempts(tmp_path, remote=True)
    assert attempts["a connection"] == "done"
    assert attempts["a server"] == attempts["a table"] == attempts["a private key"] == "PermissionError"
