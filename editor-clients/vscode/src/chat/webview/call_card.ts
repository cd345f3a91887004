/** A tool call as a card: what, with which arguments, live output, result, difference; the question and the verdict on it. */

import type { Call, ConflictRaisedEvent, Permission } from "../../generated/protocol.ts";
import { fileName, VERDICTS } from "../../words.ts";
import { argsText, callLabel } from "../call_words.ts";
import type { CallItem } from "../state.ts";
import { visible, visibleLine } from "../visible.ts";
import { tell } from "./bridge.ts";
import { diffView } from "./diff_view.ts";
import { button, fill, h, icon } from "./dom.ts";
import { permissionPanel } from "./permission_panel.ts";

const TAIL_LINES = 200;

/** What a card needs beside the folded call. */
export interface CardContext {
  ask: Permission | undefined;
  recovery: Call | undefined;
  connected: boolean;
}

export class CallCard {
  readonly element: HTMLElement;
  readonly #details: HTMLDetailsElement;
  readonly #summary = h("summary", {});
  readonly #body = h("div", { class: "call-body" });
  readonly #panel = h("div", {});
  #item: CallItem;

  constructor(item: CallItem) {
    this.#item = item;
    this.#details = h("details", { class: "call" }, this.#summary, this.#body);
    this.#details.addEventListener("toggle", () => this.#drawBody());
    this.element = h("article", { class: "item call-item" }, this.#details, this.#panel);
  }

  update(item: CallItem, context: CardContext): void {
    this.#item = item;
    const { connected, ask, recovery } = context;
    const state = stateOf(item, context);
    this.element.dataset["state"] = state.name;
    const label = callLabel(item.tool, item.args);
    fill(this.#summary, [state.word, state.icon, label.verb, label.target].join("\u0000"), () => [
      icon(label.icon),
      h("span", { class: "verb" }, label.verb),
      label.target ? h("code", { class: "target", title: label.target }, label.target) : undefined,
      h("span", { class: "state" }, icon(state.icon), state.word),
    ]);
    fill(this.#panel, JSON.stringify([ask, recovery, item.conflicts, item.verdict, item.settledBy, connected]), () => [
      ask && connected ? permissionPanel(ask) : undefined,
      ...item.conflicts.map(conflictNote),
      recovery ? undefined : verdictNote(item),
    ]);
    this.#drawBody();
  }

  /** The body is built only while it can be seen. */
  #drawBody(): void {
    const item = this.#item;
    if (!this.#details.open) return;
    const shown = item.result ?? item.output.text;
    fill(this.#body, `${item.touches}`, () => [
      h("div", { class: "part" }, "Arguments"),
      h("pre", { class: "args", tabindex: "0" }, visible(argsText(item.tool, item.args))),
      shown ? h("div", { class: "part" }, item.result === undefined ? "Output so far" : "Result") : undefined,
      shown ? output(shown, item.result === undefined) : undefined,
      ...item.files.map((file) => (file.diff ? diffView(file.diff, () => showDiff(item)) : undefined)),
      item.files.length > 0 ? button("Show difference", () => showDiff(item), { class: "link" }) : undefined,
    ]);
  }
}

function showDiff(item: CallItem): void {
  tell({ type: "showDiff", subject: { callId: item.callId } });
}

function output(text: string, live: boolean): HTMLElement {
  const lines = visible(text).replace(/\n$/, "").split("\n");
  const cut = lines.length - TAIL_LINES;
  const shown = live ? lines.slice(-TAIL_LINES) : lines.slice(0, TAIL_LINES);
  const note = cut > 0 ? `… ${cut} lines ${live ? "before" : "more"}` : "";
  return h(
    "pre",
    { class: "output", tabindex: "0" },
    live && note ? `${note}\n` : "",
    shown.join("\n"),
    !live && note ? `\n${note}` : "",
  );
}

function stateOf(item: CallItem, context: CardContext): { name: string; word: string; icon: string } {
  if (!context.connected && ["waiting", "permission", "running"].includes(item.state)) {
    return { name: "unknown", word: "not connected", icon: "debug-disconnect" };
  }
  const exit = item.exitCode !== undefined && item.exitCode !== 0 ? `exit ${item.exitCode}` : undefined;
  switch (item.state) {
    case "waiting":
      return { name: "waiting", word: item.decision === "expired" ? "expired" : "waiting", icon: "clock" };
    case "permission":
      return { name: "permission", word: "needs you", icon: "bell-dot" };
    case "running":
      return { name: "running", word: "running", icon: "loading codicon-modifier-spin" };
    case "ok":
      return {
        name: "ok",
        word: exit ?? (item.recovered ? "done, found after the crash" : "done"),
        icon: exit ? "warning" : "check",
      };
    case "error":
      if (item.conflicts.length > 0) return conflictState(item);
      return { name: "error", word: exit ?? "failed", icon: "error" };
    case "denied":
      return { name: "denied", word: "denied", icon: "circle-slash" };
    case "cancelled":
      return { name: "cancelled", word: "did not run", icon: "circle-slash" };
    case "uncertain":
      return {
        name: "uncertain",
        word: item.verdict && item.verdict !== "uncertain" ? VERDICTS[item.verdict] : "being checked",
        icon: "question",
      };
  }
}

/** A change that did not fit was not made: no failure of the program. */
function conflictState(item: CallItem): { name: string; word: string; icon: string } {
  const open = item.conflicts.some((conflict) => conflict.settledBy === undefined);
  return open
    ? { name: "uncertain", word: "does not fit", icon: "git-merge" }
    : { name: "cancelled", word: "settled", icon: "check" };
}

function verdictNote(item: CallItem): HTMLElement | undefined {
  if (!item.verdict || item.verdict === "uncertain") return undefined;
  const settled = item.settledBy ? ` You chose: ${item.settledBy}.` : "";
  return h(
    "p",
    { class: "note" },
    icon("shield"),
    `After the interruption it was checked: this ${VERDICTS[item.verdict]}. ${visible(item.evidence)}${settled}`,
  );
}

type Reason = ConflictRaisedEvent["reason"];

function conflictNote(conflict: CallItem["conflicts"][number]): HTMLElement {
  const say = conflict.settledBy
    ? `Settled: ${visibleLine(conflict.settledBy)}.`
    : visible(conflict.message) ||
      `The change does not fit the file any more (${visibleLine(conflict.reason satisfies Reason)}).`;
  return h(
    "div",
    { class: `note ${conflict.settledBy ? "settled" : "open"}` },
    icon(conflict.settledBy ? "check" : "git-merge"),
    h("span", { class: "says" }, h("strong", {}, fileName(conflict.uri)), " ", say),
    h(
      "span",
      { class: "row" },
      button("Compare", () => tell({ type: "showDiff", subject: { conflictId: conflict.conflictId } }), {
        class: "link",
      }),
      button("Open file", () => tell({ type: "openFile", uri: conflict.uri }), {
        class: "link",
        title: "The quick fixes there settle it",
      }),
    ),
  );
}
