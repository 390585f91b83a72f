"""Sessions of every score, which tests of what the API reads share."""

import pytest

from tests.integration.server.services import Place, Service

SESSIONS = ("lists-red", "lists-yellow", "lists-green", "lists-failed", "lists-none")


@pytest.fixture(scope="package")
def listed(service: Service, place: Place) -> Service:
    """A service with a session of every score, and one that was never scored; told from others by their search word."""
    for day, session in enumerate(SESSIONS, start=1):
        at = f"2026-04-0{day}T10:00:00Z"
        said = {"role": "assistant", "content": "<b>the disk</b> is full", "at": at}
        call = {"id": "1", "name": "df", "arguments": {"path": "/"}}
        asked = {"role": "assistant", "content": "let me look", "tool_calls": [call], "at": at}
        came_back = {"role": "tool", "tool_call_id": "1", "content": "99 %"}
        messages = [asked, came_back, said]
        place.write(session, agent="lister", alert={"about": "needle in a haystack"}, messages=messages)
    place.write("lists-old")
    service.wait_to_know(SESSIONS[0])
    for session, total in zip(SESSIONS[:3], (20, 60, 90), strict=True):
        complete(place, service, session, total)
    place.set(service.ask("lists-failed").json()["score_id"], "failed")
    return service


def complete(place: Place, service: Service, session: str, total: int) -> None:
    """Ask for a score where there is none, and have it completed."""
    score = service.ask(session).json()
    if score["status"] == "pending":
        place.set(score["score_id"], "completed", total)
