import assert from "node:assert/strict";
import { test } from "node:test";
import { Backoff } from "../../src/backoff.ts";
import { argsText, callLabel } from "../../src/chat/call_words.ts";
import type { Call, Recovery } from "../../src/generated/protocol.ts";
import { age, count, fileName, recoverySentence } from "../../src/words.ts";

function call(tool: string, verdict: Call["verdict"], targets: Partial<Call["targets"][number]>[]): Call {
  const all = targets.map((target) => ({ verdict, ...target }));
  return { callId: "c", sessionId: "s", runId: "r", tool, targets: all, verdict, evidence: "", actions: [] };
}

test("after a crash one sentence says what is certain, another what is not", () => {
  const recovery: Recovery = {
    calls: [
      call("apply_patch", "applied", [{ uri: "file:///w/a%20b.py" }]),
      call("run_command", "unknown", [{ command: "make\ndeploy" }]),
    ],
  };
  assert.equal(
    recoverySentence("Fix it", recovery),
    "“Fix it” was interrupted. Certain: the patch of a b.py is in place. Please look: the command “make deploy” cannot be told.",
  );
});

test("an interruption between two actions says that nothing is in doubt", () => {
  assert.equal(
    recoverySentence("T", { calls: [] }),
    "“T” was interrupted. No action was under way; nothing is in doubt.",
  );
});

test("calls are named by what they act on", () => {
  assert.deepEqual(callLabel("read_file", { path: "a.py", offset: 10, limit: 5 }), {
    icon: "file",
    verb: "Read",
    target: "a.py:10-14",
  });
  const patch = `*** Begin Patch\n*** Update File: a.py\n@@\n-${"x".repeat(200)}\n*** Add File: b.py\n*** End Patch`;
  assert.equal(callLabel("apply_patch", { patch }).target, "a.py, b.py");
  assert.deepEqual(callLabel("toString", { x: "1" }), { icon: "tools", verb: "toString", target: "1" });
  assert.equal(callLabel("run_command", { command: "ls \u001b[31m" }).target, "ls ␛[31m");
});

test("a command is shown as it is, other arguments as JSON", () => {
  assert.equal(argsText("run_command", { command: "make\ntest", cwd: "x" }), 'cwd: "x"\nmake\ntest');
  assert.equal(argsText("search", { pattern: "a" }), '{\n  "pattern": "a"\n}');
});

test("small words", () => {
  const minute = 60_000;
  assert.deepEqual(
    [0, 3 * minute, 120 * minute, 3000 * minute].map((passed) => age(0, passed)),
    ["now", "3 min", "2 h", "2 d"],
  );
  assert.deepEqual([950, 1234, 45_600, 1_250_000].map(count), ["950", "1.2k", "46k", "1.3M"]);
  assert.equal(fileName("file:///w/%E0%A4%A"), "%E0%A4%A");
});

test("back-off doubles, gives up after six losses, and starts anew after a lasting connection", () => {
  const backoff = new Backoff();
  assert.deepEqual(
    Array.from({ length: 7 }, () => backoff.lost(0)),
    [250, 500, 1000, 2000, 4000, 8000, undefined],
  );
  backoff.connected(0);
  assert.equal(backoff.lost(1000), undefined, "a connection that dies at once is no success (d12)");
  backoff.connected(0);
  assert.equal(backoff.lost(60_000), 250);
});
