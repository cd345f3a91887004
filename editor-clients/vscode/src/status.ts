/** The status bar item: idle, running, needs you, degraded, not connected. A click opens what it speaks of. */

import * as vscode from "vscode";
import type { Attention } from "./attention.ts";
import type { Connection, ConnectionState } from "./client.ts";
import type { Sessions } from "./sessions.ts";
import { titleOf } from "./words.ts";

interface Face {
  text: string;
  tooltip: string;
  command: string;
  background?: "warning" | "error";
}

export class Status implements vscode.Disposable {
  readonly #item = vscode.window.createStatusBarItem("standfast", vscode.StatusBarAlignment.Left, 5);
  readonly #connection: Connection;
  readonly #sessions: Sessions;
  readonly #attention: Attention;

  constructor(connection: Connection, sessions: Sessions, attention: Attention) {
    this.#connection = connection;
    this.#sessions = sessions;
    this.#attention = attention;
    this.#item.name = "Standfast";
    connection.onState(() => this.#show());
    sessions.onChanged(() => this.#show());
    attention.onChanged(() => this.#show());
    this.#show();
    this.#item.show();
  }

  dispose(): void {
    this.#item.dispose();
  }

  /** What it shows now; read by tests. */
  get text(): string {
    return this.#item.text;
  }

  #show(): void {
    const face = unconnectedFace(this.#connection.state) ?? this.#connectedFace();
    this.#item.text = face.text;
    this.#item.tooltip = face.tooltip;
    this.#item.command = face.command;
    this.#item.accessibilityInformation = { label: `Standfast: ${face.tooltip}`, role: "button" };
    this.#item.backgroundColor = face.background && new vscode.ThemeColor(`statusBarItem.${face.background}Background`);
  }

  #connectedFace(): Face {
    const { count, degraded } = this.#attention;
    const running = this.#sessions.running;
    if (degraded.length > 0) {
      const tooltip = degraded.map((item) => item.message).join("\n");
      return { text: "$(warning) Standfast: degraded", tooltip, command: "standfast.showLog", background: "warning" };
    }
    if (count > 0) {
      const tooltip =
        count === 1 ? "One thing needs you. Click to review it." : `${count} things need you. Click to review them.`;
      return { text: `$(bell-dot) Standfast: ${count}`, tooltip, command: "standfast.review", background: "warning" };
    }
    if (running.length > 0) {
      return {
        text: "$(loading~spin) Standfast",
        tooltip: `Running: ${running.map(titleOf).join(", ")}`,
        command: "standfast.openChat",
      };
    }
    return {
      text: "$(comment-discussion) Standfast",
      tooltip: "Nothing is running. Click to open the chat.",
      command: "standfast.openChat",
    };
  }
}

function unconnectedFace(state: ConnectionState): Face | undefined {
  const reconnect = "standfast.reconnect";
  switch (state.kind) {
    case "connected":
      return undefined;
    case "connecting":
      return {
        text: "$(loading~spin) Standfast: connecting",
        tooltip: "Connecting to the daemon.",
        command: "standfast.showLog",
      };
    case "waiting":
      return {
        text: "$(debug-disconnect) Standfast: reconnecting",
        tooltip: "The connection was lost. What is stored is safe; connecting again.",
        command: reconnect,
        background: "warning",
      };
    case "missing":
      return {
        text: "$(error) Standfast: not installed",
        tooltip: "The program was not found. Click for help.",
        command: reconnect,
        background: "error",
      };
    case "mismatch":
    case "failed":
      return {
        text: "$(error) Standfast: not connected",
        tooltip: state.message,
        command: reconnect,
        background: "error",
      };
  }
}
