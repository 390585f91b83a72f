"""What BlockBench says of a sample's origin: its base, its transformation, the incident, line markers and code acts."""

import re
from collections.abc import Mapping
from typing import Any

import yaml

from evalake.suites.solidity_audit.sources.round_fields import cluster_of
from evalake.suites.solidity_audit.sources.round_files import part_of, text_of
from evalake.suites.solidity_audit.truth import normalised

ORIGINAL = "original"
_SPELLINGS: Mapping[str, str] = {
    "nocomments": "no_comments",
    "falseprophet": "false_prophet",
    "minimalsanitized": "minimal_sanitized",
}
_OF_VARIANT = re.compile(r"^(?:ms|sn|nc|tr|fp|df|gs|ss(?:_l\d+)?|ch(?:_[a-z]+)?)_(?=[a-z]+(?:_t\d+)?_\d+$)")
"""How a variant's name begins, before its base's: `ch_medical_tc_001` is made of `tc_001`."""

_MARKER = re.compile(r"^[ \t]*/\*LN-(\d{1,7})\*/ ?", re.MULTILINE)
_ROOT_CAUSE = "ROOT_CAUSE"


def transformation_of(value: Mapping[str, Any], folder: str | None = None) -> str | None:
    """Read how a sample was made: by its metadata, or else by the name of its folder."""
    named = next((text for name in ("transformation", "variant_type") if (text := text_of(value.get(name)))), folder)
    word = normalised(named or "")
    return _SPELLINGS.get(word, word) or (ORIGINAL if text_of(value.get("original_subset")) else None)


def base_of(name: str, value: Mapping[str, Any], parents: Mapping[str, str]) -> str:
    """Name the sample that this one was made of, over all steps; its own name where it was made of none."""
    stated = part_of(value, "transformation").get("original_id")
    seen, base = {name}, text_of(stated) or parents.get(name, name)
    while base in parents and base not in seen:
        seen.add(base)
        base = parents[base]
    return _OF_VARIANT.sub("", base)


def origin_of(
    name: str, value: Mapping[str, Any], parents: Mapping[str, str], folder: str | None = None
) -> Mapping[str, Any]:
    """Collect the fields of ground truth about a sample's origin; empty for a sample that states none."""
    if (how := transformation_of(value, folder)) is None:
        return {}
    incident = next((text for each in ("incident", "exploit_name") if (text := text_of(value.get(each)))), None)
    return {"base": base_of(name, value, parents), "transformation": how, "incident": incident}


def parent_of(value: Mapping[str, Any]) -> str | None:
    """Read the sample that a variant was made of, in its last step."""
    return cluster_of(value) if text_of(value.get("variant_parent_id")) else None


def without_markers(text: str) -> tuple[str, Mapping[int, int]]:
    """Take out markers (`/*LN-7*/`) at the beginnings of lines; return the line of each marker's number, too."""
    lines = {int(match[1]): text.count("\n", 0, match.start()) + 1 for match in reversed([*_MARKER.finditer(text)])}
    return _MARKER.sub("", text), lines


def code_act_of(text: str) -> str | None:
    """Read what the first statement at a vulnerability's root does; None where none is annotated so.

    Raises yaml.YAMLError where the annotation is not YAML.
    """
    given = yaml.safe_load(text)
    acts = given.get("code_acts") if isinstance(given, Mapping) else None
    for act in acts if isinstance(acts, list) else ():
        if isinstance(act, Mapping) and _ROOT_CAUSE in [
            part.get("security_function") for part in (act, part_of(act, "vulnerable"))
        ]:
            return normalised(str(act.get("type"))) or None
    return None
