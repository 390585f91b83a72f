"""What goes wrong is told: the automations of automations.yaml on a real server, and receivers that listen.

Slack and SendGrid are reached by the server at their public addresses, over a proxy of this test that answers for them.
"""

import json
import sqlite3
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from prefect.settings import PREFECT_API_URL, temporary_settings

from evalake.admin.maintain import missed_runs
from evalake.core.configuration import read_configuration
from evalake.flows.maintain import missed
from evalake.storage.lake import Lake
from evalake.tasks.runtime import runs
from evalake.tasks.runtime.artifacts import emit_run_alarms
from evalake.tasks.runtime.runs import Run, Tally
from tests.e2e.checkout import checkout
from tests.e2e.processes import ROOT, PrefectStack, wait_until
from tests.integration.cli.command import evalake, evalake_here
from tests.servers.proxy import Posted, Proxy
from tests.servers.receiver import Receiver

pytestmark = pytest.mark.e2e

NIGHTLY = "evaluate/command-guard-nightly"
CANARY = "canary/judge-canary-daily"  # which cannot ask a judge of yesterday
SNAPSHOT = "snapshot/metric-snapshot-daily"  # which an automation runs
DEPLOYED = [word for each in (NIGHTLY, CANARY, SNAPSHOT) for word in ("--name", each.partition("/")[2])]
SLACK = "https://hooks.slack.com/services/T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ"
SENDGRID = "https://api.sendgrid.com/v3/mail/send"
SENDGRID_KEY = "SG.a-key-nobody-may-see"
SENDER, READERS = "lake@example.org", ["a@example.org", "b@example.org"]
SECRETS = ("nobody-may-see", "TIiajkdnlazkcOXrIdevi7FQ")
QUICK = {
    "PREFECT_SERVER_SERVICES_LATE_RUNS_LOOP_SECONDS": "1",
    "PREFECT_SERVER_SERVICES_FOREMAN_LOOP_SECONDS": "1",
    "PREFECT_SERVER_SERVICES_FOREMAN_INACTIVITY_HEARTBEAT_MULTIPLE": "1",
}


class WatchedStack:
    """A server with deployments and all automations, with receivers of what it tells, and no worker."""

    def __init__(self, stack: PrefectStack, receiver: Receiver, proxy: Proxy, project: Path) -> None:
        self.stack, self.receiver, self.proxy = stack, receiver, proxy
        receivers = {
            "EVALAKE_NOTIFY_WEBHOOK": receiver.url,
            "EVALAKE_NOTIFY_SLACK": SLACK,
            "EVALAKE_NOTIFY_MAIL": ",".join([SENDER, *READERS]),
            "EVALAKE_NOTIFY_MAIL_KEY": SENDGRID_KEY,
        }
        stack.post("/work_pools/", {"name": "evalake", "type": "process"})
        done = evalake("prefect", "deploy", *DEPLOYED, folder=project, **stack.environment, **receivers)
        assert done.returncode == 0, done.stdout + done.stderr
        with temporary_settings({PREFECT_API_URL: stack.url}):
            seen = evalake_here("doctor", "--deploying", folder=project, **receivers)
        self.printed = done.stdout + done.stderr + seen.stdout + seen.stderr
        self.nightly = stack.get(f"/deployments/name/{NIGHTLY}")

    def wait_for(self, automation: str, *words: str) -> str:
        """Wait until the receiver has been told something with all the words by an automation; returns it."""

        def told() -> str | None:
            bodies = self.receiver.bodies(f"evalake: {automation}")
            return next((body for body in bodies if all(word in body for word in words)), None)

        return str(wait_until(told, f"a word of {automation}"))

    def wait_for_posts(self, url: str, count: int, automation: str, word: str) -> list[Posted]:
        """Wait until an automation has posted so often to a public address with a word in it; returns these posts."""

        def posted() -> list[Posted]:
            said = [(each, json.dumps(each.body)) for each in list(self.proxy.posted) if each.url == url]
            named = [each for each, text in said if f'"evalake: {automation}"' in text and word in text]
            return named if len(named) >= count else []

        found: list[Posted] = wait_until(posted, f"{count} posts of {automation} to {url}")
        return found


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WatchedStack]:
    folder = tmp_path_factory.mktemp("watched")
    project = checkout(folder / "project", {"within: 10800": "within: 10", "within: 1800": "within: 10"})
    with (
        Receiver() as receiver,
        Proxy(folder, "hooks.slack.com", "api.sendgrid.com") as proxy,
        PrefectStack(folder / "prefect", {**QUICK, **proxy.environment}) as stack,
    ):
        yield WatchedStack(stack, receiver, proxy, project)


def test_every_automation_is_there_once_and_addresses_and_keys_are_kept_as_secrets(watched: WatchedStack) -> None:
    declared = yaml.safe_load((ROOT / "evalake" / "server" / "local" / "automations.yaml").read_text())["automations"]
    there = [each["name"] for each in watched.stack.post("/automations/filter", {})]
    assert sorted(name for name in there if name.startswith("evalake: ")) == sorted(
        f"evalake: {each['name']}" for each in declared
    )
    blocks = watched.stack.post("/block_documents/filter", {})
    assert {block["name"] for block in blocks} == {"evalake-webhook", "evalake-slack", "evalake-mail"}
    assert not [secret for secret in SECRETS if secret in json.dumps(blocks) + watched.printed]
    telling = sum("body" in each for each in declared)
    assert f"ok       notifications   {telling} automations notify of failures" in watched.printed


def test_a_run_that_fails_is_told_with_its_reason_to_webhook_slack_and_mail(watched: WatchedStack) -> None:
    reason = "not-there.toml: there is no such file"
    run_name = later_run(watched, "FAILED", "Failed", reason)
    subject, body = "evalake: failed run", watched.wait_for("failed run", run_name, "failed", reason)
    (message,) = watched.wait_for_posts(SLACK, 1, "failed run", run_name)
    (attachment,) = message.body["attachments"]
    assert (attachment["title"], attachment["text"]) == (subject, body)
    mails = watched.wait_for_posts(SENDGRID, len(READERS), "failed run", run_name)
    for mail in mails:
        assert mail.authorization == f"Bearer {SENDGRID_KEY}"
        assert (mail.body["from"]["email"], mail.body["subject"]) == (SENDER, subject)
        assert [part["value"] for part in mail.body["content"]] == [body]
    sent_to = [to["email"] for mail in mails for each in mail.body["personalizations"] for to in each["to"]]
    assert sorted(sent_to) == READERS
    assert not [secret for secret in SECRETS if secret in watched.stack.server_log()]


def test_a_run_whose_process_dies_is_told_with_its_reason(watched: WatchedStack) -> None:
    run_name = later_run(watched, "CRASHED", "Crashed", "because of a test")
    assert watched.wait_for("crashed run", run_name, "because of a test")


def test_a_run_that_gives_no_sign_of_life_crashes_and_is_told(watched: WatchedStack) -> None:
    waiting = {"type": "PENDING", "name": "Pending"}  # a worker took it, and nothing is heard of either any more
    run = watched.stack.post(f"/deployments/{watched.nightly['id']}/create_flow_run", {"state": waiting})
    watched.stack.set_state(run["id"], "RUNNING", "Running")
    assert watched.stack.wait_for(run["id"], "Crashed") == "Crashed"
    assert watched.wait_for("crashed run", run["name"], "no sign of life", "Retry it")


def test_a_late_run_a_silent_worker_and_no_runs_at_all_are_told(watched: WatchedStack) -> None:
    beat = {"name": "night-worker", "heartbeat_interval_seconds": 1}
    watched.stack.post("/work_pools/evalake/workers/heartbeat", beat)
    due = (datetime.now(UTC) - timedelta(minutes=5)).isoformat()
    waiting = {"type": "SCHEDULED", "name": "Scheduled", "state_details": {"scheduled_time": due}}
    run = watched.stack.post(f"/deployments/{watched.nightly['id']}/create_flow_run", {"state": waiting})
    assert run["name"] in watched.wait_for("late run", run["name"])
    assert watched.wait_for("silent worker", "evalake")
    assert watched.wait_for("no runs", "three hours")


def test_refused_rows_and_a_day_above_its_limit_are_told_once(watched: WatchedStack, tmp_path: Path) -> None:
    lake = Lake(str(tmp_path / "lake"))
    tally = Tally(rows_quarantined=3, cost_usd=7.5)
    run = Run("cafe00000001", "command_guard", "run", {}, {}, ["m"], [], 1, 1, datetime.now(UTC), tally=tally)
    runs.save(lake, run.ended("completed", tally=tally))
    (tmp_path / "evalake.toml").write_text("[alarms]\ncost_usd_a_day = 7\n")
    with watched.stack.here(tmp_path / "results"):
        for _ in range(2):
            emit_run_alarms(lake, read_configuration(tmp_path / "evalake.toml"), "cafe00000001")
    watched.wait_for("quarantine", "run cafe00000001 refused 3 rows", lake.uri)
    watched.wait_for("cost", "have cost 7.50 US dollars, above 7")
    assert len(watched.receiver.bodies("evalake: quarantine")) == 1
    assert len(watched.receiver.bodies("evalake: cost")) == 1


def test_a_missed_night_is_made_up_once_but_for_a_canary_and_told(
    watched: WatchedStack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    today = datetime.now(UTC).date()  # for both flow runs, even around midnight
    monkeypatch.setattr("evalake.flows.maintain.missed_runs", lambda client, _, days: missed_runs(client, today, days))
    days = [(today - timedelta(days=back)).isoformat() for back in (1, 2)]
    due = {"scheduled_time": f"{days[0]}T03:00:00Z"}  # which a worker could not submit, so that it never began
    waiting = {"type": "SCHEDULED", "name": "Scheduled", "state_details": due}
    run = watched.stack.post(f"/deployments/{watched.nightly['id']}/create_flow_run", {"state": waiting})
    watched.stack.set_state(run["id"], "CRASHED", "Crashed")
    three_days_ago = f"{today - timedelta(days=3)} 00:00:00"
    with sqlite3.connect(Path(watched.stack.environment["PREFECT_HOME"]) / "prefect.db", timeout=600) as database:
        for name in (NIGHTLY, CANARY):
            deployment = watched.stack.get(f"/deployments/name/{name}")["id"]
            database.execute(
                "UPDATE deployment_schedule SET created = ? WHERE deployment_id = ?", (three_days_ago, deployment)
            )
    database.close()
    with watched.stack.here(tmp_path / "results"):
        first = missed(days=2, return_state=True)
        second = missed(days=2, return_state=True)
    assert (first.name, first.message) == ("RunsMissed", "4 days with missed runs, 2 of them made up")
    assert (second.name, second.message) == ("RunsMissed", "2 days with missed runs, 0 of them made up")
    assert sorted(run["parameters"]["day"] for run in _made_up(watched)) == sorted(days)
    for day in days:
        watched.wait_for("missed runs", f"{NIGHTLY} was started 0 times of 1 on {day}; it is made up now")
        watched.wait_for("missed runs", f"{CANARY} was started 0 times of 1 on {day}")


def later_run(watched: WatchedStack, kind: str, name: str, reason: str) -> str:
    """Have a run that no worker takes come to a state, as its process or Prefect would; returns the run's name."""
    due = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    waiting = {"type": "SCHEDULED", "name": "Scheduled", "state_details": {"scheduled_time": due}}
    run = watched.stack.post(f"/deployments/{watched.nightly['id']}/create_flow_run", {"state": waiting})
    watched.stack.set_state(run["id"], kind, name, reason)
    return str(run["name"])


def _made_up(watched: WatchedStack) -> list[dict[str, Any]]:
    tagged = {"flow_runs": {"tags": {"all_": ["make-up"]}}}
    found: list[dict[str, Any]] = watched.stack.post("/flow_runs/filter", tagged)
    return found
