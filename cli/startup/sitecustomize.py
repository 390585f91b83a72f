"""Keeps Prefect from taking settings out of the working directory, in the command and in every Python it starts.

Prefect reads `.env`, `prefect.toml` and `pyproject.toml` of the folder it is imported in, and one of its settings names
a file that runs code. Its environment variables and the user's profiles stay. The command calls `install`; a Python
that is started finds this file by its name, for `cli.environment` puts this folder into PYTHONPATH.
"""

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType, SimpleNamespace

SEEN_IN = "3.8"  # the version of Prefect whose names these are
_SOURCES = "prefect.settings.sources"
_READ_THERE = (  # what reads files of the working directory in that module
    ("FilteredDotEnvSettingsSource", "_read_env_files"),
    # Its base is made for every group of settings, too, only to be put aside: a hundred times for one import
    ("DotEnvSettingsSource", "_read_env_files"),
    ("TomlConfigSettingsSourceBase", "_read_files"),
)


def install() -> None:
    """Close those files to Prefect. Must run before Prefect is imported."""
    if _SOURCES in sys.modules:
        close(sys.modules[_SOURCES])
    elif not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


def close(sources: ModuleType) -> None:
    """Have the module read nothing but the environment and profiles.

    Raises ImportError where it is not as it is known here: then nobody knows what it reads.
    """
    for owner, method in _READ_THERE:
        if not hasattr(getattr(sources, owner, None), method):
            raise ImportError(f"evalake does not know this Prefect: {_SOURCES} has no {owner}.{method}")
        setattr(getattr(sources, owner), method, _nothing)
    # These tell where the profiles are, and are read apart from the settings.
    for name, closed in (("dotenv", SimpleNamespace(dotenv_values=_nothing)), ("_get_profiles_path_from_toml", _none)):
        if not hasattr(sources, name):
            raise ImportError(f"evalake does not know this Prefect: {_SOURCES} has no {name}")
        setattr(sources, name, closed)


def _nothing(*_: object, **__: object) -> dict[str, str]:
    return {}


def _none(*_: object) -> None:
    return None


class _Finder(MetaPathFinder):
    """Finds that one module where it is, and closes it as soon as it has been loaded."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != _SOURCES:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            loader, load = spec.loader, spec.loader.exec_module

            def load_closed(module: ModuleType) -> None:
                load(module)
                close(module)

            loader.exec_module = load_closed  # type: ignore[method-assign]
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
