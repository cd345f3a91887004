/** The messages that wait, with edit, order and remove; and the plan of the task. */

import type { QueueItem } from "../../generated/protocol.ts";
import type { View } from "../messages.ts";
import type { ChatState } from "../state.ts";
import { visible, visibleLine } from "../visible.ts";
import { tell } from "./bridge.ts";
import { button, fill, h, icon, iconButton } from "./dom.ts";

export class Queue {
  readonly element = h("section", { class: "queue", "aria-label": "Waiting messages", hidden: true });
  /** The message being edited: it is not drawn anew under the person's hands. */
  #editing: string | undefined;

  update(view: View): void {
    this.element.hidden = view.queue.length === 0;
    const key = JSON.stringify([view.queue, view.queueHeld, view.connected, this.#editing]);
    fill(this.element, key, () => [
      h(
        "p",
        { class: "queue-title" },
        icon("clock"),
        view.queueHeld ? "Waiting until you let it go on" : "Waiting for its turn",
        view.queueHeld && view.connected && button("Go on", () => tell({ type: "queueResume" }), { class: "link" }),
      ),
      h("ol", {}, ...view.queue.map((item) => this.#row(item, view))),
    ]);
  }

  #row(item: QueueItem, view: View): HTMLElement {
    if (item.messageId === this.#editing) return this.#editor(item, view);
    const { messageId, position } = item;
    const act = (name: string, label: string, run: () => void): HTMLElement => iconButton(name, label, run);
    return h(
      "li",
      {},
      h("span", { class: "queued", title: visible(item.text) }, visibleLine(item.text)),
      view.connected &&
        h(
          "span",
          { class: "row" },
          position > 0 &&
            act("arrow-up", "Earlier", () => tell({ type: "queueMove", messageId, position: position - 1 })),
          act("edit", "Edit this message", () => this.#edit(messageId, view)),
          act("trash", "Remove this message", () => tell({ type: "queueRemove", messageId })),
        ),
    );
  }

  #edit(messageId: string | undefined, view: View): void {
    this.#editing = messageId;
    this.update(view);
    this.element.querySelector("textarea")?.focus();
  }

  #editor(item: QueueItem, view: View): HTMLElement {
    const box = h("textarea", { rows: "2", "aria-label": "Edit the waiting message" });
    box.value = item.text;
    const save = (): void => {
      if (box.value.trim()) tell({ type: "queueEdit", messageId: item.messageId, text: box.value.trim() });
      this.#edit(undefined, view);
    };
    box.addEventListener("keydown", (event) => {
      if (event.key === "Escape") this.#edit(undefined, view);
      if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
        event.preventDefault();
        save();
      }
    });
    return h(
      "li",
      { class: "editing" },
      box,
      h(
        "span",
        { class: "row" },
        button("Save", save, { class: "primary" }),
        button("Cancel", () => this.#edit(undefined, view)),
      ),
    );
  }
}

const STEP_ICONS = { pending: "circle-large-outline", in_progress: "arrow-circle-right", completed: "pass-filled" };

export class Plan {
  readonly #summary = h("summary", {});
  readonly #steps = h("ol", {});
  readonly element = h("details", { class: "plan", hidden: true }, this.#summary, this.#steps);

  update(plan: ChatState["plan"]): void {
    this.element.hidden = plan === undefined || plan.steps.length === 0;
    if (!plan) return;
    const done = plan.steps.filter((step) => step.status === "completed").length;
    const now = plan.steps.find((step) => step.status === "in_progress");
    fill(this.#summary, JSON.stringify(plan), () => [
      icon("checklist"),
      h("span", { class: "plan-now" }, visibleLine(now?.text ?? plan.goal) || "Plan"),
      h("span", { class: "dim" }, `${done} of ${plan.steps.length}`),
    ]);
    fill(this.#steps, JSON.stringify(plan), () =>
      plan.steps.map((step) =>
        h(
          "li",
          { class: step.status },
          icon(STEP_ICONS[step.status]),
          h("span", {}, visible(step.text)),
          h("span", { class: "sr-only" }, ` (${step.status.replace("_", " ")})`),
        ),
      ),
    );
  }
}
