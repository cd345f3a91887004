// Plays the tests of host/ inside VS Code's extension host: the story, then the conformance transcripts, in one window.

import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { format } from "node:util";
import { Rig } from "./lib/rig.mjs";

const OURS = "[test] ";

test("the story in the extension host", { timeout: 300_000 }, async (t) => {
  const rig = await Rig.start();
  try {
    await rig.daemon("mid_effect=kill@1"); // dies between the two files of the first patch that has two
    const said = [];
    const onLog = (words) => said.push(format(...words));
    const { ended } = await rig.window({ tests: join(import.meta.dirname, "host"), onLog });
    const code = await ended;
    for (const line of said.filter((each) => each.startsWith(OURS))) t.diagnostic(line.slice(OURS.length));
    assert.equal(code, 0);
    assert.deepEqual(await rig.refused(), [], "the model's service had nothing to refuse");
  } finally {
    await rig.stop();
  }
});
