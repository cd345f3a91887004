/** The message box: draft that survives, sending once, history with ↑, files with @. */

import type { HistoryMessage, WorkspaceFile } from "../../generated/protocol.ts";
import type { View } from "../messages.ts";
import { plainSentence, visibleLine } from "../visible.ts";
import { remember, remembered, tell } from "./bridge.ts";
import { fill, h, iconButton } from "./dom.ts";

const ROWS_MAX_PX = 220;
const MENTION = /(^|\s)@([\w./-]*)$/;

export class Composer {
  readonly #box: HTMLTextAreaElement;
  readonly #list = h("ul", { class: "completions", role: "listbox", id: "files", hidden: true, "aria-label": "Files" });
  readonly #hint = h("span", { class: "hint" });
  readonly #problem = h("p", { class: "problem", role: "alert", hidden: true });
  readonly #actions = h("span", { class: "row" });
  readonly element: HTMLElement;
  #sendingId = remembered().sendingId;
  #busy = false;
  #view: View | undefined;
  #running = false;
  #files: WorkspaceFile[] = [];
  #chosen = 0;
  #past: HistoryMessage[] | undefined;
  #pastAt = -1;
  #draftBeforePast = "";

  constructor(settings: Node) {
    this.#box = h("textarea", {
      rows: "1",
      placeholder: "Ask for a change, or ask about the code. @ names a file.",
      "aria-label": "Message",
      "aria-autocomplete": "list",
      "aria-controls": "files",
      "aria-expanded": "false",
      role: "combobox",
      oninput: () => this.#typed(),
      onkeydown: (event) => this.#key(event as KeyboardEvent),
      onblur: () => this.#closeList(),
    });
    this.#box.value = remembered().draft;
    this.element = h(
      "form",
      { class: "composer", onsubmit: (event) => event.preventDefault() },
      this.#list,
      this.#problem,
      this.#box,
      h("div", { class: "composer-foot" }, settings, this.#hint, this.#actions),
    );
    requestAnimationFrame(() => this.#fit());
  }

  update(view: View, running: boolean): void {
    this.#view = view;
    this.#running = running;
    this.#drawActions();
  }

  focus(): void {
    this.#box.focus();
  }

  insert(text: string): void {
    this.#box.setRangeText(text, this.#box.selectionStart, this.#box.selectionEnd, "end");
    this.#box.focus();
    this.#typed();
  }

  sent(clientMessageId: string): void {
    if (clientMessageId !== this.#sendingId) return;
    this.#box.value = "";
    this.#sendingId = undefined;
    this.#past = undefined;
    this.#pastAt = -1;
    this.#done("");
  }

  refused(clientMessageId: string, message: string): void {
    if (clientMessageId === this.#sendingId) this.#done(`Not sent: ${plainSentence(message)}`);
  }

  /** The connection came or went: an unanswered message can be sent again, as the same one. */
  connectionChanged(): void {
    this.#done("");
  }

  showFiles(query: string, files: WorkspaceFile[]): void {
    if (this.#mention() !== query) return;
    this.#files = files;
    this.#chosen = 0;
    this.#drawList();
  }

  showHistory(messages: HistoryMessage[]): void {
    this.#past = messages;
    this.#fromPast(1);
  }

  // -- sending --------------------------------------------------------------------------------------------------------------

  #send(steer: boolean): void {
    const text = this.#box.value.trim();
    if (!text || this.#busy) return;
    if (!this.#view?.connected) {
      this.#done("Not sent yet: there is no connection. The text is kept.");
      return;
    }
    this.#sendingId ??= crypto.randomUUID();
    this.#busy = true;
    this.#keep();
    this.#drawActions();
    tell({ type: "send", text, clientMessageId: this.#sendingId, steer });
  }

  #done(problem: string): void {
    this.#busy = false;
    this.#problem.textContent = visibleLine(problem, 400);
    this.#problem.hidden = problem === "";
    this.#fit();
    this.#keep();
    this.#drawActions();
  }

  #keep(): void {
    remember({ draft: this.#box.value, ...(this.#sendingId ? { sendingId: this.#sendingId } : {}) });
  }

  #drawActions(): void {
    const can = this.#view?.connected === true && !this.#busy;
    const running = this.#running;
    const empty = this.#box.value.trim() === "";
    this.#box.readOnly = this.#busy;
    fill(this.#hint, `${running}${this.#view?.sendWith}${empty}`, () => [
      running && !empty ? "waits for its turn · Alt+Enter: say it now" : "",
    ]);
    fill(this.#actions, `${can}${running}${empty}`, () => [
      running && this.#view?.connected
        ? iconButton("debug-stop", "Stop this run", () => tell({ type: "stop" }), { class: "icon stop" })
        : undefined,
      !(running && empty) &&
        iconButton(running ? "add" : "send", running ? "Queue this message" : "Send", () => this.#send(false), {
          class: "icon send",
          disabled: !can || empty,
        }),
    ]);
  }

  // -- keys -----------------------------------------------------------------------------------------------------------------

  #typed(): void {
    // Another text is another message.
    if (!this.#busy) this.#sendingId = undefined;
    this.#pastAt = -1;
    this.#fit();
    this.#keep();
    this.#drawActions();
    const query = this.#mention();
    if (query === undefined) this.#closeList();
    else tell({ type: "files", query });
  }

  #key(event: KeyboardEvent): void {
    if (event.isComposing) return;
    if (!this.#list.hidden && this.#listKey(event.key)) {
      event.preventDefault();
      event.stopPropagation();
      return;
    }
    if (event.key === "Enter" && this.#sends(event)) {
      event.preventDefault();
      this.#send(event.altKey && this.#running);
    } else if (event.key === "ArrowUp" && this.#box.selectionEnd === 0 && this.#box.selectionStart === 0) {
      event.preventDefault();
      this.#backInTime();
    } else if (event.key === "ArrowDown" && this.#pastAt >= 0) {
      event.preventDefault();
      this.#fromPast(-1);
    }
  }

  #sends(event: KeyboardEvent): boolean {
    if (event.altKey) return true;
    const withCtrl = event.ctrlKey || event.metaKey;
    return this.#view?.sendWith === "ctrlEnter" ? withCtrl : !event.shiftKey;
  }

  #fit(): void {
    this.#box.style.height = "auto";
    this.#box.style.height = `${Math.min(this.#box.scrollHeight, ROWS_MAX_PX)}px`;
  }

  // -- what was written before ------------------------------------------------------------------------------------------------

  #backInTime(): void {
    if (this.#past) this.#fromPast(1);
    else tell({ type: "history" });
  }

  #fromPast(step: number): void {
    const past = this.#past ?? [];
    const at = Math.min(this.#pastAt + step, past.length - 1);
    if (at === this.#pastAt) return;
    if (this.#pastAt < 0) this.#draftBeforePast = this.#box.value;
    this.#pastAt = at;
    this.#box.value = at < 0 ? this.#draftBeforePast : (past[at]?.text ?? "");
    this.#box.setSelectionRange(0, 0);
    this.#sendingId = undefined;
    this.#fit();
    this.#keep();
    this.#drawActions();
  }

  // -- files ------------------------------------------------------------------------------------------------------------------

  /** What is typed after the `@` before the cursor. */
  #mention(): string | undefined {
    return MENTION.exec(this.#box.value.slice(0, this.#box.selectionStart))?.[2];
  }

  #listKey(key: string): boolean {
    const last = this.#files.length - 1;
    if (key === "ArrowDown") this.#chosen = this.#chosen >= last ? 0 : this.#chosen + 1;
    else if (key === "ArrowUp") this.#chosen = this.#chosen <= 0 ? last : this.#chosen - 1;
    else if (key === "Enter" || key === "Tab") this.#pick(this.#chosen);
    else if (key === "Escape") this.#closeList();
    else return false;
    this.#drawList();
    return true;
  }

  #pick(at: number): void {
    const file = this.#files[at];
    const query = this.#mention();
    this.#closeList();
    if (!file || query === undefined) return;
    const end = this.#box.selectionStart;
    this.#box.setRangeText(`${file.path} `, end - query.length, end, "end");
    this.#typed();
  }

  #drawList(): void {
    this.#list.hidden = this.#files.length === 0;
    this.#box.setAttribute("aria-expanded", String(!this.#list.hidden));
    this.#list.replaceChildren(
      ...this.#files.map((file, at) => {
        const chosen = at === this.#chosen;
        const pick = (event: Event): void => {
          event.preventDefault(); // keeps the focus in the box
          this.#pick(at);
        };
        return h(
          "li",
          { role: "option", id: `file-${at}`, "aria-selected": String(chosen), onmousedown: pick },
          visibleLine(file.path),
        );
      }),
    );
    if (this.#list.hidden) this.#box.removeAttribute("aria-activedescendant");
    else this.#box.setAttribute("aria-activedescendant", `file-${this.#chosen}`);
    this.#list.children[this.#chosen]?.scrollIntoView({ block: "nearest" });
  }

  #closeList(): void {
    this.#files = [];
    this.#drawList();
  }
}
