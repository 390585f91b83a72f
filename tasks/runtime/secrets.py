"""Secrets: the values of Prefect Secret blocks, read from the server when they are needed, and kept nowhere."""

from core.errors import ProviderError


def read_secret(name: str) -> str:
    """Read the text in the Secret block `name`. Raises ProviderError where there is none, or no server with it."""
    import httpx
    from prefect.blocks.system import Secret
    from prefect.exceptions import PrefectException
    from prefect.settings import get_current_settings

    from tasks.runtime.server import require_server

    if not get_current_settings().api.url:
        raise ProviderError(f"the Secret block {name} is on a Prefect server: name it with PREFECT_API_URL")
    try:
        value = Secret.load(name, _sync=True).get()  # type: ignore[call-arg, union-attr]
    except ValueError as error:
        raise ProviderError(f"the Prefect server has no Secret block {name}: create it under Blocks") from error
    except (httpx.HTTPError, RuntimeError, PrefectException) as error:
        require_server()
        raise ProviderError(f"the Secret block {name} cannot be read: {type(error).__name__}") from error
    if not isinstance(value, str):
        raise ProviderError(f"the Secret block {name} holds no text: put the key itself into it")
    return value
