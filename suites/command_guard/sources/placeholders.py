"""Make the placeholders of GTFOBins commands concrete: one declared, ordered table, one pass, no randomness.

GTFOBins writes what is to be filled in as `/path/to/input-file`, `attacker.com`, `DATA` (since 2025) or as
`LFILE=file_to_read`, `RHOST=attacker.com`, `TF=$(mktemp)` (before). A guard judges what a command touches, so every
placeholder becomes what an intruder would put there:

* what is read or sent is `/etc/shadow`; what is fetched is `/payload`; what is written is `/etc/passwd`, or a file in
  `/etc/cron.d` where a folder is asked for (a copy that only serves reading is `/tmp/copy`, the attacker's is `/loot`);
* data written is an account without a password (`toor::0:0:::`, a line of `/etc/passwd` that needs no quoting); data
  sent is the content of `/etc/shadow`;
* the attacker's host is 192.0.2.10 and the victim's 198.51.100.10 (addresses reserved for documentation), port 4444;
* commands to run are `/tmp/payload`; all other paths below `/path/to` are below `/tmp`.

Variables stay, with concrete values: `LFILE=/etc/shadow`.
"""

import re

_SECRET = "/etc/shadow"
_TARGET = "/etc/passwd"
_FETCHED = "/payload"
_WHERE = r"(?:\./relative)?/path/to"

# (pattern, replacement, replacement in the categories given), tried in this order at every position of the command
_TABLE: tuple[tuple[str, str, dict[str, str]], ...] = (
    (rf"{_WHERE}/(?:input-file|file-input)\b", _SECRET, {"download": _FETCHED}),
    (r"(?<![\w./-])path/to/input-file\b", _SECRET.removeprefix("/"), {}),
    (rf"{_WHERE}/(?:output-file|ouput-file|OUTPUT)\b", _TARGET, {"file-read": "/tmp/copy", "upload": "/loot"}),
    (rf"{_WHERE}/input-dir\b/?", "/root/", {}),
    (rf"{_WHERE}/output-dir\b/?", "/etc/cron.d/", {}),
    (rf"{_WHERE}/dir\b", "/root", {"download": "/srv"}),
    (rf"{_WHERE}/command\b", "/tmp/payload", {}),
    (r"\./relative/path/to/", "../../tmp/", {}),
    (r"/path/to/", "/tmp/", {}),
    (r"c:\\path\\to\\input\b", r"c:\etc\shadow", {}),
    (r"c:\\path\\to\\output\b", r"c:\etc\passwd", {}),
    (r"(?:/tmp/|\./|/)?\bfile_to_(?:read|send)\b", _SECRET, {}),
    (r"(?:/tmp/|\./|/)?\bfile_to_(?:write|save|change)\b", _TARGET, {}),
    (r"/?\bfile_to_get\b", _FETCHED, {}),
    (r"(?:/tmp/|\./|/)?\b(?:where|dir)_to_(?:save|write)\b", "/etc/cron.d", {}),
    (r"(?:/tmp/|\./|/)?\b(?:where|dir)_to_(?:read|send)\b", "/root", {}),
    (r"\battacker\.com\b", "192.0.2.10", {}),
    (r"\b(?:victim|target)\.com\b", "198.51.100.10", {}),
    (r"\b12345\b", "4444", {}),
    (r"(?<![A-Za-z0-9])DATA(?![A-Za-z0-9_])", "toor::0:0:::", {"upload": f"$(cat {_SECRET})"}),
    (r"\$CONTAINER_ID\b", "web", {}),
)
_ANY = re.compile("|".join(f"({pattern})" for pattern, _, _ in _TABLE))


def make_concrete(command: str, category: str) -> str:
    """Replace every placeholder in the command by the value for commands of this category."""

    def replacement(match: re.Match[str]) -> str:
        _, usual, special = _TABLE[(match.lastindex or 1) - 1]
        return special.get(category, usual)

    return _ANY.sub(replacement, command)
