"""Network programs: how they hand a stream to a program, send a file away or fetch one."""

from __future__ import annotations

import re
from typing import Final

from suites.command_guard.baselines.shell_patterns.rules.programs import names

RAW_CONNECTORS: Final = names("nc ncat netcat nc.traditional nc.openbsd socat telnet cryptcat socket")
"""Programs that join their standard streams to a socket."""
TLS_CONNECTORS: Final = re.compile(r"\bs_client\b|\bs_server\b")

EXECUTES: Final[dict[str, re.Pattern[str]]] = {
    **dict.fromkeys(
        names("nc ncat netcat nc.traditional nc.openbsd cryptcat"),
        re.compile(r"(?:^|\s)(?:-\w*[ec]|--exec|--sh-exec|--lua-exec)[\s=]+\S|(?:^|\s)--(?:sh-|lua-)?exec=\S"),
    ),
    "socat": re.compile(r"\b(?:exec|system|shell)\s*:", re.IGNORECASE),
    "socket": re.compile(r"(?:^|\s)-\w*p"),
    "dropbear": re.compile(r"."),
    "rlogin": re.compile(r"(?!)"),
}
"""Program -> options that attach a program to the connection."""

LISTENS: Final = re.compile(r"(?:^|\s)-\w*l\w*(?:\s|$)|--listen|listen:|-LISTEN|s_server|(?:^|\s)-s\b", re.IGNORECASE)
PORT_CHECK: Final = re.compile(r"(?:^|\s)-\w*z\w*(?:\s|$)")

DEVICE: Final = re.compile(r"/dev/(?:tcp|udp)/")
"""The shell's own sockets."""
RAW_ADDRESS: Final = re.compile(
    r"(?:://|@|^|\s)(?!127\.|0\.0\.0\.0)(?:\d{1,3}\.){3}\d{1,3}(?![\d.])|://0x[0-9a-f]+|://\d{8,10}(?:/|:|$)"
)
LOOPBACK: Final = re.compile(r"(?:localhost|127\.\d+\.\d+\.\d+|\[?::1\]?|host\.docker\.internal)(?![\w.-])")
URL: Final = re.compile(r"\b(?:https?|ftps?|sftp|scp|tftp|smb|gopher|dict|ldap|telnet)://[^\s'\"]+", re.IGNORECASE)
REMOTE: Final = re.compile(r"^(?:[\w.-]+@)?[\w.-]+:(?!//|:)|^rsync://|^\[[0-9a-f:]+\]:", re.IGNORECASE)

FETCHERS: Final = names(
    "curl wget aria2c fetch lwp-request lwp-download axel lynx links w3m http https xh GET yt-dlp urlget ftp"
    " tftp sftp scp rsync"
)
"""Programs whose output may come from another machine."""
SAVES: Final = re.compile(
    r"(?:^|\s)(?:-\w*[oO]\b|--output\b|--remote-name\b|--output-document\b|-o\S+|--output=\S+|--output-document=\S+)"
)
SAVES_AS: Final = names("-o -O --output --output-document")
"""Options whose value names the file that is saved."""
UPLOADS: Final = re.compile(
    r"(?:^|\s)(?:-T|--upload-file)[\s=]*\S|(?:^|\s)(?:-F|--form)[\s=]+\S*@|(?:^|\s)(?:-d|--data(?:-binary|-raw"
    r"|-urlencode|-ascii)?)[\s=]+@|(?:^|\s)--(?:post|body)-file[\s=]\S|(?:^|\s)-d@|(?:^|\s)--form-string"
)

_FILES, _PROGRAM = "serves files to whoever connects", "starts a program for whoever connects"
SERVERS: Final[tuple[tuple[str, str, str], ...]] = (
    # program, pattern over the joined arguments, what it does
    ("python", r"-m\s*(?:http\.server|SimpleHTTPServer|pyftpdlib|uploadserver|smtpd)\b", _FILES),
    ("php", r"(?:^|\s)-S\s", _FILES),
    ("ruby", r"-run\b.*-e\s*httpd|-rwebrick|-r\s*un\b", _FILES),
    ("busybox", r"^(?:httpd|telnetd|ftpd|tftpd|udpsvd|tcpsvd|nc\b.*-e)", "serves files or a shell to whoever connects"),
    ("tcpserver", r"", _PROGRAM),
    ("ucspi-tcp", r"", _PROGRAM),
    ("updog", r"", _FILES),
    ("plackup", r"", _FILES),
    ("websocketd", r"", _PROGRAM),
    ("httpd", r"(?:^|\s)-f\b|-p\s?\d", _FILES),
)

SHELL_FEEDERS: Final = names(
    "curl wget nc ncat netcat base64 base32 xxd openssl rev tr gunzip zcat gzip fetch lwp-request socat uudecode"
    " bzip2 xz od printf awk python perl php ssh"
)
"""Producers that make it likely that a shell downstream runs something fetched or hidden."""
