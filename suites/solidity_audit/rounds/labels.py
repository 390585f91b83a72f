"""The reviews of a round: what experts say of judged audits, as labels."""

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from contracts.tables.human_labels import answered
from core.hashing import content_hash
from suites.solidity_audit.prompts.subject import PROMPT_TYPES
from suites.solidity_audit.rounds.names import expert_of, is_review_folder, model_named, sample_names
from suites.solidity_audit.rounds.review import match, read_review
from suites.solidity_audit.rounds.round import Judged, Round, RoundFile, prompt_of, text_of
from suites.solidity_audit.truth import SUITE

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
    folders = [part for part in reversed(Path(file.where).parts[:-1]) if not is_review_folder(part)]
    candidates = [name for name in (*folders, *stated) if isinstance(name, str)]
    model = next((named for name in candidates if (named := model_named(name, models, known))), None)
    by_sample: dict[str, list[Judged]] = {}
    for judged in round_.judged.values():
        if judged.recorded.item.model == model:
            by_sample.setdefault(judged.recorded.item.sample.sample_id, []).append(judged)
    sample_id = about.get("sample_id") if isinstance(about, Mapping) else file.value.get("sample_id")
    names = sample_names(file.path, sample_id, PROMPT_TYPES)
    of_sample = next((by_sample[name] for name in names if name in by_sample), [])
    prompt_types = {judged.recorded.item.prompt_type for judged in of_sample}
    named = text_of(file.value.get("prompt_type")) or prompt_of(file.path, default="")
    prompt_type = named or (next(iter(prompt_types)) if len(prompt_types) == 1 else PROMPT_TYPES[0])
    return [
        judged
        for judged in of_sample
        if judged.recorded.item.prompt_type == prompt_type and judged.recorded.item.replicate == 0
    ]


def _expert(file: RoundFile) -> str | None:
    """Find the expert that a folder of the review is named for; None without one."""
    folders = reversed(Path(file.where).parts[:-1])
    return next((name for part in folders if is_review_folder(part) and (name := expert_of(part))), None)
