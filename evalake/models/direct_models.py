"""Builds requests and reads answers of each provider by LiteLLM's provider classes.

LiteLLM's classes map the parameters, build the request and read the reply. For the providers in the table DIRECT, a
test proves that requests and replies equal those of `litellm.acompletion`.
"""

import json
import os
from collections.abc import Mapping
from copy import deepcopy
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from evalake.models import litellm_internals as internals
from evalake.models.endpoints import key_of
from evalake.models.litellm_setup import load
from evalake.models.routes import Route
from evalake.models.streams import STREAMED

if TYPE_CHECKING:
    import httpx


class DirectModel:
    """One model with one set of parameters, used as LiteLLM's own HTTP handler does."""

    default_base: ClassVar[str | None] = None
    base_variables: ClassVar[tuple[str, ...]] = ()
    extra_body_is_merged: ClassVar[bool] = True
    stream_is_in_body: ClassVar[bool] = True
    answers_like_openai: ClassVar[bool] = True
    key_header: ClassVar[str | None] = None  # instead of LiteLLM's headers
    needs: ClassVar[Mapping[str, Any]] = {}  # what LiteLLM's reader cannot do without; it counts as not stated
    unless_set: ClassVar[tuple[str, ...]] = ()
    """Environment variables that only LiteLLM itself handles."""

    def __init__(self, route: Route, parameters: Mapping[str, Any], stream: bool = False) -> None:
        self.route = route
        self.provider = route.provider
        self.parameters = dict(parameters)
        self.wants_stream = stream
        self.extra_headers: dict[str, str] = dict(self.parameters.pop("extra_headers", None) or {})
        given = route.arguments.get("api_base") or next(filter(None, map(os.environ.get, self.base_variables)), None)
        key = route.arguments.get("api_key") or key_of(self.provider)
        self.model, _, dynamic_key, base = load().get_llm_provider(route.model, api_base=given, api_key=key)
        self.api_base: str | None = base or self.default_base
        self.api_key: str | None = dynamic_key or key
        self.settings = internals.provider_class(self.provider, self.model)
        self.further = internals.call_parameters(self.provider, self.api_key, self.api_base)

    @classmethod
    def possible(cls, route: Route) -> bool:
        """Tell whether none of the variables in `unless_set` is set."""
        return not any(map(os.environ.get, cls.unless_set))

    @cached_property
    def mapped(self) -> dict[str, Any]:
        """The parameters by the provider's names. LiteLLM changes them, so each request gets a copy."""
        anything: internals.Messages = [{"role": "user", "content": ""}]
        given = {**self.parameters, **(STREAMED if self.wants_stream else {})}
        return internals.provider_parameters(self.provider, self.model, anything, given, self.wants_stream or None)

    @cached_property
    def streams(self) -> bool:
        """Whether the answer is streamed; LiteLLM knows models that cannot stream."""
        return self.wants_stream and not (
            self.mapped.get("fake_stream") or self.settings.should_fake_stream(self.model, True, self.provider)
        )

    def request(self, messages: internals.Messages) -> tuple[str, dict[str, str], dict[str, Any]]:
        """Build address, headers and body."""
        mapped = deepcopy(self.mapped)
        for internal in ("json_mode", "fake_stream"):  # LiteLLM's own marks
            mapped.pop(internal, None)
        extra_body = mapped.pop("extra_body", None) if self.extra_body_is_merged else None
        headers = self.headers(messages, mapped)
        address = self.address(mapped)
        body = self.body(messages, mapped, headers)
        if extra_body is not None:
            further = self.settings.transform_extra_body(
                extra_body=extra_body, request=body, model=self.model, litellm_params=self.further
            )
            body = {**body, **further}
        if self.streams and self.stream_is_in_body:
            body["stream"] = True
        elif self.wants_stream:
            for name in ("stream", *STREAMED):  # LiteLLM leaves them where it does not stream
                body.pop(name, None)
        return address, headers, body

    def headers(self, messages: internals.Messages, mapped: dict[str, Any]) -> dict[str, str]:
        """Build the headers, with the provider's key."""
        if self.key_header is not None:
            return {"Content-Type": "application/json", self.key_header: str(self.api_key), **self.extra_headers}
        made: dict[str, str] = self.settings.validate_environment(
            api_key=self.api_key,
            headers=dict(self.extra_headers),
            model=self.model,
            messages=messages,
            optional_params=mapped,
            litellm_params=self.further,
            api_base=self.api_base,
        )
        return made

    def address(self, mapped: dict[str, Any]) -> str:
        """Build the URL."""
        return str(
            self.settings.get_complete_url(
                api_base=self.api_base,
                api_key=self.api_key,
                model=self.model,
                optional_params=mapped,
                stream=self.streams or None,
                litellm_params=self.further,
            )
        )

    def body(self, messages: internals.Messages, mapped: dict[str, Any], headers: dict[str, str]) -> dict[str, Any]:
        """Build the body, without the user's additions."""
        made: dict[str, Any] = self.settings.transform_request(
            model=self.model, messages=messages, optional_params=mapped, litellm_params=self.further, headers=headers
        )
        return made

    def read(self, answer: "httpx.Response", body: Mapping[str, Any], messages: internals.Messages) -> Any:
        """Read an answer as LiteLLM's ModelResponse."""
        return self.settings.transform_response(
            model=self.model,
            raw_response=answer,
            model_response=load().ModelResponse(),
            logging_obj=internals.NoLog(self.mapped),
            api_key=self.api_key,
            request_data=body,
            messages=messages,
            optional_params=self.mapped,
            litellm_params=self.further,
            encoding=None,
            json_mode=self.mapped.get("json_mode", False),
        )

    def pieces(self) -> Any:
        """Create LiteLLM's reader of a stream, which may keep state."""
        return self.settings.get_model_response_iterator(
            streaming_response=None, sync_stream=True, json_mode=self.mapped.get("json_mode", False)
        )

    def read_piece(self, reader: Any, said: Any) -> Any:
        """Read a piece as LiteLLM's ModelResponseStream."""
        return reader.chunk_parser(said)


class _OpenAI(DirectModel):
    """OpenAI and servers with its API."""

    default_base = "https://api.openai.com/v1"
    base_variables = ("OPENAI_BASE_URL", "OPENAI_API_BASE")
    unless_set = (
        "OPENAI_ORGANIZATION",
        "OPENAI_ORG_ID",
        "OPENAI_PROJECT_ID",
        "OPENAI_CUSTOM_HEADERS",
        "EXPERIMENTAL_OPENAI_BASE_LLM_HTTP_HANDLER",
    )


class _HostedVllm(DirectModel):
    base_variables = ("HOSTED_VLLM_API_BASE",)


class _Anthropic(DirectModel):
    default_base = "https://api.anthropic.com"
    answers_like_openai = False
    extra_body_is_merged = False  # LiteLLM sends it as `extra_body`
    needs: ClassVar[Mapping[str, Any]] = {"stop_reason": None, "usage": {"input_tokens": 0, "output_tokens": 0}}
    base_variables = ("ANTHROPIC_API_BASE", "ANTHROPIC_BASE_URL")
    unless_set = ("ANTHROPIC_AUTH_TOKEN", "LITELLM_ANTHROPIC_DISABLE_URL_SUFFIX")

    def address(self, mapped: dict[str, Any]) -> str:
        base = str(self.api_base)
        return base if base.endswith("/v1/messages") else f"{base}/v1/messages"

    def request(self, messages: internals.Messages) -> tuple[str, dict[str, str], dict[str, Any]]:
        address, headers, body = super().request(messages)
        return address, *internals.anthropic_filtered(headers, body)

    def pieces(self) -> Any:
        return internals.anthropic_pieces(self.mapped.get("json_mode", False))


class _Gemini(DirectModel):
    base_variables = ("GEMINI_API_BASE",)
    answers_like_openai = False
    stream_is_in_body = False  # but in the address
    needs: ClassVar[Mapping[str, Any]] = {"usageMetadata": {"promptTokenCount": 0}}
    key_header = "x-goog-api-key"

    def address(self, mapped: dict[str, Any]) -> str:
        return internals.gemini_address(self.model, str(self.api_key), self.api_base, self.streams)

    def body(self, messages: internals.Messages, mapped: dict[str, Any], headers: dict[str, str]) -> dict[str, Any]:
        return internals.gemini_body(self.model, messages, mapped, self.further)

    def pieces(self) -> Any:
        return internals.gemini_pieces()


class _Azure(DirectModel):
    """Azure's deployments, by key; LiteLLM handles other authentication."""

    base_variables = ("AZURE_API_BASE",)
    key_header = "api-key"
    unless_set = ("AZURE_AD_TOKEN",)

    @classmethod
    def possible(cls, route: Route) -> bool:
        base = route.arguments.get("api_base") or os.environ.get("AZURE_API_BASE") or "/openai"
        version = os.environ.get("AZURE_API_VERSION", "")
        elsewhere = "/openai" in base or "gateway.ai.cloudflare.com" in base or (not version[:1].isdigit() and version)
        return super().possible(route) and not elsewhere

    def address(self, mapped: dict[str, Any]) -> str:
        version = os.environ.get("AZURE_API_VERSION") or load().AZURE_DEFAULT_API_VERSION
        base = str(self.api_base).rstrip("/")
        return f"{base}/openai/deployments/{self.model}/chat/completions?api-version={version}"


class _Mistral(DirectModel):
    default_base = "https://api.mistral.ai/v1"
    base_variables = ("MISTRAL_API_BASE",)


class _Groq(DirectModel):
    default_base = "https://api.groq.com/openai/v1"
    base_variables = ("GROQ_API_BASE",)


class _OpenRouter(DirectModel):
    default_base = "https://openrouter.ai/api/v1"
    base_variables = ("OPENROUTER_API_BASE",)

    def __init__(self, route: Route, parameters: Mapping[str, Any], stream: bool = False) -> None:
        super().__init__(route, parameters, stream)
        named = {
            "HTTP-Referer": os.environ.get("OR_SITE_URL") or "https://litellm.ai",
            "X-Title": os.environ.get("OR_APP_NAME") or "liteLLM",
        }
        self.extra_headers = named | self.extra_headers


class _Ollama(DirectModel):
    default_base = "http://localhost:11434"
    answers_like_openai = False
    base_variables = ("OLLAMA_API_BASE",)

    def read_piece(self, reader: Any, said: Any) -> Any:
        piece = super().read_piece(reader, said)
        piece.model = f"{self.provider}/{piece.model}"  # like LiteLLM in answers that are not streamed
        return piece


class _XAI(DirectModel):
    answers_like_openai = False  # it counts reasoning beside the output


DIRECT: Mapping[str, type[DirectModel]] = {
    "anthropic": _Anthropic,
    "azure": _Azure,
    "deepseek": DirectModel,
    "gemini": _Gemini,
    "groq": _Groq,
    "hosted_vllm": _HostedVllm,
    "mistral": _Mistral,
    "ollama_chat": _Ollama,
    "openai": _OpenAI,
    "openrouter": _OpenRouter,
    "together_ai": DirectModel,
    "xai": _XAI,
}


def encoded(body: Any) -> bytes:
    """Encode a body as JSON."""
    return json.dumps(body, separators=(",", ":"), allow_nan=False).encode()
