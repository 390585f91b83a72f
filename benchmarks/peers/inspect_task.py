"""The task that Inspect is given: the prompts of a file, each asked once, and whether the answer blocks.

Inspect loads this file in an environment of its own, which has nothing of evalake.
"""

import json
from pathlib import Path

from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ChatMessage, ChatMessageSystem, ChatMessageUser
from inspect_ai.scorer import includes
from inspect_ai.solver import generate

MESSAGES = {"system": ChatMessageSystem, "user": ChatMessageUser}


@task  # type: ignore[untyped-decorator]
def prompts(file: str) -> Task:
    """Build a task of one sample for each line of the file, which holds the messages of a request as JSON."""
    lines = Path(file).read_text().splitlines()
    samples = [Sample(input=[_message(**each) for each in json.loads(line)], target="BLOCK") for line in lines]
    return Task(dataset=MemoryDataset(samples), solver=generate(), scorer=includes())


def _message(role: str, content: str) -> ChatMessage:
    return MESSAGES[role](content=content)
