/** The tree of sessions: title, state, folder, age. Selecting one shows it in the chat. */

import * as vscode from "vscode";
import type { Context } from "./context.ts";
import type { Session } from "./generated/protocol.ts";
import { age, fileName, RUN_WORDS, titleOf } from "./words.ts";

const AGE_REFRESH_MS = 60_000;

export class SessionsView implements vscode.TreeDataProvider<Session>, vscode.Disposable {
  readonly #ctx: Context;
  readonly #changed = new vscode.EventEmitter<void>();
  readonly #tree: vscode.TreeView<Session>;
  readonly #ages: NodeJS.Timeout;
  readonly onDidChangeTreeData = this.#changed.event;
  #filter = "";
  #archived = false;

  constructor(ctx: Context) {
    this.#ctx = ctx;
    this.#tree = vscode.window.createTreeView("standfast.sessions", { treeDataProvider: this });
    ctx.sessions.onChanged(() => this.#refresh());
    ctx.attention.onChanged(() => this.#badge());
    this.#ages = setInterval(() => this.#changed.fire(), AGE_REFRESH_MS);
    this.#refresh();
  }

  dispose(): void {
    clearInterval(this.#ages);
    this.#tree.dispose();
    this.#changed.dispose();
  }

  /** Shows only sessions whose title contains the text; empty shows all. */
  async filter(): Promise<void> {
    const text = await vscode.window.showInputBox({
      title: "Filter sessions by title",
      value: this.#filter,
      prompt: "Empty shows all.",
    });
    if (text === undefined) return;
    this.#filter = text.trim().toLowerCase();
    this.#refresh();
  }

  toggleArchived(): void {
    this.#archived = !this.#archived;
    this.#refresh();
  }

  getChildren(parent?: Session): Session[] {
    if (parent) return [];
    return this.#ctx.sessions.all.filter(
      (session) =>
        this.#archived === (session.status === "archived") && session.title.toLowerCase().includes(this.#filter),
    );
  }

  getTreeItem(session: Session): vscode.TreeItem {
    const item = new vscode.TreeItem(titleOf(session));
    const state = stateOf(session);
    item.id = session.sessionId;
    item.iconPath = state.icon;
    item.description = [state.word, this.#place(session), age(session.updatedAtMs, Date.now())]
      .filter(Boolean)
      .join(" · ");
    item.tooltip = `${titleOf(session)}\n${state.word || "nothing ran yet"} · mode: ${session.mode}\n${decodeURIComponent(session.workspaceUri)}`;
    item.contextValue = `session ${session.status} ${session.workspaceState}`;
    item.accessibilityInformation = { label: `${titleOf(session)}, ${item.description}` };
    item.command = { command: "standfast.session.open", title: "Open Session", arguments: [session] };
    return item;
  }

  /** The folder's name where it is not plain, and what is wrong with the folder. */
  #place(session: Session): string {
    const folders = vscode.workspace.workspaceFolders ?? [];
    if (session.workspaceState === "moved") return "folder moved";
    if (session.workspaceState === "missing") return "folder missing";
    if (session.workspaceState === "replaced") return "folder replaced";
    if (session.worktree !== undefined) return `worktree ${session.worktree}`;
    return folders.length === 1 ? "" : fileName(session.workspaceUri);
  }

  #refresh(): void {
    const shown = this.getChildren().length;
    const only = [this.#filter && `“${this.#filter}”`, this.#archived && "archived"].filter(Boolean).join(", ");
    this.#tree.description = only || (shown > 0 ? `${shown}` : "");
    this.#tree.message =
      !this.#ctx.sessions.fresh && this.#ctx.sessions.all.length > 0 ? "Not connected: the list may be old." : "";
    this.#badge();
    this.#changed.fire();
  }

  #badge(): void {
    const { count } = this.#ctx.attention;
    this.#tree.badge =
      count > 0
        ? { value: count, tooltip: count === 1 ? "One thing needs you" : `${count} things need you` }
        : undefined;
  }
}

function stateOf(session: Session): { word: string; icon: vscode.ThemeIcon } {
  const status = session.lastRun?.status;
  if (!status) return { word: "", icon: new vscode.ThemeIcon("comment") };
  const [icon, color] = ICONS[status];
  return {
    word: RUN_WORDS[status],
    icon: new vscode.ThemeIcon(icon, color ? new vscode.ThemeColor(color) : undefined),
  };
}

const ICONS: Record<NonNullable<Session["lastRun"]>["status"], [string, string?]> = {
  queued: ["clock"],
  running: ["loading~spin", "progressBar.background"],
  succeeded: ["pass", "testing.iconPassed"],
  failed: ["error", "testing.iconFailed"],
  cancelled: ["circle-slash"],
  interrupted: ["debug-disconnect", "list.warningForeground"],
};
