/** The list of the history: keyed, drawn once a frame, kept at the end while the person reads there. */

import type { Event } from "../../generated/protocol.ts";
import type { View } from "../messages.ts";
import { apply, type ChatState, type Entry, emptyChat, foldChat, type Item, stamp } from "../state.ts";
import { tell } from "./bridge.ts";
import { h } from "./dom.ts";
import { type Drawn, draw, type ItemContext } from "./items.ts";

const NEAR_END_PX = 48;

export class History {
  readonly #list = h("div", { class: "list" });
  readonly #older = h("div", { class: "older", hidden: true }, "Loading older messages…");
  readonly #tail = h("div", { class: "tail" });
  readonly #newest: HTMLElement;
  readonly element: HTMLElement;
  readonly scroller: HTMLElement;
  state: ChatState = emptyChat();
  #entries: Entry[] = [];
  #hasOlder = false;
  #asked = false;
  #drawn = new Map<string, { view: Drawn; stamp: string }>();
  #atEnd = true;
  #frame = 0;

  constructor(onDrawn: () => void) {
    this.scroller = h(
      "main",
      { class: "history", role: "log", "aria-label": "Conversation", "aria-live": "off", tabindex: "0" },
      this.#older,
      this.#list,
      this.#tail,
    );
    this.#newest = h(
      "button",
      { type: "button", class: "newest", hidden: true, title: "Go to the newest message", onclick: () => this.toEnd() },
      "↓ Newest",
    );
    this.element = h("div", { class: "history-box" }, this.scroller, this.#newest);
    this.scroller.addEventListener("scroll", () => this.#scrolled(), { passive: true });
    new ResizeObserver(() => this.#keepEnd()).observe(this.scroller);
    this.#onDrawn = onDrawn;
  }

  readonly #onDrawn: () => void;

  reset(entries: Entry[], hasOlder: boolean, view: View): void {
    this.#entries = entries;
    this.state = foldChat(entries);
    this.#setOlder(hasOlder);
    this.#atEnd = true;
    this.draw(view);
  }

  append(entries: Entry[], view: View): void {
    for (const entry of entries) {
      this.#entries.push(entry);
      apply(this.state, entry);
    }
    this.draw(view);
  }

  /** An older page goes in front; what the person reads stays where it is. */
  prepend(events: Event[], hasOlder: boolean, view: View): void {
    if (events.length === 0) {
      this.#setOlder(hasOlder);
      return;
    }
    this.#entries = [...events.map((event) => ({ event })), ...this.#entries];
    this.state = foldChat(this.#entries);
    const fromEnd = this.scroller.scrollHeight - this.scroller.scrollTop;
    this.#setOlder(hasOlder);
    this.#drawNow(view);
    this.scroller.scrollTop = this.scroller.scrollHeight - fromEnd;
    this.#scrolled();
  }

  /** Draws at the next frame; calls in between are one. */
  draw(view: View): void {
    if (this.#frame) cancelAnimationFrame(this.#frame);
    this.#frame = requestAnimationFrame(() => {
      this.#frame = 0;
      this.#drawNow(view);
      this.#keepEnd();
    });
  }

  /** What stands behind the last item, e.g. the recovery card. */
  setTail(...nodes: Node[]): void {
    this.#tail.replaceChildren(...nodes);
    this.#keepEnd();
  }

  toEnd(): void {
    this.#atEnd = true;
    this.#keepEnd();
  }

  #drawNow(view: View): void {
    const alive = new Set<string>();
    let place = this.#list.firstElementChild;
    const lastRun = this.state.items.findLast((item) => item.kind === "run");
    for (const item of this.state.items) {
      alive.add(item.key);
      const { element } = this.#update(item, contextOf(item, view, item === lastRun));
      if (element === place) place = place.nextElementSibling;
      else this.#list.insertBefore(element, place);
    }
    for (const [key, { view: drawn }] of this.#drawn) {
      if (alive.has(key)) continue;
      drawn.element.remove();
      this.#drawn.delete(key);
    }
    this.#onDrawn();
  }

  #update(item: Item, context: ItemContext): Drawn {
    const now = `${stamp(item)} ${context.connected} ${context.isLastRun} ${context.recovering} ${context.ask?.digest} ${context.recovery?.verdict} ${context.recovery?.resolution}`;
    const known = this.#drawn.get(item.key);
    if (known?.stamp === now) return known.view;
    const view = known?.view ?? draw(item);
    view.update(item, context);
    this.#drawn.set(item.key, { view, stamp: now });
    return view;
  }

  #setOlder(hasOlder: boolean): void {
    this.#hasOlder = hasOlder;
    this.#asked = false;
    this.#older.hidden = !hasOlder;
  }

  #scrolled(): void {
    const { scrollTop, scrollHeight, clientHeight } = this.scroller;
    this.#atEnd = scrollHeight - scrollTop - clientHeight < NEAR_END_PX;
    this.#newest.hidden = this.#atEnd;
    if (this.#hasOlder && !this.#asked && scrollTop < clientHeight) {
      this.#asked = true;
      tell({ type: "older" });
    }
  }

  #keepEnd(): void {
    if (this.#atEnd) this.scroller.scrollTop = this.scroller.scrollHeight;
    this.#newest.hidden = this.#atEnd;
  }
}

function contextOf(item: Item, view: View, isLastRunItem: boolean): ItemContext {
  const callId = item.kind === "call" ? item.callId : undefined;
  return {
    connected: view.connected,
    isLastRun:
      isLastRunItem && view.session?.lastRun?.runId === item.runId && view.session?.lastRun?.status !== "running",
    recovering: item.kind === "run" && view.recovery?.interruptedRun?.runId === item.runId,
    ask: callId === undefined ? undefined : view.asks.find((ask) => ask.callId === callId),
    recovery: callId === undefined ? undefined : view.recovery?.calls.find((call) => call.callId === callId),
  };
}
