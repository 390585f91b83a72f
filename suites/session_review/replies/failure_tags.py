"""Finds the named patterns of failure in a judge's analysis, and does not take a denial for a finding."""

import re
from collections.abc import Iterator

FAILURE_TAGS = (
    "premature_conclusion",
    "missed_available_tool",
    "unsupported_confidence",
    "incomplete_evidence",
    "hallucinated_evidence",
    "ignored_evidence",
    "repeated_failure",
    "wrong_conclusion",
)

_TAG = re.compile("|".join(f"(?P<{tag}>{tag.replace('_', '[ _-]')}s?)" for tag in FAILURE_TAGS), re.IGNORECASE)
_CLAUSE_END = re.compile(r"[.;!?\n]|\b(?:but|however|although|though|yet|while|whereas)\b", re.IGNORECASE)
_WORD = re.compile(r"[A-Za-z']+")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s|\n")
_MARKS = str.maketrans("", "", "*#`|")
LONGEST_SENTENCE = 240  # characters of a sentence, and that are looked at on either side of a tag
_BEFORE, _AFTER = 160, 60  # characters that are looked at on either side

_NEGATIONS = {"no", "not", "never", "without", "neither", "nor", "none", "cannot", "avoided", "avoids", "avoiding"}
# What may stand between a denial and what it denies: "there is no sign of a premature or wrong conclusion"
_FILLER_TEXT = (
    "a an any the of or and nor either sign signs instance instances case cases evidence trace example examples clear "
    "real actual obvious serious single such drawn draw draws reach reached reaching show shows showed find found see "
    "seen saw i there is was were be been being to it this that exhibit exhibited commit committed contain contains "
    "conclusion conclusions failure failures confidence tool tools pattern patterns applicable here in as tag tags "
    "premature missed available unsupported incomplete hallucinated ignored repeated wrong"
)
_FILLERS = frozenset(_FILLER_TEXT.split())
# A sentence that ends is not denied by the next; what follows a colon may stand on a line of its own
_DENIED_AFTER = re.compile(
    r"(?:[^\w.;!?\n]{0,3}:[^\w.;!?]{0,6}|[^\w.;!?\n]{0,6})(?:(?:is|was|were|are|has been|have been|does|did)\W{1,3})?"
    r"(?:no|none|not|absent|avoided|ruled out|n/a|false|never)\b(?!\W{1,3}only)",
    re.IGNORECASE,
)


def read_failure_tags(analysis: str) -> list[str]:
    """Read the tags that the analysis finds, in the order of the vocabulary, without those that it only denies."""
    tags = {match.lastgroup for match in _found(analysis)}
    return [tag for tag in FAILURE_TAGS if tag in tags]


def read_failure_words(analysis: str) -> dict[str, list[str]]:
    """Read the sentences in which the analysis finds each tag, without the marks of lists and headings; each once."""
    words: dict[str, dict[str, None]] = {}
    for match in _found(analysis):
        assert match.lastgroup is not None
        before = _SENTENCE_END.split(analysis[max(0, match.start() - LONGEST_SENTENCE) : match.start()])[-1]
        after = _SENTENCE_END.split(analysis[match.end() : match.end() + LONGEST_SENTENCE])[0]
        sentence = " ".join(f"{before}{match[0]}{after}".translate(_MARKS).split()).lstrip("-+•. ")
        words.setdefault(match.lastgroup, {})[sentence[:LONGEST_SENTENCE]] = None
    return {tag: list(sentences) for tag, sentences in words.items()}


def _found(analysis: str) -> Iterator[re.Match[str]]:
    return (match for match in _TAG.finditer(analysis) if not _is_denied(analysis, match))


def _is_denied(text: str, match: re.Match[str]) -> bool:
    after = text[match.end() : match.end() + _AFTER]
    if _DENIED_AFTER.match(after):
        return True
    before = _TAG.sub(" ", text[max(0, match.start() - _BEFORE) : match.start()])
    clause = _CLAUSE_END.split(before)[-1]
    for word in reversed(_WORD.findall(clause.casefold())):
        if word in _NEGATIONS or word.endswith("n't"):
            return not re.search(rf"\b{re.escape(word)}\W+only\b", clause, re.IGNORECASE)
        if word not in _FILLERS:
            return False
    return False
