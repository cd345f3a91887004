// A chat of 10,000 events: its newest page is there at once, older ones come while the person scrolls up, none twice.

import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { pathToFileURL } from "node:url";
import { writeHistory } from "../lib/long_history.mjs";
import { Rig, until } from "../lib/rig.mjs";
import { Screen } from "../lib/screen.mjs";

const EVENTS = 10_000;
const RUNS = EVENTS / 5;

describe("a long history", { timeout: 120_000 }, () => {
  let rig;
  let screen;

  before(async () => {
    rig = await Rig.start();
    const folder = join(rig.folder, "export");
    await writeHistory(folder, pathToFileURL(rig.workspace).href, EVENTS);
    await rig.run(process.env.STANDFAST_PROGRAM, ["import", folder], { env: rig.env });
    screen = new Screen(rig, (await rig.window()).page);
  });
  after(() => rig?.stop());

  test("opens at its end, and pages back as one scrolls", async (t) => {
    await screen.open();
    await screen.reply(`Answer ${RUNS} `);
    const paint = await screen.chat.locator("body").evaluate(() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime);
    const said = screen.chat.locator(".user");
    const first = await said.count();
    assert.ok(first < 100, "only the newest page is drawn");

    const history = screen.chat.getByRole("log");
    let pages = 0;
    while ((await said.count()) < 600) {
      const before = await said.count();
      await history.evaluate((log) => log.scrollTo(0, 0));
      await until(async () => (await said.count()) > before, "an older page comes");
      pages += 1;
    }
    const texts = await said.allInnerTexts();
    const wanted = texts.map((_, at) => `Question ${RUNS - texts.length + 1 + at}`);
    assert.deepEqual(texts, wanted, "in order, none missing, none twice");
    const megabytes = await screen.chat.locator("body").evaluate(() => performance.memory?.usedJSHeapSize / 2 ** 20);
    t.diagnostic(`first paint of the page ${Math.round(paint)} ms; after ${pages} older pages ${Math.round(megabytes)} MB of heap`);
  });

  test("stays where one reads while older pages come in front", async () => {
    const history = screen.chat.getByRole("log");
    const before = await screen.chat.locator(".user").count();
    await history.evaluate((log) => {
      log.scrollTo(0, log.scrollHeight / 2);
      requestAnimationFrame(() => log.scrollTo(0, 0));
    });
    await until(async () => (await screen.chat.locator(".user").count()) > before, "an older page comes");
    const top = await history.evaluate((log) => log.scrollTop);
    assert.ok(top > 500, `what was at the top is still in sight, not thrown to the new top (${top})`);
  });
});
