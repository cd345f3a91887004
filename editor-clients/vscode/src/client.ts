/**
 * The connection to the daemon: starts `standfast lsp`, says who we are, and starts it again with back-off when it is
 * lost. Owns no state of sessions; whoever needs some asks again on `onConnected`.
 */

import { randomUUID } from "node:crypto";
import * as vscode from "vscode";
import {
  type CancellationToken,
  type ClientCapabilities,
  CloseAction,
  type DynamicFeature,
  ErrorAction,
  LanguageClient,
  type LanguageClientOptions,
  type NotificationType,
  type RequestType,
  ResponseError,
  State,
  type StaticFeature,
} from "vscode-languageclient/node";
import { Backoff } from "./backoff.ts";
import {
  type Permission,
  type PermissionAnswer,
  PermissionRequestRequest,
  PROTOCOL_VERSION,
} from "./generated/protocol.ts";
import { type Found, findProgram } from "./server.ts";

/** `waiting`: lost, tried again soon. `failed`: tried often enough; the person decides. */
export type ConnectionState =
  | { kind: "connecting" }
  | { kind: "connected"; daemonVersion: string }
  | { kind: "waiting" }
  | { kind: "missing"; looked: string[] }
  | { kind: "mismatch"; message: string }
  | { kind: "failed"; message: string };

/** A request was made while there is no connection. */
export class NotConnected extends Error {
  constructor() {
    super("Standfast is not connected. Nothing was sent; it is connecting again.");
  }
}

/** The word for machines in an error of the daemon, e.g. `KeyMissing`. */
export function reasonOf(error: unknown): string | undefined {
  if (!(error instanceof ResponseError)) return undefined;
  const data = error.data as { reason?: string } | undefined;
  return data?.reason;
}

type Handle = (params: unknown) => void;
export type Ask = (permission: Permission, token: CancellationToken) => Promise<PermissionAnswer>;

/** Sees commands of code actions and lenses on their way to the daemon. */
export type CommandMiddleware = NonNullable<NonNullable<LanguageClientOptions["middleware"]>["executeCommand"]>;

export class Connection implements vscode.Disposable {
  readonly #backoff = new Backoff();
  readonly #clientId = randomUUID();
  readonly #changed = new vscode.EventEmitter<ConnectionState>();
  readonly #connected = new vscode.EventEmitter<void>();
  /** Method → who listens. A client takes one handler a method, so it is installed once and passes on. */
  readonly #listeners = new Map<string, Handle[]>();
  #ask: Ask | undefined;
  #executeCommand: CommandMiddleware | undefined;
  #client: LanguageClient | undefined;
  #timer: NodeJS.Timeout | undefined;
  #starting: Promise<void> | undefined;
  #queued = false;
  #disposed = false;
  state: ConnectionState = { kind: "connecting" };

  readonly onState = this.#changed.event;
  /** A connection stands, the first or a new one: what was known before may be old. */
  readonly onConnected = this.#connected.event;

  readonly #log: vscode.LogOutputChannel;
  readonly #extensionFolder: string;

  constructor(log: vscode.LogOutputChannel, extensionFolder: string) {
    this.#log = log;
    this.#extensionFolder = extensionFolder;
  }

  // -- what the rest of the extension uses ----------------------------------------------------------------------------

  get isConnected(): boolean {
    return this.state.kind === "connected";
  }

  /** Asks the daemon. Raises NotConnected, or ResponseError with a sentence for people and `data.reason`. */
  async request<P, R>(type: RequestType<P, R, void>, params: P, token?: CancellationToken): Promise<R> {
    if (!this.#client || !this.isConnected) throw new NotConnected();
    // An absent token must not be passed: it would count as a second, positional parameter.
    return this.#client.sendRequest<R>(type.method, params, ...(token ? [token] : []));
  }

  /** Listens to a notice, over all reconnects. To be called before `start`. */
  onNotice<P>(type: NotificationType<P>, handle: (params: P) => void): void {
    const known = this.#listeners.get(type.method) ?? [];
    this.#listeners.set(type.method, [...known, handle as Handle]);
  }

  /** Who answers the daemon's permission requests. To be called before `start`. */
  onPermission(ask: Ask): void {
    this.#ask = ask;
  }

  /** Who sees commands before the daemon does. To be called before `start`. */
  onCommand(middleware: CommandMiddleware): void {
    this.#executeCommand = middleware;
  }

  /** Connects, or connects again at once. While one start is under way at most one more is queued. */
  async start(): Promise<void> {
    clearTimeout(this.#timer);
    this.#backoff.reset();
    if (this.#starting) {
      if (this.#queued) return;
      this.#queued = true;
      await this.#starting;
      this.#queued = false;
    }
    await this.#connect();
  }

  async program(): Promise<Found> {
    return findProgram({
      setting: vscode.workspace.getConfiguration("standfast").get("path", ""),
      path: process.env["PATH"] ?? "",
      extensionFolder: this.#extensionFolder,
      folders: (vscode.workspace.workspaceFolders ?? []).map((folder) => folder.uri.fsPath),
    });
  }

  async stop(): Promise<void> {
    clearTimeout(this.#timer);
    const client = this.#client;
    this.#client = undefined;
    if (client?.state === State.Running) await client.stop(2000);
  }

  dispose(): void {
    this.#disposed = true;
    this.#changed.dispose();
    this.#connected.dispose();
    void this.stop();
  }

  // -- one connection ---------------------------------------------------------------------------------------------------

  #connect(): Promise<void> {
    this.#starting = this.#attempt().finally(() => {
      this.#starting = undefined;
    });
    return this.#starting;
  }

  async #attempt(): Promise<void> {
    await this.stop();
    this.#set({ kind: "connecting" });
    const found = await this.program();
    if (found.program === undefined) {
      this.#set({ kind: "missing", looked: found.looked });
      return;
    }
    const client = this.#newClient(found.program);
    this.#client = client;
    try {
      await client.start();
    } catch (error) {
      this.#lost(client, error);
      return;
    }
    if (this.#client !== client || client.state !== State.Running) return;
    this.#backoff.connected(Date.now());
    this.#set({ kind: "connected", daemonVersion: daemonVersion(client) });
    this.#connected.fire();
  }

  #newClient(program: string): LanguageClient {
    let client: QuietClient | undefined;
    const options: LanguageClientOptions = {
      documentSelector: [{ scheme: "file" }],
      initializationOptions: () => ({ workspaceTrusted: vscode.workspace.isTrusted }),
      outputChannel: this.#log,
      traceOutputChannel: this.#log,
      errorHandler: {
        error: () => ({ action: ErrorAction.Continue, handled: true }),
        closed: () => {
          if (client) this.#lost(client, undefined);
          return { action: CloseAction.DoNotRestart, handled: true };
        },
      },
      initializationFailedHandler: () => false,
      middleware: {
        executeCommand: (command, args, next) => (this.#executeCommand ?? defaultCommand)(command, args, next),
      },
    };
    const run = { command: program, args: ["lsp"], options: { env: process.env } };
    client = new QuietClient("standfast", "Standfast", run, options);
    client.registerFeature(new Hello(this.#clientId));
    for (const [method, handles] of this.#listeners) {
      client.onNotification(method, (params: unknown) => {
        for (const handle of handles) handle(params);
      });
    }
    client.onRequest(PermissionRequestRequest, (permission, token) => {
      if (!this.#ask) throw new Error("nobody is here to answer");
      return this.#ask(permission, token);
    });
    return client;
  }

  /** A client's connection is gone, by itself or because it never came to be. Told twice, it counts once. */
  #lost(client: LanguageClient, error: unknown): void {
    if (this.#disposed || this.#client !== client) return;
    this.#client = undefined;
    if (reasonOf(error) === "VersionMismatch") {
      this.#set({ kind: "mismatch", message: (error as Error).message });
      return;
    }
    const waitMs = this.#backoff.lost(Date.now());
    if (waitMs === undefined) {
      this.#set({
        kind: "failed",
        message: error instanceof Error ? error.message : "The connection was lost again and again.",
      });
      return;
    }
    this.#set({ kind: "waiting" });
    this.#timer = setTimeout(() => void this.#connect(), waitMs);
  }

  #set(state: ConnectionState): void {
    if (this.#disposed) return;
    this.state = state;
    this.#log.info(`connection: ${state.kind}`);
    this.#changed.fire(state);
  }
}

const defaultCommand: CommandMiddleware = (command, args, next) => next(command, args);

function daemonVersion(client: LanguageClient): string {
  const experimental = client.initializeResult?.capabilities.experimental as
    | { standfast?: { daemonVersion?: string } }
    | undefined;
  return experimental?.standfast?.daemonVersion ?? "";
}

/** Says in `initialize` that this client speaks the methods beyond LSP. */
class Hello implements StaticFeature {
  readonly #clientId: string;

  constructor(clientId: string) {
    this.#clientId = clientId;
  }

  fillClientCapabilities(capabilities: ClientCapabilities): void {
    const own = { standfast: { protocolVersion: PROTOCOL_VERSION, clientId: this.#clientId } };
    capabilities.experimental = { ...(capabilities.experimental as object | undefined), ...own };
  }

  initialize(): void {}
  getState(): ReturnType<DynamicFeature<unknown>["getState"]> {
    return { kind: "static" };
  }
  clear(): void {}
}

/** Writes failures to the log only: the status bar and the chat show the state, and a lost connection comes back. */
class QuietClient extends LanguageClient {
  override error(message: string, data?: unknown): void {
    super.error(message, data, false);
  }
}
