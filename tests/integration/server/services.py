"""Real services for tests: processes of `evalake serve`, the lake and judge they work with, and short ways to ask."""

import json
import re
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import httpx
import polars as pl
from websockets.asyncio.client import connect

from evalake.contracts.engines.arrow import conform
from evalake.flows.score_session import failed, read_score
from evalake.storage.lake import Lake
from evalake.storage.landing import land
from evalake.suites.session_review.contract import RESULTS
from evalake.suites.session_review.score import ACTIVE
from tests.e2e.processes import PATIENCE_SECONDS, PLAIN, ROOT, PrefectStack, Process, wait_until
from tests.servers.model_rule import Rule
from tests.servers.model_server import ModelServer

JUDGE = "hosted_vllm/judge"
ANSWER = "Logical flow: 15/25\nConsistency: 15/25\nTool relevance: 15/25\nSynthesis quality: 15/25\n\n60"
DRAIN = "drain_seconds = 600\n"  # takes longer on busy machines
SERVICE = f"lost_after_seconds = 900\n{DRAIN}"  # what a test brings into a state stays there, however slow the test
IMPATIENT = f"lost_after_seconds = 8\n{DRAIN}"  # for tests that kill, and wait for what follows
TOOLS = "1. **kubectl-logs**: the container's log would have shown the error."


def count_commits(lake: Lake) -> Counter[str]:
    """Count the commits of every table of a lake."""
    return Counter(entry.parents[1].name for entry in Path(lake.uri).glob("*/_delta_log/*.json"))


class Place:
    """A folder with a lake, a file of sessions and a configuration."""

    def __init__(self, folder: Path, server: ModelServer, service: str = SERVICE) -> None:
        self.folder, self.server = folder, server
        self.lake = Lake(str(folder / "lake"))
        self.sessions = folder / "sessions.jsonl"
        self.configuration = folder / "evalake.toml"
        self._written: list[dict[str, Any]] = []
        self.configuration.write_text(
            f'[models."{JUDGE}"]\napi_base = "{server.api_base}"\nprice = {{ input = 1.0, output = 2.0 }}\n'
            f"[providers.hosted_vllm]\nattempts = 2\ntimeout_seconds = 900\n[service]\n{service}"
        )
        self.answer()

    def answer(self, latency: float = 0.0, tools_latency: float | None = None) -> None:
        """Have the judge give sixty points and miss one tool, each answer after `latency` seconds unless told apart."""
        second = latency if tools_latency is None else tools_latency
        tools = Rule(contains="\n60", reply=TOOLS, latency=second)  # what follows its own first answer
        self.server.rules += [Rule(reply=ANSWER, latency=latency), tools]  # at once, for who waits is answered by them

    def write(self, *session_ids: str, status: str = "completed", **fields: Any) -> None:
        """Add sessions to the file."""
        for session_id in session_ids:
            said = {"role": "assistant", "content": f"The node of {session_id} is full.", "at": "2026-03-01T10:00:00Z"}
            alert = {"summary": f"disk of {session_id}"}
            self._written.append(
                {"session_id": session_id, "status": status, "alert": alert, "messages": [said], **fields}
            )
        lines = "".join(json.dumps(session) + "\n" for session in self._written)
        draft = self.sessions.with_suffix(".draft")
        draft.write_text(lines)
        draft.replace(self.sessions)

    def set(self, score_id: str, status: str, total: int = 60, **changes: Any) -> None:
        """Bring a scoring into a state, as its flow run would, with what else is to change."""
        row = read_score(self.lake, score_id)
        if status == "failed":
            assert failed(self.lake, row, "error", "as the test wants it")
            return
        filled = {"total_score": total, "score_analysis": "an analysis"} if status == "completed" else {}
        ended = {"completed_at": row["started_at"] or row["asked_at"]} if status == "completed" else {}
        moved = land(self.lake, RESULTS, conform([{**row, **filled, **ended, **changes, "status": status}], RESULTS))
        assert moved.replaced == 1

    def end_all(self) -> None:
        """Fail every scoring that is not over."""
        for row in self.lake.frame(RESULTS).filter(pl.col("status").is_in(ACTIVE)).collect().to_dicts():
            self.set(row["score_id"], "failed")

    def scores(self, session_id: str) -> list[dict[str, Any]]:
        """The rows of a session, in the order of their numbers."""
        rows = self.lake.frame(RESULTS).collect().filter(session_id=session_id)
        return rows.sort("replicate", "asked_at").to_dicts()


class Service:
    """One process of `evalake serve`."""

    def __init__(self, process: Process) -> None:
        self.process = process
        address = wait_until(self._address, f"the start of the service ({process.log})")
        self.url = str(address)
        # No idle connections: a service of little patience closes one at the moment at which it is used again
        alone = httpx.Limits(max_keepalive_connections=0)
        self.http = httpx.Client(base_url=self.url, timeout=PATIENCE_SECONDS, verify=PLAIN, limits=alone)

    def _address(self) -> str | None:
        said = self.process.log.read_text(errors="replace")
        assert self.process.popen.poll() is None, said
        found = re.search(r"evalake serves (http://\S+)", said)
        return found[1] if found else None

    @property
    def socket_url(self) -> str:
        """Where the WebSocket is."""
        return self.url.replace("http", "ws", 1) + "/api/v1/ws"

    def listen(self, **options: Any) -> connect:
        """Open the WebSocket. Neither it nor this side gives up on a machine that stalls."""
        return connect(self.socket_url, open_timeout=PATIENCE_SECONDS, ping_timeout=PATIENCE_SECONDS, **options)

    def ask(self, session_id: str, force: bool | None = None, **options: Any) -> httpx.Response:
        """POST for a score."""
        body: dict[str, Any] = {} if force is None else {"json": {"force_rescore": force}}
        return self.http.post(f"/api/v1/scoring/sessions/{session_id}/score", **body, **options)

    def score(self, session_id: str) -> httpx.Response:
        """GET the score."""
        return self.http.get(f"/api/v1/scoring/sessions/{session_id}/score")

    def wait_to_know(self, session_id: str) -> None:
        """Wait until a session of the sources is known: they are not read more than once in a while."""
        path = f"/api/v1/sessions/{session_id}"
        wait_until(lambda: self.http.get(path).status_code != 404, f"a look for {session_id}")

    def wait_for(self, session_id: str, *statuses: str) -> dict[str, Any]:
        """Wait until a session's newest score has one of the statuses; returns it."""

        def reached() -> dict[str, Any] | None:
            answer = self.score(session_id)
            score: dict[str, Any] = answer.json()
            return score if answer.status_code == 200 and score["status"] in statuses else None

        found: dict[str, Any] = wait_until(reached, f"{' or '.join(statuses)} of {session_id} ({self.process.log})")
        return found

    def kill(self) -> None:
        """SIGKILL the service alone; what it keeps beside it finds out by itself."""
        self.http.close()
        self.process.kill()

    def stop(self) -> None:
        """End it politely."""
        self.http.close()
        self.process.stop(PATIENCE_SECONDS)


def start(stack: PrefectStack, place: Place, *options: str) -> Service:
    """A service of a stack, on a free port, with the place's sessions as its source, once it answers."""
    known = ["--sessions", str(place.sessions)] if place.sessions.exists() else []
    where = ["--lake", place.lake.uri, "--config", str(place.configuration), "--judge", JUDGE, "--port", "0"]
    open_to_all = [] if "EVALAKE_API_TOKEN" in stack.environment else ["--no-token"]
    return Service(stack.start("evalake.cli", "serve", *where, *known, *open_to_all, *options))


def deploy(stack: PrefectStack) -> None:
    """Deploy the scoring flow to a pool, as an installation with workers of its own does."""
    stack.post("/work_pools/", {"name": "scores", "type": "process"})
    flow = stack.post("/flows/", {"name": "score-session"})
    stack.post(
        "/deployments/",
        {
            "name": "on-demand",
            "flow_id": flow["id"],
            "work_pool_name": "scores",
            "pull_steps": [{"prefect.deployments.steps.set_working_directory": {"directory": str(ROOT)}}],
            "entrypoint": "flows/score_session.py:score_session",
            "enforce_parameter_schema": False,
        },
    )


def at_once(count: int, do: Any) -> list[Any]:
    """What `do(number)` gives on `count` threads that start at the same moment."""
    results: list[Any] = [None] * count
    barrier = threading.Barrier(count)

    def work(number: int) -> None:
        barrier.wait()
        results[number] = do(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results
