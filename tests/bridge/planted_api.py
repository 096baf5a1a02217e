"""An Inspect provider whose models, `planted/mock` and `planted/judge`, are those of the mock endpoint on loopback."""

from __future__ import annotations

import asyncio
import json
import os
from typing import Any
from urllib.request import Request

from inspect_ai.model import ChatMessage, GenerateConfig, ModelAPI, ModelOutput, modelapi
from inspect_ai.tool import ToolChoice, ToolInfo

from bench.process import DIRECT

URL = "PLANTED_URL"


@modelapi(name="planted")
class Planted(ModelAPI):
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
        said = await asyncio.to_thread(self._post, body)
        message = said["choices"][0]["message"]
        return ModelOutput.from_content(self.model_name, message["content"])

    def _post(self, body: dict[str, Any]) -> dict[str, Any]:
        address = f"{os.environ[URL]}/chat/completions"
        headers = {"Content-Type": "application/json"}
        with DIRECT.open(Request(address, json.dumps(body).encode(), headers), timeout=60) as answer:
            found: dict[str, Any] = json.load(answer)
        return found
