// A session with a long history, in the form of an export: `standfast import` takes it in.

import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";

const EVENTS_A_RUN = 5;
const START_MS = 1_700_000_000_000;

/** Writes an export with so many events; each run is a question and its answer. */
export async function writeHistory(folder, workspaceUri, events) {
  const sessionId = "ses_long_history";
  const lines = [];
  const add = (type, runId, fields) =>
    lines.push({ seq: lines.length + 1, atMs: START_MS + lines.length, sessionId, ...(runId ? { runId } : {}), type, v: 1, ...fields });
  add("session_created", undefined, { workspaceUri, title: "Long", mode: "ask", model: "", userId: "", identity: {} });
  const usage = { inputTokens: 10, outputTokens: 5, cacheReadInputTokens: 0, cacheCreationInputTokens: 0 };
  for (let run = 1; run <= events / EVENTS_A_RUN; run += 1) {
    const id = `run_${run}`;
    add("run_started", id, { workerId: "w", bootId: "b", trigger: "message" });
    add("user_message", id, { messageId: `m${run}`, clientMessageId: `c${run}`, content: [{ kind: "text", text: `Question ${run}` }], steer: false });
    add("model_request", id, { attempt: 1, model: "m" });
    add("assistant_message", id, { blocks: [{ type: "text", text: `Answer **${run}** with \`code\`.` }], stopReason: "end_turn", usage });
    add("run_finished", id, { status: "succeeded", usage });
  }
  const session = {
    format: "standfast-session",
    formatVersion: 1,
    sessionId,
    userId: "",
    workspaceUri,
    title: "Long",
    mode: "ask",
    model: "",
    status: "active",
    createdAtMs: START_MS,
    updatedAtMs: START_MS + lines.length,
    headSeq: lines.length,
  };
  await mkdir(join(folder, "blobs"), { recursive: true });
  await writeFile(join(folder, "session.json"), JSON.stringify(session));
  await writeFile(join(folder, "events.jsonl"), lines.map((line) => `${JSON.stringify(line)}\n`).join(""));
}
