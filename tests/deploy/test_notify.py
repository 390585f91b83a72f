"""What the receivers of notifications are sent: by Slack's and SendGrid's own protocols, to a server that listens here.

Both blocks have their address fixed (hooks.slack.com, api.sendgrid.com), so a test turns what they are built on.
"""

import json
import sys
from pathlib import Path
from typing import Any

import apprise.plugins.sendgrid
import apprise.plugins.slack
import pytest

from tests.servers.receiver import Receiver

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "deploy"))
notify: Any = __import__("notify")
sys.path.pop(0)

pytestmark = pytest.mark.filterwarnings("ignore:'imghdr' is deprecated:DeprecationWarning")  # of apprise's own

SUBJECT, BODY = "evalake: failed run", "night failed: the disk is full"


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Any:
    with Receiver() as listening:
        monkeypatch.setattr(apprise.plugins.slack.NotifySlack, "webhook_url", listening.url)
        monkeypatch.setattr(apprise.plugins.sendgrid.NotifySendGrid, "notify_url", listening.url)
        yield listening


def sent(receiver: Receiver, name: str, value: str) -> str:
    """What a receiver of that kind is sent of a subject and a body, as text."""
    _, make = notify.RECEIVERS[name]
    make(value).notify(BODY, subject=SUBJECT)
    (told,) = receiver.told
    return json.dumps(told)


def test_slack_is_sent_subject_and_body(receiver: Receiver) -> None:
    told = sent(receiver, "slack", "https://hooks.slack.com/services/T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ")
    assert SUBJECT in told
    assert BODY in told


def test_mail_goes_from_the_sender_to_each_receiver(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVALAKE_NOTIFY_MAIL_KEY", "SG.abc-defghijklmnop")
    told = sent(receiver, "mail", "lake@example.org, a@example.org")
    for part in ("lake@example.org", "a@example.org", SUBJECT, BODY):
        assert part in told


def test_mail_without_a_key_or_receiver_is_refused_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EVALAKE_NOTIFY_MAIL_KEY", raising=False)
    with pytest.raises(SystemExit, match="EVALAKE_NOTIFY_MAIL_KEY has to be set"):
        notify.RECEIVERS["mail"][1]("lake@example.org,a@example.org")
