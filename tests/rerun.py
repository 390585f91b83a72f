"""Which tests have passed in the last run, so that `--not-passed` runs all others: what failed, or was not reached.

`--last-failed` would leave out what was not run since a process crashed.
"""

import pytest

OPTION = "--not-passed"
PASSED = "evalake/passed"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option."""
    parser.addoption(OPTION, action="store_true", help="run what failed in the last run, or was not reached by it")


def pytest_configure(config: pytest.Config) -> None:
    """Take notes where the reports of all processes come together, unless pytest is to keep none."""
    if not hasattr(config, "cache"):  # it was asked for by `-p no:cacheprovider`
        if config.getoption(OPTION):
            raise pytest.UsageError(f"{OPTION} needs what pytest keeps: leave out -p no:cacheprovider")
    elif not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Notes(config))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what has passed, where that is asked for."""
    if config.getoption(OPTION):
        passed = _passed(config)
        config.hook.pytest_deselected(items=[item for item in items if item.nodeid in passed])
        items[:] = [item for item in items if item.nodeid not in passed]


class _Notes:
    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._ended: set[str] = set()
        self._failed: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note the end of a test, or a failure in one of its phases."""
        if report.failed:
            self._failed.add(report.nodeid)
        if report.when == "teardown":
            self._ended.add(report.nodeid)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Keep what has passed; where nothing was left to run, the run was a success."""
        asked = self._config.getoption(OPTION)
        before = _passed(self._config) if asked else frozenset[str]()
        assert self._config.cache is not None
        self._config.cache.set(PASSED, sorted((before | self._ended) - self._failed))
        if asked and session.exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED:
            session.exitstatus = pytest.ExitCode.OK


def _passed(config: pytest.Config) -> frozenset[str]:
    assert config.cache is not None
    return frozenset(config.cache.get(PASSED, []))
