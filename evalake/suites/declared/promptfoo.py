"""A promptfoo configuration as a suite's file: the common subset, with a note for whatever was not understood."""

import itertools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from evalake.core.errors import EvalakeError, SuiteError
from evalake.core.files import MEGABYTE, FileRefusedError, Files
from evalake.sdk.sources import Record, as_text, read_table
from evalake.suites.declared.lines import Lines, line_of
from evalake.suites.declared.templates import rendered

_PREFIXES: Mapping[str, str] = {  # how promptfoo and LiteLLM name a provider
    **{
        "openai:chat:": "openai/",
        "openai:": "openai/",
        "anthropic:messages:": "anthropic/",
        "anthropic:": "anthropic/",
    },
    **{"google:": "gemini/", "vertex:": "vertex_ai/", "azure:chat:": "azure/", "azureopenai:chat:": "azure/"},
    **{"ollama:chat:": "ollama_chat/", "ollama:completion:": "ollama/", "bedrock:": "bedrock/", "litellm:": ""},
    **{f"{name}:": f"{name}/" for name in ("mistral", "groq", "openrouter", "deepseek", "xai", "cerebras", "cohere")},
}
_PARAMETERS = ("temperature", "max_tokens", "top_p", "seed", "stop", "presence_penalty", "frequency_penalty")
_TOP = {"description", "providers", "targets", "prompts", "tests", "defaultTest", "assertionTemplates", "$schema"}
_TEST = {"vars", "assert", "description", "threshold", "metadata", "options"}
_OF_ASSERTION = {"type", "value", "weight", "metric", "threshold", "provider", "$ref"}
_INCLUDES: Mapping[str, Mapping[str, Any]] = {
    "contains": {"kind": "includes"},
    "icontains": {"kind": "includes", "ignore_case": True},
    "contains-any": {"kind": "includes"},
    "icontains-any": {"kind": "includes", "ignore_case": True},
    "contains-all": {"kind": "includes_all"},
    "icontains-all": {"kind": "includes_all", "ignore_case": True},
}
_JAVASCRIPT = re.compile(
    r"""(?:return\s+)?(?P<not>!)?output(?P<lower>\.toLowerCase\(\))?(?:
    \.length\s*(?P<compared><=|>=|<|>|===?)\s*(?P<size>\d{1,5})
    |\.(?P<call>includes|startsWith)\(\s*(?P<quote>['"`])(?P<text>[^'"`\\]+)(?P=quote)\s*\)
    |\s*===?\s*(?P<quoted>['"`])(?P<whole>[^'"`\\]*)(?P=quoted))\s*;?""",
    re.VERBOSE,
)
_ABOVE_NOTHING = 1e-6  # a Python function's number is right from here: promptfoo asks for more than 0


def is_config(given: Any) -> bool:
    """Tell whether a decoded YAML file is a configuration of promptfoo, rather than a suite's file."""
    if not isinstance(given, Mapping) or given.keys() & {"score", "scorers", "dataset"}:
        return False
    return "tests" in given and bool(given.keys() & {"providers", "targets", "prompts"})


def name_of(path: Path) -> str:
    """Name the suite after the file, or after its folder where the file has promptfoo's usual name."""
    stem = path.resolve().parent.name if path.stem == "promptfooconfig" else path.stem
    return _slug(stem) or "promptfoo"


def translate(given: Mapping[str, Any], path: Path, lines: Lines) -> tuple[dict[str, Any], list[str]]:
    """Write a configuration as the content of a suite's file; returns it, and what was not understood."""
    config = _Config(given, path, lines)
    return config.suite(), config.notes


def _slug(text: str) -> str:
    plain = re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_")[:50].strip("_")
    return plain if not plain or plain[0].isalpha() else f"s_{plain}"


@dataclass
class _Config:
    given: Mapping[str, Any]
    path: Path
    lines: Lines
    notes: list[str] = field(default_factory=list)
    scorers: dict[str, dict[str, Any]] = field(default_factory=dict)  # by name
    judges: list[str] = field(default_factory=list)
    thresholds: set[Any] = field(default_factory=set)

    def suite(self) -> dict[str, Any]:
        self._unknown_fields(self.given, _TOP, ())
        models, parameters = self._providers()
        samples = list(self._samples())
        judges = {"judges": self.judges} if self.judges else {}
        if not judges and any(each["kind"] == "judge" for each in self.scorers.values()):
            self.note("llm-rubric names no grader: give one with --judges", "tests")
        if len(self.thresholds) > 1:
            self.note("tests have different thresholds: every assertion must hold instead", "tests")
        threshold = next(iter(self.thresholds)) if len(self.thresholds) == 1 else None
        return {
            "name": name_of(self.path),
            "title": as_text(self.given.get("description")) or "",
            "samples": samples,
            "prompts": self._prompts(),
            "every_prompt": True,
            "reply": "raw",
            "scorers": list(self.scorers.values()),
            "models": models,
            "parameters": parameters,
            **judges,
            **({} if threshold is None else {"pass_from": threshold}),
        }

    def note(self, what: str, *where: str) -> None:
        """Note what is not understood, once, with its line."""
        line = line_of(where, self.lines) if where else None
        place = f"{self.path}:{line}" if line else str(self.path)
        said = f"{place}: {'.'.join(where)}: {what}" if where else f"{place}: {what}"
        if said not in self.notes:
            self.notes.append(said)

    def _unknown_fields(self, given: Mapping[str, Any], known: set[str], where: Sequence[str]) -> None:
        for name in (each for each in given if each not in known):
            self.note("not understood, and left out", *where, str(name))

    # Providers and prompts.

    def _providers(self) -> tuple[list[str], dict[str, Any]]:
        key = "providers" if "providers" in self.given else "targets"
        several = self.given.get(key, [])
        models: dict[str, dict[str, Any]] = {}
        for number, each in enumerate(several if isinstance(several, list) else [several]):
            where = (key, str(number))
            if (model := self._model(each, *where)) is not None:
                models[model] = self._parameters(model, each, *where)
        of_all = list(models.values())
        if all(each == of_all[0] for each in of_all):
            return list(models), of_all[0] if of_all else {}
        for model, parameters in models.items():
            self.note(f'providers differ in parameters: write [models."{model}"] parameters = {parameters}', key)
        return list(models), {}

    def _model(self, provider: Any, *where: str) -> str | None:
        """Name a provider's model as LiteLLM does."""
        name = provider
        if isinstance(provider, Mapping):
            name = provider.get("id") or (next(iter(provider), None) if len(provider) == 1 else None)
        for prefix, model in _PREFIXES.items():
            rest = str(name).removeprefix(prefix)
            if str(name).startswith(prefix) and rest and (":" not in rest or prefix != "openai:"):
                return model + rest
        self.note(f"the provider {name!r} is not understood: name a model with --models", *where)
        return None

    def _parameters(self, model: str, provider: Any, *where: str) -> dict[str, Any]:
        inner = provider if isinstance(provider, Mapping) and "id" in provider else {}
        self._unknown_fields(inner, {"id", "label", "config"}, where)
        config = inner.get("config") or {}
        for name in (each for each in config if each not in _PARAMETERS):
            if name in ("apiBaseUrl", "apiHost"):
                said = f'write [models."{model}"] api_base = "{config[name]}" into evalake.toml'
            elif "key" in name.lower():
                said = "keys are read from the environment, never from a file"
            else:
                said = "not understood, and left out"
            self.note(said, *where, "config", name)
        return {name: config[name] for name in _PARAMETERS if name in config}

    def _prompts(self) -> dict[str, Any]:
        several = self.given.get("prompts") or ["{{prompt}}"]
        found: list[tuple[str, dict[str, Any]]] = []
        for number, each in enumerate(several if isinstance(several, list) else [several]):
            label, raw = (
                (each.get("label"), each.get("raw") or each.get("id")) if isinstance(each, Mapping) else ("", each)
            )
            for text in self._texts_of(str(raw), "prompts", str(number)):
                found.append((_slug(str(label or "")), text))
        if len(found) == 1:
            return {"direct": found[0][1]}
        return {label or f"prompt_{number}": text for number, (label, text) in enumerate(found, start=1)}

    def _texts_of(self, raw: str, *where: str) -> Iterator[dict[str, Any]]:
        """Yield the prompts of one entry: inline, of a file, or of the files that a pattern names."""
        is_path = raw.startswith("file://") or (" " not in raw and re.search(r"\.(?:txt|md|json|j2)$", raw))
        texts = [raw]
        if is_path:
            pattern = raw.removeprefix("file://").removeprefix("./")
            texts = [text for text in map(self._read, self._files(pattern)) if text is not None]
            if not texts:
                self.note(f"there is no prompt {pattern} in the folder of the file", *where)
        for text in texts:
            for part in re.split(r"(?m)^---\s*$", text) if is_path else [text]:
                if part.strip() and (prompt := self._chat(part.strip() if is_path else part, *where)) is not None:
                    yield prompt

    def _chat(self, text: str, *where: str) -> dict[str, Any] | None:
        """Read a prompt: JSON or YAML of messages where it is one, else the user's text."""
        try:
            messages = json.loads(text)
        except ValueError:
            return {"user": text}
        match messages:
            case [{"role": "user", "content": str(user)}]:
                return {"user": user}
            case [{"role": "system", "content": str(system)}, {"role": "user", "content": str(user)}]:
                return {"system": system, "user": user}
            case [*_]:
                self.note("a chat of more than a system's and a user's message is not understood", *where)
                return None
        return {"user": text}

    def _files(self, pattern: str) -> list[Path]:
        folder = self.path.resolve().parent
        if Path(pattern).is_absolute() or ".." in Path(pattern).parts:
            return []
        return sorted(each for each in folder.glob(pattern) if each.is_file())

    def _read(self, path: Path) -> str | None:
        try:
            return Files(self.path.resolve().parent, MEGABYTE).read(path).decode("utf-8")
        except (FileRefusedError, UnicodeDecodeError):
            return None

    # Tests become samples, and each assertion a scorer with what it expects in the sample's target.

    def _samples(self) -> Iterator[dict[str, Any]]:
        usual = self.given.get("defaultTest") or {}
        if not isinstance(usual, Mapping):
            self.note("not understood, and left out", "defaultTest")
            usual = {}
        self._unknown_fields(usual, _TEST, ("defaultTest",))
        tests = list(self._tests())
        names = {name for test, _ in tests for name in self._vars(test, usual)}
        number = 0
        for test, where in tests:
            for given in self._expanded(self._vars(test, usual), test, usual):
                number += 1
                asserted = self._asserted(usual, ("defaultTest",), given, {})
                asserted = self._asserted(test, where, given, asserted)
                if not asserted:
                    self.note("no assertion that is understood: left out", *where)
                    continue
                self.thresholds.add(test.get("threshold", usual.get("threshold")))
                metadata = {**(usual.get("metadata") or {}), **(test.get("metadata") or {})}
                yield {
                    **metadata,
                    **dict.fromkeys(names),
                    **given,
                    **({"description": test["description"]} if test.get("description") else {}),
                    "sample_id": f"test_{number}",
                    "target": asserted,
                }

    def _tests(self) -> Iterator[tuple[Mapping[str, Any], tuple[str, ...]]]:
        tests = self.given["tests"]
        for number, each in enumerate(tests if isinstance(tests, list) else [tests]):
            where = ("tests", str(number)) if isinstance(tests, list) else ("tests",)
            if isinstance(each, str):
                for test in self._tests_in(each, *where):
                    yield test, where
            elif isinstance(each, Mapping):
                self._unknown_fields(each, _TEST, where)
                self._unknown_fields(each.get("options") or {}, {"provider"}, (*where, "options"))
                yield each, where
            else:
                self.note("not understood, and left out", *where)

    def _tests_in(self, name: str, *where: str) -> Iterator[Mapping[str, Any]]:
        """Read tests of a file: a table whose columns are vars, and whose `__expected` columns are assertions."""
        pattern = name.removeprefix("file://").removeprefix("./")
        files = self._files(pattern)
        if not files:
            self.note(f"there is no file {pattern} in the folder of the file", *where)
        for file in files:
            if file.suffix in (".yaml", ".yml", ".json"):
                read = yaml.safe_load(self._read(file) or "")
                yield from (each for each in (read if isinstance(read, list) else [read]) if isinstance(each, Mapping))
                continue
            try:
                records = list(read_table(file, ()))
            except EvalakeError as error:
                self.note(str(error), *where)
                continue
            for record in records:
                if isinstance(record, Record):
                    yield self._of_row(record.values, *where)
                else:
                    self.note(f"{record.where}: {record.reason}", *where)

    def _of_row(self, row: Mapping[str, Any], *where: str) -> Mapping[str, Any]:
        asserted = []
        for name, value in row.items():
            if name.startswith("__expected") and value:
                kind, colon, rest = str(value).partition(":")
                is_typed = bool(colon) and re.fullmatch(r"[a-z-]+(?:\([\d.]+\))?", kind) is not None
                named = re.fullmatch(r"([a-z-]+)\(([\d.]+)\)", kind)
                typed: dict[str, Any] = {"type": kind, "value": rest.strip()}
                if named:
                    typed |= {"type": named[1], "threshold": float(named[2])}
                asserted.append(typed if is_typed else {"type": "equals", "value": value})
            elif name.startswith("__") and not name.startswith("__expected"):
                self.note(f"the column {name} is not understood", *where)
        return {"vars": {n: v for n, v in row.items() if not n.startswith("__")}, "assert": asserted}

    @staticmethod
    def _vars(test: Mapping[str, Any], usual: Mapping[str, Any]) -> dict[str, Any]:
        inner = test.get("vars") if isinstance(test.get("vars"), Mapping) else {}
        return {**(usual.get("vars") or {}), **(inner or {})}

    def _expanded(
        self, given: Mapping[str, Any], test: Mapping[str, Any], usual: Mapping[str, Any]
    ) -> Iterator[dict[str, Any]]:
        """Yield a test's vars: one set for each combination of values where a var lists several."""
        lists = {name: value if isinstance(value, list) else [value] for name, value in given.items()}
        for values in itertools.product(*lists.values()):
            yield {name: self._file_value(value) for name, value in zip(lists, values, strict=True)}

    def _file_value(self, value: Any) -> Any:
        if not isinstance(value, str) or not value.startswith("file://"):
            return value
        files = self._files(value.removeprefix("file://").removeprefix("./"))
        text = self._read(files[0]) if len(files) == 1 and files[0].suffix in (".txt", ".md", ".json") else None
        if text is None:
            self.note(f"the file {value} cannot be read as text", "tests")
        return text

    def _asserted(
        self, test: Mapping[str, Any], where: tuple[str, ...], given: Mapping[str, Any], before: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Add what a test's assertions expect, by scorer."""
        expected = dict(before)
        grader = ((test.get("options") or {}) if isinstance(test.get("options"), Mapping) else {}).get("provider")
        if grader is not None:
            self._grader(grader, *where, "options", "provider")
        for number, each in enumerate(test.get("assert") or []):
            place = (*where, "assert", str(number))
            for assertion in self._flattened(each, *place):
                if assertion.get("weight") == 0:
                    self.note("weight 0 decides nothing: left out", *place)
                    continue
                scorer, value = self._scorer(assertion, given, *place)
                expected[self._called(scorer, assertion, expected)] = value
        return expected

    def _flattened(self, each: Any, *where: str) -> Iterator[Mapping[str, Any]]:
        if isinstance(each, Mapping) and isinstance(each.get("$ref"), str):
            template = (self.given.get("assertionTemplates") or {}).get(each["$ref"].rpartition("/")[2])
            each = {**(template or {}), **{name: value for name, value in each.items() if name != "$ref"}}
        if not isinstance(each, Mapping) or "type" not in each:
            yield {"type": "unknown", "value": each}
        elif each["type"] == "assert-set" and "threshold" not in each:
            for inner in each.get("assert") or []:
                yield from self._flattened(inner, *where)
        else:
            self._unknown_fields(each, _OF_ASSERTION, where)
            yield each

    def _called(self, scorer: dict[str, Any], assertion: Mapping[str, Any], used: Mapping[str, Any]) -> str:
        """Find or add the scorer of an assertion that no other assertion of this sample takes; returns its name."""
        base = _slug(str(assertion.get("metric") or assertion["type"])) or "assertion"
        for number in itertools.count(1):
            name = base if number == 1 else f"{base}_{number}"
            whole = {**scorer, "name": name, "column": f"target.{name}"}
            if scorer["kind"] == "judge":
                whole["rubric"] = f"{{{{ target.{name} }}}}"
            if name not in used and self.scorers.setdefault(name, whole) == whole:
                return name
        raise AssertionError

    def _scorer(
        self, assertion: Mapping[str, Any], given: Mapping[str, Any], *where: str
    ) -> tuple[dict[str, Any], Any]:
        """Write an assertion as a scorer, and what it expects of this sample."""
        kind = str(assertion["type"])
        plain = kind.removeprefix("not-")
        shared: dict[str, Any] = {"weight": assertion.get("weight", 1)}
        if plain != kind:
            shared["negate"] = True
        try:
            value = self._filled(assertion.get("value"), given)
            scorer, expected = self._understood(plain, value, assertion, *where)
        except (SuiteError, re.error, KeyError, ValueError, TypeError) as error:
            why = f" ({error})" if isinstance(error, SuiteError | re.error) else ""
            self.note(f"{kind} is not understood: no verdict is given where everything else holds{why}", *where)
            return {"kind": "unknown", "weight": shared["weight"]}, as_text(assertion.get("value")) or kind
        return {**shared, **scorer}, expected

    def _filled(self, value: Any, given: Mapping[str, Any]) -> Any:
        if isinstance(value, str):
            return rendered(value, given) if "{{" in value or "{%" in value else value
        return [self._filled(each, given) for each in value] if isinstance(value, list) else value

    def _understood(
        self, kind: str, value: Any, assertion: Mapping[str, Any], *where: str
    ) -> tuple[dict[str, Any], Any]:
        """Give the scorer of an assertion and what it expects. Raises KeyError where there is none."""
        if kind in _INCLUDES:
            several = value.split(",") if isinstance(value, str) and kind.endswith(("-any", "-all")) else value
            texts = (
                [str(each).strip() if several is not value else each for each in several]
                if isinstance(several, list)
                else as_text(several)
            )
            if not texts:
                raise KeyError(kind)
            return dict(_INCLUDES[kind]), texts
        if kind == "equals":
            return {"kind": "equals"}, [value] if isinstance(value, dict | list) else _as_javascript(value)
        if kind == "starts-with":
            return {"kind": "starts_with"}, _as_javascript(value)
        if kind == "regex":
            return {"kind": "regex"}, _python_pattern(str(value))
        if kind in ("is-json", "contains-json"):
            schema = yaml.safe_load(value) if isinstance(value, str) else value
            return {"kind": "is_json" if kind == "is-json" else "has_json"}, True if schema is None else dict(schema)
        if kind == "levenshtein":
            return {"kind": "distance", "within": int(assertion.get("threshold", 5))}, _as_javascript(value)
        if kind == "python" and isinstance(value, str) and value.startswith("file://"):
            name, _, function = value.removeprefix("file://").removeprefix("./").partition(":")
            threshold = max(float(assertion.get("threshold", _ABOVE_NOTHING)), _ABOVE_NOTHING)
            return {"kind": "python", "function": f"{name}:{function or 'get_assert'}", "threshold": threshold}, True
        if kind == "javascript":
            return _javascript(str(value).strip())
        if kind == "llm-rubric":
            return self._judge(value, assertion, *where)
        raise KeyError(kind)

    def _judge(self, value: Any, assertion: Mapping[str, Any], *where: str) -> tuple[dict[str, Any], Any]:
        if assertion.get("provider") is not None:
            self._grader(assertion["provider"], *where, "provider")
        form = {"reason": "text", "pass": "yes/no"}
        scored: dict[str, Any] = {}
        if "threshold" in assertion:
            form, scored = {"reason": "text", "score": "0.0..1.0"}, {"threshold": float(assertion["threshold"])}
        return {"kind": "judge", "rubric": "", "form": form, **scored}, as_text(value)

    def _grader(self, provider: Any, *where: str) -> None:
        model = self._model(provider.get("text", provider) if isinstance(provider, Mapping) else provider, *where)
        if model is not None:
            self._parameters(model, provider, *where)
            if model not in self.judges:
                self.judges.append(model)


def _as_javascript(value: Any) -> str:
    """Write a value as JavaScript's String() does."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    text = as_text(value)
    return "" if text is None else text


def _python_pattern(pattern: str) -> str:
    """Write a regular expression of JavaScript for Python: `$` is the very end, classes are of ASCII."""
    named = re.sub(r"\(\?<(?![=!])", "(?P<", pattern)
    parts = re.findall(r"\\.|\[(?:\\.|[^\]\\])*\]|.", named, re.DOTALL)
    written = "(?a)" + "".join("\\Z" if part == "$" else part for part in parts)
    re.compile(written)
    return written


def _javascript(code: str) -> tuple[dict[str, Any], Any]:
    """Give the scorer of the plainest JavaScript: a length, a text in it, its beginning, or the whole text."""
    found = _JAVASCRIPT.fullmatch(code)
    if found is None:
        raise KeyError(code)
    negated = {"negate": True} if found["not"] else {}
    folded = {"ignore_case": True} if found["lower"] else {}
    if found["compared"] and not negated:
        size, compared = int(found["size"]), found["compared"]
        low = size + (compared == ">") if compared[0] in ">=" else 0
        high = "" if compared[0] == ">" else size - (compared == "<")
        if high == -1:
            raise KeyError(code)
        return {"kind": "regex"}, rf"\A[\s\S]{{{low},{high}}}\Z"
    if found["call"] == "includes" and (not folded or found["text"] == found["text"].lower()):
        return {"kind": "includes", **folded, **negated}, found["text"]
    if found["call"] == "startsWith" and not folded:
        return {"kind": "starts_with", **negated}, found["text"]
    if found["whole"] is not None and not folded and not negated:
        return {"kind": "equals"}, found["whole"]
    raise KeyError(code)
