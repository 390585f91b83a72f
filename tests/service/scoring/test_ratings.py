"""Ratings by people beside the score that a session had."""

from tests.service.services import Service


def test_people_rate_what_was_scored_and_agreement_is_counted(listed: Service) -> None:
    path = "/api/v1/scoring/sessions/{}/human-rating"
    before = listed.http.get("/api/v1/scoring/statistics").json()["agreement"]["n"]
    assert listed.http.put(path.format("lists-none"), json={"score": 50}).status_code == 404
    for wrong in ({"score": 101}, {"score": -1}, {"score": "x"}, {"score": None}, {}, {"score": 50, "by": "me"}):
        assert listed.http.put(path.format("lists-red"), json=wrong).status_code == 422
    for given in (80, 30):  # the second replaces the first
        rated = listed.http.put(path.format("lists-red"), json={"score": given, "note": "<i>too kind</i>"})
        assert rated.status_code == 200
    ratings = listed.http.get(path.format("lists-red")).json()["ratings"]
    assert [(rating["score"], rating["rated_by"]) for rating in ratings] == [(30.0, "api-client")]
    assert listed.http.get("/api/v1/sessions/lists-red").json()["human_ratings"] == ratings
    agreement = listed.http.get("/api/v1/scoring/statistics").json()["agreement"]
    assert agreement["n"] == before + 1
    if before == 0:
        assert (agreement["mean_difference"], agreement["mean_absolute_difference"]) == (-10.0, 10.0)
        assert agreement["correlation"] is None
