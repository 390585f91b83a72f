"""The context of a run that every step gets: run, suite, lake, configuration, options."""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, fields, replace
from datetime import datetime
from functools import cached_property
from importlib.metadata import version
from secrets import token_bytes
from typing import Any

from evalake.core.configuration import PROMPTS, TEMPLATES, Configuration
from evalake.core.errors import ConfigurationError
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
    """One run of one suite: small, picklable and without keys, so that it can go to any worker.

    `attempt` is a random name of one attempt's process, because a cluster's workers outlive it. `started_at` is the
    begin of the attempt in `run_attempts`; None for work without attempts.
    """

    run_id: str
    suite_name: str
    lake: Lake
    configuration: Configuration
    attempt: str = ""
    trace: str | None = None  # the span of the whole run, with telemetry
    ceiling: Ceiling = UNLIMITED  # for all attempts and processes of the run
    started_at: datetime | None = None
    is_estimate: bool = False  # it writes nothing to the lake
    batched: frozenset[str] = frozenset()  # real models whose requests may be in batch jobs

    def __getstate__(self) -> dict[str, Any]:
        """Pickle the fields, without cached values like the secret."""
        return {each.name: getattr(self, each.name) for each in fields(self)}

    def scope(self, name: str, **fields: str) -> AbstractContextManager[None]:
        """Name a part of the run in logs and traces during a block."""
        return telemetry.scope(name, parent=self.trace, run_id=self.run_id, suite=self.suite_name, **fields)

    @cached_property
    def suite(self) -> Suite:
        """The suite itself."""
        return find_suite(self.suite_name, self.lake)

    @cached_property
    def options(self) -> Options:
        """The suite's options: its defaults, overridden by the configuration."""
        return options_of(self.suite, self.configuration)

    def fenced(self, item: Item) -> Item:
        """Add the fence of its sample, by the lake's secret, to an item of a suite with fences."""
        return replace(item, fence=fence(item.sample.input, self._secret)) if self.suite.conversation.fenced else item

    @cached_property
    def _secret(self) -> bytes:
        """The secret of the lake. An estimate creates none, but uses a random one."""
        if self.is_estimate:
            return read_secret(self.lake) or token_bytes(BYTES)
        return ensure_secret(self.lake)


def options_of(suite: Suite, configuration: Configuration) -> Options:
    """Merge the suite's options: its defaults, overridden by the configuration.

    Raises ConfigurationError for an unknown suite or option, or a target outside 0 to 1.
    """
    if unknown := sorted(configuration.suites.keys() - set(suite_names())):
        raise ConfigurationError(
            f"the configuration has options of the unknown suite {unknown[0]}: choose one of {', '.join(suite_names())}"
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
        raise ConfigurationError(f"the option target of {suite.name} must be a number from 0 to 1, not {target!r}")
    return options


def prompt_types_of(suite: Suite, options: Options) -> tuple[str, ...]:
    """List the suite's prompt types, with those of the configuration."""
    return (*suite.prompts.types, *options.get(PROMPTS, {}))


def _require_usable_prompts(suite: Suite, prompts: Mapping[str, Mapping[str, str]]) -> None:
    for name, parts in prompts.items():
        place = f"suites.{suite.name}.{PROMPTS}.{name}"
        if name in suite.prompts.types:
            raise ConfigurationError(f"{place} has the name of a prompt type of the suite: rename it")
        _require_usable_parts(suite, place, parts)


def _require_usable_templates(suite: Suite, templates: object) -> None:
    place = f"suites.{suite.name}.{TEMPLATES}"
    if isinstance(templates, Mapping):
        _require_usable_parts(suite, place, templates)
    elif templates is not None and templates not in suite.prompts.sets:
        there_are = ", ".join(suite.prompts.sets)
        raise ConfigurationError(
            f"{place} is {templates!a}: name a folder beside the configuration, or one of the sets {there_are}"
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
