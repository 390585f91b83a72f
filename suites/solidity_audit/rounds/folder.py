"""A folder of a recorded round -> its judged audits as recorded results, experts' reviews as labels, and what is left.

Whatever the depth: what is below `<model>/judge_outputs` are judgements, below `ground_truth` truths, below a folder of
expert reviews reviews, and any other JSON file with a `prediction` is the audit that was judged. Files of another kind
(metrics, checkpoints, manifests, reports) follow from these, and are not read. Where several rounds lie below one
folder, a judgement goes with the truth and the audit that are nearest to it.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import chain, takewhile
from pathlib import Path
from typing import Any

from contracts.contract import fits_folder
from contracts.tables.human_labels import answered
from core.errors import SourceError
from core.files import FileRefusedError, Files
from core.hashing import canonical_json, content_hash
from providers.request import Reply
from suites.base import Item, Recorded, RecordedFolder, Skipped
from suites.base.sources import NOT_READ, as_payload, is_storable, storable
from suites.solidity_audit.prompts.subject import PROMPT_TYPES
from suites.solidity_audit.recorded import DATASET, NO_CONTRACT, asked_of, recorded_hashes
from suites.solidity_audit.replies.judgement import Judgement, read_judgement
from suites.solidity_audit.rounds.names import (
    aliases,
    expert_of,
    folder_name,
    is_review_folder,
    model_named,
    sample_names,
)
from suites.solidity_audit.rounds.review import Claim, match, read_review
from suites.solidity_audit.rounds.truth import cluster_of, read_truth
from suites.solidity_audit.truth import SUITE, as_sample

JUDGEMENTS, TRUTHS, METRICS = "judgeoutputs", "groundtruth", "samplemetrics"  # as `folder_name` has them
LARGEST_FILE = 16 * 1024 * 1024  # bytes
UNKNOWN_EXPERT = "expert"

NOT_JSON = "not a JSON object"
NO_JSON_FILE = "not a JSON file"
JUDGED_TWICE = "another judgement of the same audit by the same judge"
REVIEWED_TWICE = "another review of the same audit by the same person"
NOTHING_SAID = "a review that answers nothing"
NO_TRUTH = "a judgement without a ground truth"
NO_JUDGEMENT = "a review without a judged audit"
TRUTH_NOT_JUDGED = "a ground truth without a judgement"
AUDIT_NOT_JUDGED = "an audit without a judgement"
OTHER_AUDIT = "an audit that is not the one that was judged"
NO_FINDING = "a reviewed claim that is no finding of the audit"
NO_CLASS = "a reviewed claim without one class"
NO_ANSWER = "a reviewed question without one answer"

_Audit = tuple[str, str, str]  # sample, model, prompt type
_Judgement = tuple[str, str, str | None, str, int]  # sample, model, judge, prompt type, replicate


@dataclass(frozen=True, slots=True)
class _File:
    """One JSON file: where it is within the round, and what it holds."""

    path: Path
    where: str
    value: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class _Judged:
    """A judgement that was read: the audit's item, and its findings' texts by number."""

    where: str
    recorded: Recorded
    findings: Mapping[int, str]


@dataclass
class _Round:
    """The files of a round by what they are, and what becomes of them."""

    judgements: list[_File] = field(default_factory=list)
    truths: dict[str, list[_File]] = field(default_factory=dict)  # by every name of the sample
    reviews: list[_File] = field(default_factory=list)
    audits: dict[_Audit, list[_File]] = field(default_factory=dict)
    judged: dict[_Judgement, _Judged] = field(default_factory=dict)
    reviewed: set[str] = field(default_factory=set)  # ids of labels
    labels: list[Mapping[str, Any]] = field(default_factory=list)
    used: set[str] = field(default_factory=set)
    skipped: list[Skipped] = field(default_factory=list)

    def leave_out(self, file: _File, reason: str, *, refused: bool = False, about: str | None = None) -> None:
        """Count a file, or something in it; what is refused goes to quarantine with what it says."""
        payload = as_payload(json.dumps(file.value, ensure_ascii=False)) if refused else None
        self.skipped.append(Skipped(file.where if about is None else f"{file.where}: {about}", reason, payload))


def read_folder(folder: Path) -> RecordedFolder | None:
    """Read a round; None where the folder holds neither judgements nor reviews, and so is none.

    Raises SourceError where it cannot be listed, or its file of aliases is none.
    """
    known = aliases(folder)
    try:
        paths = sorted(path for path in folder.rglob("*") if not path.is_dir())
    except OSError as error:
        raise SourceError(f"cannot read {folder}: {error.strerror}") from error
    round_ = _sort(folder, paths)
    if not round_.judgements and not round_.reviews and not round_.skipped:
        return None
    for file in round_.judgements:
        _read_judgement(file, round_)
    for file in round_.reviews:
        _read_labels(file, round_, known)
    _count_partnerless(round_)
    lines = tuple((judged.where, judged.recorded) for judged in round_.judged.values())
    return RecordedFolder(lines, tuple(round_.labels), tuple(round_.skipped), _read_files(round_))


def _sort(folder: Path, paths: list[Path]) -> _Round:
    round_, files = _Round(), Files(folder, LARGEST_FILE)
    for path in paths:
        where = path.relative_to(folder)
        names = [folder_name(part) for part in (folder.name, *where.parts[:-1])]
        if METRICS in names:
            continue
        is_judgement, is_truth, reviewed = JUDGEMENTS in names, TRUTHS in names, any(map(is_review_folder, names))
        is_expected = is_judgement or is_truth or reviewed
        if path.suffix.casefold() != ".json":
            if is_expected:
                round_.skipped.append(Skipped(str(where), NO_JSON_FILE, None))
            continue
        file = _read(path, str(where), files)
        if isinstance(file, Skipped):
            if is_expected:
                round_.skipped.append(file)
        elif is_judgement:
            round_.judgements.append(file)
        elif is_truth:
            stated = file.value.get("sample_id") or file.value.get("id")
            for name in sample_names(path, stated, ()):
                round_.truths.setdefault(name, []).append(file)
        elif reviewed:
            round_.reviews.append(file)
        elif isinstance(file.value.get("prediction"), Mapping):
            for key in _audit_keys(file):
                round_.audits.setdefault(key, []).append(file)
    return round_


def _read(path: Path, where: str, files: Files) -> _File | Skipped:
    text = ""
    try:
        content = files.read(path)
        text = content.decode("utf-8", "surrogateescape")
        text = content.decode(json.detect_encoding(content), "surrogateescape")
        value = json.loads(text)
    except FileRefusedError as refused:
        return Skipped(where, refused.reason, NOT_READ)
    except (ValueError, RecursionError):
        value = None
    return _File(path, where, value) if isinstance(value, dict) else Skipped(where, NOT_JSON, as_payload(text))


def _nearest(files: Sequence[_File], file: _File) -> _File | None:
    """The file that shares most folders with another; of several, the last."""
    parents = Path(file.where).parts[:-1]

    def shared(other: _File) -> int:
        pairs = zip(parents, Path(other.where).parts[:-1], strict=False)
        return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))

    return max(reversed(files), key=shared, default=None)


def _audit_keys(file: _File) -> Iterator[_Audit]:
    """Which audits a file may be: by every name of its sample, and by the folders that it is in."""
    stated = file.value.get("transformed_id") or file.value.get("sample_id")
    prompt_type = _text(file.value.get("prompt_type")) or _prompt_folder(file.path) or PROMPT_TYPES[0]
    for name in sample_names(file.path, stated, PROMPT_TYPES):
        for parent in file.path.parents[:2]:
            yield name, parent.name, prompt_type


def _read_judgement(file: _File, round_: _Round) -> None:
    """Add a judgement to those that were read, or leave it out."""
    try:
        judged = _judged(file, round_)
    except SourceError as error:
        round_.leave_out(file, str(error), refused=True)
        return
    item = judged.recorded.item
    first = round_.judged.setdefault(
        (item.sample.sample_id, item.model, item.judge, item.prompt_type, item.replicate), judged
    )
    if first is not judged:
        round_.leave_out(file, JUDGED_TWICE, refused=first.recorded != judged.recorded)


def _judged(file: _File, round_: _Round) -> _Judged:
    """Read one judgement. Raises SourceError where it has no truth, or is none."""
    value = file.value
    stated = value.get("transformed_id") or value.get("sample_id")
    names = sample_names(file.path, stated, PROMPT_TYPES)
    about = next((_nearest(round_.truths[name], file) for name in reversed(names) if name in round_.truths), None)
    if about is None:
        raise SourceError(NO_TRUTH)
    truth, prompt_type = read_truth(about.value), _text(value.get("prompt_type")) or _prompt_of(file.path)
    of_model = next(parent for parent in file.path.parents if folder_name(parent.name) == JUDGEMENTS).parent
    sample_id, model = _name(stated) or names[-1], of_model.name
    judge = _name(value.get("judge_model") or value.get("judge")) or f"{of_model.parent.name} judge"
    if not (fits_folder(model) and fits_folder(judge)):
        raise SourceError("a name of a model that is too long")
    text = storable(canonical_json(dict(value)).decode())
    reading = read_judgement(text, asked_of(truth))
    if reading.judgement is None:
        raise SourceError(f"judgement: {'; '.join(reading.flaws)}")
    cluster = cluster_of(about.value) or sample_id
    sample = as_sample(DATASET, sample_id, NO_CONTRACT, truth, cluster=cluster, note=None)
    audit = _judged_audit(round_, file, (sample_id, model, prompt_type), reading.judgement)
    item = Item(sample, model, judge, prompt_type, _whole(value.get("replicate")) or 0)
    round_.used |= {about.where, *([audit.where] if audit else [])}
    return _Judged(
        file.where,
        Recorded(item, recorded_hashes(item), (_audit_reply(audit), _judge_reply(value, text))),
        _texts(reading.judgement, audit),
    )


def _judged_audit(round_: _Round, file: _File, key: _Audit, judgement: Judgement) -> _File | None:
    """The audit that was judged; None where the file of it holds another, of which the judge repeats nothing."""
    audit = _nearest(round_.audits.get(key, ()), file)
    if audit is None:
        return None
    described = [Claim(finding.description, None, "", None) for finding in judgement.findings if finding.description]
    claims = {number: text for number, text in enumerate(_explanations(audit)) if text}
    if described and all(claim is None for _, claim in match(described, claims)):
        round_.used.add(audit.where)
        round_.leave_out(audit, OTHER_AUDIT)
        return None
    return audit


def _explanations(audit: _File) -> list[str | None]:
    claims = audit.value["prediction"].get("vulnerabilities") or audit.value["prediction"].get("findings")
    return [
        _text(claim.get("explanation")) if isinstance(claim, Mapping) else None
        for claim in (claims if isinstance(claims, list) else ())
    ]


def _texts(judgement: Judgement, audit: _File | None) -> dict[int, str]:
    """What each finding says: as the judge repeats it, or else as the audit has it at that place."""
    texts = _explanations(audit) if audit else []
    return {
        finding.finding_id: finding.description
        or (texts[finding.finding_id - 1] if 1 <= finding.finding_id <= len(texts) else None)
        or ""
        for finding in judgement.findings
    }


def _audit_reply(file: _File | None) -> Reply:
    if file is None:
        return Reply(None)
    value = file.value
    return Reply(
        storable(canonical_json(dict(value["prediction"])).decode()),
        input_tokens=_whole(value.get("input_tokens")),
        output_tokens=_whole(value.get("output_tokens")),
        latency_ms=_number(value.get("latency_ms")),
        cost_usd=_number(value.get("cost_usd")),
    )


def _judge_reply(value: Mapping[str, Any], text: str) -> Reply:
    return Reply(
        text,
        input_tokens=_whole(value.get("judge_input_tokens")),
        output_tokens=_whole(value.get("judge_output_tokens")),
        latency_ms=_number(value.get("judge_latency_ms")),
        cost_usd=_number(value.get("judge_cost_usd")),
    )


def _read_labels(file: _File, round_: _Round, known: Mapping[str, str]) -> None:
    """The labels of one review: on the audit that it is about, and on its findings as each judge numbered them."""
    of_audit = _reviewed(file, round_, known)
    if not of_audit:
        round_.leave_out(file, NO_JUDGEMENT, refused=True)
        return
    review, item = read_review(file.value), of_audit[0].recorded.item
    who = review.annotator or _expert(file) or UNKNOWN_EXPERT
    when = review.reviewed_at or datetime.fromtimestamp(file.path.stat().st_mtime, UTC)
    about = [SUITE, "review", item.sample.sample_hash, item.model, item.prompt_type, item.replicate]
    word = {
        "label_id": content_hash([*about, None, None, who]),
        "suite": SUITE,
        "sample_id": item.sample.sample_id,
        "sample_hash": item.sample.sample_hash,
        "model": item.model,
        "judge": None,
        "prompt_type": item.prompt_type,
        "replicate": item.replicate,
        "finding_id": None,
        "annotator": who,
        "inclusion_probability": None,
        "draw": None,
        "labelled_at": when,
        "note": review.note,
    }
    if word["label_id"] in round_.reviewed:
        round_.leave_out(file, REVIEWED_TWICE, refused=True)
        return
    round_.reviewed.add(str(word["label_id"]))
    if not review.claims and not any(answer is not None for answer in review.answers.values()):
        round_.leave_out(file, NOTHING_SAID)
    round_.labels += answered(word, review.answers)
    for question in review.unanswered:
        round_.leave_out(file, NO_ANSWER, about=question)
    for claim in review.claims:
        if claim.classification is None:
            round_.leave_out(file, NO_CLASS, about=claim.stated or "none")
    for judged in of_audit:
        judge = judged.recorded.item.judge
        for claim, finding_id in match(review.claims, judged.findings):
            if finding_id is None:
                round_.leave_out(file, NO_FINDING, about=f"{judge}, {claim.text[:60]}")
            elif claim.classification is not None:
                of_finding = {"judge": judge, "finding_id": finding_id, "note": claim.note}
                label_id = content_hash([*about, judge, finding_id, who])
                answers = {"classification": claim.classification}
                round_.labels += answered({**word, **of_finding, "label_id": label_id}, answers)


def _reviewed(file: _File, round_: _Round, known: Mapping[str, str]) -> list[_Judged]:
    """The judgements of the audit that a review is about, one a judge; none where that is not told, or not judged."""
    models = {judged.recorded.item.model for judged in round_.judged.values()}
    about = file.value.get("evaluation_info")
    stated = [
        value.get(name) for value in (file.value, about) if isinstance(value, Mapping) for name in ("model", "model_id")
    ]
    folders = [part for part in reversed(Path(file.where).parts[:-1]) if not is_review_folder(part)]
    candidates = [name for name in (*folders, *stated) if isinstance(name, str)]
    model = next((named for name in candidates if (named := model_named(name, models, known))), None)
    by_sample: dict[str, list[_Judged]] = {}
    for judged in round_.judged.values():
        if judged.recorded.item.model == model:
            by_sample.setdefault(judged.recorded.item.sample.sample_id, []).append(judged)
    sample_id = about.get("sample_id") if isinstance(about, Mapping) else file.value.get("sample_id")
    names = sample_names(file.path, sample_id, PROMPT_TYPES)
    of_sample = next((by_sample[name] for name in names if name in by_sample), [])
    prompt_types = {judged.recorded.item.prompt_type for judged in of_sample}
    named = _text(file.value.get("prompt_type")) or _prompt_of(file.path, default="")
    prompt_type = named or (next(iter(prompt_types)) if len(prompt_types) == 1 else PROMPT_TYPES[0])
    return [
        judged
        for judged in of_sample
        if judged.recorded.item.prompt_type == prompt_type and judged.recorded.item.replicate == 0
    ]


def _expert(file: _File) -> str | None:
    """Who wrote the reviews of a folder that is named for them."""
    folders = reversed(Path(file.where).parts[:-1])
    return next((name for part in folders if is_review_folder(part) and (name := expert_of(part))), None)


def _count_partnerless(round_: _Round) -> None:
    sorts: tuple[tuple[str, Iterable[list[_File]]], ...] = (
        (TRUTH_NOT_JUDGED, round_.truths.values()),
        (AUDIT_NOT_JUDGED, round_.audits.values()),
    )
    for reason, files in sorts:
        unused = {file.where: file for some in files for file in some if file.where not in round_.used}
        for _, file in sorted(unused.items()):
            round_.leave_out(file, reason)


def _read_files(round_: _Round) -> dict[str, int]:
    """How many files were read, by folder."""
    unread = {out.where for out in round_.skipped}
    partners = chain(chain.from_iterable(round_.truths.values()), chain.from_iterable(round_.audits.values()))
    where = {file.where for file in (*round_.judgements, *round_.reviews, *partners)} - unread
    return dict(sorted(Counter(str(Path(file).parent) for file in where).items()))


def _prompt_of(path: Path, default: str = PROMPT_TYPES[0]) -> str:
    """The prompt type that a file's name ends with, or that a folder of it is named for."""
    of_name = next((kind for kind in PROMPT_TYPES if path.stem.endswith(f"_{kind}")), None)
    return of_name or _prompt_folder(path) or default


def _prompt_folder(path: Path) -> str | None:
    return next((parent.name for parent in path.parents[:2] if parent.name in PROMPT_TYPES), None)


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value.strip() and is_storable(value) else None


def _name(value: Any) -> str | None:
    return (_text(value) or "").strip() or None


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**31 else None


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) and value >= 0 else None
