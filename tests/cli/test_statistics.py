"""What was used and what it costs: by day and model, an estimate only where the price is known (issue F, "Sessions over time")."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fake_api import FakeApi, reply
from standfast.model.prices import estimate_usd
from support import RunningDaemon, environment, open_socket

DAY_MS = 86_400_000


def statistics(home: Path, *words: str) -> str:
    ran = subprocess.run(
        [sys.executable, "-P", "-m", "standfast", "sessions", "--statistics", *words],
        env=environment(home, COLUMNS="200"), capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    return ran.stdout


@pytest.mark.requirement("R3.3")
async def test_tokens_and_cost_are_told_by_day_and_model(
    daemon: RunningDaemon, workspace: Path, fake_api: FakeApi
) -> None:
    assert statistics(daemon.home) == "0 runs\n"
    async with open_socket(daemon.home, [workspace]) as editor:
        for model in ("claude-sonnet-5-5", "a-model-at-home"):
            fake_api.push(reply("Done."))
            session_id = await editor.create(workspace, model=model)
            assert (await editor.run_end(await editor.start(session_id, "go")))["status"] == "succeeded"
    found: dict[str, Any] = json.loads(statistics(daemon.home, "--json"))["statistics"]
    spent = {one["model"]: one for one in found["spent"]}
    assert found["byStatus"] == {"succeeded": 2} and spent.keys() == {"claude-sonnet-5-5", "a-model-at-home"}
    for one in spent.values():
        assert one["requests"] == 1 and one["dayAtMs"] % DAY_MS == 0 and one["usage"]["inputTokens"] > 0
    known = spent["claude-sonnet-5-5"]
    assert known["estimatedUsd"] == estimate_usd("claude-sonnet-5-5", known["usage"]) > 0
    assert "estimatedUsd" not in spent["a-model-at-home"]
    shown = statistics(daemon.home)
    assert shown.startswith("2 runs: 2 succeeded; ") and "price not known" in shown
    assert shown.endswith("at the list price; not counted, since the price is not known: a-model-at-home.\n")


def test_each_kind_of_token_has_its_price_and_a_dated_name_is_the_same_model() -> None:
    million = 1_000_000
    used = {"inputTokens": 0, "outputTokens": 0, "cacheReadInputTokens": 0, "cacheCreationInputTokens": 0}
    prices = [estimate_usd("claude-sonnet-4-5-20250929", used | {kind: million}) for kind in used]
    assert prices == [3.0, 15.0, 0.3, 3.75]
    assert estimate_usd("claude-haiku-5-5", used) is None, "its price depends on each prompt's length"
