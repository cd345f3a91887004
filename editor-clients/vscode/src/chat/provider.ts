/** The chat's view: draws the feed on its page and carries out what the person asks for there. */

import * as vscode from "vscode";
import type { Context } from "../context.ts";
import {
  MessageHistoryRequest,
  QueueEditRequest,
  QueueMoveRequest,
  QueueRemoveRequest,
  QueueResumeRequest,
  RecoveryResolveRequest,
  RunCancelRequest,
  RunStartRequest,
  RunSteerRequest,
  SessionUpdateRequest,
  WorkspaceFilesRequest,
} from "../generated/protocol.ts";
import { fileName } from "../words.ts";
import type { FromPage, ToPage } from "./messages.ts";
import { pageHtml } from "./page.ts";
import { viewOf } from "./view.ts";

export const CHAT_VIEW = "standfast.chat";
const HISTORY = 100;
const FILES = 20;

type Intents = { [Type in FromPage["type"]]: (message: Extract<FromPage, { type: Type }>) => unknown };

export class ChatView implements vscode.WebviewViewProvider {
  readonly #ctx: Context;
  #view: vscode.WebviewView | undefined;
  #ready = false;
  #viewTimer: NodeJS.Timeout | undefined;
  #waiting: ToPage[] = [];

  constructor(ctx: Context) {
    this.#ctx = ctx;
    const { feed, asks, attention, connection } = ctx;
    feed.onReset(() => this.#sendAll());
    feed.onAppended((entries) => this.#post({ type: "append", entries }));
    feed.onPrepended((events) => this.#post({ type: "prepend", events, hasOlder: feed.hasOlder }));
    for (const changed of [feed.onFacts, asks.onChanged, attention.onChanged]) changed(() => this.refresh());
    connection.onState(() => this.refresh());
  }

  resolveWebviewView(view: vscode.WebviewView): void {
    this.#view = view;
    this.#ready = false;
    const extension = this.#ctx.extension.extensionUri;
    view.webview.options = {
      enableScripts: true,
      enableCommandUris: false,
      enableForms: false,
      localResourceRoots: [vscode.Uri.joinPath(extension, "dist")],
    };
    view.webview.html = pageHtml(view.webview, extension);
    view.webview.onDidReceiveMessage((message: FromPage) => void this.#received(message));
    view.onDidDispose(() => {
      this.#view = undefined;
      this.#ready = false;
    });
    this.#title();
  }

  /** What stands beside the history may have changed. Several changes in a row are drawn once. */
  refresh(): void {
    this.#viewTimer ??= setTimeout(() => {
      this.#viewTimer = undefined;
      this.#title();
      this.#post({ type: "view", view: viewOf(this.#ctx) });
    }, 5);
  }

  /** Puts text into the message box, and the cursor behind it; waits until the page is there. */
  insert(text: string): void {
    this.#postLater({ type: "insert", text });
  }

  get visible(): boolean {
    return this.#view?.visible === true;
  }

  focus(): void {
    this.#postLater({ type: "focus" });
  }

  // -- to the page ------------------------------------------------------------------------------------------------------

  #title(): void {
    const session = this.#ctx.feed.facts?.session;
    if (!this.#view) return;
    const folders = vscode.workspace.workspaceFolders ?? [];
    this.#view.description = session && folders.length > 1 ? fileName(session.workspaceUri) : "";
  }

  #sendAll(): void {
    const { feed } = this.#ctx;
    this.#post({ type: "view", view: viewOf(this.#ctx) });
    this.#post({ type: "reset", entries: feed.entries, hasOlder: feed.hasOlder });
  }

  #post(message: ToPage): void {
    if (this.#ready) void this.#view?.webview.postMessage(message);
  }

  #postLater(message: ToPage): void {
    if (this.#ready) this.#post(message);
    else this.#waiting.push(message);
  }

  // -- from the page ------------------------------------------------------------------------------------------------------

  async #received(message: FromPage): Promise<void> {
    const intent = this.#intents[message.type] as ((message: FromPage) => unknown) | undefined;
    try {
      await intent?.(message);
    } catch (error) {
      await this.#ctx.say(error);
    }
  }

  readonly #intents: Intents = {
    ready: () => {
      this.#ready = true;
      this.#sendAll();
      for (const message of this.#waiting.splice(0)) this.#post(message);
    },
    send: (message) => this.#send(message),
    stop: () => this.stop(),
    resume: ({ runId }) => this.#ctx.runs.resume(runId),
    undo: ({ runId }) => this.#ctx.runs.undo(runId),
    decide: ({ callId, digest, decision }) => this.#ctx.asks.answer(callId, digest, decision),
    settle: (message) =>
      this.#ctx.connection.request(RecoveryResolveRequest, { callId: message.callId, action: message.action }),
    showDiff: ({ subject }) => this.#ctx.diffs.show(subject),
    openFile: ({ uri }) => vscode.commands.executeCommand("vscode.open", vscode.Uri.parse(uri)),
    openLink: ({ url }) => this.#openLink(url),
    copy: ({ text }) => vscode.env.clipboard.writeText(text),
    older: async () => {
      const { feed } = this.#ctx;
      const first = feed.events[0];
      try {
        await feed.older();
      } finally {
        // Nothing came: the page may ask again.
        if (feed.events[0] === first) this.#post({ type: "prepend", events: [], hasOlder: feed.hasOlder });
      }
    },
    history: async () => {
      const workspaceUri = this.#workspace();
      const { messages } = await this.#ctx.connection.request(MessageHistoryRequest, {
        ...(workspaceUri ? { workspaceUri } : {}),
        limit: HISTORY,
      });
      this.#post({ type: "history", messages });
    },
    files: async ({ query }) => {
      const workspaceUri = this.#workspace();
      if (!workspaceUri) return;
      const { files } = await this.#ctx.connection.request(WorkspaceFilesRequest, {
        workspaceUri,
        query,
        limit: FILES,
      });
      this.#post({ type: "files", query, files });
    },
    queueEdit: ({ messageId, text }) =>
      this.#onQueue((sessionId) => this.#ctx.connection.request(QueueEditRequest, { sessionId, messageId, text })),
    queueRemove: ({ messageId }) =>
      this.#onQueue((sessionId) => this.#ctx.connection.request(QueueRemoveRequest, { sessionId, messageId })),
    queueMove: ({ messageId, position }) =>
      this.#onQueue((sessionId) => this.#ctx.connection.request(QueueMoveRequest, { sessionId, messageId, position })),
    queueResume: () => this.#onQueue((sessionId) => this.#ctx.connection.request(QueueResumeRequest, { sessionId })),
    mode: ({ mode }) =>
      this.#onQueue((sessionId) => this.#ctx.connection.request(SessionUpdateRequest, { sessionId, mode })),
    setKey: () => this.#ctx.credentials.ask("Paste the key of the model's service."),
    rebind: () => vscode.commands.executeCommand("standfast.session.move", this.#ctx.feed.facts?.session),
    openFolder: () => vscode.commands.executeCommand("workbench.action.files.openFolder"),
    help: () => vscode.commands.executeCommand("standfast.reconnect"),
  };

  /** Stops the run of the session on screen. What has happened stays. */
  async stop(): Promise<void> {
    const run = this.#ctx.feed.facts?.session.lastRun;
    if (run) await this.#ctx.connection.request(RunCancelRequest, { runId: run.runId });
  }

  /** The text stays in the box until the daemon has it. Sent again with the same id, it is still one message. */
  async #send(message: Extract<FromPage, { type: "send" }>): Promise<void> {
    const { text, clientMessageId } = message;
    try {
      const runId = this.#ctx.feed.facts?.session.lastRun?.runId;
      if (message.steer && runId) {
        await this.#ctx.connection.request(RunSteerRequest, { runId, text, clientMessageId });
      } else {
        const sessionId = this.#ctx.feed.sessionId ?? (await this.#ctx.newSession());
        if (!sessionId) throw new Error("No folder is open. Open one, then send the message; the text is kept.");
        await this.#ctx.connection.request(RunStartRequest, { sessionId, text, clientMessageId });
      }
      this.#post({ type: "sent", clientMessageId });
    } catch (error) {
      this.#post({ type: "refused", clientMessageId, message: error instanceof Error ? error.message : String(error) });
      await this.#ctx.say(error, true);
    }
  }

  #workspace(): string | undefined {
    return this.#ctx.feed.facts?.session.workspaceUri ?? vscode.workspace.workspaceFolders?.[0]?.uri.toString();
  }

  async #onQueue(act: (sessionId: string) => Promise<unknown>): Promise<void> {
    const { sessionId } = this.#ctx.feed;
    if (sessionId) await act(sessionId);
  }

  /** A link of the model's text: opened only after the person has seen the whole address. */
  async #openLink(url: string): Promise<void> {
    const uri = vscode.Uri.parse(url, true);
    if (uri.scheme !== "https" && uri.scheme !== "http") return;
    const open = "Open in Browser";
    const copy = "Copy";
    const detail = "This address comes from the model's text. It could carry data of yours; look at all of it.";
    const chosen = await vscode.window.showWarningMessage(uri.toString(true), { modal: true, detail }, open, copy);
    if (chosen === open) await vscode.env.openExternal(uri);
    if (chosen === copy) await vscode.env.clipboard.writeText(url);
  }
}
