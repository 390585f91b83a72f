"""Which names of a round mean the same: models by folder, title or alias, samples by file."""

import json
import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from core.errors import SourceError

MODEL_ALIASES: Mapping[str, str] = {
    "claude": "claude opus 4.5",
    "claude opus": "claude opus 4.5",
    "opus": "claude opus 4.5",
    "opus 4.5": "claude opus 4.5",
    "claude 4.5 opus": "claude opus 4.5",
    "gemini": "gemini 3 pro preview",
    "gemini 3": "gemini 3 pro preview",
    "gemini 3 pro": "gemini 3 pro preview",
    "gemini pro": "gemini 3 pro preview",
    "deepseek": "deepseek v3.2",
    "deepseek chat": "deepseek v3.2",
    "deepseek chat v3.2": "deepseek v3.2",
    "gpt": "gpt 5.2",
    "chatgpt 5.2": "gpt 5.2",
    "grok": "grok 4",
    "llama": "llama 3.1 405b",
    "llama 405b": "llama 3.1 405b",
    "llama 3.1": "llama 3.1 405b",
    "llama 3.1 405b instruct": "llama 3.1 405b",
}
"""Other names of models. Case, spaces, points, `-` and `_` never matter, nor does what stands before a `/`."""

ALIASES_FILE = "model_aliases.json"
"""In the round's folder: further names of its models, each with the name of the model's folder."""

REVIEWS = "expertreviews"
_REVIEWS = re.compile(r"[-_ ]*".join(REVIEWS), re.IGNORECASE)

PREFIXES = ("judge_", "review_", "metrics_", "j_", "r_", "m_")
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
    return {plain(alias): plain(name) for alias, name in {**MODEL_ALIASES, **own}.items()}


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
