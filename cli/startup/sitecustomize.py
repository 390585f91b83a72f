"""Replaces a few functions of Prefect, in the command and in every Python it starts, as soon as they are loaded.

They keep the working directory's settings and code out, have those who write to a server's SQLite database wait, have
a worker's flow runs begin at once, have a flow run end when it is over, and read certificates and the names of time
zones once.

Prefect reads `.env`, `prefect.toml` and `pyproject.toml` of the folder it is imported in, and one of its settings names
a file that runs code. Its server and its flow runs put that folder where modules are looked for first. Its environment
variables and the user's profiles stay.

A transaction of its server reads first, and asks to write when it comes to that: where another has written meanwhile,
SQLite refuses it at once, however long it may wait. The server then answers 503, and its clients wait two seconds, then
four. A hundred flow runs, created by ten clients, took 14 s; they take 2 s where each asks to write as it begins.

Where no command is configured, a worker of the type `process` first starts another process, which imports Prefect for
two seconds, takes the deployment's pull steps and then becomes the engine, so that pull steps can choose what it is
installed with. The engine takes these steps itself, and evalake is installed. It imports Prefect, LiteLLM and the rest
for four seconds more; so the flow runs of a worker are copies of one process that has (`cli/warm/flow_runs.py`).

A thread sends a flow run's heartbeats, and looks once a second whether the run is over; the flow run waited for that,
half a second in the mean. Prefect's own asynchronous flows do not wait for theirs.

The names of all time zones are read from some 600 files for each schedule that is made, and the server makes one for
each that an answer tells of: 7 ms of processor. The certificates of all authorities are read for each client of a
server, also where its address has no TLS: 20 ms, and a flow run makes a dozen clients.

The command calls `install`; a Python that is started finds this file by its
name, for `cli.environment` puts this folder into PYTHONPATH.
"""

import gc
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache, partial
from importlib import import_module
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

SEEN_IN = "3.8"  # the version of Prefect whose names these are


def _nothing(*_: object, **__: object) -> dict[str, str]:
    return {}


def _none(*_: object) -> None:
    return None


def _in_home_only(load: Callable[[str], ModuleType]) -> Callable[[str], ModuleType]:
    """Load modules of the working directory where that is EVALAKE_HOME, whose owner chose it, and else not."""

    def load_module(name: str) -> ModuleType:
        home = os.environ.get("EVALAKE_HOME")
        return load(name) if home and Path(home).resolve() == Path.cwd() else import_module(name)

    return load_module


def _asking_to_write_at_once(begin: Callable[..., Any]) -> Callable[..., Any]:
    def begin_transaction(self: Any, session: Any, with_for_update: bool = False) -> Any:
        del with_for_update  # what begins a transaction writes; what only reads begins none
        return begin(self, session, with_for_update=True)

    return begin_transaction


def _as_a_copy(prepare: Callable[..., None]) -> Callable[..., None]:
    @cache
    def warm() -> Any:
        from cli.warm.flow_runs import WarmFlowRuns

        return WarmFlowRuns()

    def prepare_for_flow_run(self: Any, *arguments: Any, **named: Any) -> None:
        is_configured = self.command is not None
        self.command = self.command or "evalake"  # a command that is configured is started at once
        prepare(self, *arguments, **named)
        if not is_configured:
            from prefect.settings import get_current_settings

            settings = get_current_settings().to_environment_variables(exclude_unset=True)
            environment = {**os.environ, **self.env, **settings}  # as it will be told to the flow run
            self.command = warm().command({name: value for name, value in environment.items() if value is not None})

    return prepare_for_flow_run


def _reading_certificates_once(module: ModuleType) -> SimpleNamespace:
    @lru_cache(maxsize=8)
    def context(cafile: str, _changed_at: int) -> Any:
        return module.create_default_context(cafile=cafile)

    def create_default_context(**named: Any) -> Any:
        if named.keys() == {"cafile"}:  # any other is changed by who asks for it
            return context(named["cafile"], os.stat(named["cafile"]).st_mtime_ns)  # noqa: PTH116 - pathlib takes time
        return module.create_default_context(**named)

    return SimpleNamespace(**{**vars(module), "create_default_context": create_default_context})


# By module, what is replaced there, and by what
_REPLACED: Mapping[str, Mapping[str, Callable[[Any], Any]]] = {
    "prefect.settings.sources": {
        "FilteredDotEnvSettingsSource._read_env_files": lambda _: _nothing,
        # Its base is made for every group of settings, too, only to be put aside: a hundred times for one import
        "DotEnvSettingsSource._read_env_files": lambda _: _nothing,
        "TomlConfigSettingsSourceBase._read_files": lambda _: _nothing,
        # These tell where the profiles are, and are read apart from the settings
        "dotenv": lambda _: SimpleNamespace(dotenv_values=_nothing),
        "_get_profiles_path_from_toml": lambda _: _none,
    },
    "prefect.utilities.importtools": {"load_module": _in_home_only},  # by which a flow run finds its flow
    # `.`, when a server looks at its database
    "alembic.config": {"Config.get_prepend_sys_paths_list": lambda _: _none},
    "prefect.workers.process": {"ProcessJobConfiguration.prepare_for_flow_run": _as_a_copy},
    "prefect.types._datetime": {"available_timezones": lru_cache},
    "prefect.client.orchestration": {"ssl": _reading_certificates_once},
    "prefect._internal.version_checking": {"ssl": _reading_certificates_once},
    "prefect.flow_engine": {"_send_heartbeats": lambda send: partial(send, join_on_exit=False)},
    "prefect.server.database.configurations": {"AioSqliteConfiguration.begin_transaction": _asking_to_write_at_once},
}


def install() -> None:
    """Replace the functions in `_REPLACED`, now or when they are loaded, and spare work of imports.

    Must run before Prefect is used.
    """
    # Imports make tens of thousands of objects that stay: looking through them for garbage took a tenth of their time.
    gc.set_threshold(50_000, 10, 10)
    # Prefect imports jsonschema, which compiles a grammar for a second where this package is: every Jupyter brings it,
    # and nothing here asks whether text is an IRI.
    sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]
    if any(isinstance(finder, _Finder) for finder in sys.meta_path):
        return
    for name in _REPLACED.keys() & sys.modules.keys():
        replace(sys.modules[name])
    sys.meta_path.insert(0, _Finder())


def replace(module: ModuleType) -> None:
    """Replace the functions of one module.

    Raises ImportError where the module is not as it is known here: what it reads is then unknown.
    """
    for path, replacement in _REPLACED[module.__name__].items():
        owner: Any = module
        *owners, name = path.split(".")
        for each in owners:
            owner = getattr(owner, each, None)
        if not hasattr(owner, name):
            raise ImportError(f"evalake does not know this Prefect: {module.__name__} has no {path}")
        setattr(owner, name, replacement(getattr(owner, name)))


class _Finder(MetaPathFinder):
    """Finds those modules where they are, and replaces functions of each as soon as it has been loaded."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname not in _REPLACED:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            loader, load = spec.loader, spec.loader.exec_module

            def load_and_replace(module: ModuleType) -> None:
                load(module)
                replace(module)

            loader.exec_module = load_and_replace  # type: ignore[method-assign]
        return spec


def _let_the_next_one_in() -> None:
    """Import the sitecustomize that this one hides, if there is one."""
    here = Path(__file__).resolve().parent
    sys.path[:] = [entry for entry in sys.path if not entry or Path(entry).resolve() != here]
    this = sys.modules.pop("sitecustomize")
    try:
        import_module("sitecustomize")
    except ModuleNotFoundError:
        sys.modules["sitecustomize"] = this


if __name__ == "sitecustomize":
    install()
    _let_the_next_one_in()
