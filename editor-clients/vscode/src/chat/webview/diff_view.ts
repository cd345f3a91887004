/** A unified difference as coloured lines; hidden characters are made visible. */

import { visible } from "../visible.ts";
import { h } from "./dom.ts";

const LINES_MAX = 400;

export function diffView(diff: string, openWhole: () => void): HTMLElement {
  const lines = diff
    .replace(/\n$/, "")
    .split("\n")
    .filter((line) => !/^(---|\+\+\+) /.test(line));
  const box = h("div", { class: "diff", role: "group", "aria-label": "Difference", tabindex: "0" });
  for (const line of lines.slice(0, LINES_MAX)) box.append(h("div", { class: kindOf(line) }, visible(line) || " "));
  if (lines.length > LINES_MAX) {
    box.append(
      h(
        "button",
        { type: "button", class: "link", onclick: openWhole },
        `${lines.length - LINES_MAX} more lines: open the difference`,
      ),
    );
  }
  return box;
}

function kindOf(line: string): string {
  if (line.startsWith("+")) return "add";
  if (line.startsWith("-")) return "del";
  if (line.startsWith("@@")) return "hunk";
  return "same";
}
