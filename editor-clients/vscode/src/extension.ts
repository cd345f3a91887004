/** Where VS Code comes in: builds the context, registers the commands, connects. Shows its own failure. */

import * as vscode from "vscode";
import { daemonCommands, registerCommands } from "./commands.ts";
import { Context } from "./context.ts";

/** What other extensions, and the tests, can hold on to. */
export interface Api {
  context: Context;
}

let running: Context | undefined;

export function activate(extension: vscode.ExtensionContext): Api | undefined {
  const log = vscode.window.createOutputChannel("Standfast", { log: true });
  extension.subscriptions.push(log);
  try {
    const ctx = new Context(extension, log);
    running = ctx;
    ctx.connection.onCommand(daemonCommands(ctx));
    extension.subscriptions.push(ctx, ...registerCommands(ctx));
    void ctx.connection.start();
    return { context: ctx };
  } catch (error) {
    log.error(error instanceof Error ? error : String(error));
    void vscode.window
      .showErrorMessage(`Standfast could not start: ${error}. Nothing was changed; the log says more.`, "Show Log")
      .then((chosen) => {
        if (chosen) log.show();
      });
    return undefined;
  }
}

/** The daemon lives on; only this window's connection ends, with `shutdown` and `exit`. */
export async function deactivate(): Promise<void> {
  await running?.connection.stop();
  running = undefined;
}
