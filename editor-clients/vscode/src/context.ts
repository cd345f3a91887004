/** One object with all parts of the extension, wired here and nowhere else; passed to whatever needs more than one. */

import * as vscode from "vscode";
import { Asks } from "./asks.ts";
import { Attention } from "./attention.ts";
import { Feed } from "./chat/feed.ts";
import { CHAT_VIEW, ChatView } from "./chat/provider.ts";
import { plainSentence, visibleLine } from "./chat/visible.ts";
import { Connection, NotConnected, reasonOf } from "./client.ts";
import { Credentials } from "./credentials.ts";
import { Diffs } from "./diffs.ts";
import { type Permission, type Session, SessionCreateRequest, WorkspaceTrustRequest } from "./generated/protocol.ts";
import { RecoveryNotice } from "./recovery_notice.ts";
import { Runs } from "./runs.ts";
import { Sessions } from "./sessions.ts";
import { SessionsView } from "./sessions_view.ts";
import { Status } from "./status.ts";

const LAST_SESSION = "standfast.lastSession";

export class Context implements vscode.Disposable {
  readonly extension: vscode.ExtensionContext;
  readonly log: vscode.LogOutputChannel;
  readonly connection: Connection;
  readonly sessions: Sessions;
  readonly attention: Attention;
  readonly asks: Asks;
  readonly feed: Feed;
  readonly diffs: Diffs;
  readonly credentials: Credentials;
  readonly runs: Runs;
  readonly status: Status;
  readonly chat: ChatView;
  readonly sessionsView: SessionsView;
  readonly #disposables: vscode.Disposable[];
  /** What the daemon knows of the folders' trust: the page offers nothing that it would refuse. */
  trusted = vscode.workspace.isTrusted;

  constructor(extension: vscode.ExtensionContext, log: vscode.LogOutputChannel) {
    this.extension = extension;
    this.log = log;
    this.connection = new Connection(log, extension.extensionPath);
    this.sessions = new Sessions(this.connection);
    this.attention = new Attention(this.connection);
    this.asks = new Asks(this.connection);
    this.feed = new Feed(this.connection);
    this.diffs = new Diffs(this.connection);
    this.credentials = new Credentials(this.connection, extension.secrets);
    this.runs = new Runs(this.connection);
    this.status = new Status(this.connection, this.sessions, this.attention);
    this.chat = new ChatView(this);
    this.sessionsView = new SessionsView(this);
    new RecoveryNotice(this);
    this.connection.onState(({ kind }) => {
      void vscode.commands.executeCommand("setContext", "standfast.connected", kind === "connected");
    });
    this.connection.onConnected(() => void this.#greet());
    this.asks.onAsked((permission) => void this.#announce(permission));
    this.#disposables = [
      vscode.window.registerWebviewViewProvider(CHAT_VIEW, this.chat, {
        webviewOptions: { retainContextWhenHidden: true },
      }),
      vscode.workspace.onDidChangeWorkspaceFolders(
        () => void this.sessions.refresh().catch((error) => this.say(error)),
      ),
      // The editor's own word for its folders goes with `initialize`.
      vscode.workspace.onDidGrantWorkspaceTrust(() => void this.connection.start()),
      vscode.workspace.onDidChangeConfiguration((change) => {
        if (change.affectsConfiguration("standfast.path")) void this.connection.start();
        if (change.affectsConfiguration("standfast.chat")) this.chat.refresh();
      }),
    ];
  }

  dispose(): void {
    const parts = [this.sessionsView, this.status, this.diffs, this.feed, this.connection];
    for (const part of [...this.#disposables, ...parts]) part.dispose();
  }

  // -- sessions -----------------------------------------------------------------------------------------------------------

  /** Shows a session in the chat and brings the chat up. */
  async openSession(sessionId: string): Promise<void> {
    await vscode.commands.executeCommand(`${CHAT_VIEW}.focus`);
    await this.#follow(sessionId);
  }

  /** Creates a session in a folder that the person has open and shows it. Undefined: no folder. */
  async newSession(): Promise<string | undefined> {
    const folder = await chooseFolder();
    if (!folder) return undefined;
    const { session } = await this.connection.request(SessionCreateRequest, { workspaceUri: folder.uri.toString() });
    await this.#follow(session.sessionId);
    return session.sessionId;
  }

  async #follow(sessionId: string): Promise<void> {
    await this.feed.open(sessionId);
    await this.extension.workspaceState.update(LAST_SESSION, sessionId);
  }

  // -- what people are told -----------------------------------------------------------------------------------------------

  /** Shows an error with a way out. `told`: the chat shows the sentence already, so only the way out is missing. */
  async say(error: unknown, told = false): Promise<void> {
    this.log.warn(String(error));
    const reason = reasonOf(error) ?? "";
    const way = WAYS_OUT[reason];
    if (error instanceof NotConnected || (told && !way)) return;
    const message = plainSentence(error instanceof Error ? error.message : String(error));
    const chosen = await vscode.window.showErrorMessage(message, ...(way ? [way.label] : ["Show Log"]));
    if (!chosen) return;
    try {
      if (!way) this.log.show();
      else if (way.command) await vscode.commands.executeCommand(way.command, this.feed.facts?.session);
    } catch (failure) {
      await this.say(failure);
    }
  }

  /** A question came while the chat is out of sight. */
  async #announce(permission: Permission): Promise<void> {
    if (this.chat.visible) return;
    const chosen = await vscode.window.showInformationMessage(
      `Standfast asks: ${visibleLine(permission.summary)}`,
      "Review",
    );
    if (chosen) await this.openSession(permission.sessionId);
  }

  // -- a new connection ---------------------------------------------------------------------------------------------------

  async #greet(): Promise<void> {
    try {
      await this.credentials.hand();
      if (!this.trusted) await this.#tellTrust(vscode.workspace.isTrusted);
      await this.sessions.refresh();
      if (!this.feed.sessionId) await this.#offerLast();
    } catch (error) {
      await this.say(error);
    }
  }

  /** The session of last time, else the newest of this folder: shown, not run. */
  async #offerLast(): Promise<void> {
    const folders = vscode.workspace.workspaceFolders ?? [];
    const here = this.sessions.all.filter((session) => folders.length > 0 && isAtHome(session));
    const remembered = this.extension.workspaceState.get<string>(LAST_SESSION);
    const last = here.find((session) => session.sessionId === remembered) ?? here[0];
    if (last) await this.#follow(last.sessionId);
  }

  async #tellTrust(trusted: boolean): Promise<void> {
    for (const folder of vscode.workspace.workspaceFolders ?? []) {
      await this.connection.request(WorkspaceTrustRequest, { workspaceUri: folder.uri.toString(), trusted });
    }
    this.trusted = trusted;
    this.chat.refresh();
  }
}

/** Errors that the person can do something about at once. */
const WAYS_OUT: Record<string, { label: string; command: string }> = {
  KeyMissing: { label: "Enter Key…", command: "standfast.setKey" },
  KeyRefused: { label: "Enter Key…", command: "standfast.setKey" },
  WorkspaceMoved: { label: "Move Session Here…", command: "standfast.session.move" },
  WorkspaceReplaced: { label: "Use This Folder…", command: "standfast.session.move" },
  WorkspaceNotFound: { label: "Choose Folder…", command: "standfast.session.move" },
};

function isAtHome(session: Session): boolean {
  return session.status !== "archived" && session.workspaceState !== "moved" && session.worktree === undefined;
}

/** The only folder, else that of the file being edited, else the one the person picks. */
async function chooseFolder(): Promise<vscode.WorkspaceFolder | undefined> {
  const folders = vscode.workspace.workspaceFolders ?? [];
  if (folders.length <= 1) return folders[0];
  const edited = vscode.window.activeTextEditor?.document.uri;
  return (
    (edited && vscode.workspace.getWorkspaceFolder(edited)) ??
    (await vscode.window.showWorkspaceFolderPick({ placeHolder: "The folder that the session works in" }))
  );
}
