"""An Inspect provider whose models, `planted/mock` and `planted/judge`, are those of the mock endpoint on loopback."""

from __future__ import annotations

import asyncio
import json
import os
from collections import defaultdict
from typing import Any
from urllib.request import Request

from inspect_ai.model import ChatMessage, GenerateConfig, ModelAPI, ModelOutput, modelapi
from inspect_ai.tool import ToolChoice, ToolInfo

from bench.process import DIRECT

URL = "PLANTED_URL"


@modelapi(name="planted")
class Planted(ModelAPI):
    def __init__(self, model_name: str, **given: Any) -> None:
        super().__init__(model_name, **given)
        self._turns: defaultdict[tuple[Any, str], asyncio.Lock] = defaultdict(asyncio.Lock)

    async def generate(
        self,
        input: list[ChatMessage],  # noqa: A002  their name
        tools: list[ToolInfo],
        tool_choice: ToolChoice,
        config: GenerateConfig,
    ) -> ModelOutput:
        body: dict[str, Any] = {
            "model": self.model_name,
            "messages": [{"role": message.role, "content": message.text} for message in input],
        }
        # Inspect keeps a model from one evaluation to the next, a lock belongs to one event loop.
        # The endpoint hands takes out in the order in which they are asked for: equal requests go one after another,
        # in the order in which Inspect made them, or two threads would decide which take is the first.
        async with self._turns[asyncio.get_running_loop(), json.dumps(body)]:
            said = await asyncio.to_thread(self._post, body)
        message = said["choices"][0]["message"]
        return ModelOutput.from_content(self.model_name, message["content"])

    def _post(self, body: dict[str, Any]) -> dict[str, Any]:
        address = f"{os.environ[URL]}/chat/completions"
        headers = {"Content-Type": "application/json"}
        with DIRECT.open(Request(address, json.dumps(body).encode(), headers), timeout=60) as answer:
            found: dict[str, Any] = json.load(answer)
        return found
