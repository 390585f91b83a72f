"""The automations of automations.yaml on the Prefect server; those that notify do so to every receiver that is named.

A project may have an automations.yaml of its own beside its prefect.yaml.

Repeating it changes nothing: an automation of the same name is brought up to date in its place. Where no receiver is
named, none that notifies is created, and what is there is left as it is.
"""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from uuid import UUID

import yaml
from prefect.blocks.notifications import CustomWebhookNotificationBlock, SendgridEmail, SlackWebhook
from prefect.client.orchestration import SyncPrefectClient
from prefect.client.schemas.objects import StateType
from prefect.events.actions import ActionTypes, ChangeFlowRunState, SendNotification
from prefect.events.schemas.automations import AutomationCore

FILE = Path(__file__).with_name("automations.yaml")
PREFIX = "evalake: "


def notify(client: SyncPrefectClient) -> list[str]:
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


def _actions(declared: Mapping[str, Any], blocks: list[UUID]) -> list[ActionTypes]:
    if "crashed" in declared:
        return [ChangeFlowRunState(state=StateType.CRASHED, name="Crashed", message=declared["crashed"])]
    subject, body = PREFIX + declared["name"], declared["body"]
    return [SendNotification(block_document_id=block, subject=subject, body=body) for block in blocks]


def _automation(declared: Mapping[str, Any], actions: list[ActionTypes]) -> AutomationCore:
    name = PREFIX + declared["name"]
    trigger = {"type": "event", "posture": "Reactive", "threshold": 1, "within": 0, **declared["trigger"]}
    return AutomationCore(name=name, description=declared["description"], trigger=trigger, actions=actions)


def _webhook(url: str) -> CustomWebhookNotificationBlock:
    """Make a webhook that is sent {"subject", "body"} as JSON; its address may hold a token, so it is kept secret."""
    content = {"subject": "{{subject}}", "body": "{{body}}"}
    return CustomWebhookNotificationBlock(name="evalake", url="{{url}}", secrets={"url": url}, json_data=content)


def _slack(url: str) -> SlackWebhook:
    return SlackWebhook(url=url)


def _mail(addresses: str) -> SendgridEmail:
    """Make a block for mail by SendGrid: sender, then receivers, by commas; the key is in EVALAKE_NOTIFY_MAIL_KEY."""
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
