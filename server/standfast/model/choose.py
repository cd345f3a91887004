"""Which model the settings ask for. The one place where providers are named."""

from __future__ import annotations

from standfast.clock import Clock
from standfast.config import Settings
from standfast.model.anthropic_model import AnthropicModel
from standfast.model.base import Model
from standfast.model.credentials import Credentials
from standfast.model.scripted import ScriptedModel


def make_model(settings: Settings, credentials: Credentials, clock: Clock | None = None) -> Model:
    """The provider of `[model] provider`. Imports and opens nothing slow; `warm` does."""
    if settings.model.provider == "scripted":
        return ScriptedModel()
    return AnthropicModel(settings.model, credentials, clock)
