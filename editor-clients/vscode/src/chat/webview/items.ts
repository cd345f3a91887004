/** The elements of the history: each knows how to draw itself anew from its item. */

import type { AssistantItem, CallItem, Item, NoteItem, RunItem, UserItem } from "../state.ts";
import { visible, visibleLine } from "../visible.ts";
import { tell } from "./bridge.ts";
import { CallCard, type CardContext } from "./call_card.ts";
import { button, fill, h, icon, sentence } from "./dom.ts";
import { showMarkdown } from "./markdown_view.ts";

/** What an item needs beside itself. */
export interface ItemContext extends CardContext {
  /** The run can be gone on with from here: it is the session's last. */
  isLastRun: boolean;
  /** The recovery card below speaks of this run. */
  recovering: boolean;
}

export interface Drawn {
  element: HTMLElement;
  update(item: Item, context: ItemContext): void;
}

export function draw(item: Item): Drawn {
  switch (item.kind) {
    case "user":
      return new UserView(item);
    case "assistant":
      return new AssistantView();
    case "call":
      return new CallView(item);
    case "run":
      return new RunView();
    case "note":
      return new NoteView(item);
  }
}

class UserView implements Drawn {
  readonly element: HTMLElement;

  constructor(item: UserItem) {
    const label = item.steer ? "You, while it ran" : "You";
    this.element = h(
      "article",
      { class: "item user", "aria-label": label },
      item.steer && h("div", { class: "part" }, label),
      h("div", { class: "said" }, visible(item.text)),
    );
  }

  update(): void {}
}

class AssistantView implements Drawn {
  readonly #thinking = h(
    "details",
    { class: "thinking", hidden: true },
    h("summary", {}, "Thinking"),
    h("div", { class: "thought" }),
  );
  readonly #text = h("div", { class: "markdown" });
  readonly #foot = h("div", {});
  readonly element = h(
    "article",
    { class: "item assistant", "aria-label": "Standfast" },
    this.#thinking,
    this.#text,
    this.#foot,
  );

  update(item: AssistantItem, { connected }: ItemContext): void {
    this.element.dataset["state"] = item.state;
    this.element.hidden = item.text === "" && item.thinking === "" && (item.state !== "streaming" || !connected);
    this.#thinking.hidden = item.thinking === "";
    fill(this.#thinking.lastElementChild as HTMLElement, item.thinking, () => [visible(item.thinking)]);
    const missing = item.stream.start > 0 && item.state !== "done" ? "…" : "";
    showMarkdown(this.#text, missing + item.text);
    fill(this.#foot, `${item.state}${connected}${item.text === ""}`, () => [this.#footer(item, connected)]);
  }

  #footer(item: AssistantItem, connected: boolean): HTMLElement | undefined {
    if (item.state === "streaming" && connected && item.text === "")
      return h("span", { class: "writing", role: "status", "aria-label": "Working" }, h("i"), h("i"), h("i"));
    if (item.state === "cut") return h("p", { class: "dim" }, "The reply was cut off here.");
    if (item.state === "dropped" && item.text !== "")
      return h("p", { class: "dim" }, "This try was cut off and is made again.");
    return undefined;
  }
}

class CallView implements Drawn {
  readonly #card: CallCard;
  readonly element: HTMLElement;

  constructor(item: CallItem) {
    this.#card = new CallCard(item);
    this.element = this.#card.element;
  }

  update(item: CallItem, context: ItemContext): void {
    this.#card.update(item, context);
  }
}

class RunView implements Drawn {
  readonly element = h("div", { class: "item run" });

  update(item: RunItem, { isLastRun, recovering, connected }: ItemContext): void {
    const runId = item.runId ?? "";
    const canResume =
      isLastRun && !recovering && connected && (item.status === "failed" || item.status === "interrupted");
    const needsKey = canResume && (item.error?.reason === "KeyMissing" || item.error?.reason === "KeyRefused");
    this.element.hidden = item.status === "succeeded" && item.changed.length === 0;
    this.element.dataset["status"] = item.status;
    fill(this.element, `${item.touches}${isLastRun}${recovering}${connected}`, () => [
      h("span", { class: "run-word" }, icon(RUN_ICONS[item.status]), endWord(item)),
      item.error
        ? h("p", { class: "run-error" }, ...sentence(item.error.message || visibleLine(item.error.reason)))
        : undefined,
      h(
        "span",
        { class: "row" },
        needsKey && button("Enter key…", () => tell({ type: "setKey" }), { class: "primary" }),
        canResume &&
          button("Resume", () => tell({ type: "resume", runId }), {
            class: item.status === "failed" && !needsKey ? "primary" : "link",
          }),
        item.changed.length > 0 &&
          connected &&
          button("Show changes", () => tell({ type: "showDiff", subject: { runId } }), { class: "link" }),
        item.changed.length > 0 &&
          connected &&
          isLastRun &&
          button("Undo", () => tell({ type: "undo", runId }), {
            class: "link",
            title: "Put the files back as they were before this run",
          }),
      ),
    ]);
  }
}

const RUN_ICONS: Record<RunItem["status"], string> = {
  succeeded: "check",
  failed: "error",
  cancelled: "circle-slash",
  interrupted: "debug-disconnect",
};

function endWord(item: RunItem): string {
  const files = item.changed.length === 1 ? "1 file changed" : `${item.changed.length} files changed`;
  const words = { succeeded: files, failed: "The run failed", cancelled: "Stopped", interrupted: "Interrupted" };
  return words[item.status];
}

class NoteView implements Drawn {
  readonly element: HTMLElement;

  constructor(item: NoteItem) {
    const sign = icon(item.level === "warning" ? "warning" : "info");
    this.element = item.detail
      ? h(
          "details",
          { class: `item note-item ${item.level}` },
          h("summary", {}, sign, ...sentence(item.text)),
          h("div", { class: "thought" }, visible(item.detail)),
        )
      : h("div", { class: `item note-item ${item.level}` }, sign, ...sentence(item.text));
  }

  update(): void {}
}
