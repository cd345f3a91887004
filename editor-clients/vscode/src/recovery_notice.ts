/** After a crash: says once for each interrupted run what is certain and what is not. Never modal; nothing runs by itself. */

import * as vscode from "vscode";
import type { Context } from "./context.ts";
import { type Recovery, RecoveryGetRequest, type Session } from "./generated/protocol.ts";
import { recoverySentence, titleOf } from "./words.ts";

const ANNOUNCED = "standfast.announcedRuns";
const KEPT = 100;

export class RecoveryNotice {
  readonly #ctx: Context;
  readonly #underWay = new Set<string>();

  constructor(ctx: Context) {
    this.#ctx = ctx;
    ctx.sessions.onChanged(() => this.#look());
  }

  #look(): void {
    if (!this.#ctx.connection.isConnected) return;
    const known = this.#announced;
    for (const session of this.#ctx.sessions.all) {
      const run = session.lastRun;
      if (run?.status !== "interrupted" || known.includes(run.runId) || this.#underWay.has(run.runId)) continue;
      this.#underWay.add(run.runId);
      void this.#announce(session, run.runId).catch((error: unknown) => {
        this.#underWay.delete(run.runId); // asked again on the next connection
        this.#ctx.log.warn(`recovery notice: ${error}`);
      });
    }
  }

  async #announce(session: Session, runId: string): Promise<void> {
    const { recovery } = await this.#ctx.connection.request(RecoveryGetRequest, { sessionId: session.sessionId });
    await this.#ctx.extension.workspaceState.update(ANNOUNCED, [runId, ...this.#announced].slice(0, KEPT));
    await this.#ask(session, runId, recovery);
  }

  async #ask(session: Session, runId: string, recovery: Recovery): Promise<void> {
    const sentence = recoverySentence(titleOf(session), recovery);
    const chosen = await vscode.window.showWarningMessage(sentence, "Resume", "Review", "Dismiss");
    try {
      if (chosen === "Resume") await this.#ctx.runs.resume(runId);
      if (chosen === "Resume" || chosen === "Review") await this.#ctx.openSession(session.sessionId);
    } catch (error) {
      await this.#ctx.say(error);
    }
  }

  get #announced(): string[] {
    return this.#ctx.extension.workspaceState.get<string[]>(ANNOUNCED, []);
  }
}
