"""`python tests/bench [--quick] [--only PART …] [--json FILE]`: all measurements, one table, and the same as JSON.

Each figure stands beside something bare that was measured in the same run, so that a slow or busy machine slows both.
The load of the machine is printed with the table: above 1 a core, the ratios of sub-millisecond things are noise.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from rich.console import Console
from rich.table import Table

from bench import editor_rows, file_rows, process_rows, search_rows, store_rows, stream_rows
from bench.measure import Row

PARTS = {
    "editors": editor_rows.rows,
    "files": file_rows.rows, "process": process_rows.rows, "search": search_rows.rows, "store": store_rows.rows,
    "stream": stream_rows.rows,
}  # fmt: skip


async def measure(names: list[str], tmp: Path, *, quick: bool) -> list[Row]:
    found: list[Row] = []
    for name in names:
        async for row in PARTS[name](tmp, quick):
            sys.stderr.write(f"{row.what}: {row.value:.2f} {row.unit}\n")
            found.append(row)
    return found


def table(rows: list[Row], load: tuple[float, float, float]) -> Table:
    made = Table(title=f"load before: {load[0]:.1f}, {os.cpu_count()} cores")
    for column in ("what", "measured", "beside", "ratio", "goal", "met"):
        made.add_column(column, justify="right" if column in ("measured", "ratio") else "left")
    for row in rows:
        beside = f"{row.beside} {row.reference:.2f} {row.unit}" if row.reference else row.beside
        ratio = f"{row.ratio:.2f} ×" if row.reference else ""
        met = {None: "", True: "yes", False: "NO"}[row.met]
        made.add_row(row.what, f"{row.value:.2f} {row.unit}", beside, ratio, row.goal, met)
    return made


def main() -> None:
    options = argparse.ArgumentParser(prog="tests/bench", description=__doc__)
    options.add_argument("--quick", action="store_true", help="fewer repetitions, histories of at most 10⁵ events")
    options.add_argument("--only", nargs="+", choices=sorted(PARTS), default=sorted(PARTS))
    options.add_argument("--json", type=Path, help="write the figures there too")
    chosen = options.parse_args()
    load = os.getloadavg()
    with tempfile.TemporaryDirectory() as tmp:
        rows = asyncio.run(measure(chosen.only, Path(tmp), quick=chosen.quick))
    Console(width=None if sys.stdout.isatty() else 170).print(table(rows, load))
    if chosen.json is not None:
        chosen.json.write_text(json.dumps({"load": load, "rows": [row.plain() for row in rows]}, indent=1) + "\n")


if __name__ == "__main__":
    main()
