"""A proxy for HTTPS that answers in the place of public addresses: what is sent to them stays on this machine."""

import json
import ssl
import threading
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


@dataclass(frozen=True)
class Posted:
    """What was posted to an address behind the proxy."""

    url: str
    authorization: str | None
    body: Any


class Proxy:
    """Answers "ok" for the named hosts under a certificate of its own, refuses all others, and keeps what is posted."""

    def __init__(self, folder: Path, *hosts: str) -> None:
        certificate = folder / "certificate.pem"
        _write_certificate(certificate, hosts)
        self.posted: list[Posted] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler(_context(certificate), hosts))
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self.environment = {
            "HTTPS_PROXY": f"http://127.0.0.1:{self._server.server_port}",
            "NO_PROXY": "127.0.0.1,localhost",
            "REQUESTS_CA_BUNDLE": str(certificate),
        }

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _handler(self, context: ssl.SSLContext, hosts: tuple[str, ...]) -> type[BaseHTTPRequestHandler]:
        posted = self.posted

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_CONNECT(self) -> None:
                self.host = self.path.removesuffix(":443")
                if self.host not in hosts:
                    self.send_error(403)
                    return
                self.send_response(200)
                self.end_headers()
                self.close_connection = False  # what comes next is encrypted, over the same connection
                self.connection = context.wrap_socket(self.connection, server_side=True)
                self.rfile, self.wfile = self.connection.makefile("rb"), self.connection.makefile("wb", buffering=0)

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                posted.append(Posted(f"https://{self.host}{self.path}", self.headers["authorization"], body))
                self.send_response(200)
                self.send_header("content-length", "2")
                self.end_headers()
                self.wfile.write(b"ok")

            def finish(self) -> None:
                super().finish()
                self.connection.close()  # the encrypted one, of which the server does not know

            def log_message(self, format: str, *arguments: object) -> None:
                """Say nothing."""

        return Handler


def _context(certificate: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return context


def _write_certificate(file: Path, hosts: tuple[str, ...]) -> None:
    """A certificate for the hosts, signed by itself and good for a day, with its key in the same file."""
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "tests of evalake")])
    signed = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(host) for host in hosts]), critical=False)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    file.write_bytes(private + signed.public_bytes(serialization.Encoding.PEM))
