"""A real AnthropicModel (the SDK, HTTP, loopback) against the strict fake, and a way to ask it once."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from model_asking import Asked, ask

from fake_api import FakeApi
from standfast.config import ModelSettings
from standfast.model.anthropic_model import AnthropicModel
from standfast.model.base import ModelRequest
from standfast.model.credentials import Credentials


@pytest.fixture
async def model(fake_api: FakeApi, tmp_path: Path) -> AsyncGenerator[AnthropicModel]:
    """The model that asks `fake_api`; a stream that is silent for half a second has stalled."""
    made = AnthropicModel(
        ModelSettings(base_url=fake_api.url, stall_s=0.5),
        Credentials(tmp_path / "credentials.json", from_environment=fake_api.key),
    )
    await made.warm()
    yield made
    await made.close()


@pytest.fixture
def ask_for(fake_api: FakeApi, model: AnthropicModel) -> Callable[..., Awaitable[Asked]]:
    """`await ask_for(answer, …)`: the outcome of one attempt that is answered so."""

    async def _ask(*answers: Any, request: ModelRequest | None = None) -> Asked:
        fake_api.push(*answers)
        return await ask(model, request)

    return _ask
