// What a person is asked on the first day: the model's key, and whether the folder is trusted.

import assert from "node:assert/strict";
import { readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { after, afterEach, before, describe, test } from "node:test";
import { Rig, until } from "../lib/rig.mjs";
import { Screen } from "../lib/screen.mjs";

const KEY = "test-key";

describe("the first day", { timeout: 300_000 }, () => {
  let rig;
  let screen;

  before(async () => {
    rig = await Rig.start({ env: { ANTHROPIC_API_KEY: undefined }, trusted: false });
    screen = new Screen(rig, (await rig.window()).page);
    await screen.open();
  });
  afterEach(async (t) => {
    if (t.error) await screen?.page.screenshot({ path: join(process.env.SCREENSHOTS ?? rig.folder, "failure.png") });
  });
  after(() => rig?.stop());

  test("an untrusted folder can be asked about, not changed by itself", async () => {
    await screen.say("What does this project do?");
    const mode = screen.chat.getByRole("combobox", { name: "What the agent may do" });
    const refused = () => mode.locator("option:disabled").allInnerTexts();
    await until(async () => (await refused()).join() === "Edit,Auto", "the modes that change things are off");
    assert.equal(await mode.inputValue(), "ask");
    assert.match(await mode.getAttribute("title"), /not trusted/);
  });

  test("without a key it is said, asked for without showing it, and the message is answered", async () => {
    const enter = screen.chat.getByRole("button", { name: "Enter key…" });
    await enter.waitFor();
    assert.equal(await screen.chat.locator(".run-error code").innerText(), "standfast login");
    await screen.picture("key");
    await enter.click();
    const box = screen.page.locator(".quick-input-widget input[type='password']:visible");
    await box.fill(KEY);
    await box.press("Enter");
    await screen.chat.getByRole("button", { name: "Resume" }).click();
    await screen.reply("instead of 86");
    assert.deepEqual(await rig.refused(), [], "the service took the key");
  });

  test("the key is in no setting, and where the daemon keeps it only its person reads it", async () => {
    const named = await readdir(join(rig.folder, "user", "User"), { recursive: true, withFileTypes: true });
    const files = named.filter((each) => each.isFile() && each.name.endsWith(".json"));
    for (const each of files) {
      assert.ok(!(await readFile(join(each.parentPath, each.name), "utf8")).includes(KEY), each.name);
    }
    const kept = (await readdir(rig.home, { recursive: true })).find((name) => name.endsWith("credentials.json"));
    assert.equal((await stat(join(rig.home, kept))).mode & 0o777, 0o600);
  });

  test("whatever mode a session of the untrusted folder is in, it asks before it writes", async () => {
    const mode = screen.chat.getByRole("combobox", { name: "What the agent may do" });
    await mode.evaluate((choice) => {
      choice.querySelector("[value='auto']").disabled = false; // as another client could have set it
      choice.value = "auto";
      choice.dispatchEvent(new Event("change", { bubbles: true }));
    });
    await until(async () => (await mode.getAttribute("title")).startsWith("Auto"), "the session is in that mode");
    const text = await readFile(join(rig.workspace, "shop/money.py"), "utf8");
    await screen.say("Round the discount half up.");
    const ask = screen.chat.getByRole("group", { name: "Permission needed" });
    await ask.getByRole("button", { name: "Deny" }).click();
    await screen.chat.locator(".call-item", { hasText: "denied" }).waitFor();
    await screen.chat.locator("body[data-running='false']").waitFor();
    assert.equal(await readFile(join(rig.workspace, "shop/money.py"), "utf8"), text);
  });

  test("a folder that is trusted in the editor may be worked on at once", async () => {
    await screen.command("Workspaces: Manage Workspace Trust");
    await screen.page.locator(".workspace-trust-editor").getByRole("button", { name: /^Trust$|Trust Folder/ }).first().click();
    const mode = screen.chat.getByRole("combobox", { name: "What the agent may do" });
    await until(async () => (await mode.locator("option:disabled").count()) === 0, "every mode can be chosen");
    await mode.selectOption("edit");
    await screen.say("Round the discount half up.");
    const money = () => readFile(join(rig.workspace, "shop/money.py"), "utf8");
    await until(async () => /\+ 50\) \/\/ 100/.test(await money()), "it is written, and nobody was asked");
  });
});
