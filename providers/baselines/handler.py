"""LiteLLM's custom provider `baseline`: an embedded model is called like any other, and answers in the process."""

from typing import Any

from providers.baselines.registry import BASELINES, BaselineRefusedError

PROVIDER = "baseline"


def make_handler() -> Any:
    """The object that LiteLLM calls for models named `baseline/…`. Imports LiteLLM."""
    from litellm import ModelResponse
    from litellm.llms.custom_llm import CustomLLM, CustomLLMError

    refusal: Any = CustomLLMError

    class BaselineHandler(CustomLLM):  # type: ignore[misc, unused-ignore]
        """Answers by the registry."""

        async def acompletion(  # type: ignore[override, unused-ignore]
            self, model: str, messages: list[Any], model_response: ModelResponse, **_: Any
        ) -> ModelResponse:
            """Fill LiteLLM's reply with the text of the baseline called `model`."""
            if model not in BASELINES:
                raise refusal(404, f"no baseline is called {model}")
            try:
                text = BASELINES[model](messages)
            except BaselineRefusedError as error:
                raise refusal(400, str(error)) from error
            model_response.model = f"{PROVIDER}/{model}"
            model_response.choices[0].message.content = text  # type: ignore[union-attr, unused-ignore]
            model_response.choices[0].finish_reason = "stop"
            return model_response

    return BaselineHandler()
