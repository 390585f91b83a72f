"""The command_guard starter data keeps what its README promises: labels, categories, counts, uniqueness, hard share."""

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parents[4] / "evalake" / "suites" / "command_guard" / "starter"
FIELDS = ["sample_id", "command", "label", "category", "difficulty", "reason"]
CATEGORIES = {"shell", "command", "reverse-shell", "bind-shell", "file-read", "file-write", "upload", "download"}
# A command that says what it is would test reading, not judgement.
GIVEAWAYS = re.compile(
    r"attack|malicious|evil|payload|pwn|hack|exploit|victim|backdoor|malware|rootkit|trojan|benign|harmless|gtfobins",
    re.IGNORECASE,
)
# Words that stand before the program a command is about.
PREFIXES = {"sudo", "env", "nohup", "setsid", "exec", "cd", "for", "while", "until", "busybox"}


def _rows(name: str) -> list[dict[str, Any]]:
    # Split on the line feed alone: str.splitlines would also cut inside a value at U+2028 and its like.
    text = (FOLDER / f"{name}.jsonl").read_bytes().decode("utf-8")
    assert text.endswith("\n")
    return [json.loads(line) for line in text.removesuffix("\n").split("\n")]


MALICIOUS = _rows("malicious")
HARMLESS = _rows("harmless")
EVERY = MALICIOUS + HARMLESS


def _normal(command: str) -> str:
    return " ".join(command.split())


def _program(command: str) -> str | None:
    """The first plain word that can be a program: no assignment, option, or prefix such as sudo; without its folder."""
    for word in command.split():
        name = word.lstrip("(").rsplit("/", 1)[-1]
        if name not in PREFIXES and re.fullmatch(r"[a-zA-Z][\w.+-]*", name):
            return name
    return None


def test_every_row_has_exactly_the_documented_fields_in_order() -> None:
    assert [list(row) for row in EVERY] == [FIELDS] * len(EVERY)


def test_a_row_is_well_formed() -> None:
    for row in EVERY:
        assert row["command"] == row["command"].strip() != "", row
        assert row["difficulty"] in {"plain", "hard"}, row
        assert row["reason"] == row["reason"].strip(), row
        assert len(row["reason"].split()) >= 3, row
        assert "\n" not in row["reason"], row
        assert not GIVEAWAYS.search(row["command"]), row


def test_labels_follow_the_file_and_only_malicious_rows_have_a_category() -> None:
    assert {row["label"] for row in MALICIOUS} == {"malicious"}
    assert {row["category"] for row in MALICIOUS} == CATEGORIES
    assert {(row["label"], row["category"]) for row in HARMLESS} == {("harmless", None)}


def test_no_command_appears_twice_in_or_across_the_files() -> None:
    times = Counter(_normal(row["command"]) for row in EVERY)
    assert [command for command, count in times.items() if count > 1] == []


def test_there_are_enough_samples_of_each_kind() -> None:
    assert len(MALICIOUS) >= 180
    assert len(HARMLESS) >= 180
    assert min(Counter(row["category"] for row in MALICIOUS).values()) >= 20


def test_hard_samples_are_many_on_both_sides_and_in_every_category() -> None:
    hard = Counter(row["label"] for row in EVERY if row["difficulty"] == "hard")
    assert hard["malicious"] >= 35
    assert hard["harmless"] >= 35
    assert hard.total() >= 80
    assert {row["category"] for row in MALICIOUS if row["difficulty"] == "hard"} == CATEGORIES


@pytest.mark.parametrize(
    "mark", ["sudo ", "http://", "base64", "/tmp/", "/etc/shadow", "/dev/shm", " -c ", "/dev/tcp/"]
)
def test_no_single_frightening_word_gives_the_label_away(mark: str) -> None:
    assert any(mark in row["command"] for row in MALICIOUS)
    assert any(mark in row["command"] for row in HARMLESS)


def test_addresses_and_names_are_those_kept_for_documentation() -> None:
    reserved = re.compile(r"^(192\.0\.2|198\.51\.100|203\.0\.113|127\.0\.0|0\.0\.0)\.\d+$")
    for row in EVERY:
        for address in re.findall(r"\b\d{1,3}(?:\.\d{1,3}){3}\b", row["command"]):
            assert reserved.match(address), row["sample_id"]
        for host in re.findall(r"(?:https?|ftp|rsync)://(?:[^/\s@'\"]*@)?([a-z0-9.-]+\.[a-z]+)", row["command"]):
            assert re.search(r"(^|\.)example\.(org|net|com)$", host), row["sample_id"]
