"""docs/first-suite.md is true: its files are written and its commands run in order, up to the gate in CI."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

from tests.integration.cli.command import ROOT, WIDTH, evalake_here
from tests.servers.model_server import ModelServer

PAGE = (ROOT / "docs" / "first-suite.md").read_text(encoding="utf-8")
STEP = re.compile(
    r"^`(?P<file>[\w./-]+)`:\n\n```\w+\n(?P<text>.*?)^```|^    (?P<command>(?:evalake|cd|mkdir|sh) [^\n]*)$",
    re.M | re.S,
)
RUN = re.compile(r"\bRUN\b")
MODELS = """
[models."openai/gpt-4o-mini"]
api_base = "{0}"
[models."openai/gpt-4o"]
api_base = "{0}"
"""


def test_every_step_of_the_page_works(tmp_path: Path, prefect_api: str, model_server: ModelServer) -> None:
    model_server.rule(model="gpt-4o-mini", reply="Thank you! Your parcel is on its way.")
    for city, letter in (("France", "A"), ("Italy", "B"), ("Japan", "C")):
        model_server.rule(model="gpt-4o-mini", contains=city, reply=f"The answer is {letter}.")
    model_server.rule(model="gpt-4o", reply='```json\n{"score": 5, "reason": "kind",}\n```')
    shims = tmp_path / "bin"
    shims.mkdir()
    (shims / "evalake").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m evalake.cli "$@"\n')
    (shims / "evalake").chmod(0o755)
    environment = {
        **WIDTH,
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
        "XDG_STATE_HOME": str(tmp_path / "state"),
        "PREFECT_API_URL": prefect_api,
        "OPENAI_API_KEY": "sk-of-a-test",
        "PYTHONPATH": str(ROOT),
        "PATH": f"{shims}{os.pathsep}{os.environ['PATH']}",
    }
    folder, run, commands = tmp_path, "", 0
    for step in STEP.finditer(PAGE):
        if step["file"]:
            (folder / step["file"]).write_text(step["text"], encoding="utf-8")
            continue
        commands += 1
        program, *words = shlex.split(RUN.sub(run, step["command"]), comments=True)
        code = int(found[1]) if (found := re.search(r"# exits with (\d)", step["command"])) else 0
        if program == "cd":
            folder /= words[0]
        elif program == "evalake":
            done = evalake_here(*words, folder=folder, **environment)
            assert done.returncode == 0, (words, done.stdout, done.stderr)
            if found := re.search(r"^run (\w+), completed", done.stdout, re.MULTILINE):
                run = found[1]
        else:
            if program == "mkdir":  # the real models are the server's, before the folder is trusted again
                settings = folder / "evalake.toml"
                asked = MODELS.format(model_server.api_base)
                settings.write_text(settings.read_text().removesuffix(asked) + asked)
            done = subprocess.run(
                [program, *words], cwd=folder, env={**os.environ, **environment}, capture_output=True, text=True
            )
            assert done.returncode == code, (words, done.stdout, done.stderr)
    page = re.sub(r"^```.*?^```", "", PAGE, flags=re.MULTILINE | re.DOTALL)
    assert commands == len(re.findall(r"^    \S", page, re.MULTILINE))
    assert json.loads((folder / "run.json").read_text())["state"] == "completed"
    assert "accuracy" in (folder / "gate.xml").read_text()


def test_the_suites_are_as_short_as_their_headings_say() -> None:
    for lines, text in re.findall(r"in (\d+) lines\n.*?```toml\n(.*?)```", PAGE, re.DOTALL):
        assert len(text.splitlines()) == int(lines)
