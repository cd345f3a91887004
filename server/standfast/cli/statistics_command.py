"""`standfast sessions --statistics`: runs by their end, and tokens by day and model with what they cost at the list price."""

from __future__ import annotations

from datetime import UTC, datetime

from rich.table import Table

from standfast.cli import output
from standfast.cli.client import Json
from standfast.cli.door import Door
from standfast.cli.talk import talk

UNKNOWN = "price not known"


async def statistics(door: Door, *, as_json: bool) -> int:
    """Of all sessions, archived ones too."""
    async with talk(door) as client:
        found: Json = (await client.request("standfast/run/list", {"limit": 1}))["statistics"]
    if as_json:
        output.print_json({"statistics": found})
        return output.DONE
    ends = ", ".join(f"{count} {status}" for status, count in sorted(found["byStatus"].items()))
    mean = found.get("meanDurationMs")
    lasting = f"; {mean / 1000:.1f} s each on average" if mean is not None else ""
    output.out.print(f"{found['total']} runs{f': {ends}' if ends else ''}{lasting}", markup=False)
    if found["spent"]:
        output.out.print(_table(found["spent"]))
        output.out.print(_total(found["spent"]), markup=False)
    return output.DONE


def _table(spent: list[Json]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for column in ("day (UTC)", "model", "requests", "input", "from cache", "to cache", "output", "estimated cost"):
        table.add_column(column, no_wrap=True, justify="left" if column in ("day (UTC)", "model") else "right")
    for one in spent:
        usage: Json = one["usage"]
        cost = one.get("estimatedUsd")
        table.add_row(
            datetime.fromtimestamp(one["dayAtMs"] / 1000, UTC).strftime("%Y-%m-%d"),
            output.plain(one["model"]),
            str(one["requests"]),
            str(usage["inputTokens"]),
            str(usage["cacheReadInputTokens"]),
            str(usage["cacheCreationInputTokens"]),
            str(usage["outputTokens"]),
            UNKNOWN if cost is None else f"${cost:.2f}",
        )
    return table


def _total(spent: list[Json]) -> str:
    known = [one["estimatedUsd"] for one in spent if "estimatedUsd" in one]
    unknown = sorted({output.plain(one["model"]) for one in spent if "estimatedUsd" not in one})
    said = f"About ${sum(known):.2f} at the list price" if known else "No estimate"
    return f"{said}; not counted, since the price is not known: {', '.join(unknown)}." if unknown else f"{said}."
