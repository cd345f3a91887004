/** The sessions of the open folders, as the daemon lists them, kept fresh by its notices. */

import * as vscode from "vscode";
import type { Connection } from "./client.ts";
import {
  type Session,
  SessionChangedNotification,
  SessionDeletedNotification,
  SessionListRequest,
} from "./generated/protocol.ts";

const PAGE = 200;

export class Sessions {
  readonly #connection: Connection;
  readonly #changed = new vscode.EventEmitter<void>();
  readonly onChanged = this.#changed.event;
  #byId = new Map<string, Session>();
  /** False until the first list came, and while there is no connection: the list is what was last known. */
  fresh = false;

  constructor(connection: Connection) {
    this.#connection = connection;
    connection.onNotice(SessionChangedNotification, ({ session }) => this.#put(session));
    connection.onNotice(SessionDeletedNotification, ({ sessionId }) => this.forget(sessionId));
    connection.onState((state) => {
      if (state.kind !== "connected") this.fresh = false;
      this.#changed.fire();
    });
  }

  /** Newest change first. */
  get all(): Session[] {
    return [...this.#byId.values()].sort((a, b) => b.updatedAtMs - a.updatedAtMs);
  }

  get(sessionId: string): Session | undefined {
    return this.#byId.get(sessionId);
  }

  get running(): Session[] {
    return this.all.filter((session) => session.lastRun?.status === "running");
  }

  /** Asks for the sessions of each open folder; without a folder, for all. Archived ones come along. */
  async refresh(): Promise<void> {
    const folders = vscode.workspace.workspaceFolders ?? [];
    const where = folders.length > 0 ? folders.map((folder) => ({ workspaceUri: folder.uri.toString() })) : [{}];
    const asked = where.flatMap((folder) => [
      this.#connection.request(SessionListRequest, { ...folder, limit: PAGE }),
      this.#connection.request(SessionListRequest, { ...folder, status: "archived", limit: PAGE }),
    ]);
    const lists = await Promise.all(asked);
    this.#byId = new Map(lists.flatMap((list) => list.sessions).map((session) => [session.sessionId, session]));
    this.fresh = true;
    this.#changed.fire();
  }

  forget(sessionId: string): void {
    this.#byId.delete(sessionId);
    this.#changed.fire();
  }

  #put(session: Session): void {
    this.#byId.set(session.sessionId, session);
    this.#changed.fire();
  }
}
