"""A folder of a recorded round -> its judged audits as recorded results, experts' reviews as labels, and what is left.

Whatever the depth: what is below `<model>/judge_outputs` are judgements, below `ground_truth` truths, below a folder of
expert reviews reviews, and any other JSON file with a `prediction` is the audit that was judged. Files of another kind
(metrics, checkpoints, manifests, reports) follow from these, and are not read. Where several rounds lie below one
folder, a judgement goes with the truth and the audit that are nearest to it.
"""

from collections import Counter
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from core.errors import SourceError
from suites.base import RecordedFolder
from suites.solidity_audit.rounds.judged import read_judged
from suites.solidity_audit.rounds.labels import read_labels
from suites.solidity_audit.rounds.names import aliases
from suites.solidity_audit.rounds.round import Round, RoundFile, sort_files

TRUTH_NOT_JUDGED = "a ground truth without a judgement"
AUDIT_NOT_JUDGED = "an audit without a judgement"


def read_folder(folder: Path) -> RecordedFolder | None:
    """Read a round; None where the folder holds neither judgements nor reviews, so is no round.

    Raises SourceError where it cannot be listed, or its file of aliases is not valid.
    """
    known = aliases(folder)
    try:
        paths = sorted(path for path in folder.rglob("*") if not path.is_dir())
    except OSError as error:
        raise SourceError(f"cannot read {folder}: {error.strerror}") from error
    round_ = sort_files(folder, paths)
    if not round_.judgements and not round_.reviews and not round_.skipped:
        return None
    for file in round_.judgements:
        read_judged(file, round_)
    for file in round_.reviews:
        read_labels(file, round_, known)
    _count_partnerless(round_)
    lines = tuple((judged.where, judged.recorded) for judged in round_.judged.values())
    return RecordedFolder(lines, tuple(round_.labels), tuple(round_.skipped), _read_files(round_))


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
    where = {file.where for file in chain(round_.judgements, round_.reviews, *_partners(round_))} - unread
    return dict(sorted(Counter(str(Path(file).parent) for file in where).items()))
