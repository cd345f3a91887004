import assert from "node:assert/strict";
import { describe, test } from "node:test";
import {
  type AssistantItem,
  apply,
  type CallItem,
  type ChatState,
  type Entry,
  emptyChat,
  foldChat,
} from "../../src/chat/state.ts";
import type { Event } from "../../src/generated/protocol.ts";

let seq = 0;
function event(type: string, fields: Record<string, unknown> = {}): { event: Event } {
  seq += 1;
  return {
    event: { seq, atMs: seq, sessionId: "s", runId: "r", type, v: 1, hash: `h${seq}`, ...fields } as unknown as Event,
  };
}
function delta(offset: number, text: string, more: Record<string, unknown> = { attempt: 1 }): Entry {
  return { delta: { sessionId: "s", runId: "r", offset, text, ...more } };
}
function fold(...entries: Entry[]): ChatState {
  return foldChat(entries);
}
function replies(state: ChatState): [string, string][] {
  return state.items
    .filter((item): item is AssistantItem => item.kind === "assistant")
    .map((item) => [item.text, item.state]);
}
function call(state: ChatState): CallItem {
  const found = state.items.find((item): item is CallItem => item.kind === "call");
  assert.ok(found);
  return found;
}
const REQUEST = { attempt: 1, model: "m" };
const CALL = { callId: "c", providerCallId: "p", tool: "run_command", args: { command: "make" } };

describe("the goal", () => {
  test("is said when it changes, not when it is counted", () => {
    const goal = (status: string, tokensUsed: number) => ({ goal: { objective: "no test fails", status, tokensUsed } });
    const state = fold(
      event("goal_updated", goal("active", 0)),
      event("goal_updated", goal("active", 900)),
      event("goal_updated", goal("complete", 900)),
      event("goal_updated", { goal: null }),
    );
    assert.deepEqual(
      state.items.map((item) => item.kind === "note" && item.text),
      ["Goal (active): no test fails", "Goal (reached): no test fails", "The goal was taken away."],
    );
  });
});

describe("streamed text", () => {
  test("deltas and the chunk that stores them make one text", () => {
    const state = fold(
      event("model_request", REQUEST),
      delta(0, "Hello"),
      delta(5, " wor"),
      event("assistant_chunk", { attempt: 1, offset: 0, text: "Hello wor" }),
      delta(9, "ld"),
    );
    assert.deepEqual(replies(state), [["Hello world", "streaming"]]);
  });

  test("a client that rejoins in the middle neither doubles nor loses text", () => {
    const state = fold(event("model_request", REQUEST), delta(0, "one "), delta(4, "two "));
    apply(state, event("assistant_chunk", { attempt: 1, offset: 0, text: "one two three " }));
    apply(state, delta(8, "three four"));
    assert.deepEqual(replies(state), [["one two three four", "streaming"]]);
  });

  test("a piece whose predecessor is missing waits for it", () => {
    const state = fold(event("model_request", REQUEST), delta(0, "a"), delta(2, "c"));
    assert.deepEqual(replies(state), [["a", "streaming"]]);
    apply(state, delta(1, "b"));
    assert.deepEqual(replies(state), [["abc", "streaming"]]);
  });

  test("a page that begins inside a reply shows what it has", () => {
    const state = fold(
      event("assistant_chunk", { attempt: 2, offset: 7, text: "tail" }),
      delta(11, " end", { attempt: 2 }),
    );
    assert.deepEqual(replies(state), [["tail end", "streaming"]]);
  });

  test("text of another attempt is not mixed in", () => {
    const state = fold(
      event("model_request", REQUEST),
      delta(0, "broken"),
      event("model_error", { attempt: 1, reason: "StreamBroken", retryAfterMs: 1000 }),
      event("model_request", { ...REQUEST, attempt: 2 }),
      delta(6, " late"),
      delta(0, "whole", { attempt: 2 }),
    );
    assert.deepEqual(replies(state), [
      ["broken", "dropped"],
      ["whole", "streaming"],
    ]);
  });

  test("the stored message replaces the draft, and a late delta changes nothing", () => {
    const blocks = [
      { type: "thinking", thinking: "hm" },
      { type: "text", text: "Done." },
    ];
    const state = fold(
      event("model_request", REQUEST),
      delta(0, "Don"),
      event("assistant_message", { blocks, stopReason: "end_turn" }),
    );
    apply(state, delta(3, "e."));
    assert.deepEqual(replies(state), [["Done.", "done"]]);
    assert.equal((state.items[0] as AssistantItem).thinking, "hm");
  });

  test("a run that ends leaves its half reply marked as cut", () => {
    const state = fold(
      event("run_started"),
      event("model_request", REQUEST),
      delta(0, "Half"),
      event("run_finished", { status: "interrupted" }),
    );
    assert.deepEqual(replies(state), [["Half", "cut"]]);
    assert.equal(state.activeRunId, undefined);
  });
});

describe("events", () => {
  test("an event that came twice counts once", () => {
    const message = event("user_message", { messageId: "m", content: [{ kind: "text", text: "hi" }] });
    assert.equal(fold(message, message).items.length, 1);
  });

  test("an unknown event is passed over and moves the cursor", () => {
    const later = event("from_the_future", { anything: 1 });
    const state = fold(later);
    assert.deepEqual([state.items, state.headSeq, state.headHash], [[], later.event.seq, later.event.hash]);
  });

  test("older pages in front give the same as the whole history at once", () => {
    const all = [
      event("user_message", { messageId: "m", content: [{ kind: "text", text: "go" }] }),
      event("run_started"),
      event("model_request", REQUEST),
      event("tool_call", CALL),
      event("tool_started", { callId: "c" }),
      event("tool_result", { callId: "c", status: "ok", content: "fine" }),
      event("run_finished", { status: "succeeded" }),
    ];
    const [older, newer] = [all.slice(0, 4), all.slice(4)];
    assert.deepEqual(foldChat([...older, ...newer]), foldChat(all));
    assert.equal(call(foldChat(newer)).tool, "", "a stand-in until its page is loaded");
  });
});

describe("calls", () => {
  test("a call goes from asked to its result", () => {
    const state = emptyChat();
    const seen: string[] = [];
    for (const entry of [
      event("tool_call", CALL),
      event("permission_requested", { callId: "c", digest: "d", summary: "make" }),
      event("permission_resolved", { callId: "c", decision: "allow", by: "me" }),
      event("tool_started", { callId: "c" }),
      event("tool_result", { callId: "c", status: "error", content: "no", exitCode: 2 }),
    ]) {
      apply(state, entry);
      seen.push(call(state).state);
    }
    assert.deepEqual(seen, ["waiting", "permission", "waiting", "running", "error"]);
    assert.equal(call(state).exitCode, 2);
  });

  test("live output joins with what is stored", () => {
    const state = fold(
      event("tool_call", CALL),
      event("tool_started", { callId: "c" }),
      delta(0, "line 1\n", { callId: "c" }),
      event("tool_output", { callId: "c", offset: 0, text: "line 1\nline 2\n" }),
      delta(7, "line 2\nline 3\n", { callId: "c" }),
    );
    assert.equal(call(state).output.text, "line 1\nline 2\nline 3\n");
  });

  test("after a crash a call says what checking found, and how it was settled", () => {
    const state = fold(
      event("tool_call", CALL),
      event("tool_started", { callId: "c" }),
      event("tool_recovery", { callId: "c", status: "uncertain" }),
      event("tool_recovery", {
        callId: "c",
        status: "partial",
        targets: [{ uri: "file:///a", verdict: "applied" }],
        evidence: "1 of 2",
      }),
    );
    assert.deepEqual(
      [call(state).state, call(state).verdict, call(state).evidence],
      ["uncertain", "partial", "1 of 2"],
    );
    apply(state, event("recovery_resolved", { callId: "c", action: "complete", verdict: "applied" }));
    assert.deepEqual([call(state).verdict, call(state).settledBy], ["applied", "complete"]);
  });

  test("a conflict stands on its call until it is settled", () => {
    const state = fold(
      event("tool_call", CALL),
      event("conflict_raised", { conflictId: "k", callId: "c", uri: "file:///a", reason: "ambiguous" }),
    );
    assert.equal(call(state).conflicts[0]?.settledBy, undefined);
    apply(state, event("conflict_resolved", { conflictId: "k", action: "keep" }));
    assert.equal(call(state).conflicts[0]?.settledBy, "keep");
  });
});
