"""Writing on the viewer's pages: whoever lacks the token, comes from elsewhere, or sends no label, writes nothing."""

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from evalake.contracts.tables import HUMAN_LABELS
from evalake.labels.sheets import lines_to_label
from evalake.server.auth import LARGEST_BODY
from evalake.server.settings import Settings
from evalake.server.viewer.grading import _KEY
from evalake.storage.lake import Lake
from tests.integration.server.viewer.conftest import served
from tests.integration.server.viewer.world import GOOD, _imported

TOKEN = {"authorization": "Bearer right"}
REFUSED: dict[str, dict[str, str]] = {
    "no token": {"origin": "OWN"},
    "wrong token": {"authorization": "Bearer wrong", "origin": "OWN"},
    "no origin": TOKEN,
    "foreign origin": {**TOKEN, "origin": "http://elsewhere.example"},
    "no page": {**TOKEN, "origin": "null"},
    "other port": {**TOKEN, "origin": "http://127.0.0.1:1"},
    "foreign host": {**TOKEN, "origin": "http://elsewhere.example", "host": "elsewhere.example"},
    "cross site": {**TOKEN, "origin": "OWN", "sec-fetch-site": "cross-site"},
    "same site": {**TOKEN, "sec-fetch-site": "same-site"},
    "typed": {**TOKEN, "sec-fetch-site": "none"},
}
NAMES = ["", " ", "a" * 201, "a\nb", "a\x00b", "\u202eann", "an\u200bn", "\ud800", " ann ", 7, None, ["ann"]]


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    return Lake(str(tmp_path_factory.mktemp("written") / "lake"))


@pytest.fixture(scope="module")
def writes(lake: Lake, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """Everything that may be written, by its path."""
    folder: Path = tmp_path_factory.mktemp("recorded")
    run = _imported(lake, folder / "a.jsonl", [GOOD], lambda _: "BLOCK")
    line = {name: value for name, value in lines_to_label(lake, run, 30)[0].items() if name in _KEY}
    return {
        f"/api/v1/runs/{run}/grading": {"annotator": "ann", "line": line, "answers": {"malicious": "yes"}},
        f"/api/v1/runs/{run}/items/{line['sample_hash']}/dispute": {"annotator": "ann", "disputed": True},
    }


def test_nothing_is_written_by_strangers_other_sites_or_nonsense(lake: Lake, writes: dict[str, dict[str, Any]]) -> None:
    with served(Settings(lake=lake, token="right", writes=True)) as address, httpx.Client(base_url=address) as strict:
        own = {**TOKEN, "origin": address}
        for path, body in writes.items():
            for what, headers in REFUSED.items():
                sent = {name: address if value == "OWN" else value for name, value in headers.items()}
                assert strict.post(path, json=body, headers=sent).status_code in (401, 421), what
            for name in NAMES:
                content = json.dumps({**body, "annotator": name})
                assert strict.post(path, content=content, headers=own).status_code == 422, repr(name)
            for method in ("GET", "PUT", "DELETE", "PATCH"):
                asked = strict.request(method, path, params={"annotator": "ann", "disputed": "true"}, headers=own)
                assert asked.status_code in (404, 405, 422), method
            large = {**body, "note": "n" * LARGEST_BODY}
            assert strict.post(path, json=large, headers=own).status_code == 413
            for more in ({"note": "n" * 2001}, {"draw": "d"}):
                assert strict.post(path, json={**body, **more}, headers=own).status_code == 422
        assert lake.frame(HUMAN_LABELS).collect().is_empty()
        for path, body in writes.items():
            shown = {**TOKEN, "sec-fetch-site": "same-origin"}
            assert strict.post(path, json=body, headers=shown).json() == {"labels": 1}


@pytest.mark.parametrize(("settings", "refusal"), [({"token": "right"}, {404, 405}), ({"writes": True}, {401})])
def test_a_server_that_only_reads_or_has_no_token_writes_nothing(
    lake: Lake, writes: dict[str, dict[str, Any]], settings: dict[str, Any], refusal: set[int]
) -> None:
    with served(Settings(lake=lake, **settings)) as address, httpx.Client(base_url=address) as client:
        headers = {**TOKEN, "origin": address}
        assert {client.post(path, json=body, headers=headers).status_code for path, body in writes.items()} <= refusal
