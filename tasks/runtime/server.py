"""Whether the Prefect server that is named can be used, found out before anything begins."""

from pathlib import Path
from tempfile import TemporaryFile

from core.errors import EvalakeError


class ServerError(EvalakeError):
    """The Prefect server that is named does not answer, or does not let us in."""


def require_server() -> None:
    """Raise ServerError where a Prefect server is named and cannot be used.

    Without a name, Prefect starts its own, for which it needs a folder; it would wait minutes to say that it has none.
    """
    import httpx
    from prefect.client.orchestration import get_client
    from prefect.exceptions import PrefectException
    from prefect.settings import get_current_settings

    from core.redaction import redact

    settings = get_current_settings()
    named = settings.api.url
    if not named:
        _require_writable(settings.home)
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


def _require_writable(home: Path) -> None:
    try:
        home.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=home):
            pass
    except OSError as error:
        raise ServerError(f"Prefect cannot write to {home} ({error.strerror}): set PREFECT_HOME to a folder") from error
