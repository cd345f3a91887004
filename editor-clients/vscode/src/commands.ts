/** Every command of the extension, in one table: id → what it does. Titles and keys stand in package.json. */

import { execFile } from "node:child_process";
import { promisify } from "node:util";
import * as vscode from "vscode";
import type { CommandMiddleware } from "./client.ts";
import type { Context } from "./context.ts";
import {
  type DiffGetParams,
  type Session,
  SessionDeleteRequest,
  SessionForkRequest,
  SessionRebindRequest,
  SessionUpdateRequest,
  WorkspaceTrustRequest,
} from "./generated/protocol.ts";
import { compact, editGoal } from "./goals.ts";
import { titleOf } from "./words.ts";

type Command = (ctx: Context, session?: Session) => unknown;

const COMMANDS: Record<string, Command> = {
  "standfast.openChat": async (ctx) => {
    await vscode.commands.executeCommand("standfast.chat.focus");
    ctx.chat.focus();
  },
  "standfast.newSession": async (ctx) => {
    const made = await ctx.newSession();
    if (!made) throw new Error("No folder is open. A session works in a folder: open one first.");
    await vscode.commands.executeCommand("standfast.openChat");
  },
  "standfast.stop": (ctx) => ctx.chat.stop(),
  "standfast.resume": async (ctx) => {
    const run = ctx.feed.facts?.session.lastRun;
    if (run) await ctx.runs.resume(run.runId);
  },
  "standfast.undo": async (ctx) => {
    const run = ctx.feed.facts?.session.lastRun;
    if (run) await ctx.runs.undo(run.runId);
  },
  "standfast.showChanges": async (ctx) => {
    const run = ctx.feed.facts?.session.lastRun;
    if (run) await ctx.diffs.show({ runId: run.runId });
  },
  "standfast.goal": editGoal,
  "standfast.compact": compact,
  "standfast.review": review,
  "standfast.mention": mention,
  "standfast.setKey": (ctx) => ctx.credentials.ask("Paste the key of the model's service."),
  "standfast.removeKey": (ctx) => ctx.credentials.remove(),
  "standfast.trustFolder": trustFolder,
  "standfast.reconnect": reconnect,
  "standfast.restartDaemon": restartDaemon,
  "standfast.showLog": (ctx) => ctx.log.show(),
  "standfast.sessions.refresh": (ctx) => ctx.sessions.refresh(),
  "standfast.sessions.filter": (ctx) => ctx.sessionsView.filter(),
  "standfast.sessions.toggleArchived": (ctx) => ctx.sessionsView.toggleArchived(),
  "standfast.session.open": async (ctx, session) => {
    const chosen = session ?? (await pickSession(ctx));
    if (chosen) await ctx.openSession(chosen.sessionId);
  },
  "standfast.session.rename": rename,
  "standfast.session.archive": (ctx, session) => setStatus(ctx, session, "archived"),
  "standfast.session.unarchive": (ctx, session) => setStatus(ctx, session, "active"),
  "standfast.session.fork": async (ctx, session) => {
    if (!session) return;
    const made = await ctx.connection.request(SessionForkRequest, { sessionId: session.sessionId });
    await ctx.sessions.refresh();
    await ctx.openSession(made.session.sessionId);
  },
  "standfast.session.delete": deleteSession,
  "standfast.session.move": move,
};

/** Registers all commands; what one raises is shown with a way out. */
export function registerCommands(ctx: Context): vscode.Disposable[] {
  return Object.entries(COMMANDS).map(([id, command]) =>
    vscode.commands.registerCommand(id, async (session?: Session) => {
      try {
        await command(ctx, session ?? undefined);
      } catch (error) {
        await ctx.say(error);
      }
    }),
  );
}

/** Commands of code actions go to the daemon; a difference is shown here, with the editor's own means. */
export function daemonCommands(ctx: Context): CommandMiddleware {
  return async (command, args, next) => {
    try {
      if (command === "standfast.diff.show") return await ctx.diffs.show(args[0] as DiffGetParams);
      return await next(command, args);
    } catch (error) {
      await ctx.say(error);
      return undefined;
    }
  };
}

// -- what needs more than a line ----------------------------------------------------------------------------------------

/** The next thing that needs the person: the file and line it stands on, else its session. */
async function review(ctx: Context): Promise<void> {
  const item = ctx.attention.items.find((each) => each.code !== "interrupted-run") ?? ctx.attention.items[0];
  if (!item) {
    void vscode.window.setStatusBarMessage("Standfast: nothing needs you", 4000);
    return;
  }
  await ctx.openSession(item.sessionId);
  if (!item.uri.startsWith("file:") || item.code === "permission-needed") return;
  const at = new vscode.Position(Math.max(0, item.line - 1), 0);
  await vscode.window.showTextDocument(vscode.Uri.parse(item.uri), {
    selection: new vscode.Range(at, at),
    preview: true,
  });
}

/** Puts `@path` (and the selected lines) into the message box. */
async function mention(ctx: Context): Promise<void> {
  const editor = vscode.window.activeTextEditor;
  if (!editor) return;
  const { start, end, isEmpty } = editor.selection;
  const lines = isEmpty ? "" : `:${start.line + 1}-${end.line + 1}`;
  await vscode.commands.executeCommand("standfast.chat.focus");
  ctx.chat.insert(`@${vscode.workspace.asRelativePath(editor.document.uri, false)}${lines} `);
}

async function pickSession(ctx: Context): Promise<Session | undefined> {
  const rows = ctx.sessions.all.map((session) => ({
    label: titleOf(session),
    description: session.lastRun?.status ?? "",
    session,
  }));
  return (await vscode.window.showQuickPick(rows, { placeHolder: "Session to show", matchOnDescription: true }))
    ?.session;
}

async function rename(ctx: Context, session?: Session): Promise<void> {
  const subject = session ?? ctx.feed.facts?.session;
  if (!subject) return;
  const title = await vscode.window.showInputBox({ title: "Rename session", value: subject.title });
  if (title) await ctx.connection.request(SessionUpdateRequest, { sessionId: subject.sessionId, title });
}

async function setStatus(ctx: Context, session: Session | undefined, status: Session["status"]): Promise<void> {
  if (session) await ctx.connection.request(SessionUpdateRequest, { sessionId: session.sessionId, status });
}

async function deleteSession(ctx: Context, session?: Session): Promise<void> {
  if (!session) return;
  const remove = "Delete";
  const detail = "Its history is deleted for good. Files of the folder stay as they are.";
  const chosen = await vscode.window.showWarningMessage(
    `Delete “${titleOf(session)}”?`,
    { modal: true, detail },
    remove,
  );
  if (chosen !== remove) return;
  await ctx.connection.request(SessionDeleteRequest, { sessionId: session.sessionId });
  ctx.sessions.forget(session.sessionId);
  if (ctx.feed.sessionId === session.sessionId) ctx.feed.close();
}

/** Binds a session to another folder: the one that the daemon recognised, or one that the person chooses. */
async function move(ctx: Context, session?: Session): Promise<void> {
  if (!session) return;
  const other: vscode.QuickPickItem = { label: "$(folder-opened) Choose another folder…" };
  const offered = [
    session.candidateUri,
    ...(vscode.workspace.workspaceFolders ?? []).map((folder) => folder.uri.toString()),
  ];
  const rows = [...new Set(offered.filter((uri) => uri !== undefined))].map((uri) => ({
    label: vscode.Uri.parse(uri).fsPath,
    description: uri === session.candidateUri ? "seems to be the same folder, moved" : "",
    uri,
  }));
  const chosen = await vscode.window.showQuickPick([...rows, other], {
    placeHolder: `Folder that “${titleOf(session)}” works in from now on`,
  });
  if (!chosen) return;
  const picked =
    chosen === other
      ? (await vscode.window.showOpenDialog({ canSelectFolders: true, canSelectFiles: false }))?.[0]?.toString()
      : undefined;
  const workspaceUri = "uri" in chosen ? (chosen.uri as string) : picked;
  if (!workspaceUri) return;
  await ctx.connection.request(SessionRebindRequest, { sessionId: session.sessionId, workspaceUri });
  await ctx.sessions.refresh();
}

async function trustFolder(ctx: Context): Promise<void> {
  const trust = "Trust";
  const detail =
    "Its own settings and hooks for Standfast then take effect, and they can start programs. Your own settings work either way.";
  for (const folder of vscode.workspace.workspaceFolders ?? []) {
    const chosen = await vscode.window.showWarningMessage(
      `Trust the settings that come with “${folder.name}”?`,
      { modal: true, detail },
      trust,
    );
    if (chosen !== trust) continue;
    await ctx.connection.request(WorkspaceTrustRequest, { workspaceUri: folder.uri.toString(), trusted: true });
  }
}

/** What to do about a connection that does not stand. */
async function reconnect(ctx: Context): Promise<void> {
  const { state } = ctx.connection;
  if (state.kind === "missing") await offerInstall(ctx, state.looked);
  else if (state.kind === "mismatch") await offerRestart(ctx, state.message);
  else if (state.kind !== "connected") await ctx.connection.start();
}

async function offerInstall(ctx: Context, looked: string[]): Promise<void> {
  ctx.log.warn(`looked for the program in:\n${looked.join("\n")}`);
  const copy = "Copy Install Command";
  const choose = "Choose Program…";
  const again = "Try Again";
  const chosen = await vscode.window.showErrorMessage(
    "The program “standfast” was not found; nothing is running and nothing was changed. Install it with Python 3.11 or later, or say where it is.",
    copy,
    choose,
    again,
  );
  if (chosen === copy) await vscode.env.clipboard.writeText("pipx install standfast");
  if (chosen === choose) await vscode.commands.executeCommand("workbench.action.openSettings", "standfast.path");
  if (chosen === again) await ctx.connection.start();
}

async function offerRestart(ctx: Context, message: string): Promise<void> {
  const restart = "Restart the Daemon";
  const chosen = await vscode.window.showErrorMessage(message, restart, "Show Log");
  if (chosen === restart) await restartDaemon(ctx);
  else if (chosen) ctx.log.show();
}

/** Ends the daemon (it refuses while something runs) and connects, which starts the installed version. */
async function restartDaemon(ctx: Context): Promise<void> {
  const found = await ctx.connection.program();
  if (found.program === undefined) return offerInstall(ctx, found.looked);
  try {
    await promisify(execFile)(found.program, ["daemon", "stop"]);
  } catch (error) {
    const said = (error as { stderr?: string }).stderr?.trim();
    throw new Error(said || "The daemon could not be ended. Nothing was changed.");
  }
  await ctx.connection.start();
}
