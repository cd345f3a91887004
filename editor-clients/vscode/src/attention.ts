/** What a person must look at in the open folders, as the daemon says it, and what of the daemon does not work. */

import * as vscode from "vscode";
import type { Connection } from "./client.ts";
import {
  AttentionChangedNotification,
  type AttentionItem,
  DaemonChangedNotification,
  type Degraded,
} from "./generated/protocol.ts";

export class Attention {
  readonly #changed = new vscode.EventEmitter<void>();
  readonly onChanged = this.#changed.event;
  readonly #byFolder = new Map<string, AttentionItem[]>();
  degraded: Degraded[] = [];

  constructor(connection: Connection) {
    connection.onNotice(AttentionChangedNotification, ({ workspaceUri, items }) => {
      this.#byFolder.set(workspaceUri, items);
      this.#changed.fire();
    });
    connection.onNotice(DaemonChangedNotification, ({ degraded }) => {
      this.degraded = degraded;
      this.#changed.fire();
    });
    connection.onState((state) => {
      if (state.kind === "connected") return;
      this.#byFolder.clear();
      this.degraded = [];
      this.#changed.fire();
    });
  }

  get items(): AttentionItem[] {
    return [...this.#byFolder.values()].flat();
  }

  /** How many things wait for the person: a call that stands on three files is one. */
  get count(): number {
    return new Set(this.items.map((item) => item.conflictId ?? item.callId ?? item.runId ?? item.sessionId)).size;
  }
}
