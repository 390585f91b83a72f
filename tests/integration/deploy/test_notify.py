"""What receivers of notifications are sent: by Slack's and SendGrid's protocols, to a proxy that answers for both."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from evalake.server.local import deployment as notify
from tests.servers.proxy import Proxy

pytestmark = pytest.mark.filterwarnings("ignore:'imghdr' is deprecated:DeprecationWarning")  # of apprise's own

SUBJECT, BODY = "evalake: failed run", "night failed: the disk is full"


@pytest.fixture
def proxy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Proxy]:
    with Proxy(tmp_path, "hooks.slack.com", "api.sendgrid.com") as answering:
        for name, value in answering.environment.items():
            monkeypatch.setenv(name, value)
        yield answering


def sent(proxy: Proxy, name: str, value: str) -> str:
    """What a receiver of that kind is sent of a subject and a body, as text."""
    _, make = notify.RECEIVERS[name]
    make(value).notify(BODY, subject=SUBJECT)
    (posted,) = proxy.posted
    return json.dumps(posted.body)


def test_slack_is_sent_subject_and_body(proxy: Proxy) -> None:
    told = sent(proxy, "slack", "https://hooks.slack.com/services/T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ")
    assert SUBJECT in told
    assert BODY in told


def test_mail_goes_from_the_sender_to_each_receiver(proxy: Proxy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVALAKE_NOTIFY_MAIL_KEY", "SG.abc-defghijklmnop")
    told = sent(proxy, "mail", "lake@example.org, a@example.org")
    for part in ("lake@example.org", "a@example.org", SUBJECT, BODY):
        assert part in told


def test_mail_without_a_key_or_receiver_is_refused_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EVALAKE_NOTIFY_MAIL_KEY", raising=False)
    with pytest.raises(SystemExit, match="EVALAKE_NOTIFY_MAIL_KEY has to be set"):
        notify.RECEIVERS["mail"][1]("lake@example.org,a@example.org")
