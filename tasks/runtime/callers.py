"""Callers: processes of this machine that make the calls of a run, each within its share of every provider's limits."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from prefect.context import FlowRunContext, SettingsContext, get_settings_context
from prefect.task_runners import ProcessPoolTaskRunner

from tasks.runtime.beside import end_with_parent
from tasks.runtime.sharing import share_with


def callers_of_flow_run() -> int:
    """Tell how many callers the current flow run has; 0 where its batches are called otherwise."""
    context = FlowRunContext.get()
    runner = context.task_runner if context else None
    return runner.count if isinstance(runner, _Callers) else 0


@contextmanager
def callers(count: int) -> Iterator[None]:
    """Have the batches submitted in the block called by `count` processes; with a count of 1, as the flow run does."""
    around = FlowRunContext.get()
    if count == 1 or around is None:
        yield
        return
    with _Callers(count) as runner, around.model_copy(update={"task_runner": runner}):
        yield


class _Callers(ProcessPoolTaskRunner):
    """Prefect's pool of processes, which begin as callers."""

    def __init__(self, max_workers: int) -> None:
        super().__init__(max_workers, (_settle_with(get_settings_context()),), _begin, (max_workers,))
        self.count = max_workers


def _hand_on(message_type: str, message_payload: Any) -> tuple[str, Any]:
    return message_type, message_payload


def _settle_with(around: SettingsContext) -> Callable[[], Callable[..., tuple[str, Any]]]:
    """Give Prefect's settings, such as where its server is, to the thread that hands on what callers log.

    Prefect calls what is returned on that thread. Without them, it would start a server of its own there.
    """

    def settle() -> Callable[..., tuple[str, Any]]:
        around.model_copy().__enter__()  # for as long as the thread lives
        return _hand_on

    return settle


def _begin(count: int) -> None:
    """Make this process one of `count` callers, for as long as the run's own process lives."""
    share_with(count)
    end_with_parent(_keep_answers)  # the run's process is interrupted, too, and ends its callers


def _keep_answers() -> None:
    """Keep what was answered by the end of the run's process."""
    from tasks.runtime.resources import end_calls_and_writers

    end_calls_and_writers("the process of the run has ended")
