"""The test server itself: it answers, counts and runs as a process of its own."""

import json
import subprocess
import sys
from typing import Any
from urllib.request import Request, urlopen

from tests.servers.model_server import ModelServer, prompt_key


def ask(address: str, path: str, body: Any = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    with urlopen(Request(f"{address}{path}", data=data, headers={"Content-Type": "application/json"})) as response:
        return json.load(response)


def chat(text: str) -> dict[str, Any]:
    return {"model": "m", "messages": [{"role": "user", "content": text}]}


def test_it_answers_by_the_latest_rule_that_fits_and_counts(model_server: ModelServer) -> None:
    model_server.rule(reply="anything")
    model_server.rule(contains="rm", reply=lambda messages: messages[-1]["content"].upper())
    replies = [ask(model_server.api_base, "/chat/completions", chat(text)) for text in ("ls", "rm", "rm")]
    assert [reply["choices"][0]["message"]["content"] for reply in replies] == ["anything", "RM", "RM"]
    counts = ask(model_server.address, "/_counts")
    assert (counts["requests"], counts["answered"], counts["in_flight"]) == (3, 3, 0)
    assert counts["by_prompt"][prompt_key("m", chat("rm")["messages"])] == 2
    ask(model_server.address, "/_reset", {})
    assert ask(model_server.address, "/_counts")["requests"] == 0


def test_it_runs_as_its_own_process() -> None:
    command = [sys.executable, "-m", "tests.servers.model_server", "--rules", json.dumps([{"reply": "first"}])]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            address = process.stdout.readline().strip()
            first = ask(address, "/v1/chat/completions", chat("x"))
            ask(address, "/_rules", [{"reply": "second"}])
            second = ask(address, "/v1/chat/completions", chat("x"))
            requests = ask(address, "/_requests")
        finally:
            process.terminate()
    assert [reply["choices"][0]["message"]["content"] for reply in (first, second)] == ["first", "second"]
    assert [request["content"] for request in requests] == ["x", "x"]
