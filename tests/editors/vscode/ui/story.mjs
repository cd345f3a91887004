// The story as a person sees it, in the real window: chat, permission, conflict, quick fix, difference, crash, resume.

import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, afterEach, before, describe, test } from "node:test";
import { Rig, until } from "../lib/rig.mjs";
import { Screen } from "../lib/screen.mjs";

describe("the story in the window", { timeout: 480_000 }, () => {
  let rig;
  let screen;
  const file = (name) => readFile(join(rig.workspace, name), "utf8");

  before(async () => {
    rig = await Rig.start();
    await rig.daemon("mid_effect=kill@1"); // dies between the two files of the first patch that has two
    const { page } = await rig.window();
    screen = new Screen(rig, page);
    await screen.open();
    await screen.openFile("shop/money.py");
    await screen.box.click();
  });
  afterEach(async (t) => {
    if (t.error) await screen?.page.screenshot({ path: join(process.env.SCREENSHOTS ?? rig.folder, "failure.png") });
  });
  after(() => rig?.stop());

  test("a question is answered, with thinking folded and markdown drawn", async () => {
    await screen.say("What does this project do?");
    await screen.reply("instead of 86");
    await screen.chat.locator("pre code", { hasText: "def with_discount" }).waitFor();
    assert.equal(await screen.chat.locator("a[data-url='https://example.org/rounding']").count(), 1);
    await screen.picture("chat");
  });

  test("a permission shows the difference, and nothing is written before the answer", async () => {
    const text = await file("shop/money.py");
    await screen.say("Round the discount half up.");
    const ask = screen.chat.getByRole("group", { name: "Permission needed" });
    await ask.locator(".diff .add", { hasText: "+ 50) // 100" }).waitFor();
    await screen.picture("permission");
    assert.equal(await file("shop/money.py"), text);
    await ask.getByRole("button", { name: "Allow", exact: true }).click();
    await screen.reply("rounds half up now");
    assert.match(await file("shop/money.py"), /\+ 50\) \/\/ 100/);
  });

  test("a change that no longer fits stands in the Problems panel, with quick fixes", async () => {
    await screen.say("Count every piece.");
    await screen.chat.locator(".call-item[data-state='ok']", { hasText: "shop/cart.py" }).last().waitFor();
    const cart = await file("shop/cart.py");
    await writeFile(join(rig.workspace, "shop/cart.py"), cart.replace("cents for _, cents, _ in", "price for _, price, _ in"));
    await rig.release("before-patch");
    await screen.reply("choose in the Problems panel");
    await screen.openFile("shop/cart.py");
    await screen.squiggle.waitFor();
    await screen.command("Problems: Focus on Problems View");
    await screen.page.locator(".markers-panel .monaco-list-row", { hasText: "standfast" }).first().waitFor();
    await screen.picture("problems");
  });

  test("the quick fixes offer what fits, and the difference shows all three texts", async () => {
    await screen.quickFixes();
    await screen.picture("quick-fix");
    await screen.pickFix("difference");
    const texts = screen.page.locator(".merge-editor .view-line, .monaco-diff-editor .view-line");
    for (const words of ["for _, price, _ in", "cents * quantity"]) await texts.filter({ hasText: words }).first().waitFor();
    await screen.picture("difference");
    await screen.command("View: Close All Editors");
    await screen.openFile("shop/cart.py");
    const before = await file("shop/cart.py");
    await screen.quickFixes();
    await screen.pickFix("Keep");
    await until(async () => (await screen.squiggle.count()) === 0, "the squiggle goes");
    assert.equal(await file("shop/cart.py"), before, "keep changes no byte");
  });

  test("the daemon dies between two files of a patch; afterwards it is said what is certain, and the run goes on", async () => {
    await screen.say("Give carts a currency.");
    const ask = screen.chat.getByRole("group", { name: "Permission needed" });
    await ask.getByRole("button", { name: "Allow", exact: true }).click();
    const card = screen.chat.getByRole("region", { name: "This run was interrupted" });
    await card.locator(".recovered", { hasText: "The patch of" }).waitFor();
    const notice = (await screen.notices()).filter({ hasText: "was interrupted" });
    await notice.waitFor();
    assert.equal(await notice.count(), 1);
    await screen.picture("resume");
    await card.getByRole("button", { name: "Complete", exact: true }).click();
    await card.locator(".recovered", { hasText: "is in place" }).waitFor();
    assert.match(await file("shop/cart.py"), /currency = "EUR"/);
    assert.match(await file("shop/money.py"), /percent: int = 0/);
    await notice.getByRole("button", { name: "Resume" }).click();
    await screen.reply("go on from there");
    assert.deepEqual(await rig.refused(), [], "the model's service had nothing to refuse");
  });
});
