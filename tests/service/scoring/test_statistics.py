"""Figures over all scorings."""

from suites.session_review.metrics import BANDS
from tests.service.scoring.conftest import complete
from tests.service.services import Place, Service


def test_statistics_add_up(listed: Service, place: Place) -> None:
    complete(place, listed, "lists-green", 90)
    found = listed.http.get("/api/v1/scoring/statistics").json()
    counts = found["sessions"]
    assert counts["total"] == sum(count for name, count in counts.items() if name != "total")
    assert sum(bucket["count"] for bucket in found["distribution"]) == found["scores"]["n"] == counts_of(found["bands"])
    assert found["bands"].keys() == BANDS.keys()
    assert [bucket["low"] for bucket in found["distribution"]] == list(range(0, 100, 10))
    assert sum(point["n"] for point in found["trend"]) >= found["scores"]["n"]
    assert any(point["current"] for point in found["trend"])


def counts_of(bands: dict[str, int]) -> int:
    return sum(bands.values())
