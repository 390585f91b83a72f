"""Deploys a project to a Prefect server: work pools, all of its prefect.yaml, and evalake's automations.

`python -m evalake.server.local.deployment PROJECT` does so for `evalake up`; `make deploy` and `evalake prefect
deploy` do the same to any server.
"""

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from uuid import UUID

import yaml

from evalake.core.configuration import HOME_VARIABLE
from evalake.core.errors import UsageError
from evalake.suites.registry import suite_names

if TYPE_CHECKING:
    from prefect.blocks.abstract import NotificationBlock
    from prefect.client.orchestration import SyncPrefectClient
    from prefect.events.actions import ActionTypes
    from prefect.events.schemas.automations import AutomationCore


def pools_of(project: Path) -> tuple[str, ...]:
    """List the work pools that the deployments of a project's prefect.yaml name."""
    return tuple(sorted({deployment["work_pool"]["name"] for deployment in _declared(project)}))


def _declared(project: Path) -> Sequence[Mapping[str, Any]]:
    """Read the deployments of a project's prefect.yaml."""
    read = yaml.safe_load((project / "prefect.yaml").read_text(encoding="utf-8"))["deployments"]
    return cast("Sequence[Mapping[str, Any]]", read)


def require_suites(project: Path) -> None:
    """Raise UsageError where a deployment of a project's prefect.yaml names a suite that its workers would not find."""
    known = _suites_at(project)
    try:
        asked = [(each.get("name"), each.get("parameters") or {}) for each in _declared(project)]
    except (OSError, ValueError, TypeError, LookupError, AttributeError, yaml.YAMLError) as error:
        raise UsageError(f"{project / 'prefect.yaml'} has no deployments that can be read: {error}") from error
    for deployment, parameters in asked:
        for name in (parameters.get("suite"), *(parameters.get("suites") or ())):
            if name is not None and name not in known:
                raise UsageError(
                    f"{project / 'prefect.yaml'}: the deployment {deployment} names the unknown suite {name!r}: "
                    f"choose one of {', '.join(known)}"
                )


def _suites_at(project: Path) -> tuple[str, ...]:
    """List the suites that a worker of the project finds, by the configuration in its folder, too."""
    before = os.environ.get(HOME_VARIABLE)
    os.environ[HOME_VARIABLE] = str(project)
    try:
        return suite_names()
    finally:
        os.environ.pop(HOME_VARIABLE)
        if before is not None:
            os.environ[HOME_VARIABLE] = before


def create_pool(client: "SyncPrefectClient", name: str) -> None:
    """Create or replace a work pool whose workers start processes."""
    from prefect.client.schemas.actions import WorkPoolCreate
    from prefect.workers.process import ProcessWorker

    template = ProcessWorker.get_default_base_job_template()
    client.create_work_pool(
        WorkPoolCreate(name=name, type=ProcessWorker.type, base_job_template=template), overwrite=True
    )


def deploy(*options: str) -> int:
    """Deploy from the working directory's prefect.yaml, as `prefect deploy` does, and evalake's automations.

    Returns the exit code of `prefect deploy`.
    """
    if code := _prefect_deploy(options):
        return code
    if "--help" not in options:
        from prefect.client.orchestration import get_client

        with get_client(sync_client=True) as client:
            if Path("prefect.yaml").exists():
                refuse_unknown_parameters(client, Path.cwd())
            if receivers := notify(client):
                sys.stdout.write(f"automations tell: {', '.join(receivers)}\n")
                sys.stdout.flush()
    return 0


def refuse_unknown_parameters(client: "SyncPrefectClient", project: Path) -> None:
    """Have the server refuse a run with a parameter that its flow lacks, whose process would end without a reason."""
    from prefect.client.schemas.actions import DeploymentUpdate
    from prefect.client.schemas.filters import DeploymentFilter, DeploymentFilterName

    names = DeploymentFilterName(any_=[each["name"] for each in _declared(project)])
    for deployed in client.read_deployments(deployment_filter=DeploymentFilter(name=names)):
        schema = {**(deployed.parameter_openapi_schema or {}), "additionalProperties": False}
        client.update_deployment(deployed.id, DeploymentUpdate(parameter_openapi_schema=schema))


def _prefect_deploy(options: Sequence[str]) -> int:
    from prefect.cli import app

    # Where it is set, its value would take the place of the placeholder, in whose place each worker puts its own.
    os.environ.pop("EVALAKE_HOME", None)
    sys.argv = ["prefect", "--no-prompt", "deploy", *options]
    try:
        app()
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    return 0


# The automations of automations.yaml on the server; those that notify do so to every receiver that is named. A
# project may have an automations.yaml of its own beside its prefect.yaml. Repeating it changes nothing: an automation
# of the same name is brought up to date in its place. Where no receiver is named, none that notifies is created, and
# what is there is left as it is.


FILE = Path(__file__).with_name("automations.yaml")
PREFIX = "evalake: "


def notify(client: "SyncPrefectClient") -> list[str]:
    """Create the blocks of the receivers and the automations; returns the receivers' names.

    Exits with one line where the variable that names a receiver is not valid.
    """
    named = {name: (os.environ.get(variable), make) for name, (variable, make) in RECEIVERS.items()}
    receivers = {name: make(value) for name, (value, make) in named.items() if value}
    blocks = [UUID(str(block.save(f"evalake-{name}", overwrite=True, _sync=True))) for name, block in receivers.items()]
    there = {each.name: each for each in client.read_automations()}
    own = Path(FILE.name)  # beside the prefect.yaml that is deployed
    declarations = yaml.safe_load((own if own.is_file() else FILE).read_text(encoding="utf-8"))["automations"]
    for declared in declarations:
        if not (actions := _actions(declared, blocks)):
            continue
        wanted = _automation(declared, actions)
        if (known := there.get(wanted.name)) is None:
            client.create_automation(wanted)
        else:
            client.update_automation(known.id, wanted)
    return list(receivers)


def _actions(declared: Mapping[str, Any], blocks: list[UUID]) -> "list[ActionTypes]":
    from prefect.client.schemas.objects import StateType
    from prefect.events.actions import ChangeFlowRunState, SendNotification

    if "crashed" in declared:
        return [ChangeFlowRunState(state=StateType.CRASHED, name="Crashed", message=declared["crashed"])]
    subject, body = PREFIX + declared["name"], declared["body"]
    return [SendNotification(block_document_id=block, subject=subject, body=body) for block in blocks]


def _automation(declared: Mapping[str, Any], actions: "list[ActionTypes]") -> "AutomationCore":
    from prefect.events.schemas.automations import AutomationCore

    name = PREFIX + declared["name"]
    trigger = {"type": "event", "posture": "Reactive", "threshold": 1, "within": 0, **declared["trigger"]}
    return AutomationCore(name=name, description=declared["description"], trigger=trigger, actions=actions)


def _webhook(url: str) -> "NotificationBlock":
    """Make a webhook that is sent {"subject", "body"} as JSON; its address may hold a token, so it is kept secret."""
    from prefect.blocks.notifications import CustomWebhookNotificationBlock

    content = {"subject": "{{subject}}", "body": "{{body}}"}
    return CustomWebhookNotificationBlock(name="evalake", url="{{url}}", secrets={"url": url}, json_data=content)


def _slack(url: str) -> "NotificationBlock":
    from prefect.blocks.notifications import SlackWebhook

    return SlackWebhook(url=url)


def _mail(addresses: str) -> "NotificationBlock":
    """Make a block for mail by SendGrid: sender, then receivers, by commas; the key is in EVALAKE_NOTIFY_MAIL_KEY."""
    from prefect.blocks.notifications import SendgridEmail

    sender, *receivers = [address.strip() for address in addresses.split(",")]
    key = os.environ.get("EVALAKE_NOTIFY_MAIL_KEY", "")
    if not receivers or not key:
        raise SystemExit(
            "deploy: EVALAKE_NOTIFY_MAIL is SENDER,RECEIVER[,RECEIVER], and EVALAKE_NOTIFY_MAIL_KEY has to be set"
        )
    return SendgridEmail(api_key=key, sender_email=sender, to_emails=receivers)


RECEIVERS: Mapping[str, tuple[str, Callable[[str], Any]]] = {
    "webhook": ("EVALAKE_NOTIFY_WEBHOOK", _webhook),
    "slack": ("EVALAKE_NOTIFY_SLACK", _slack),
    "mail": ("EVALAKE_NOTIFY_MAIL", _mail),
}


def main(project: Path) -> int:
    """Create the project's work pools, and deploy its prefect.yaml; returns the exit code of `prefect deploy`."""
    from prefect.client.orchestration import get_client

    with get_client(sync_client=True) as client:
        for pool in pools_of(project):
            create_pool(client, pool)
    return deploy("--all")


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
