/** The daemon's open permission requests, and the answers to them. A question lives as long as its connection. */

import * as vscode from "vscode";
import type { Connection } from "./client.ts";
import { type Permission, type PermissionAnswer, PermissionResolvedNotification } from "./generated/protocol.ts";

interface Open {
  permission: Permission;
  answer: (answer: PermissionAnswer) => void;
  withdraw: () => void;
}

export class Asks {
  readonly #open = new Map<string, Open>();
  readonly #changed = new vscode.EventEmitter<void>();
  readonly #asked = new vscode.EventEmitter<Permission>();
  readonly onChanged = this.#changed.event;
  /** A new question came. */
  readonly onAsked = this.#asked.event;

  constructor(connection: Connection) {
    connection.onPermission((permission, token) => this.#ask(permission, token));
    connection.onNotice(PermissionResolvedNotification, ({ callId }) => this.#withdraw(callId));
    connection.onState((state) => {
      if (state.kind === "connected") return;
      for (const callId of [...this.#open.keys()]) this.#withdraw(callId);
    });
  }

  of(sessionId: string): Permission[] {
    return [...this.#open.values()]
      .map((open) => open.permission)
      .filter((permission) => permission.sessionId === sessionId);
  }

  /** Answers for exactly what was shown. Nothing happens if the question is no longer open. */
  answer(callId: string, digest: string, decision: PermissionAnswer["decision"]): void {
    const open = this.#open.get(callId);
    if (open?.permission.digest !== digest) return;
    this.#open.delete(callId);
    open.answer({ decision, digest });
    this.#changed.fire();
  }

  #ask(permission: Permission, token: vscode.CancellationToken): Promise<PermissionAnswer> {
    return new Promise((resolve, reject) => {
      const withdraw = (): void => reject(new Error("the question was withdrawn"));
      this.#open.get(permission.callId)?.withdraw();
      this.#open.set(permission.callId, { permission, answer: resolve, withdraw });
      token.onCancellationRequested(() => this.#withdraw(permission.callId));
      this.#changed.fire();
      this.#asked.fire(permission);
    });
  }

  #withdraw(callId: string): void {
    const open = this.#open.get(callId);
    if (!open) return;
    this.#open.delete(callId);
    open.withdraw();
    this.#changed.fire();
  }
}
