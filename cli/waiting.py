"""The first line of a command that takes more than a second, for people at a terminal: what it begins with."""

import sys

from cli.terminal import say

DOING = {
    "check": "reading the tables",
    "doctor": "looking at server, keys and lake",
    "import": "reading the recorded results",
    "init": "writing the project",
    "run": "reading the suite, its samples and the ledger",
    "serve": "starting the service",
}


def say_what_is_done(command: str) -> None:
    """Write what a slow command begins with; nothing where standard error is no terminal."""
    if command in DOING and sys.stderr.isatty():
        say(f"{DOING[command]} …")
