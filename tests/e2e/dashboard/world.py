"""A lake with sessions in every state that the dashboard can show, filled as the service itself fills one."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from evalake.admin.roadmap import make_roadmap
from evalake.contracts.engines.arrow import conform
from evalake.contracts.tables import METRIC_SNAPSHOTS, RUNS, SNAPSHOTS
from evalake.core.configuration import read_configuration
from evalake.core.hashing import content_hash
from evalake.flows.score_session import pending
from evalake.server.scoring.sessions import Sessions
from evalake.storage.lake import Lake
from evalake.storage.landing import land
from evalake.suites.session_review.contract import MISSING_TOOLS, RESULTS
from evalake.suites.session_review.replies import CATEGORIES
from evalake.tasks.runtime.context import RunContext

JUDGE = "hosted_vllm/judge"
BEGAN = datetime(2026, 3, 1, 8, 0, tzinfo=UTC)
HOSTILE = '<img src="https://elsewhere.example/x.png" onerror="alert(1)"><script>alert(2)</script> {{7*7}} ${7*7}'
REVERSED = "safe\u202egnp.exe"  # a character that turns the direction of what follows
HOSTILE_ID = "hostile <img src=x onerror=alert(1)> {{7*7}} ?a=b&c#d%2F+\u00e9/e//f"
HUGE = "x" * 60_000
STARTER = {"starter": "a" * 64}
OLD_CRITERIA = content_hash("criteria of last year")
ANALYSIS = """## Logical flow: 15/25
The agent **jumped** to `kubectl get pods`.

- It never looked at the deployments.
- It repeated one search.

What was looked at:
| Tool | Its *use*, `a \\| b` | Calls |
|:---|:--:|---:|
| **kubectl** | `get pods \\| wc` | 12 |
| <img src=x onerror=alert(1)> | short
| psql | none | 0 | and more

| no | table |

```
pool exhausted <b>not bold</b>
```
"""

SCORED = {"scored-000": 0, "scored-049": 49, "scored-050": 50, "scored-074": 74, "scored-075": 75, "scored-100": 100}
TOOLED = "tools-named"
FILLERS = 24
LIVE = ("live-good", "live-bad", "live-again", "live-conflict", "live-cancel", "live-list", "live-trends")
ORDER = [*SCORED, TOOLED, "outdated", "never-scored", "waiting", "at-work", "broken", "rated", HOSTILE_ID, *LIVE]
"""Sessions, the newest last; fillers are older than all of them."""


class World:
    """The lake, and short ways to change what it says."""

    def __init__(self, folder: Path, api_base: str) -> None:
        self.folder = folder
        self.lake = Lake(str(folder / "lake"))
        self.configuration = folder / "evalake.toml"
        self.configuration.write_text(
            f'[models."{JUDGE}"]\napi_base = "{api_base}"\nprice = {{ input = 1.0, output = 2.0 }}\n'
            "[service]\nlost_after_seconds = 3600\ndrain_seconds = 0\n[providers.hosted_vllm]\nattempts = 1\n"
        )
        self._context = RunContext("request-tests", "session_review", self.lake, read_configuration(self.configuration))
        self.source = folder / "sessions.jsonl"
        self.source.write_text("".join(json.dumps(body) + "\n" for body in _bodies()))
        self.sessions = Sessions(self.lake, [str(self.source)])
        self.sessions.read_sources()
        self._fill()

    def add(self, session_id: str) -> None:
        """Have a session come to the source that is followed."""
        with self.source.open("a") as file:
            file.write(json.dumps(_body(session_id, BEGAN + timedelta(days=100))) + "\n")

    def pending(self, session_id: str, replicate: int = 0) -> dict[str, Any]:
        """The row of a scoring that waits, not landed yet."""
        ((_, sample),) = self.sessions.samples([self.sessions.find(session_id)])
        return dict(pending(self._context, sample, JUDGE, replicate, "alice@example.org"))

    def land(self, row: Mapping[str, Any], **changes: Any) -> dict[str, Any]:
        """Write a scoring's row; returns it as it stands now."""
        now = {**row, **changes}
        land(self.lake, RESULTS, conform([now], RESULTS))
        return now

    def score(self, session_id: str, total: int, replicate: int = 0, **changes: Any) -> dict[str, Any]:
        """Land a completed scoring."""
        first = total // 4
        row = self.pending(session_id, replicate)
        asked = row["asked_at"] - timedelta(minutes=5)  # a scoring that is asked for now ends after it
        done = {
            "status": "completed",
            "total_score": total,
            **dict.fromkeys(CATEGORIES, first),
            CATEGORIES[-1]: total - 3 * first,
            "breakdown_consistent": True,
            "attempts": 1,
            "score_analysis": ANALYSIS,
            "failure_tags": [],
            "missing_tools": [],
            "missing_tools_analysis": "None is missing.",
            "asked_at": asked,
            "started_at": asked,
            "completed_at": asked + timedelta(seconds=42 + replicate),
        }
        return self.land({**row, **done, **changes})

    def _fill(self) -> None:
        for session_id, total in SCORED.items():
            self.score(session_id, total)
        self.score("outdated", 61, criteria_hash=OLD_CRITERIA)
        self.score(
            "rated",
            40,
            criteria_hash=OLD_CRITERIA,
            completed_at=BEGAN + timedelta(days=1),
            asked_at=BEGAN,
            started_at=BEGAN,
        )
        self.score("rated", 66, replicate=1)
        self.score("live-again", 20)
        self.land(self.pending("waiting"))
        self.land(self.pending("at-work"), status="in_progress")
        why = {"error_kind": "no_total", "error_message": "the judge's answer ended in no total, 3 times"}
        row = self.pending("broken")
        self.land(row, status="failed", completed_at=row["asked_at"], attempts=3, **why)
        self._hostile()
        make_roadmap(self._context, None)
        missed = self.score(TOOLED, 60, missing_tools=["get-logs", "memory-dump"])
        self._name_tools(missed, unused="get-logs", absent="memory-dump", improvable="get-pods")
        self._runs()

    def _hostile(self) -> None:
        told: dict[str, Any] = {
            "missing_tools": [HOSTILE],
            "missing_tools_analysis": HOSTILE,
            "failure_tags": [HOSTILE],
        }
        analysis = f"# {HOSTILE}\n- {HOSTILE}\n```\n{HOSTILE}\n```\n{REVERSED}\n{HUGE}"
        row = self.score(HOSTILE_ID, 55, score_analysis=analysis, score_triggered_by=HOSTILE, **told)
        self._name_tools(row, absent=HOSTILE)

    def _name_tools(self, row: Mapping[str, Any], **named: str) -> None:
        """Land the tools that a scoring names, by kind."""
        same = {name: row[name] for name in ("score_id", "landed_by_run", "origin", "session_id", "model", "judge")}
        tools = [
            {**same, "position": position, "tool_name": tool, "kind": kind, "rationale": f"Of {tool}: {HOSTILE}"}
            for position, (kind, tool) in enumerate(named.items(), start=1)
        ]
        land(self.lake, MISSING_TOOLS, conform(tools, MISSING_TOOLS))

    def _runs(self) -> None:
        """Runs of a suite with two models each, and their snapshots: three over one dataset, then two over others."""
        runs, snapshots, values = [], [], []
        grown, two = {"starter": "b" * 64}, {**STARTER, "other": "c" * 64}
        of_runs = ((STARTER, None), (STARTER, None), (grown, None), (STARTER, 5), (two, None))
        for day, (datasets, limit) in enumerate(of_runs):
            at = BEGAN + timedelta(days=day)
            snapshot = content_hash(["snapshot", day])
            taken = {"dataset_versions": json.dumps(datasets), "parameters": json.dumps({"limit": limit})}
            runs.append({**_run(f"run-{day}", at, snapshot), **taken})
            snapshots.append(_snapshot(snapshot, f"run-{day}", at))
            values += [_value(snapshot, model, 0.7 + 0.05 * day) for model in ("baseline/rules", HOSTILE)]
        runs.append({**_run("run-failed", BEGAN + timedelta(days=6), None), "state": "failed", "message": HOSTILE})
        for contract, rows in ((RUNS, runs), (SNAPSHOTS, snapshots), (METRIC_SNAPSHOTS, values)):
            land(self.lake, contract, conform(rows, contract))


def _bodies() -> list[dict[str, Any]]:
    """Sessions an hour apart, in the generic format."""
    names = [f"filler-{n:02d}" for n in range(FILLERS)] + ORDER
    return [_body(name, BEGAN + timedelta(hours=place)) for place, name in enumerate(names)]


def _body(session_id: str, at: datetime) -> dict[str, Any]:
    is_hostile = session_id == HOSTILE_ID
    said = HOSTILE if is_hostile else "I look at the pods first."
    result = HOSTILE + HUGE if is_hostile else "checkout-7f CrashLoopBackOff"
    call = {"id": "1", "name": "get_pods", "server": "kubernetes", "arguments": {"namespace": said}}
    messages = [
        {"role": "assistant", "at": at.isoformat(), "content": said, "thinking": said, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "1", "content": result},
        {"role": "event", "content": "paused for two hours"},
        {"role": "assistant", "at": (at + timedelta(minutes=3)).isoformat(), "content": f"# Cause\n{said}"},
    ]
    return {
        "session_id": session_id,
        "status": "timed_out" if session_id == "broken" else "completed",
        "agent": HOSTILE if is_hostile else "platform-agent",
        "alert_type": HOSTILE if is_hostile else "CrashLoop",
        "alert": {"title": said, "service": "checkout"},
        "runbook": said,
        "tools": [{"name": "get_pods", "server": "kubernetes", "description": said}],
        "messages": messages,
        "final_analysis": f"# Cause\nThe pool of {session_id} was exhausted.\n\n{said}",
    }


def _run(run_id: str, at: datetime, snapshot: str | None) -> dict[str, Any]:
    counts = {"samples": 40, "items": 80, "calls_made": 70, "calls_from_ledger": 10, "calls_failed": 0}
    rows = {"rows_landed": 80, "rows_already_present": 0, "rows_quarantined": 0}
    return {
        **dict.fromkeys(RUNS.column),
        **counts,
        **rows,
        "run_id": run_id,
        "suite": "command_guard",
        "origin": "run",
        "state": "completed",
        "parameters": "{}",
        "dataset_versions": "{}",
        "models": ["baseline/rules", HOSTILE],
        "judges": [],
        "cost_usd": 0.25,
        "snapshot_id": snapshot,
        "code_version": "1",
        "started_at": at,
        "alive_at": at,
        "ended_at": at + timedelta(seconds=90),
    }


def _snapshot(snapshot_id: str, run_id: str, at: datetime) -> dict[str, Any]:
    return {
        "snapshot_id": snapshot_id,
        "run_id": run_id,
        "suite": "command_guard",
        "pinned_versions": "{}",
        "definition_hash": content_hash("definitions"),
        "scorer_version": "1",
        "code_version": "1",
        "seed": 1,
        "options": "{}",
        "warnings": [],
        "created_at": at,
    }


def _value(snapshot_id: str, model: str, value: float) -> dict[str, Any]:
    return {
        "snapshot_id": snapshot_id,
        "run_id": None,
        "measured_at": None,
        "bound_low": None,
        "bound_high": None,
        "row_key": content_hash([model, "balanced_accuracy"]),
        "suite": "command_guard",
        "model": model,
        "judge": None,
        "slice": "all",
        "slice_value": "",
        "metric": "balanced_accuracy",
        "tier": None,
        "value": value,
        "n": 40,
        "units": 40,
        "n_eff": 40.0,
        "se": 0.02,
        "ci_low": value - 0.04,
        "ci_high": value + 0.04,
        "reliable": True,
    }
