"""A promptfoo configuration as a suite's file: the common subset, with a note for each part that was not understood."""

import itertools
import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from evalake.core.errors import EvalakeError, SuiteError
from evalake.core.files import MEGABYTE, FileRefusedError, Files
from evalake.sdk.sample import Record
from evalake.sdk.sources import as_text, read_table
from evalake.suites.declared.formats.values import as_list, as_mapping
from evalake.suites.declared.promptfoo_assertions import TABLES, as_scorer, of_row
from evalake.suites.declared.texts import Lines, PatternError, content, placed, plain_yaml, rendered, variables

_PARAMETERS: Sequence[str] = TABLES["fields"]["parameters"]


def is_config(given: Any) -> bool:
    """Tell whether a decoded YAML file is a configuration of promptfoo, rather than a suite's file."""
    if not isinstance(given, Mapping) or given.keys() & {"score", "scorers", "dataset", "samples"}:
        return False
    return bool(given.keys() & {"providers", "targets"}) or {"tests", "prompts"} <= given.keys()


def name_of(path: Path) -> str:
    """Name the suite after the file, or after its folder where the file has promptfoo's usual name."""
    stem = path.resolve().parent.name if path.stem == "promptfooconfig" else path.stem
    return _slug(stem) or "promptfoo"


def translate(given: Mapping[str, Any], path: Path, lines: Lines) -> tuple[dict[str, Any], list[str]]:
    """Write a configuration as the content of a suite's file; returns it, and what was not understood."""
    config = _Config(given, path, lines)
    return config.suite(), list(config.notes)


def _slug(text: str) -> str:
    plain = re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_")[:50].strip("_")
    return plain if not plain or plain[0].isalpha() else f"s_{plain}"


def _several(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


@dataclass
class _Config:
    given: Mapping[str, Any]
    path: Path
    lines: Lines
    notes: dict[str, None] = field(default_factory=dict)
    scorers: dict[str, dict[str, Any]] = field(default_factory=dict)  # by name
    judges: dict[str, None] = field(default_factory=dict)
    threshold: float | None = None  # the score from which a test passes, where all have the same

    def suite(self) -> dict[str, Any]:
        self._unknown(self.given, TABLES["fields"]["file"])
        models, parameters = self._providers()
        prompts = self._prompts()
        samples = list(self._samples(variables(json.dumps(prompts))))
        if not self.judges and any(each["kind"] == "judge" for each in self.scorers.values()):
            self.note("llm-rubric names no grader: give one with --judges", "tests")
        if len(self.judges) > 1:
            self.note(f"each of the graders {', '.join(self.judges)} judges every answer", "tests")
        return {
            "name": name_of(self.path),
            "title": as_text(self.given.get("description")) or "",
            "samples": samples,
            "prompts": prompts,
            "every_prompt": True,
            "reply": "raw",
            "scorers": list(self.scorers.values()),
            "models": models,
            "parameters": parameters,
            "judges": list(self.judges),
            "pass_from": self.threshold,
        }

    def note(self, what: str, *where: str) -> None:
        """Note what is not understood, once, with its line."""
        self.notes.setdefault(f"{placed(self.path, where, self.lines)}: {what}")

    def _unknown(self, given: Any, known: Collection[str], *where: str) -> set[str]:
        unknown = {str(each): None for each in as_mapping(given) if each not in known}
        for name in unknown:
            self.note("not understood, and left out", *where, name)
        return {*unknown}

    # Providers and prompts.

    def _providers(self) -> tuple[list[str], dict[str, Any]]:
        key = "providers" if "providers" in self.given else "targets"
        found: list[tuple[str, dict[str, Any]]] = []
        for number, each in enumerate(_several(self.given.get(key))):
            place, is_file = (key, str(number)), re.search(r"^file://.*\.(?:ya?ml|json)$", str(each))
            for provider in _several(self._content(each, *place)) if is_file else [each]:
                if (model := self._model(provider, *place)) is not None:
                    found.append((model, self._parameters(model, provider, *place)))
        shared = found[0][1] if found else {}
        if all(parameters == shared for _, parameters in found):
            return list(dict(found)), shared
        for model, parameters in found:
            written = f'model = "{model}", parameters = {json.dumps(parameters)}'
            self.note(f"providers differ in parameters: none are sent; write [models.NAME] {written} for it", key)
        return list(dict(found)), {}

    def _model(self, provider: Any, *where: str) -> str | None:
        """Name a provider's model as LiteLLM does."""
        inner = as_mapping(provider)
        name = inner.get("id") or next(iter(inner), None) if inner else provider
        found = re.fullmatch(r"(\w+):(?:(chat|messages|completion|responses):)?(.+)", str(name))
        whose = TABLES["providers"].get(found[1]) if found else None
        if found and whose is not None and (found[2] or found[1] == "ollama" or not re.match("[a-z-]+:", found[3])):
            whose = "ollama_chat" if (found[1], found[2]) == ("ollama", "chat") else whose
            return f"{whose}/{found[3]}" if whose else found[3]
        self.note(f"the provider {name!r} is not understood: name a model with --models", *where)
        return None

    def _parameters(self, model: str, provider: Any, *where: str) -> dict[str, Any]:
        inner = as_mapping(provider)
        inner = inner if "id" in inner else as_mapping(next(iter(inner.values()), None))
        self._unknown(inner, {"id", "label", "config"}, *where)
        config = as_mapping(inner.get("config"))
        for name in config.keys() & {"apiBaseUrl", "apiHost"}:
            self.note(f'write [models."{model}"] api_base = "{config[name]}" into evalake.toml', *where, "config", name)
        self._unknown(config, {*_PARAMETERS, "apiBaseUrl", "apiHost"}, *where, "config")
        return {name: config[name] for name in _PARAMETERS if name in config}

    def _prompts(self) -> dict[str, Any]:
        several = self.given.get("prompts") or "{{prompt}}"
        if isinstance(several, Mapping) and not several.keys() & {"id", "raw"}:
            several = [{"raw": raw, "label": label} for raw, label in several.items()]
        found: dict[str, Any] = {}
        for number, each in enumerate(_several(several)):
            inner, place = as_mapping(each), ("prompts", str(number))
            self._unknown(inner, {"id", "raw", "label"}, *place)
            name = _slug(str(inner.get("label") or ""))
            for text in self._texts(str(inner.get("raw") or inner.get("id") or each), *place):
                if (prompt := self._prompt(text, *place)) is not None:
                    found[name if name and name not in found else f"{name or 'prompt'}_{len(found) + 1}"] = prompt
        return found if len(found) != 1 else {"direct": next(iter(found.values()))}

    def _texts(self, raw: str, *where: str) -> Iterator[str]:
        """Yield the prompts of one entry: inline, of a file, or of the files that a pattern names."""
        files = self._files(raw)
        if not files and not raw.startswith("file://"):
            yield raw
        elif not files:
            self.note(f"there is no prompt {raw} in the folder of the file", *where)
        for file in files:
            text = self._read(file)
            if text is None or file.suffix not in ("", ".txt", ".md", ".j2", ".json", ".jsonl", ".yaml", ".yml"):
                self.note(f"the prompt {file.name} is not understood, and left out", *where)
                continue
            between = {".txt": r"(?m)^---\s*$", ".jsonl": r"\n"}.get(file.suffix)
            yield from filter(None, map(str.strip, re.split(between, text) if between else [text]))

    def _prompt(self, text: str, *where: str) -> dict[str, Any] | None:
        """Read a prompt: JSON or YAML of messages where it is one, else the user's text."""
        if not re.match(r"\s*(?:\[\s*\{\s*\"|- +role:)", text):
            return {"user": text}
        try:
            messages = json.loads(text) if text.lstrip().startswith("[") else plain_yaml(text)
            return {"messages": [{"role": each["role"], "content": _spoken(each["content"])} for each in messages]}
        except (ValueError, LookupError, TypeError, RecursionError, yaml.YAMLError):
            self.note("messages that are not plain texts are not understood: left out", *where)
            return None

    # Files beside the configuration: what leads out of its folder is not there.

    def _files(self, named: str) -> list[Path]:
        folder = self.path.resolve().parent
        pattern = named.removeprefix("file://").removeprefix("./")
        if len(pattern) > 250 or "\n" in pattern or Path(pattern).is_absolute() or ".." in Path(pattern).parts:
            return []
        try:
            found = sorted(each.resolve() for each in folder.glob(pattern) if each.is_file())
        except (ValueError, IndexError):  # no pattern
            return []
        return [each for each in found if each.is_relative_to(folder)]

    def _read(self, path: Path) -> str | None:
        try:
            return Files(self.path.resolve().parent, MEGABYTE).read(path).decode("utf-8-sig")
        except (FileRefusedError, UnicodeDecodeError):
            return None

    def _content(self, named: Any, *where: str) -> Any:
        """Decode the YAML or JSON files that a path or a pattern names: one as it is, several as one list."""
        files = [file for name in _several(named) for file in self._files(str(name))]
        if not files:
            self.note(f"there is no file {named} in the folder of the file", *where)
        read: list[Any] = []
        for file in files:
            try:
                if file.suffix == ".jsonl":
                    read += [json.loads(line) for line in (self._read(file) or "").split("\n") if line.strip()]
                else:
                    read.append(content(file)[0])
            except (SuiteError, ValueError, RecursionError) as error:
                self.note(f"{file.name} is not understood: {error}", *where)
        return read[0] if len(read) == 1 else [each for one in read for each in _several(one)]

    # Tests become samples, and each assertion a scorer with what it expects in the sample's target.

    def _samples(self, asked: set[str]) -> Iterator[dict[str, Any]]:
        usual = self.given.get("defaultTest")
        usual = as_mapping(self._content(usual, "defaultTest") if isinstance(usual, str) else usual)
        blind = self._is_blinding(usual, "defaultTest")
        tests = [(test, where, self._vars(test, usual, *where)) for test, where in self._tests()]
        names = {name for _, _, given in tests for name in given}
        for name in sorted(asked - names):
            self.note(f"no test has the var {name}: it is empty", "prompts")
        thresholds = {_least(test, usual) for test, _, _ in tests}
        if len(thresholds) > 1:
            self.note("thresholds differ: the tests that have one get no verdict", "tests")
        else:
            self.threshold = next(iter(thresholds), None)
        number = 0
        for test, where, several in tests:
            unseen = self._is_blinding(test, *where) or blind
            unseen = unseen or _least(test, usual) != self.threshold
            for given in self._expanded(several, *where):
                number += 1
                asserted = self._asserted(usual, given, {}, unseen, "defaultTest")
                asserted = self._asserted(test, given, asserted, unseen, *where)
                if not asserted:
                    self.note("no assertion that is understood: left out", *where)
                    continue
                yield {
                    **as_mapping(usual.get("metadata")),
                    **as_mapping(test.get("metadata")),
                    **dict.fromkeys(names | asked),
                    **given,
                    **({"description": test["description"]} if test.get("description") else {}),
                    "sample_id": f"test_{number}",
                    "target": asserted,
                }

    def _is_blinding(self, test: Mapping[str, Any], *where: str) -> bool:
        """Tell whether a test says something unknown by which it is asked or judged: then it has no verdict."""
        unknown = self._unknown(test, TABLES["fields"]["test"], *where).difference(TABLES["fields"]["narrowing"])
        return bool(self._unknown(test.get("options"), {"provider"}, *where, "options") or unknown)

    def _tests(self) -> Iterator[tuple[dict[str, Any], tuple[str, ...]]]:
        tests = self.given.get("tests")
        for number, each in enumerate(_several(tests)):
            where = ("tests", str(number)) if isinstance(tests, list) else ("tests",)
            named = as_mapping(each).get("path", each)
            for test in self._tests_in(named, *where) if isinstance(named, str) else [each]:
                if isinstance(test, dict):
                    yield test, where
                else:
                    self.note("not understood, and left out", *where)

    def _tests_in(self, name: str, *where: str) -> Iterator[Any]:
        """Read tests of a file: a table whose columns are vars, and whose `__expected` columns are assertions."""
        files = self._files(name)
        if not files or files[0].suffix in (".yaml", ".yml", ".json", ".jsonl"):
            yield from _several(self._content(name, *where))
            return
        try:
            for record in (record for file in files for record in read_table(file, ())):
                if isinstance(record, Record):
                    yield of_row(record.values)
                else:
                    self.note(f"{record.where}: {record.reason}", *where)
        except EvalakeError as error:
            self.note(str(error), *where)

    def _vars(self, test: Mapping[str, Any], usual: Mapping[str, Any], *where: str) -> dict[str, Any]:
        own = test.get("vars")
        read = self._content(own, *where, "vars") if isinstance(own, str | list) else own
        return {**as_mapping(usual.get("vars")), **as_mapping(read)}

    def _expanded(self, several: Mapping[str, Any], *where: str) -> Iterator[dict[str, Any]]:
        """Yield a test's vars: one set for each combination of texts, where a var lists or names several."""
        lists = {}
        for name, value in several.items():
            texts = value if isinstance(value, list) and value and isinstance(value[0], str) else [value]
            lists[name] = [each for text in texts for each in self._text_or_file(text, *where, "vars", name)]
        for values in itertools.product(*lists.values()):
            given = dict(zip(lists, values, strict=True))
            yield {name: _nested(value, given) for name, value in given.items()}

    def _text_or_file(self, value: Any, *where: str) -> list[Any]:
        if not isinstance(value, str) or not value.startswith("file://"):
            return [value.removesuffix("\n") if isinstance(value, str) else value]
        files = [file for file in self._files(value) if file.suffix in ("", ".txt", ".md", ".json")]
        read = [text.strip() for file in files if (text := self._read(file)) is not None]
        if not read:
            self.note(f"the file {value} cannot be read as text", *where)
        return read or [None]

    def _asserted(
        self, test: Mapping[str, Any], given: Mapping[str, Any], before: Mapping[str, Any], blind: bool, *where: str
    ) -> dict[str, Any]:
        """Add what a test's assertions expect, by scorer."""
        expected = dict(before)
        if (grader := as_mapping(test.get("options")).get("provider")) is not None:
            self._grader(grader, *where, "options", "provider")
        for number, each in enumerate(_several(test.get("assert"))):
            place = (*where, "assert", str(number))
            for assertion in self._flattened(each, *place):
                if assertion.get("weight") == 0:
                    self.note("weight 0 decides nothing: left out", *place)
                    continue
                known = not blind and not self._unknown(assertion, TABLES["fields"]["assertion"], *place)
                scorer, value = self._scorer(assertion, given, known, *place)
                expected[self._called(scorer, assertion, expected)] = value
        return expected

    def _flattened(self, each: Any, *where: str) -> Iterator[Mapping[str, Any]]:
        if isinstance(each, dict) and isinstance(each.get("$ref"), str):
            template = as_mapping(self.given.get("assertionTemplates")).get(each["$ref"].rpartition("/")[2])
            each = {**as_mapping(template), **each}
        if not isinstance(each, dict) or "type" not in each:
            yield {"type": "unknown", "value": each}
        elif each["type"] == "assert-set" and not each.keys() & {"threshold", "weight"}:
            for inner in as_list(each.get("assert")):
                yield from self._flattened(inner, *where)
        else:
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
        self, assertion: Mapping[str, Any], given: Mapping[str, Any], known: bool, *where: str
    ) -> tuple[dict[str, Any], Any]:
        """Write an assertion as a scorer, and what it expects of this sample."""
        kind, value = str(assertion["type"]), assertion.get("value")
        plain = kind.removeprefix("not-")
        shared = {"weight": assertion.get("weight", 1), **({"negate": True} if plain != kind else {})}
        try:
            if not known:
                raise KeyError(kind)
            read = value if plain in ("python", "javascript") else self._text_or_file(value, *where)[0]
            if assertion.get("provider") is not None:
                self._grader(assertion["provider"], *where, "provider")
            scorer, expected = as_scorer(plain, self._filled(read, given), assertion)
        except (SuiteError, yaml.YAMLError, LookupError, ValueError, TypeError, RecursionError) as error:
            why = f" ({error})" if isinstance(error, SuiteError | PatternError) else ""
            self.note(f"{kind} is not understood: no verdict is given where everything else holds{why}", *where)
            return {"kind": "unknown", "weight": shared["weight"]}, as_text(value) or kind
        return {**shared, **scorer}, expected

    def _filled(self, value: Any, given: Mapping[str, Any]) -> Any:
        if isinstance(value, str):
            return rendered(value, given) if "{{" in value or "{%" in value else value
        return [self._filled(each, given) for each in value] if isinstance(value, list) else value

    def _grader(self, provider: Any, *where: str) -> None:
        provider = as_mapping(provider).get("text", provider)
        if (model := self._model(provider, *where)) is not None:
            self._parameters(model, provider, *where)
            self.judges.setdefault(model)


def _least(test: Mapping[str, Any], usual: Mapping[str, Any]) -> float | None:
    """Find the score from which a test passes; None where every assertion must hold."""
    given = test.get("threshold", usual.get("threshold"))
    return given if isinstance(given, int | float) else None


def _nested(value: Any, given: Mapping[str, Any]) -> Any:
    """Put other vars where a var names them."""
    if not isinstance(value, str):
        return value
    return re.sub(r"\{\{\s*(\w+)\s*\}\}", lambda named: str(given.get(named[1], named[0])), value)


def _spoken(content: Any) -> str:
    """Read a message's text, plain or in parts. Raises TypeError where it is none."""
    return "\n".join([part["text"] for part in content] if isinstance(content, list) else [content])
