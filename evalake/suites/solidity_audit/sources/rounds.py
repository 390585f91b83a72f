"""Reads rounds of judged audits as they were recorded elsewhere: results, and experts' reviews as labels.

At any depth: JSON files below `<model>/judge_outputs` are judgements, below `ground_truth` truths, below a folder
of expert reviews reviews, and any other with a `prediction` is the audit that was judged. The original's layout
of today is in round_files.py; its summaries are compared in summaries.py. Other metrics, checkpoints and reports follow
from these, and are not read. A judgement goes with the truth and the audit that are nearest to it.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import Any

from evalake.contracts.contract import fits_folder
from evalake.contracts.tables.people import answered
from evalake.core.errors import SourceError
from evalake.core.files import tables_beside
from evalake.core.hashing import content_hash
from evalake.models.request import Reply
from evalake.sdk import Item, Recorded, RecordedFolder, Sample
from evalake.sdk.json_in_text import objects
from evalake.sdk.sources import as_json, is_storable, storable
from evalake.suites.solidity_audit.baselines.judges import judge_by_overlap
from evalake.suites.solidity_audit.prompts import judge_request
from evalake.suites.solidity_audit.recorded import DATASET, NO_CONTRACT, asked_of, recorded_hashes
from evalake.suites.solidity_audit.replies import Judgement, Reading, read_judgement
from evalake.suites.solidity_audit.sources import round_files
from evalake.suites.solidity_audit.sources.round_fields import Claim, cluster_of, match, read_review, read_truth
from evalake.suites.solidity_audit.sources.round_files import (
    AuditKey,
    Judged,
    Place,
    Round,
    RoundFile,
    part_of,
    text_of,
)
from evalake.suites.solidity_audit.sources.sample_folders import origin_of, parent_of
from evalake.suites.solidity_audit.sources.summaries import compare, compare_votes
from evalake.suites.solidity_audit.truth import PROMPT_TYPES, SUITE, GroundTruth, as_sample, normalised

JUDGED_TWICE = "another judgement of the same audit by the same judge"
NO_TRUTH = f"a judgement without a ground truth: {round_files.TRUTH_PLACE} is expected"
_UNJUDGED = Judgement(findings=[])
OTHER_AUDIT = "an audit that is not the one that was judged"


def read_judged(file: RoundFile, round_: Round) -> None:
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


def _judged(file: RoundFile, round_: Round) -> Judged:
    """Read one judgement. Raises SourceError where it has no ground truth, or is not valid."""
    value = file.value
    stated = value.get("transformed_id") or value.get("sample_id")
    names = round_files.sample_names(file.path, stated, PROMPT_TYPES)
    about = _nearest_of(round_.truths, reversed(names), file)
    if about is None:
        raise SourceError(NO_TRUTH)
    described = _with_metadata(about, names, round_)
    name, prompt_type = _name_of(stated) or names[-1], round_files.prompt_in(file)
    sample, truth = _sample(name, described, file.place, round_)
    model, judge = _names(file)
    if not (fits_folder(model) and fits_folder(judge)):
        raise SourceError("a name of a model that is too long")
    if not all(map(is_storable, (sample.sample_id, model, judge))):
        raise SourceError("a name of a file or folder that is not UTF-8")
    text, failure = as_json(value), round_files.stated_failure(value)
    reading = Reading(_UNJUDGED) if failure is not None else read_judgement(text, asked_of(truth))
    if reading.judgement is None:
        raise SourceError(f"judgement: {'; '.join(reading.flaws)}")
    audit = _judged_audit(round_, file, (name, model, prompt_type), reading.judgement)
    item = Item(sample, model, judge, prompt_type, round_files.whole_of(value.get("replicate")) or 0)
    round_.used |= {about.where, *([audit.where] if audit else [])}
    return Judged(
        file.where,
        Recorded(item, recorded_hashes(item), (_audit_reply(audit), _judges_reply(text, value, failure))),
        _texts(reading.judgement, audit),
    )


def read_tool(file: RoundFile, round_: Round) -> None:
    """Add what a tool found, as an audit by a model of its name that a judge by rules compared with the truth."""
    stem = sample_of(file.path.stem)
    names = (stem, *round_files.sample_names(file.path.with_stem(stem), None, ()))
    about = _nearest_of(round_.truths, names, file)
    described = {} if about is None else _with_metadata(about, names, round_)
    if about is None or (failed := failure_of(file.value)) is not None:
        round_.leave_out(file, NO_TRUTH if about is None else failed or "", refused=True)
        return
    round_.used.add(about.where)
    tool = round_files.tool_of(file.value) or ""
    name = next(name for name in names if name in round_.truths)
    try:
        sample, truth = _sample(name, described, round_files.place_of_tool(tool, about), round_)
    except SourceError as error:
        round_.leave_out(file, str(error), refused=True)
        return
    item, audit = Item(sample, tool, JUDGE), audit_of(file.value)
    replies = (Reply(storable(audit)), Reply(judged_by_rules(truth, audit, tool)))
    judged = Judged(file.where, Recorded(item, recorded_hashes(item), replies), {})
    if round_.judged.setdefault((sample.sample_id, tool, JUDGE, item.prompt_type, 0), judged) is not judged:
        round_.leave_out(file, JUDGED_TWICE, refused=True)


def _nearest_of(files: Mapping[str, list[RoundFile]], names: Iterable[str], file: RoundFile) -> RoundFile | None:
    """Find the file of the first of the names that there is, the one nearest to `file`."""
    return next((round_files.nearest(files[name], file) for name in names if name in files), None)


def _with_metadata(truth: RoundFile, names: Sequence[str], round_: Round) -> Mapping[str, Any]:
    """Complete a truth of today's layout by the sample's metadata, which tell its base, tier and lines."""
    metadata = _nearest_of(round_.metadata, reversed(names), truth)
    return truth.value if metadata is None else {**metadata.value, **truth.value}


def _names(file: RoundFile) -> tuple[str, str]:
    """Find the names of model and judge: today's folders have both, others the model's and the file the judge's."""
    if file.place is not None:
        return file.place.model, file.place.judge or ""
    of_model = next(
        parent for parent in file.path.parents if round_files.folder_name(parent.name) == round_files.JUDGEMENTS
    ).parent
    stated = _name_of(file.value.get("judge_model") or file.value.get("judge"))
    return of_model.name, stated or f"{of_model.parent.name} judge"


def _sample(name: str, described: Mapping[str, Any], place: Place | None, round_: Round) -> tuple[Sample, GroundTruth]:
    """Make the sample of a judgement or a tool's file, with its truth; a name of several variants has its own first.

    Raises SourceError where the truth is not valid.
    """
    variant, parent = place.variant if place else None, parent_of(described)
    sample_id = f"{variant}/{name}" if variant is not None and len(round_.variants.get(name, ())) > 1 else name
    of_folder = variant if place and place.section[0] == "tc" else None
    origin = origin_of(name, described, {name: parent} if parent else {}, of_folder)
    truth = read_truth(described).model_copy(update=origin)
    cluster = f"/{origin['base']}" if origin else cluster_of(described) or sample_id
    return as_sample(DATASET, sample_id, NO_CONTRACT, truth, cluster=cluster, note=None), truth


def _judged_audit(round_: Round, file: RoundFile, key: AuditKey, judgement: Judgement) -> RoundFile | None:
    """Find the audit that was judged; None where its file holds another, none of whose findings the judge repeats."""
    audit = round_files.nearest(round_.audits.get(key, ()), file)
    if audit is None or file.place is not None:
        return audit
    described = [Claim(finding.description, None, "", None) for finding in judgement.findings if finding.description]
    claims = {number: text for number, text in enumerate(_explanations(audit)) if text}
    if described and all(claim is None for _, claim in match(described, claims)):
        round_.used.add(audit.where)
        round_.leave_out(audit, OTHER_AUDIT)
        return None
    return audit


def _explanations(audit: RoundFile) -> list[str | None]:
    claims = audit.value["prediction"].get("vulnerabilities") or audit.value["prediction"].get("findings")
    return [
        text_of(claim.get("explanation") or claim.get("description")) if isinstance(claim, Mapping) else None
        for claim in (claims if isinstance(claims, list) else ())
    ]


def _texts(judgement: Judgement, audit: RoundFile | None) -> dict[int, str]:
    """Collect each finding's text by id: as the judge repeats it, or else as the audit has it at that place."""
    first = 0 if any(finding.finding_id == 0 for finding in judgement.findings) else 1
    texts = dict(enumerate(_explanations(audit) if audit else (), start=first))
    return {
        finding.finding_id: finding.description or texts.get(finding.finding_id) or "" for finding in judgement.findings
    }


def _audit_reply(file: RoundFile | None) -> Reply:
    if file is None:
        return Reply(None)
    value = file.value
    try:
        text = as_json(value["prediction"])
    except SourceError as error:
        raise SourceError(f"the audit {file.where} {error}") from error
    return _reply(text, value)


def _judges_reply(text: str, value: Mapping[str, Any], failure: str | None) -> Reply:
    """Build the judge's reply; of a judgement that failed, none but what went wrong and what it took."""
    reply = _reply(text, value, "" if "tool" in value else "judge_")
    return reply if failure is None else replace(reply, text=None, error_kind=storable(failure))


def _reply(text: str, value: Mapping[str, Any], of: str = "") -> Reply:
    """Build a reply with what it took, by the fields whose names begin with `of`."""
    value = part_of(value, "api_metrics", value)
    return Reply(
        text,
        input_tokens=round_files.whole_of(value.get(f"{of}input_tokens")),
        output_tokens=round_files.whole_of(value.get(f"{of}output_tokens")),
        latency_ms=round_files.number_of(value.get(f"{of}latency_ms")),
        cost_usd=round_files.number_of(value.get(f"{of}cost_usd")),
    )


def _name_of(value: Any) -> str | None:
    return (text_of(value) or "").strip() or None


UNKNOWN_EXPERT = "expert"
REVIEWED_TWICE = "another review of the same audit by the same person"
NOTHING_SAID = "a review that answers nothing"
NO_JUDGEMENT = "a review without a judged audit"
NO_FINDING = "a reviewed claim that is no finding of the audit"
NO_CLASS = "a reviewed claim without one class"
NO_ANSWER = "a reviewed question without one answer"


def read_labels(file: RoundFile, round_: Round, known: Mapping[str, str]) -> None:
    """Read the labels of one review: on the audit that it is about, and on its findings as each judge numbered them."""
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


def _reviewed(file: RoundFile, round_: Round, known: Mapping[str, str]) -> list[Judged]:
    """Find the judgements of the reviewed audit, one per judge; none where no audit is named, or none was judged."""
    models = {judged.recorded.item.model for judged in round_.judged.values()}
    about = file.value.get("evaluation_info")
    stated = [
        value.get(name) for value in (file.value, about) if isinstance(value, Mapping) for name in ("model", "model_id")
    ]
    folders = [part for part in reversed(Path(file.where).parts[:-1]) if not round_files.is_review_folder(part)]
    candidates = [name for name in (*folders, *stated) if isinstance(name, str)]
    model = next((named for name in candidates if (named := round_files.model_named(name, models, known))), None)
    by_sample: dict[str, list[Judged]] = {}
    for judged in round_.judged.values():
        if judged.recorded.item.model == model:
            by_sample.setdefault(judged.recorded.item.sample.sample_id, []).append(judged)
    sample_id = about.get("sample_id") if isinstance(about, Mapping) else file.value.get("sample_id")
    names = round_files.sample_names(file.path, sample_id, PROMPT_TYPES)
    of_sample = next((by_sample[name] for name in names if name in by_sample), [])
    prompt_types = {judged.recorded.item.prompt_type for judged in of_sample}
    named = text_of(file.value.get("prompt_type")) or round_files.prompt_of(file.path, default="")
    prompt_type = named or (next(iter(prompt_types)) if len(prompt_types) == 1 else PROMPT_TYPES[0])
    return [
        judged
        for judged in of_sample
        if judged.recorded.item.prompt_type == prompt_type and judged.recorded.item.replicate == 0
    ]


def _expert(file: RoundFile) -> str | None:
    """Find the expert that a folder of the review is named for; None without one."""
    folders = reversed(Path(file.where).parts[:-1])
    return next(
        (name for part in folders if round_files.is_review_folder(part) and (name := round_files.expert_of(part))), None
    )


TRUTH_NOT_JUDGED = "a ground truth without a judgement"
AUDIT_NOT_JUDGED = "an audit without a judgement"


def read_folder(folder: Path) -> RecordedFolder | None:
    """Read a round; None where the folder holds neither judgements nor reviews, but JSON Lines.

    Raises SourceError where it cannot be listed, holds neither, or its file of aliases is not valid.
    """
    known = round_files.aliases(folder)
    try:
        paths = sorted(path for path in folder.rglob("*") if not path.is_dir())
    except OSError as error:
        raise SourceError(f"cannot read {folder}: {error.strerror}") from error
    round_ = round_files.sort_files(folder, paths)
    if not round_.judgements and not round_.tools and not round_.reviews and not round_.skipped:
        if any(path.suffix == ".jsonl" for path in paths):
            return None
        raise SourceError(f"{folder}: {round_files.NO_ROUND}")
    round_files.note_variants(round_)
    for file in round_.judgements:
        read_judged(file, round_)
    for file in round_.tools:
        read_tool(file, round_)
    for file in round_.reviews:
        read_labels(file, round_, known)
    _count_partnerless(round_)
    lines = tuple((judged.where, judged.recorded) for judged in round_.judged.values())
    remarks = compare(round_.summaries, round_.judgements, lambda file: _truth_of(file, round_))
    remarks += compare_votes(round_.votes, round_.judgements)
    return RecordedFolder(lines, tuple(round_.labels), tuple(round_.skipped), _read_files(round_), tuple(remarks))


def _truth_of(file: RoundFile, round_: Round) -> Mapping[str, Any]:
    """Find the ground truth of a judgement as the original states it; empty where there is none."""
    names = round_files.sample_names(file.path, file.value.get("sample_id"), PROMPT_TYPES)
    about = _nearest_of(round_.truths, reversed(names), file)
    return {} if about is None else part_of(about.value, "ground_truth", about.value)


def _count_partnerless(round_: Round) -> None:
    truths, audits = _partners(round_)
    for reason, files in ((TRUTH_NOT_JUDGED, truths), (AUDIT_NOT_JUDGED, audits)):
        unused = {file.where: file for file in files if file.where not in round_.used}
        for _, file in sorted(unused.items()):
            round_.leave_out(file, reason)


def _partners(round_: Round) -> tuple[Iterator[RoundFile], Iterator[RoundFile]]:
    """Walk through what judgements go with: truths and audits."""
    return chain.from_iterable(round_.truths.values()), chain.from_iterable(round_.audits.values())


def _read_files(round_: Round) -> dict[str, int]:
    """Count the files that were read, by folder."""
    unread = {out.where for out in round_.skipped}
    kinds = (round_.judgements, round_.tools, round_.reviews, round_.summaries, *_partners(round_))
    where = {file.where for file in chain(*kinds, *round_.metadata.values())} | {each.where for each in round_.votes}
    return dict(sorted(Counter(str(Path(file).parent) for file in where - unread).items()))


# Slither and Mythril write JSON. It is read as audits by models of these names, which a rule-based judge compares.
#
#    slither SAMPLE.sol --json SLITHER.json         {"success", "error", "results": {"detectors": […]}}
#    myth analyze SAMPLE.sol -o json, or jsonv2     {"success", "error", "issues": […]}, or [{"issues": […]}]
#
# Nothing here runs a tool. A file is named like its sample: `SAMPLE.json`, `slither_SAMPLE.json` or
# `SAMPLE.slither.json`.


JUDGE = "baseline/overlap-judge"
NO_RESULT = "the tool gave no result"
_TOOLS = f"(?:{round_files.SLITHER}|{round_files.MYTHRIL}|myth)"
_NAMED = re.compile(rf"^{_TOOLS}[-_.]|[-_.]{_TOOLS}$", re.IGNORECASE)
_NO_CONCERN = ("informational", "optimization")

TYPES = {word: kind for kind, words in tables_beside(__file__, "words.toml")["types"].items() for word in words}
"""Types of vulnerability by Slither's detector or SWC number."""


def sample_of(stem: str) -> str:
    """Name the sample that a tool's file is about."""
    return _NAMED.sub("", stem)


def failure_of(value: Mapping[str, Any]) -> str | None:
    """Read why the tool gave no result; None where it gave one."""
    if value.get("success") is not True or value.get("error"):
        return f"{NO_RESULT}: {' '.join(str(value.get('error') or 'success is not true').split())[:200]}"
    return None


def audit_of(value: Mapping[str, Any]) -> str:
    """Write the tool's findings as a structured audit."""
    findings = list(_slither(value) if round_files.tool_of(value) == round_files.SLITHER else _mythril(value))
    return json.dumps({"verdict": "vulnerable" if findings else "safe", "confidence": None, "findings": findings})


def judged_by_rules(truth: GroundTruth, audit: str, tool: str) -> str:
    """Judge an audit by the overlap of type, functions and lines with the truth; a tool states no attack and no fix."""
    known = truth.model_copy(update={"attack_scenario": None, "fix": None})
    return judge_by_overlap(judge_request(JUDGE, "", known, audit, asked_of(truth), tool).messages)


def _slither(value: Any) -> Iterator[Mapping[str, Any]]:
    for found in objects(value["results"].get("detectors")):
        if str(found.get("impact")).casefold() in _NO_CONCERN:
            continue
        elements = objects(found.get("elements"))
        names = [str(each.get("name")) for each in elements if each.get("type") == "function"]
        lines = {line for each in elements if each.get("type") == "node" for line in _lines(each)}
        lines = lines or {line for each in elements if each.get("type") == "function" for line in _lines(each)}
        check = str(found.get("check") or "")
        kind = "reentrancy" if check.startswith("reentrancy") else TYPES.get(check, normalised(check))
        yield _finding(kind, found.get("impact"), names, sorted(lines), found.get("description"))


def _mythril(value: Any) -> Iterator[Mapping[str, Any]]:
    for issue in objects(value["issues"]):
        number = str(issue.get("swc-id") or issue.get("swcID") or "").upper().removeprefix("SWC-")
        told = issue.get("description")
        text = " ".join(map(str, told.values())) if isinstance(told, Mapping) else told
        kind = TYPES.get(number, normalised(str(issue.get("title") or issue.get("swcTitle") or number)))
        name = str(issue.get("function") or "").partition("(")[0]
        line = issue.get("lineno")
        yield _finding(kind, issue.get("severity"), [name] if name else [], [line] if type(line) is int else [], text)


def _finding(kind: str, severity: Any, names: list[str], lines: list[int], text: Any) -> Mapping[str, Any]:
    location = ", ".join(dict.fromkeys(names)) or None
    told = {"type": kind, "severity": str(severity or "").lower(), "explanation": str(text or "")}
    return {**told, "location": location, "lines": lines}


def _lines(element: Mapping[str, Any]) -> list[int]:
    lines = part_of(element, "source_mapping").get("lines")
    return [line for line in lines if type(line) is int] if isinstance(lines, list) else []
