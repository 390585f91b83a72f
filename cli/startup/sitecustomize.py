"""Keeps the working directory's settings and code out of Prefect, in the command and in every Python it starts.

Prefect reads `.env`, `prefect.toml` and `pyproject.toml` of the folder it is imported in, and one of its settings names
a file that runs code. Its server and its flow runs put that folder where modules are looked for first. Its environment
variables and the user's profiles stay.

The command calls `install`; a Python that is started finds this file by its
name, for `cli.environment` puts this folder into PYTHONPATH.
"""

import gc
import os
import sys
from collections.abc import Callable, Mapping, Sequence
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
