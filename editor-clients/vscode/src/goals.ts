/** A session's goal: set, changed, paused, completed, taken away; and the checkpoint that a person asks for. */

import * as vscode from "vscode";
import type { Context } from "./context.ts";
import {
  GoalClearRequest,
  GoalGetRequest,
  GoalSetRequest,
  type GoalUpdateParams,
  GoalUpdateRequest,
  SessionCompactRequest,
} from "./generated/protocol.ts";
import { GOAL_WORDS, goalUsed } from "./words.ts";

/** Asks what the session shall reach, or what shall become of the goal that it has. */
export async function editGoal(ctx: Context): Promise<void> {
  const sessionId = ctx.feed.sessionId ?? (await ctx.newSession());
  if (!sessionId) throw new Error("No folder is open. A session works in a folder: open one first.");
  const { goal } = await ctx.connection.request(GoalGetRequest, { sessionId });
  const set = async (): Promise<void> => {
    const objective = await askObjective(goal?.objective);
    if (!objective) return;
    if (goal) await ctx.connection.request(GoalUpdateRequest, { sessionId, objective, status: "active" });
    else await ctx.connection.request(GoalSetRequest, { sessionId, objective });
  };
  if (!goal) return set();

  const to = (status: NonNullable<GoalUpdateParams["status"]>) => (): Promise<unknown> =>
    ctx.connection.request(GoalUpdateRequest, { sessionId, status });
  const on = goal.status === "active";
  const rows = [
    on
      ? { label: "$(debug-pause) Pause", detail: "No further turn starts by itself.", act: to("paused") }
      : {
          label: "$(debug-continue) Go On",
          detail: "Turns follow by themselves until it is reached.",
          act: to("active"),
        },
    { label: "$(edit) Change…", detail: "", act: set },
    { label: "$(check) Reached", detail: "", act: to("complete") },
    {
      label: "$(trash) Take Away",
      detail: "The session stays.",
      act: () => ctx.connection.request(GoalClearRequest, { sessionId }),
    },
  ];
  const title = `Goal (${GOAL_WORDS[goal.status]}, ${goalUsed(goal)})`;
  const chosen = await vscode.window.showQuickPick(rows, { title, placeHolder: goal.objective });
  await chosen?.act();
}

function askObjective(before = ""): Thenable<string | undefined> {
  return vscode.window.showInputBox({
    title: "Goal of this session",
    prompt: "What shall be reached? The agent then goes on by itself, turn after turn; each change is asked as before.",
    value: before,
    ignoreFocusOut: true,
  });
}

/** Summarises the history for the model now. A message that is sent meanwhile comes first. */
export async function compact(ctx: Context): Promise<void> {
  const { sessionId } = ctx.feed;
  if (!sessionId) throw new Error("No session is open in the chat. Open one first.");
  await vscode.window.withProgress(
    { location: vscode.ProgressLocation.Notification, title: "Standfast: summarising the history", cancellable: true },
    async (_progress, token) => {
      try {
        await ctx.connection.request(SessionCompactRequest, { sessionId }, token);
      } catch (error) {
        if (!token.isCancellationRequested) throw error;
      }
    },
  );
}
