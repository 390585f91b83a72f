"""How many processes share the limits of each provider; known without Prefect, for code that only reads a lake."""

_processes = 1  # with this one


def processes_sharing() -> int:
    """Tell how many processes, with this one, share the limits of each provider: 1 in a process that is no caller."""
    return _processes


def share_with(processes: int) -> None:
    """Make this process one of `processes` that share the limits."""
    global _processes
    _processes = processes
