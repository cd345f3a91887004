/** Sentences and labels that more than one view shows. Pure. */

import { visibleLine } from "./chat/visible.ts";
import type { Call, Goal, Recovery, Run, Session } from "./generated/protocol.ts";

type Verdict = Call["verdict"];

export const VERDICTS: Record<Verdict, string> = {
  applied: "is in place",
  not_applied: "did not happen",
  partial: "happened in part",
  diverged: "left a file that is neither old nor new",
  running: "is still running",
  finished: "ran to its end",
  unknown: "cannot be told",
};

/** The same of one file or command of a call. */
export const TARGET_VERDICTS: Record<Verdict, string> = {
  ...VERDICTS,
  applied: "is changed",
  not_applied: "is as it was before",
  partial: "is changed in part",
  diverged: "is neither old nor new",
};

const CERTAIN: ReadonlySet<Verdict> = new Set<Verdict>(["applied", "not_applied", "finished"]);

export function titleOf(session: Session): string {
  return visibleLine(session.title, 80) || "New session";
}

/** What is certain and what is not after a crash, in one or two sentences. */
export function recoverySentence(title: string, recovery: Recovery): string {
  const begin = `“${title}” was interrupted.`;
  if (recovery.calls.length === 0) return `${begin} No action was under way; nothing is in doubt.`;
  const certain = recovery.calls.filter((call) => CERTAIN.has(call.verdict));
  const open = recovery.calls.filter((call) => !CERTAIN.has(call.verdict));
  const parts = [list("Certain", certain), list("Please look", open)].filter((part) => part !== "");
  return [begin, ...parts].join(" ");
}

function list(label: string, calls: Call[]): string {
  if (calls.length === 0) return "";
  const named = calls.slice(0, 3).map((call) => `${callLabel(call)} ${VERDICTS[call.verdict]}`);
  const more = calls.length > 3 ? `, and ${calls.length - 3} more` : "";
  return `${label}: ${named.join(", ")}${more}.`;
}

/** What a call was, in front of what it acted on. */
const DEEDS: Record<string, string> = {
  apply_patch: "the patch of",
  write_file: "writing",
  edit_file: "the edit of",
  run_command: "the command",
};

export function callLabel(call: Pick<Call, "tool" | "targets">): string {
  const targets = call.targets.map((target) =>
    target.command ? `“${visibleLine(target.command, 40)}”` : fileName(target.uri ?? ""),
  );
  const shown = targets.slice(0, 2).join(" and ");
  const more = targets.length > 2 ? ` and ${targets.length - 2} more` : "";
  const deed = Object.hasOwn(DEEDS, call.tool) ? DEEDS[call.tool] : `${visibleLine(call.tool)} of`;
  return shown ? `${deed} ${shown}${more}` : visibleLine(call.tool);
}

/** The last part of a URI's path, readable. */
export function fileName(uri: string): string {
  const last = uri.split("/").findLast((part) => part !== "") ?? uri;
  try {
    return visibleLine(decodeURIComponent(last));
  } catch {
    return visibleLine(last);
  }
}

export const RUN_WORDS: Record<Run["status"], string> = {
  queued: "queued",
  running: "running",
  succeeded: "done",
  failed: "failed",
  cancelled: "stopped",
  interrupted: "interrupted",
};

export const GOAL_WORDS: Record<Goal["status"], string> = {
  active: "active",
  paused: "paused",
  blocked: "stopped by an error",
  usage_limited: "stopped by the model's service",
  budget_limited: "at its budget",
  complete: "reached",
};

/** What a goal has cost: `12k of 50k tokens`. */
export function goalUsed(goal: Pick<Goal, "tokensUsed"> & { tokenBudget?: number | null }): string {
  const budget = goal.tokenBudget ? ` of ${count(goal.tokenBudget)}` : "";
  return `${count(goal.tokensUsed)}${budget} tokens`;
}

/** `3 min`, `2 h`, `5 d`: how long ago. */
export function age(thenMs: number, nowMs: number): string {
  const minutes = Math.floor(Math.max(0, nowMs - thenMs) / 60_000);
  if (minutes < 1) return "now";
  if (minutes < 60) return `${minutes} min`;
  if (minutes < 60 * 24) return `${Math.floor(minutes / 60)} h`;
  return `${Math.floor(minutes / (60 * 24))} d`;
}

/** `950`, `12.3k`, `1.2M`. */
export function count(tokens: number): string {
  if (tokens < 1000) return `${tokens}`;
  if (tokens < 1_000_000) return `${(tokens / 1000).toFixed(tokens < 10_000 ? 1 : 0)}k`;
  return `${(tokens / 1_000_000).toFixed(1)}M`;
}
