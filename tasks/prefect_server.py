"""Whether the Prefect server that is named can be used, found out before anything begins."""

from contracts.errors import EvalakeError


class ServerError(EvalakeError):
    """The Prefect server that is named does not answer, or does not let us in."""


def require_server() -> None:
    """Raise ServerError where a Prefect server is named and cannot be used. Without a name, Prefect starts its own."""
    import httpx
    from prefect.client.orchestration import get_client
    from prefect.exceptions import PrefectException
    from prefect.settings import get_current_settings

    from providers.redaction import redact

    named = get_current_settings().api.url
    if not named:
        return
    url = redact(named)
    try:
        with get_client(sync_client=True) as client:
            client.request("GET", "/admin/version").raise_for_status()
    except httpx.HTTPStatusError as error:
        if error.response.status_code in (401, 403):
            raise ServerError(f"the Prefect server at {url} refuses: is PREFECT_API_AUTH_STRING right?") from error
        raise ServerError(f"the Prefect server at {url} answers HTTP {error.response.status_code}") from error
    except (httpx.HTTPError, OSError, RuntimeError, PrefectException) as error:
        raise ServerError(
            f"no Prefect server answers at {url}: start it, correct PREFECT_API_URL, or unset it to run without one"
        ) from error
