"""Questions to people: the base of what a suite's form asks about one line of a sheet."""

from typing import Any

from pydantic import BaseModel, ConfigDict, GetJsonSchemaHandler
from pydantic_core import CoreSchema


class Questions(BaseModel):
    """Questions that may each be left empty. The title of a field is the question, in words."""

    model_config = ConfigDict(extra="forbid")

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """Describe each field by its type alone: with null beside it, a form would first ask which one it is."""
        described = handler(core_schema)
        for field in handler.resolve_ref_schema(described).get("properties", {}).values():
            kinds = [kind for kind in field.get("anyOf", ()) if kind != {"type": "null"}]
            if len(kinds) == 1:
                del field["anyOf"]
                field.pop("default", None)
                field.update(kinds[0])
        return described
