"""The JSON files of a recorded round, sorted by what they are, and the names that mean one model or one sample.

Today's layout of BlockBench says by folders what a file is:

    samples/ds/TIER/{ground_truth,metadata,contracts}/SAMPLE.*       also gs/ and tc/VARIANT/
    results/detection/llm/MODEL/ds/TIER/d_SAMPLE.json                audits
    results/detection/traditional/TOOL/ds/TIER/…/p_SAMPLE.json       a tool's findings
    results/detection_evaluation/llm-judge/JUDGE/MODEL/ds/TIER/j_SAMPLE.json
    results/detection_evaluation/rule-based/traditional/TOOL/ds/TIER/e_SAMPLE.json

In place of `ds/TIER` stand `gs/PROMPT` and `tc/VARIANT`. A summary begins with `_` in the folder that it is about.
"""

import csv
import json
import re
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise, takewhile
from pathlib import Path
from typing import Any, Final, Literal

from evalake.core.errors import SourceError
from evalake.core.files import FileRefusedError, Files, tables_beside
from evalake.sdk import Recorded, Skipped
from evalake.sdk.json_in_text import DoubledKeyError, decode_once
from evalake.sdk.sample import NOT_READ
from evalake.sdk.sources import DOUBLED_KEY, as_payload, is_storable, storable
from evalake.suites.solidity_audit.truth import PROMPT_TYPES

EVALUATION, DETECTION = "detectionevaluation", "detection"  # as `folder_name` has them
SECTIONS = ("ds", "gs", "tc")
RULES = "rule-based"
"""The judge by whose name the results of rules are kept."""

SLITHER, MYTHRIL = "slither", "mythril"

_OF = "(ds/TIER|gs/PROMPT|tc/VARIANT)"
JUDGEMENT_PLACE = f"detection_evaluation/llm-judge/JUDGE/MODEL/{_OF}/j_SAMPLE.json"
RULES_PLACE = f"detection_evaluation/rule-based/traditional/TOOL/{_OF}/e_SAMPLE.json"
AUDIT_PLACE = f"detection/(llm|traditional)/MODEL/{_OF}/d_SAMPLE.json"
TRUTH_PLACE = "ground_truth/SAMPLE.json"
MISPLACED = f"not in its place: {JUDGEMENT_PLACE}, {RULES_PLACE} or {AUDIT_PLACE} is expected"
NO_ROUND = (
    "no round was found: JUDGE/MODEL/judge_outputs/j_SAMPLE.json, expert_reviews/MODEL/r_SAMPLE.json, "
    f"{JUDGEMENT_PLACE} or {RULES_PLACE} is expected, with {TRUTH_PLACE}"
)

Kind = Literal["judgement", "rules", "audit", "summary"]
_PREFIXES: Mapping[str, Kind] = {"j_": "judgement", "e_": "rules", "d_": "audit", "p_": "audit"}


@dataclass(frozen=True, slots=True)
class Place:
    """What the folders say of a file: what it is, whose it is, and the part of the benchmark that it is about."""

    kind: Kind
    judge: str | None
    model: str
    section: tuple[str, ...]

    @property
    def prompt_type(self) -> str | None:
        """The prompt type, which names the folder of a gold-standard result."""
        return self.section[1] if self.section[0] == "gs" and len(self.section) > 1 else None

    @property
    def variant(self) -> str | None:
        """The tier or variant of the samples; None in the gold standard, whose folders are prompts."""
        return None if self.section[0] == "gs" or len(self.section) < 2 else self.section[1]


def is_result(folders: Sequence[str]) -> bool:
    """Tell whether a file in these folders, reduced by `folder_name`, is one of today's results."""
    return EVALUATION in folders or any(
        one == DETECTION and other in ("llm", "traditional") for one, other in pairwise(folders)
    )


def place_of(parts: Sequence[str], folders: Sequence[str]) -> Place | None:
    """Read the place of a file by its path's parts, the name last; None where it lies in no place that is known.

    Args:
        parts: The names as they are.
        folders: The folders' names, reduced by `folder_name`.
    """
    name, of_judge = parts[-1], EVALUATION in folders
    start = folders.index(EVALUATION if of_judge else DETECTION) + 1
    by = folders[start] if start < len(folders) else None
    named = 3 if of_judge else 2  # folders up to and with the model's
    section = tuple(parts[start + named : -1])
    if by not in (("llmjudge", "rulebased") if of_judge else ("llm", "traditional")) or len(folders) < start + named:
        return None
    if not section or section[0].casefold() not in SECTIONS:
        return None
    kind: Kind | None = "summary" if name.startswith("_") else _PREFIXES.get(name[:2].casefold())
    expected: Mapping[str | None, tuple[Kind, ...]] = {
        "llmjudge": ("judgement", "summary"),
        "rulebased": ("rules", "summary"),
    }
    if kind is None or kind not in expected.get(by, ("audit", "summary")):
        return None
    judge = None if not of_judge else parts[start + 1] if by == "llmjudge" else RULES
    return Place(kind, judge, parts[start + named - 1], (section[0].casefold(), *section[1:]))


def place_of_tool(tool: str, truth: "RoundFile") -> Place | None:
    """Find the place of a tool's file, which lies anywhere: the section of the truth that it is about."""
    folders = pairwise(Path(truth.where).parts[:-1])
    section = next(((one.casefold(), other) for one, other in folders if one.casefold() in SECTIONS), None)
    return None if section is None else Place("audit", None, tool, section)


def tool_of(value: Any) -> str | None:
    """Tell by its form which tool wrote a file; None for any other."""
    if isinstance(value, list):
        return MYTHRIL if value and all(isinstance(each, Mapping) and "issues" in each for each in value) else None
    if not isinstance(value, Mapping) or "success" not in value:
        return None
    results = value.get("results")
    if isinstance(results, Mapping) and (not results or {"detectors", "upgradeability-check"} & results.keys()):
        return SLITHER
    return MYTHRIL if isinstance(value.get("issues"), list) else None


def of_rules(value: Mapping[str, Any]) -> Mapping[str, Any]:
    """Add to what rules found the judgement that it is. They count findings without a class: none is listed."""
    evaluation, truth, about = (part_of(value, name) for name in ("evaluation", "ground_truth", "metadata"))
    correct, is_vulnerable = evaluation.get("detection_verdict_correct"), truth.get("is_vulnerable")
    is_known = isinstance(correct, bool) and isinstance(is_vulnerable, bool)
    judgement: dict[str, Any] = {
        "overall_verdict": {
            "said_vulnerable": correct == is_vulnerable if is_known else None,
            "confidence_expressed": None,
        },
        "target_assessment": {"found": evaluation.get("target_vulnerability_found")},
        "findings": [],
        "unlisted": True,
        "notes": about.get("reasoning"),
    }
    return {**value, **judgement, **({"error": "the tool timed out"} if about.get("timeout") is True else {})}


def of_tool(value: Mapping[str, Any]) -> Mapping[str, Any]:
    """Add to a tool's output the audit that it is."""
    return {**value, "prediction": {**value}, "latency_ms": value.get("execution_time_ms")}


# The files of a round, and the names in them.


_MODELS: Final = tables_beside(__file__, "words.toml")["models"]

ALIASES_FILE = "model_aliases.json"
"""In the round's folder: further names of its models, each with the name of the model's folder."""

REVIEWS = "expertreviews"
_REVIEWS = re.compile(r"[-_ ]*".join(REVIEWS), re.IGNORECASE)

PREFIXES = ("judge_", "review_", "metrics_", "j_", "r_", "m_", "d_", "e_", "p_")
"""What stands before a sample's name in the name of a file about it."""


def plain(name: str) -> str:
    """Reduce a name to its letters and digits after the last `/`, in lower case."""
    return "".join(character for character in name.rpartition("/")[2].casefold() if character.isalnum())


def aliases(folder: Path) -> dict[str, str]:
    """Map every alias, plain, to the plain name that it stands for; the round's own file takes precedence.

    Raises SourceError where that file is no JSON object of names.
    """
    file = folder / ALIASES_FILE
    try:
        own = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    except (OSError, ValueError, RecursionError):
        own = None
    if not isinstance(own, dict) or not all(isinstance(name, str) for name in own.values()):
        raise SourceError(f'{file} must be a JSON object of names: {{"opus": "claude_opus_4.5"}}')
    shipped = {alias: model for model, names in _MODELS.items() for alias in names}
    return {plain(alias): plain(name) for alias, name in {**shipped, **own}.items()}


def model_named(name: str, models: Collection[str], known: Mapping[str, str]) -> str | None:
    """Find the model among `models` that the name means; None where it is none of them."""
    by_name = {plain(model): model for model in models}
    own = plain(name)
    meanings = [own, known.get(own), *(alias for alias, model in known.items() if model in (own, known.get(own)))]
    return next((by_name[meaning] for meaning in meanings if meaning in by_name), None)


def folder_name(name: str) -> str:
    """Strip the name of a folder of `-`, `_`, spaces and case."""
    return name.replace("-", "").replace("_", "").replace(" ", "").casefold()


def is_review_folder(name: str) -> bool:
    """Tell whether a folder of this name holds experts' reviews."""
    return REVIEWS in folder_name(name)


def expert_of(name: str) -> str | None:
    """Read whom a folder of expert reviews is named for; None where its name says nothing more."""
    return _REVIEWS.sub(" ", name).strip(" -_") or None


def sample_names(path: Path, stated: Any, prompt_types: Collection[str]) -> tuple[str, ...]:
    """List the names that a file's sample may have, likeliest first: by the file's name, then as the file states it."""
    stem = path.stem
    for prefix in PREFIXES:
        if stem.casefold().startswith(prefix):
            stem = stem[len(prefix) :]
            break
    names = [stem, *(stem[: -len(kind) - 1] for kind in prompt_types if stem.endswith(f"_{kind}"))]
    if isinstance(stated, str) and stated.strip():
        names.append(stated.strip())
    return tuple(dict.fromkeys(names))


JUDGEMENTS, TRUTHS, METRICS = "judgeoutputs", "groundtruth", "samplemetrics"  # as `folder_name` has them
METADATA = "metadata"
VOTES = "_judges.csv"
"""How the name of a table of votes ends, behind the model's."""
LARGEST_FILE = 16 * 1024 * 1024  # bytes
NOT_JSON = "not a JSON object"
NO_JSON_FILE = "not a JSON file"

AuditKey = tuple[str, str, str]  # sample, model, prompt type
JudgementKey = tuple[str, str, str | None, str, int]  # sample, model, judge, prompt type, replicate


@dataclass(frozen=True, slots=True)
class RoundFile:
    """One JSON file: where it is within the round, and what it holds."""

    path: Path
    where: str
    value: Mapping[str, Any]
    place: Place | None = None


@dataclass(frozen=True, slots=True)
class VoteTable:
    """The original's table of what each judge says of a model's targets: a row for each sample."""

    where: str
    model: str
    rows: Sequence[Mapping[str, str]]


@dataclass(frozen=True, slots=True)
class Judged:
    """A judgement that was read: the audit's item, and its findings' texts by number."""

    where: str
    recorded: Recorded
    findings: Mapping[int, str]


@dataclass
class Round:
    """The files of a round by what they are, and what becomes of them."""

    judgements: list[RoundFile] = field(default_factory=list)
    truths: dict[str, list[RoundFile]] = field(default_factory=dict)  # by every name of the sample
    metadata: dict[str, list[RoundFile]] = field(default_factory=dict)  # likewise
    reviews: list[RoundFile] = field(default_factory=list)
    summaries: list[RoundFile] = field(default_factory=list)
    votes: list[VoteTable] = field(default_factory=list)
    tools: list[RoundFile] = field(default_factory=list)  # what Slither or Mythril wrote
    variants: dict[str, set[str]] = field(default_factory=dict)  # tiers and variants by the sample's name
    audits: dict[AuditKey, list[RoundFile]] = field(default_factory=dict)
    judged: dict[JudgementKey, Judged] = field(default_factory=dict)
    reviewed: set[str] = field(default_factory=set)  # ids of labels
    labels: list[Mapping[str, Any]] = field(default_factory=list)
    used: set[str] = field(default_factory=set)
    skipped: list[Skipped] = field(default_factory=list)

    def leave_out(self, file: RoundFile, reason: str, *, refused: bool = False, about: str | None = None) -> None:
        """Record a file, or something in it, as left out; a refused one goes to quarantine with its content."""
        payload = as_payload(json.dumps(file.value, ensure_ascii=False)) if refused else None
        self.skipped.append(Skipped(file.where if about is None else f"{file.where}: {about}", reason, payload))


def sort_files(folder: Path, paths: list[Path]) -> Round:
    """Read the JSON files among the paths, and sort them by the folders that they are in."""
    round_, files = Round(), Files(folder, LARGEST_FILE)
    for path in paths:
        within = path.relative_to(folder)
        where, names = storable(str(within)), [folder_name(part) for part in (folder.name, *within.parts[:-1])]
        if METRICS in names:
            continue
        is_judgement, is_truth, reviewed = JUDGEMENTS in names, TRUTHS in names, any(map(is_review_folder, names))
        is_todays = is_result(names)
        is_expected = is_judgement or is_truth or reviewed or is_todays
        if path.name.endswith(VOTES) and not is_expected:
            round_.votes += _vote_table(path, where, files)
            continue
        if path.suffix.casefold() != ".json":
            if is_expected:
                round_.skipped.append(Skipped(where, NO_JSON_FILE, None))
            continue
        file = _read(path, where, files)
        if isinstance(file, Skipped):
            if is_expected:
                round_.skipped.append(file)
        elif not is_todays and tool_of(file.value) is not None:
            round_.tools.append(file)
        elif is_todays:
            _sort_todays(file, place_of((folder.name, *within.parts), names), round_)
        elif is_judgement:
            round_.judgements.append(file)
        elif is_truth:
            _by_name(file, round_.truths)
        elif reviewed:
            round_.reviews.append(file)
        elif METADATA in names:
            _by_name(file, round_.metadata)
        elif isinstance(file.value.get("prediction"), Mapping):
            for key in _audit_keys(file):
                round_.audits.setdefault(key, []).append(file)
    return round_


def _vote_table(path: Path, where: str, files: Files) -> Iterator[VoteTable]:
    """Yield the table of a file; none where it cannot be read."""
    try:
        lines = files.read(path).decode("utf-8-sig").splitlines()
        yield VoteTable(where, path.name.removesuffix(VOTES), tuple(csv.DictReader(lines, restval="")))
    except (FileRefusedError, ValueError, csv.Error):
        return


def _by_name(file: RoundFile, files: dict[str, list[RoundFile]]) -> None:
    for name in sample_names(file.path, file.value.get("sample_id") or file.value.get("id"), ()):
        files.setdefault(name, []).append(file)


def _sort_todays(file: RoundFile, place: Place | None, round_: Round) -> None:
    """Sort a file of today's layout."""
    if place is None:
        round_.leave_out(file, MISPLACED, refused=True)
    elif place.kind == "summary":
        round_.summaries.append(replace(file, place=place))
    elif place.kind == "audit":
        value = file.value if isinstance(file.value.get("prediction"), Mapping) else of_tool(file.value)
        audit = replace(file, value=value, place=place)
        prompt_type = prompt_in(audit)
        for name in sample_names(file.path, file.value.get("sample_id"), ()):
            round_.audits.setdefault((name, place.model, prompt_type), []).append(audit)
    else:
        value = of_rules(file.value) if place.kind == "rules" else file.value
        round_.judgements.append(replace(file, value=value, place=place))


def note_variants(round_: Round) -> None:
    """Note in which tiers and variants each sample's name occurs."""
    for file in round_.judgements:
        if file.place is not None and file.place.variant is not None:
            stated = text_of(file.value.get("sample_id"))
            name = stated.strip() if stated else sample_names(file.path, None, PROMPT_TYPES)[-1]
            round_.variants.setdefault(name, set()).add(file.place.variant)


def prompt_in(file: RoundFile) -> str:
    """Find the prompt type of a judgement or audit: by the folder of today's layout, as stated, or by its name."""
    of_folder = file.place.prompt_type if file.place else None
    return of_folder or text_of(file.value.get("prompt_type")) or prompt_of(file.path)


def _read(path: Path, where: str, files: Files) -> RoundFile | Skipped:
    text = ""
    try:
        content = files.read(path)
        text = content.decode("utf-8", "surrogateescape")
        text = content.decode(json.detect_encoding(content), "surrogateescape")
        value = decode_once(text)
    except DoubledKeyError:
        return Skipped(where, DOUBLED_KEY, as_payload(text))
    except FileRefusedError as refused:
        return Skipped(where, refused.reason, NOT_READ)
    except (ValueError, RecursionError):
        value = None
    if isinstance(value, list) and tool_of(value) is not None:
        value = {"success": True, "issues": [issue for part in value for issue in part["issues"]]}
    return RoundFile(path, where, value) if isinstance(value, dict) else Skipped(where, NOT_JSON, as_payload(text))


def nearest(files: Sequence[RoundFile], file: RoundFile) -> RoundFile | None:
    """Find the file that shares most outer folders with `file`, then most folders at all; of several, the last."""
    parents = Path(file.where).parts[:-1]

    def shared(other: RoundFile) -> tuple[int, int]:
        others = Path(other.where).parts[:-1]
        outer = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(parents, others, strict=False)))
        return outer, len({*parents} & {*others})

    return max(reversed(files), key=shared, default=None)


def _audit_keys(file: RoundFile) -> Iterator[AuditKey]:
    """Yield the keys of the audits that a file may be: by every name of its sample, and by the folders it is in."""
    stated = file.value.get("transformed_id") or file.value.get("sample_id")
    prompt_type = text_of(file.value.get("prompt_type")) or prompt_folder(file.path) or PROMPT_TYPES[0]
    for name in sample_names(file.path, stated, PROMPT_TYPES):
        for parent in file.path.parents[:2]:
            yield name, parent.name, prompt_type


def prompt_of(path: Path, default: str = PROMPT_TYPES[0]) -> str:
    """Find the prompt type that a file's name ends with, or that a folder of it is named for."""
    of_name = next((kind for kind in PROMPT_TYPES if path.stem.endswith(f"_{kind}")), None)
    return of_name or prompt_folder(path) or default


def prompt_folder(path: Path) -> str | None:
    """Find the prompt type that a folder of the file is named for."""
    return next((parent.name for parent in path.parents[:2] if parent.name in PROMPT_TYPES), None)


def part_of(value: Mapping[str, Any], name: str, otherwise: Mapping[str, Any] | None = None) -> Mapping[str, Any]:
    """Take a field that is an object; anything else is an empty one, or `otherwise`."""
    part = value.get(name)
    return part if isinstance(part, Mapping) else otherwise or {}


def text_of(value: Any) -> str | None:
    """Take a text that is not blank and that a table can hold; None for anything else."""
    return value if isinstance(value, str) and value.strip() and is_storable(value) else None


def whole_of(value: Any) -> int | None:
    """Take a whole number that a table can hold, from 0 to 2**31 - 1; None for anything else."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**31 else None


def number_of(value: Any) -> float | None:
    """Take a finite number of 0 or more; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= sys.float_info.max:
        return None
    return float(value)


_FAILURES = ("error", "judge_error", "parse_error", "evaluation_error")
_FAILED = frozenset({"error", "failed", "failure"})


def stated_failure(value: Mapping[str, Any]) -> str | None:
    """Find what a file says of a judgement that failed; None where it does not say that it did.

    Evaluation scripts write such files with defaults in all other fields, which are no judgement: "not found" would be
    taken for the judge's word.
    """
    for name in _FAILURES:
        if (words := _one_line(value.get(name))) is not None:
            return words
    status = value.get("status")
    if value.get("success") is False or (isinstance(status, str) and status.strip().casefold() in _FAILED):
        return f"the judgement failed (status {status})" if isinstance(status, str) else "the judgement failed"
    return None


def _one_line(said: Any) -> str | None:
    """Write an error as one line; None for an empty one, and for `false`."""
    if isinstance(said, Mapping) and isinstance(said.get("message"), str):
        said = said["message"]
    if said is True:
        return "the judgement failed"
    text = said if isinstance(said, str) else json.dumps(said, ensure_ascii=False, default=str) if said else ""
    return " ".join(text.split()) or None
