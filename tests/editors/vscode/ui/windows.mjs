// Windows come and go: reload in the middle of a run, two windows on one session, the queue, and what the page may not do.

import assert from "node:assert/strict";
import { join } from "node:path";
import { after, afterEach, before, describe, test } from "node:test";
import { Rig, until } from "../lib/rig.mjs";
import { Screen } from "../lib/screen.mjs";

describe("windows come and go", { timeout: 480_000 }, () => {
  let rig;
  let screen;

  before(async () => {
    rig = await Rig.start();
    const { page } = await rig.window();
    screen = new Screen(rig, page);
    await screen.open();
  });
  afterEach(async (t) => {
    if (t.error) await screen?.page.screenshot({ path: join(process.env.SCREENSHOTS ?? rig.folder, "failure.png") });
  });
  after(() => rig?.stop());

  test("a window that is reloaded in the middle of a command shows it again, once, and its end (d10)", async () => {
    await screen.say("Run the slow check.");
    await screen.chat.getByRole("button", { name: "Allow", exact: true }).click();
    const card = screen.chat.locator(".call-item", { hasText: "echo tick" });
    await card.locator("summary").click();
    await card.locator(".output", { hasText: "tick 2" }).waitFor();
    await screen.page.reload();
    await screen.open();
    await screen.reply("All six ticks came");
    assert.equal(await screen.chat.locator(".user").count(), 1);
    assert.equal(await card.count(), 1);
    await card.locator("summary").click();
    const output = await card.locator(".output").innerText();
    assert.deepEqual(output.match(/tick \d/g), ["tick 1", "tick 2", "tick 3", "tick 4", "tick 5", "tick 6"]);
  });

  test("two windows show one session; a question is answered in one and gone in both", async () => {
    const { page, context } = await rig.window();
    const other = new Screen(rig, page);
    await other.open();
    await other.reply("All six ticks came");
    await other.say("Round the discount half up.");
    const asks = [screen, other].map((each) => each.chat.getByRole("group", { name: "Permission needed" }));
    for (const ask of asks) await ask.waitFor();
    await asks[0].getByRole("button", { name: "Deny" }).click();
    for (const ask of asks) await ask.waitFor({ state: "detached" });
    for (const each of [screen, other]) {
      await each.chat.locator(".call-item", { hasText: "denied" }).waitFor();
      assert.equal(await each.chat.locator(".user", { hasText: "Round the discount" }).count(), 1);
    }
    await context.close();
  });

  test("a message waits in the queue, can be edited and removed", async () => {
    await screen.say("Wait at the gate.");
    await screen.reply("I begin,");
    await screen.say("What does this project do?");
    await screen.say("Stream.");
    const rows = screen.chat.locator(".queue li");
    await until(async () => (await rows.count()) === 2, "both messages wait");
    await rows.nth(1).getByRole("button", { name: "Remove this message" }).click();
    await until(async () => (await rows.count()) === 1, "one is removed");
    await rows.getByRole("button", { name: "Edit this message" }).click();
    await rows.getByRole("textbox").fill("What does this project do, in short?");
    await rows.getByRole("button", { name: "Save" }).click();
    await rows.filter({ hasText: "in short" }).waitFor();
    await rig.release("middle");
    await screen.reply("and I end");
    await screen.chat.locator(".user", { hasText: "in short" }).waitFor();
    await screen.reply("instead of 86");
    assert.equal(await screen.chat.locator(".user", { hasText: "Stream." }).count(), 0);
  });

  test("what was written before comes back with the arrow key, and @ names files", async () => {
    await screen.box.focus();
    await screen.page.keyboard.press("ArrowUp");
    await until(async () => (await screen.box.inputValue()) === "Stream.", "the last message comes back");
    await screen.page.keyboard.press("ArrowUp");
    await until(async () => (await screen.box.inputValue()).startsWith("What does this project do"), "the one before");
    await screen.page.keyboard.press("ArrowDown");
    await screen.page.keyboard.press("ArrowDown");
    await until(async () => (await screen.box.inputValue()) === "", "the draft comes back");
    await screen.box.pressSequentially("look at @mon");
    await screen.chat.getByRole("option", { name: "shop/money.py" }).waitFor();
    await screen.page.keyboard.press("Tab");
    assert.equal(await screen.box.inputValue(), "look at @shop/money.py ");
    await screen.box.fill("");
  });

  test("a goal is set and reached, and the history is summarised, by commands", async () => {
    const notes = screen.chat.locator(".note-item");
    await screen.command("Standfast: Set or Change the Goal");
    await screen.answer("Goal of this session", "Prices are right");
    await notes.filter({ hasText: "Goal (active): Prices are right" }).waitFor();
    await screen.reply("Every price is right");
    await notes.filter({ hasText: "Goal (reached): Prices are right" }).waitFor();
    await until(async () => (await screen.chat.locator("body").getAttribute("data-running")) === "false", "the run has ended");
    await screen.command("Standfast: Set or Change the Goal");
    await screen.choose("Take Away");
    await notes.filter({ hasText: "The goal was taken away" }).waitFor();
    await screen.command("Standfast: Summarise the History");
    await notes.filter({ hasText: "was summarised for the model" }).waitFor();
    assert.equal(await screen.chat.locator(".user", { hasText: "Run the slow check" }).count(), 1, "the history stays");
  });

  test("while there is no connection, nothing on screen says otherwise; it comes back by itself", async () => {
    const { pid } = await rig.status();
    const body = screen.chat.locator("body");
    await body.evaluate((page) => {
      // Each state is noted: a connection can come back faster than anybody looks.
      globalThis.states = [];
      const note = () => globalThis.states.push([page.dataset.connection, page.querySelector(".banners").textContent]);
      new MutationObserver(note).observe(page, { subtree: true, childList: true, attributes: true, attributeFilter: ["data-connection"] });
    });
    process.kill(pid, "SIGKILL");
    const states = await until(async () => {
      const noted = await body.evaluate(() => globalThis.states);
      return noted.some(([state]) => state === "lost") && noted.at(-1)[0] === "connected" && noted;
    }, "the connection was lost and is there again");
    for (const [state, said] of states) {
      assert.equal(/connection was lost|Connecting/.test(said), state === "lost", `${state}: ${said}`);
    }
    await screen.say("What does this project do?");
    await until(async () => (await screen.chat.locator(".assistant", { hasText: "instead of 86" }).count()) === 2, "it answers again");
  });

  test("ATK-42: the page loads nothing and runs nothing that is not its own", async () => {
    const body = screen.chat.locator("body");
    const tried = await body.evaluate(async (_, url) => {
      const load = (make) => new Promise((done) => make(() => done("loaded"), () => done("blocked")));
      const image = load((ok, no) => Object.assign(new Image(), { onload: ok, onerror: no, src: `${url}/_fake/requests` }));
      const asked = fetch(`${url}/_fake/requests`, { mode: "no-cors" }).then(() => "loaded", () => "blocked");
      const script = load((_ok, no) => {
        globalThis.ran = false;
        const element = Object.assign(document.createElement("script"), { textContent: "globalThis.ran = true" });
        document.body.append(element);
        setTimeout(globalThis.ran ? _ok : no, 50);
      });
      return [await image, await asked, await script];
    }, rig.modelUrl);
    assert.deepEqual(tried, ["blocked", "blocked", "blocked"]);
  });
});
