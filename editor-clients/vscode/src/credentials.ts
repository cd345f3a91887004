/** The model's key: asked for, kept in the editor's secret storage, handed to the daemon. Never in a setting or a log. */

import * as vscode from "vscode";
import type { Connection } from "./client.ts";
import { CredentialsSetRequest } from "./generated/protocol.ts";

const SECRET = "standfast.anthropic.key";
const PROVIDER = "anthropic";

export class Credentials {
  readonly #connection: Connection;
  readonly #secrets: vscode.SecretStorage;

  constructor(connection: Connection, secrets: vscode.SecretStorage) {
    this.#connection = connection;
    this.#secrets = secrets;
  }

  /** Hands a key that is kept here to the daemon that was just reached. */
  async hand(): Promise<void> {
    const key = await this.#secrets.get(SECRET);
    if (key) await this.#connection.request(CredentialsSetRequest, { provider: PROVIDER, key });
  }

  /** Asks for a key. Returns whether one was given. */
  async ask(why: string): Promise<boolean> {
    const key = await vscode.window.showInputBox({
      title: "Standfast: key for the model's service",
      prompt: `${why} The key is kept in the editor's secret storage and handed to the daemon on this machine.`,
      password: true,
      ignoreFocusOut: true,
      validateInput: (value) => (/^\S+$/.test(value.trim()) ? undefined : "A key is one word without spaces."),
    });
    if (key === undefined) return false;
    await this.#connection.request(CredentialsSetRequest, { provider: PROVIDER, key: key.trim() });
    await this.#secrets.store(SECRET, key.trim());
    return true;
  }

  async remove(): Promise<void> {
    await this.#secrets.delete(SECRET);
    await this.#connection.request(CredentialsSetRequest, { provider: PROVIDER, key: null });
  }
}
