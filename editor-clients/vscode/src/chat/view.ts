/** Gathers what the page draws beside the history. */

import * as vscode from "vscode";
import type { ConnectionState } from "../client.ts";
import type { Context } from "../context.ts";
import type { View } from "./messages.ts";

export function viewOf(ctx: Context): View {
  const { feed, connection } = ctx;
  const facts = feed.facts;
  return {
    connected: connection.isConnected,
    trouble: troubleOf(connection.state),
    session: facts?.session,
    folder: vscode.workspace.workspaceFolders?.[0]?.name,
    queue: facts?.queue ?? [],
    queueHeld: facts?.queueHeld ?? false,
    asks: feed.sessionId ? ctx.asks.of(feed.sessionId) : [],
    recovery: facts?.recovery,
    tokens: facts?.tokens,
    damage: facts?.damage,
    degraded: ctx.attention.degraded,
    trusted: ctx.trusted,
    sendWith: vscode.workspace.getConfiguration("standfast").get<View["sendWith"]>("chat.sendWith", "enter"),
  };
}

/** What to say while there is no connection; every sentence has a way out. */
function troubleOf(state: ConnectionState): View["trouble"] {
  switch (state.kind) {
    case "connected":
      return undefined;
    case "connecting":
      return { text: "Connecting…", action: "" };
    case "waiting":
      return {
        text: "The connection was lost. Connecting again; what is stored is safe, and a running task may still go on.",
        action: "Try now",
      };
    case "missing":
      return { text: "The program “standfast” is not installed, or not where it was looked for.", action: "Get help" };
    case "mismatch":
      return { text: state.message, action: "Get help" };
    case "failed":
      return { text: `No connection: ${state.message}`, action: "Try again" };
  }
}
