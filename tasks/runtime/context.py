"""What every step of a run needs to know: which run, which suite, which lake, which options."""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, fields, replace
from datetime import datetime
from functools import cached_property
from importlib.metadata import version
from secrets import token_bytes
from typing import Any

from evalake.core.configuration import Configuration
from evalake.core.errors import ConfigurationError
from evalake.core.prompt_files import PROMPTS, TEMPLATES
from evalake.models import telemetry
from evalake.sdk import Item, Options, Suite
from evalake.sdk.sample import fence
from evalake.storage.lake import Lake
from evalake.storage.reservations import UNLIMITED, Ceiling
from evalake.storage.secret import BYTES, ensure_secret, read_secret
from evalake.suites.registry import suite as find_suite
from evalake.suites.registry import suite_names

CODE_VERSION = version("evalake")
SEED = 20_260


@dataclass(frozen=True)
class RunContext:
    """One run of one suite. Small, picklable and without keys, so that it can go to any worker.

    `attempt` names one process's way through the run. Workers of a cluster outlive it and must not take the next
    for it, and a flow run that is resumed keeps its run count. `started_at` is when that attempt began, by which
    `run_attempts` knows it; None for what has no attempts.
    """

    run_id: str
    suite_name: str
    lake: Lake
    configuration: Configuration
    attempt: str = ""
    trace: str | None = None  # the span of the whole run, where telemetry is on
    ceiling: Ceiling = UNLIMITED  # of the whole run, in all its attempts and processes
    started_at: datetime | None = None
    is_estimate: bool = False  # it leaves the lake as it is

    def __getstate__(self) -> dict[str, Any]:
        """Hand on what it was made of; what this process has found out besides, the secret above all, stays here."""
        return {each.name: getattr(self, each.name) for each in fields(self)}

    def scope(self, name: str, **fields: str) -> AbstractContextManager[None]:
        """Name a part of the run in logs and traces, while a block runs."""
        return telemetry.scope(name, parent=self.trace, run_id=self.run_id, suite=self.suite_name, **fields)

    @cached_property
    def suite(self) -> Suite:
        """The suite itself."""
        return find_suite(self.suite_name)

    @cached_property
    def options(self) -> Options:
        """The suite's options: its defaults under what the configuration says."""
        return options_of(self.suite, self.configuration)

    def fenced(self, item: Item) -> Item:
        """Give an item the fence of its sample by the lake's secret, where its suite asks for one."""
        return replace(item, fence=fence(item.sample.input, self._secret)) if self.suite.conversation.fenced else item

    @cached_property
    def _secret(self) -> bytes:
        """The secret of the lake. An estimate makes none: nothing was asked under a secret that is not there yet."""
        if self.is_estimate:
            return read_secret(self.lake) or token_bytes(BYTES)
        return ensure_secret(self.lake)


def options_of(suite: Suite, configuration: Configuration) -> Options:
    """Merge the suite's options: its defaults, overridden by what the configuration says.

    Raises ConfigurationError where the configuration names a suite or an option that there is not, or a target that no
    rate can reach.
    """
    if unknown := sorted(configuration.suites.keys() - set(suite_names())):
        raise ConfigurationError(
            f"the configuration has options of the suite {unknown[0]}: there are {', '.join(suite_names())}"
        )
    given = configuration.suites.get(suite.name, {})
    texts = ({PROMPTS} if suite.prompts.parts else set()) | ({TEMPLATES} if suite.prompts.sets else set())
    if unknown := sorted(given.keys() - suite.options.keys() - texts):
        there_are = ", ".join(suite.options) or "none"
        raise ConfigurationError(f"{suite.name} has no option {unknown[0]}: its options are {there_are}")
    _require_usable_templates(suite, given.get(TEMPLATES))
    _require_usable_prompts(suite, given.get(PROMPTS, {}))
    options = {name: value for name, value in {**suite.options, **given}.items() if value is not None}
    target = options.get("target", 0)
    if isinstance(target, bool) or not isinstance(target, int | float) or not 0 <= target <= 1:
        raise ConfigurationError(f"the option target of {suite.name} is a number from 0 to 1, not {target!r}")
    return options


def prompt_types_of(suite: Suite, options: Options) -> tuple[str, ...]:
    """List the suite's prompt types: its own, and those that the configuration adds."""
    return (*suite.prompts.types, *options.get(PROMPTS, {}))


def _require_usable_prompts(suite: Suite, prompts: Mapping[str, Mapping[str, str]]) -> None:
    for name, parts in prompts.items():
        place = f"suites.{suite.name}.{PROMPTS}.{name}"
        if name in suite.prompts.types:
            raise ConfigurationError(f"{place} has the name of a prompt type of the suite: give it another")
        _require_usable_parts(suite, place, parts)


def _require_usable_templates(suite: Suite, templates: object) -> None:
    place = f"suites.{suite.name}.{TEMPLATES}"
    if isinstance(templates, Mapping):
        _require_usable_parts(suite, place, templates)
    elif templates is not None and templates not in suite.prompts.sets:
        there_are = ", ".join(suite.prompts.sets)
        raise ConfigurationError(
            f"{place} is {templates!a}, which is no folder beside the configuration, and none of the sets {there_are}"
        )


def _require_usable_parts(suite: Suite, place: str, parts: Mapping[str, str]) -> None:
    if unknown := sorted(parts.keys() - set(suite.prompts.parts)):
        there_are = ", ".join(suite.prompts.parts)
        raise ConfigurationError(f"{place} has no part {unknown[0]}: the parts of a prompt are {there_are}")
    if suite.prompts.check is not None:
        try:
            suite.prompts.check(parts)
        except ConfigurationError as error:
            raise ConfigurationError(f"{place}: {error}") from error
