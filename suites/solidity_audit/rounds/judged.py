"""The judgements of a round: each with the truth and the audit that are nearest to it, as a recorded result."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from contracts.contract import fits_folder
from core.errors import SourceError
from providers.request import Reply
from suites.base import Item, Recorded
from suites.base.sources import as_json, is_storable, storable
from suites.solidity_audit.prompts.subject import PROMPT_TYPES
from suites.solidity_audit.recorded import DATASET, NO_CONTRACT, asked_of, recorded_hashes
from suites.solidity_audit.replies.judgement import Judgement, Reading, read_judgement
from suites.solidity_audit.rounds.judgement import stated_failure
from suites.solidity_audit.rounds.names import folder_name, sample_names
from suites.solidity_audit.rounds.review import Claim, match
from suites.solidity_audit.rounds.round import (
    JUDGEMENTS,
    AuditKey,
    Judged,
    Round,
    RoundFile,
    nearest,
    number_of,
    prompt_of,
    text_of,
    whole_of,
)
from suites.solidity_audit.rounds.truth import cluster_of, read_truth
from suites.solidity_audit.truth import as_sample

JUDGED_TWICE = "another judgement of the same audit by the same judge"
NO_TRUTH = "a judgement without a ground truth"
NO_JUDGEMENT = Judgement(findings=[])
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
    names = sample_names(file.path, stated, PROMPT_TYPES)
    about = next((nearest(round_.truths[name], file) for name in reversed(names) if name in round_.truths), None)
    if about is None:
        raise SourceError(NO_TRUTH)
    truth, prompt_type = read_truth(about.value), text_of(value.get("prompt_type")) or prompt_of(file.path)
    of_model = next(parent for parent in file.path.parents if folder_name(parent.name) == JUDGEMENTS).parent
    sample_id, model = _name_of(stated) or names[-1], of_model.name
    judge = _name_of(value.get("judge_model") or value.get("judge")) or f"{of_model.parent.name} judge"
    if not (fits_folder(model) and fits_folder(judge)):
        raise SourceError("a name of a model that is too long")
    if not all(map(is_storable, (sample_id, model, judge))):
        raise SourceError("a name of a file or folder that is not UTF-8")
    text, failure = as_json(value), stated_failure(value)
    reading = Reading(NO_JUDGEMENT) if failure is not None else read_judgement(text, asked_of(truth))
    if reading.judgement is None:
        raise SourceError(f"judgement: {'; '.join(reading.flaws)}")
    cluster = cluster_of(about.value) or sample_id
    sample = as_sample(DATASET, sample_id, NO_CONTRACT, truth, cluster=cluster, note=None)
    audit = _judged_audit(round_, file, (sample_id, model, prompt_type), reading.judgement)
    item = Item(sample, model, judge, prompt_type, whole_of(value.get("replicate")) or 0)
    round_.used |= {about.where, *([audit.where] if audit else [])}
    return Judged(
        file.where,
        Recorded(item, recorded_hashes(item), (_audit_reply(audit), _judges_reply(text, value, failure))),
        _texts(reading.judgement, audit),
    )


def _judged_audit(round_: Round, file: RoundFile, key: AuditKey, judgement: Judgement) -> RoundFile | None:
    """Find the audit that was judged; None where its file holds another, none of whose findings the judge repeats."""
    audit = nearest(round_.audits.get(key, ()), file)
    if audit is None:
        return None
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
        text_of(claim.get("explanation")) if isinstance(claim, Mapping) else None
        for claim in (claims if isinstance(claims, list) else ())
    ]


def _texts(judgement: Judgement, audit: RoundFile | None) -> dict[int, str]:
    """Collect each finding's text by id: as the judge repeats it, or else as the audit has it at that place."""
    texts = _explanations(audit) if audit else []
    return {
        finding.finding_id: finding.description
        or (texts[finding.finding_id - 1] if 1 <= finding.finding_id <= len(texts) else None)
        or ""
        for finding in judgement.findings
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
    reply = _reply(text, value, "judge_")
    return reply if failure is None else replace(reply, text=None, error_kind=storable(failure))


def _reply(text: str, value: Mapping[str, Any], of: str = "") -> Reply:
    """Build a reply with what it took, by the fields whose names begin with `of`."""
    return Reply(
        text,
        input_tokens=whole_of(value.get(f"{of}input_tokens")),
        output_tokens=whole_of(value.get(f"{of}output_tokens")),
        latency_ms=number_of(value.get(f"{of}latency_ms")),
        cost_usd=number_of(value.get(f"{of}cost_usd")),
    )


def _name_of(value: Any) -> str | None:
    return (text_of(value) or "").strip() or None
