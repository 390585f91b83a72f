"""What the service prints: with EVALAKE_LOG_FORMAT=json, the web server's own lines are JSON, too."""

import json
import socket
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.e2e.processes import PrefectStack, wait_until
from tests.integration.server.services import Place, start
from tests.servers.model_server import ModelServer

COMPLAINT = "Invalid HTTP request received."


def test_the_web_servers_lines_are_json(
    idle: PrefectStack, tmp_path: Path, judge_server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(idle.environment, "EVALAKE_LOG_FORMAT", "json")
    service = start(idle, Place(tmp_path, judge_server))
    where = urlsplit(service.url)
    with socket.create_connection((str(where.hostname), where.port or 0)) as connection:
        connection.sendall(b"no request at all\r\n\r\n")

    def complaints() -> list[str]:
        return [line for line in service.process.log.read_text().splitlines() if COMPLAINT in line]

    (line,) = wait_until(complaints, "the complaint about the request")
    service.stop()
    told = json.loads(line)
    assert (told["level"], told["message"]) == ("WARNING", COMPLAINT)
