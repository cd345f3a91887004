// The package as a person installs it: the README's steps, a window, an answer. Says how long things took.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { Rig } from "../lib/rig.mjs";
import { Screen } from "../lib/screen.mjs";

describe("the installed package", { timeout: 120_000 }, () => {
  let rig;

  before(async () => {
    rig = await Rig.start({ packed: true }); // made by `npm run package`
  });
  after(() => rig?.stop());

  test("is found, answers, and shows its history again in a new window", async (t) => {
    const { page, context } = await rig.window();
    const screen = new Screen(rig, page);
    await screen.open();
    await screen.say("What does this project do?");
    await screen.reply("instead of 86");
    const keys = await typing(screen);
    t.diagnostic(`keystroke to the next frame while 200 tokens/s stream: p50 ${keys.p50} ms, p95 ${keys.p95} ms`);
    await context.close();

    const begun = performance.now();
    const elapsed = () => Math.round(performance.now() - begun);
    const again = new Screen(rig, (await rig.window()).page);
    await again.page.locator(".activitybar a[aria-label^='Standfast']").waitFor();
    const editor = elapsed(); // from here on it could be clicked
    await again.open();
    await again.reply("instead of 86");
    t.diagnostic(`from opening the window to the history visible: ${elapsed()} ms, of which the editor itself took ${editor} ms`);
    assert.equal(await again.chat.locator(".user").count(), 2);
  });
});

/** Types while text streams in; ms from a key to the frame after it. */
async function typing(screen) {
  await screen.say("Stream.");
  await screen.reply("One word");
  await screen.box.evaluate((box) => {
    globalThis.took = [];
    box.addEventListener("keydown", () => {
      const begun = performance.now();
      requestAnimationFrame(() => setTimeout(() => globalThis.took.push(performance.now() - begun)));
    });
  });
  await screen.box.pressSequentially("a message that is written meanwhile", { delay: 20 });
  const took = (await screen.box.evaluate(() => globalThis.took)).sort((a, b) => a - b);
  await screen.box.fill("");
  const at = (share) => Math.round(took[Math.floor(took.length * share)]);
  return { p50: at(0.5), p95: at(0.95) };
}
