/** The chat's page: takes what the extension tells, and lays its parts out. Decides nothing. */

import type { Session } from "../../generated/protocol.ts";
import { count } from "../../words.ts";
import type { ToPage, View } from "../messages.ts";
import { visibleLine } from "../visible.ts";
import { listen, tell } from "./bridge.ts";
import { Composer } from "./composer.ts";
import { button, fill, h, icon, sentence } from "./dom.ts";
import { History } from "./history.ts";
import { permissionPanel } from "./permission_panel.ts";
import { Plan, Queue } from "./queue.ts";
import { recoveryCard } from "./recovery_card.ts";

const MODES: Record<Session["mode"], string> = {
  plan: "Plan: reads only",
  ask: "Ask: every change and command",
  edit: "Edit: files go through, commands are asked",
  auto: "Auto: files and commands go through",
};

let view: View = {
  connected: false,
  trouble: undefined,
  session: undefined,
  folder: undefined,
  queue: [],
  queueHeld: false,
  asks: [],
  recovery: undefined,
  tokens: undefined,
  damage: undefined,
  degraded: [],
  trusted: true,
  sendWith: "enter",
};

const banner = h("div", { class: "banners", role: "status" });
const announcer = h("div", { class: "sr-only", role: "status", "aria-live": "assertive" });
const empty = h("div", { class: "empty" });
const mode = h("select", {
  class: "mode",
  "aria-label": "What the agent may do",
  onchange: () => tell({ type: "mode", mode: mode.value as Session["mode"] }),
});
const tokens = h("span", { class: "tokens" });
const history = new History(() => drawBeside());
const plan = new Plan();
const queue = new Queue();
const composer = new Composer(h("span", { class: "settings" }, mode, tokens));

document
  .getElementById("app")
  ?.replaceChildren(banner, empty, history.element, plan.element, queue.element, composer.element, announcer);

// -- what the extension tells ---------------------------------------------------------------------------------------------

const TAKE: { [Type in ToPage["type"]]: (message: Extract<ToPage, { type: Type }>) => void } = {
  reset: ({ entries, hasOlder }) => history.reset(entries, hasOlder, view),
  append: ({ entries }) => history.append(entries, view),
  prepend: ({ events, hasOlder }) => history.prepend(events, hasOlder, view),
  view: (message) => {
    const before = view;
    view = message.view;
    if (before.connected !== view.connected) composer.connectionChanged();
    if (view.asks.length > before.asks.length)
      announcer.textContent = `Permission needed: ${visibleLine(view.asks.at(-1)?.summary ?? "")}`;
    history.draw(view);
  },
  sent: ({ clientMessageId }) => {
    composer.sent(clientMessageId);
    history.toEnd();
  },
  refused: ({ clientMessageId, message }) => composer.refused(clientMessageId, message),
  history: ({ messages }) => composer.showHistory(messages),
  files: ({ query, files }) => composer.showFiles(query, files),
  insert: ({ text }) => composer.insert(text),
  focus: () => composer.focus(),
};

listen((message) => (TAKE[message.type] as ((message: ToPage) => void) | undefined)?.(message));
tell({ type: "ready" });

// -- what stands beside the history ---------------------------------------------------------------------------------------

function running(): boolean {
  const { activeRunId, endedRuns } = history.state;
  const last = view.session?.lastRun;
  return activeRunId !== undefined || (last?.status === "running" && !endedRuns.has(last.runId));
}

function drawBeside(): void {
  document.body.dataset["connection"] = view.connected ? "connected" : "lost";
  document.body.dataset["running"] = String(running() && view.connected);
  drawBanner();
  drawEmpty();
  drawSettings();
  drawTail();
  plan.update(history.state.plan);
  queue.update(view);
  composer.update(view, running());
}

function drawBanner(): void {
  const { trouble, damage, degraded, session } = view;
  fill(banner, JSON.stringify([trouble, damage, degraded, session?.workspaceState]), () => [
    trouble &&
      line(
        "debug-disconnect",
        trouble.text,
        trouble.action && button(trouble.action, () => tell({ type: "help" }), { class: "link" }),
      ),
    damage !== undefined && line("warning", damage),
    ...degraded.map((item) => line("warning", item.message)),
    session && folderLine(session.workspaceState),
  ]);
}

function folderLine(state: Session["workspaceState"]): HTMLElement | undefined {
  const says = {
    present: "",
    missing: "The folder of this session is gone. The history stays readable.",
    moved: "The folder of this session seems to have moved.",
    replaced: "Another folder is now where this session's folder was.",
  }[state];
  return says
    ? line(
        "folder",
        says,
        button("Choose folder…", () => tell({ type: "rebind" }), { class: "link" }),
      )
    : undefined;
}

function line(sign: string, text: string, action?: HTMLElement | "" | false): HTMLElement {
  return h("p", { class: "banner" }, icon(sign), h("span", {}, ...sentence(text)), action);
}

function drawEmpty(): void {
  const isEmpty = history.state.items.length === 0 && view.connected;
  empty.hidden = !isEmpty;
  history.element.hidden = isEmpty;
  fill(empty, `${view.folder}`, () =>
    view.folder === undefined
      ? [
          icon("folder-opened", "big"),
          h("p", {}, "A session works in a folder."),
          button("Open folder", () => tell({ type: "openFolder" }), { class: "primary" }),
        ]
      : [
          icon("comment-discussion", "big"),
          h("h2", {}, "What shall be done?"),
          h(
            "p",
            { class: "dim" },
            `In ${visibleLine(view.folder)}. Every change is shown before it is made, and nothing is lost if the editor or the machine goes down.`,
          ),
        ],
  );
}

function drawSettings(): void {
  const { session, trusted, tokens: used } = view;
  mode.hidden = session === undefined;
  fill(mode, `${session?.mode}${trusted}`, () =>
    (Object.keys(MODES) as Session["mode"][]).map((name) => {
      const disabled = !trusted && (name === "edit" || name === "auto");
      return h(
        "option",
        { value: name, selected: session?.mode === name, disabled, title: MODES[name] },
        MODES[name].split(":")[0] ?? name,
      );
    }),
  );
  const limits = trusted ? "" : ". In a folder that is not trusted, Edit and Auto are off.";
  mode.title = session ? MODES[session.mode] + limits : "";
  mode.disabled = !view.connected;
  const says = used && used.input + used.output > 0 ? `${count(used.input + used.output)} tokens` : "";
  tokens.textContent = says;
  tokens.title = used ? `${used.input} tokens in, ${used.output} out, over all runs of this session` : "";
}

/** Questions whose call is not on screen, and what an interruption left open. */
function drawTail(): void {
  const { recovery, asks, connected } = view;
  const loose = asks.filter((ask) => !history.state.calls.has(ask.callId));
  const open =
    recovery && (recovery.calls.length > 0 || (recovery.interruptedRun && !running())) ? recovery : undefined;
  const key = JSON.stringify([open, loose, connected]);
  if (shownTail === key) return;
  shownTail = key;
  history.setTail(...loose.map(permissionPanel), ...(open ? [recoveryCard(open, connected)] : []));
}
let shownTail = "";

// -- links and copying in model text --------------------------------------------------------------------------------------

function activate(target: EventTarget | null): boolean {
  if (!(target instanceof Element)) return false;
  const url = target.closest<HTMLElement>("a[data-url]")?.dataset["url"];
  if (url !== undefined) tell({ type: "openLink", url });
  const code = target.closest("button.copy")?.closest(".code")?.querySelector("code");
  if (code) tell({ type: "copy", text: code.textContent ?? "" });
  return url !== undefined || code !== undefined;
}

document.addEventListener("click", (event) => activate(event.target));
document.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && event.target instanceof HTMLAnchorElement && activate(event.target))
    event.preventDefault();
});
