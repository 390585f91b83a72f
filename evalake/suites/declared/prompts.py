"""What a declared suite asks: Jinja templates in a sandbox over the columns of a sample, after worked examples."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evalake.core.errors import SuiteError
from evalake.core.files import MEGABYTE, FileRefusedError, Files
from evalake.suites.declared.file import SuiteFile
from evalake.suites.declared.parts import Message, Prompt
from evalake.suites.declared.samples import example_rows
from evalake.suites.declared.templates import rendered


def inside(file: SuiteFile, name: str) -> Path:
    """Find a file that a suite's file names, in its folder. Raises SuiteError where it lies elsewhere."""
    path = (file.folder / name).resolve()
    if not path.is_relative_to(file.folder.resolve()):
        raise SuiteError(f"{file.path}: {name} lies outside of the folder of the suite: move it there")
    if not path.is_file():
        raise SuiteError(f"{file.path}: there is no file {name} in the folder of the suite")
    return path


def text_of(file: SuiteFile, prompt: Prompt) -> str:
    """Find the user's part of a prompt, inline or in its file: the last message of a chat."""
    if prompt.file is None:
        return prompt.user or prompt.messages[-1].content
    path = inside(file, prompt.file)
    try:
        return Files(path.parent, MEGABYTE).read(path).decode("utf-8")
    except (FileRefusedError, UnicodeDecodeError) as error:
        raise SuiteError(f"{file.path}: the prompt {prompt.file} cannot be read: {error}") from error


class Prompter:
    """Renders the prompts of a suite; files are read once."""

    def __init__(self, file: SuiteFile) -> None:
        self._file = file
        self._texts: dict[str, str] = {}
        self._examples: dict[str, list[dict[str, Any]]] = {}

    def messages(self, prompt_type: str, columns: Mapping[str, Any]) -> tuple[Mapping[str, str], ...]:
        """Write the messages about a sample. Raises SuiteError where a template cannot be filled."""
        prompt, text = self._prompt(prompt_type)
        messages = []
        if prompt.system is not None:
            messages.append({"role": "system", "content": rendered(prompt.system, columns)})
        for example in self._of(prompt_type, prompt, columns):
            messages.append({"role": "user", "content": rendered(text, example)})
            messages.append({"role": "assistant", "content": rendered(prompt.answer, example)})
        chat = prompt.messages or (Message(role="user", content=text),)
        messages += [{"role": each.role, "content": rendered(each.content, columns)} for each in chat]
        return tuple(messages)

    def flaw(self, columns: Mapping[str, Any]) -> str | None:
        """Say why no prompt can be written about a sample; None where all can."""
        try:
            for prompt_type in self._file.prompts:
                self.messages(prompt_type, columns)
        except SuiteError as error:
            return f"its prompt cannot be written: {error}"
        return None

    def asked(self, prompt_type: str, columns: Mapping[str, Any]) -> str:
        """Write the last message about a sample, without system text and examples: what is asked of it."""
        return rendered(self._prompt(prompt_type)[1], columns)

    def text(self, prompt_type: str) -> str:
        """Find the template of the last message."""
        return self._prompt(prompt_type)[1]

    def _prompt(self, prompt_type: str) -> tuple[Prompt, str]:
        prompt = self._file.prompts.get(prompt_type)
        if prompt is None:
            raise SuiteError(f"{self._file.path} has no prompt {prompt_type} any more")
        if prompt_type not in self._texts:
            self._texts[prompt_type] = text_of(self._file, prompt)
        return prompt, self._texts[prompt_type]

    def _of(self, prompt_type: str, prompt: Prompt, columns: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Choose the examples; one that is the sample itself would give its answer away."""
        if prompt.examples is None:
            return []
        if prompt_type not in self._examples:
            self._examples[prompt_type] = example_rows(self._file, inside(self._file, prompt.examples))
        others = [each for each in self._examples[prompt_type] if _asked(each) != _asked(columns)]
        return others[: prompt.shots]


def _asked(columns: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in columns.items() if name != "sample_id"}
