/** Going on with a run, and taking back what it changed. The daemon decides whether either is possible. */

import * as vscode from "vscode";
import { type Connection, reasonOf } from "./client.ts";
import { RunResumeRequest, RunUndoRequest } from "./generated/protocol.ts";
import { fileName } from "./words.ts";

export class Runs {
  readonly #connection: Connection;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  /** Pressed twice, it is the same new run. A run that keeps crashing goes on only after the person said so. */
  async resume(runId: string): Promise<void> {
    try {
      await this.#connection.request(RunResumeRequest, { runId });
    } catch (error) {
      if (reasonOf(error) !== "RunKeepsCrashing") throw error;
      const again = "Resume Anyway";
      const detail = (error as Error).message;
      const chosen = await vscode.window.showWarningMessage(
        "This run has crashed several times.",
        { modal: true, detail },
        again,
      );
      if (chosen === again) await this.#connection.request(RunResumeRequest, { runId, confirm: true });
    }
  }

  /** Puts back what a run changed, and says what could not be put back. */
  async undo(runId: string): Promise<void> {
    const { files, conflicts } = await this.#connection.request(RunUndoRequest, { runId });
    if (conflicts.length > 0) {
      const names = conflicts.map((conflict) => fileName(conflict.uri)).join(", ");
      void vscode.window.showWarningMessage(
        `Not undone, because changed since: ${names}. Nothing else was lost; see the Problems panel.`,
      );
    } else {
      const what = files.length === 1 ? fileName(files[0]?.uri ?? "") : `${files.length} files`;
      void vscode.window.setStatusBarMessage(`Standfast: ${what} as before the run`, 5000);
    }
  }
}
