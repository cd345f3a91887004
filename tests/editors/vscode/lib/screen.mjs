// What a person does in the window: the steps that several stories share.

import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { OLDEST, until } from "./rig.mjs";

const STILL = { animations: "disabled" }; // what turns in the status bar turns for ever

export class Screen {
  constructor(rig, page) {
    this.rig = rig;
    this.page = page;
    this.chat = page.frameLocator("iframe.webview.ready").frameLocator("iframe#active-frame");
    this.box = this.chat.getByRole("combobox", { name: "Message" });
    this.status = page.locator("#standfast\\.standfast\\.standfast, .statusbar-item[id*='standfast']").first();
  }

  /** Opens the Standfast view with a side bar wide enough to read in. */
  async open({ width = 520 } = {}) {
    // A click on the icon of the open view closes it, and a window that was reloaded may have opened it by itself.
    const title = this.page.locator(".sidebar .composite.title:visible", { hasText: "Standfast" });
    const icon = this.page.locator(".activitybar a[aria-label^='Standfast']");
    await icon.waitFor();
    if (!(await title.count())) await this.#again(title, () => icon.click());
    await this.box.waitFor();
    await this.chat.locator("body[data-connection='connected']").waitFor();
    const sash = await this.page.locator(".monaco-sash.vertical").evaluateAll((all) => {
      const right = document.querySelector(".part.sidebar").getBoundingClientRect().right;
      const near = all.map((each) => each.getBoundingClientRect()).find((box) => Math.abs(box.x - right) < 8);
      return near && { x: near.x + near.width / 2, y: near.y + near.height / 2 };
    });
    if (sash) {
      await this.page.mouse.move(sash.x, sash.y);
      await this.page.mouse.down();
      await this.page.mouse.move(48 + width, sash.y, { steps: 4 });
      await this.page.mouse.up();
      await this.page.mouse.move(900, 300);
    }
  }

  get squiggle() {
    return this.page.locator(".squiggly-warning:visible, .squiggly-error:visible, .squiggly-info:visible").first();
  }

  /** The quick fixes of the line with the first squiggle. A line that is drawn anew under the click swallows it: again then. */
  async quickFixes() {
    const rows = this.page.locator(".action-widget .monaco-list-row");
    await this.#again(rows, async () => {
      await this.squiggle.click({ force: true });
      await this.page.keyboard.press("Control+.");
    });
  }

  async pickFix(name) {
    const rows = this.page.locator(".action-widget .monaco-list-row");
    const wanted = this.page.locator(".action-widget .monaco-list-row.focused", { hasText: name });
    await until(async () => {
      if (await wanted.count()) return true;
      if (await rows.count()) await this.page.keyboard.press("ArrowDown");
      else await this.quickFixes(); // the list closes when the editor's actions change
      return false;
    }, `the action ${name} is chosen`);
    await this.page.keyboard.press("Enter");
  }

  /** Does what can be done twice until what it brings can be seen. */
  async #again(what, act) {
    await until(async () => {
      await act();
      return what
        .first()
        .waitFor({ timeout: 10_000 })
        .then(() => true, () => false);
    }, `${what} is there`);
  }

  async say(text) {
    await this.box.fill(text);
    await this.box.press("Enter");
  }

  async reply(text, timeout = 30_000) {
    await this.chat.locator(".assistant", { hasText: text }).last().waitFor({ timeout });
  }

  get #input() {
    return this.page.locator(".quick-input-widget input[type='text']:visible");
  }

  async #pick(text, row) {
    await this.#input.fill(text);
    await this.page.locator(".quick-input-list .monaco-list-row", { hasText: row }).first().click();
  }

  /** Answers what the editor asks for, under this title, in a line of text. */
  async answer(title, text) {
    await this.page.locator(".quick-input-title", { hasText: title }).waitFor();
    await this.#input.fill(text);
    await this.#input.press("Enter");
  }

  /** Chooses from a list of the editor's. */
  async choose(name) {
    await this.page.locator(".quick-input-list .monaco-list-row", { hasText: name }).first().click();
  }

  /** Runs a command by the name that a person sees. */
  async command(name) {
    await this.#again(this.#input, () => this.page.keyboard.press("F1"));
    await this.#pick(`>${name}`, name);
  }

  async openFile(name) {
    const last = name.split("/").at(-1);
    if (OLDEST) {
      // Its search for files needs a program that is fetched at install time; its dialog does not.
      await this.command("File: Open File...");
      await until(async () => (await this.#input.inputValue()).startsWith("/"), "the dialog is there");
      const folder = join(this.rig.workspace, name, "..", "/"); // of a whole path it may take the folder only
      const row = this.page.locator(".quick-input-list .monaco-list-row", { hasText: last });
      let tries = 0;
      await this.#again(row, async () => {
        if (tries++) await this.#input.fill("/"); // what was typed while it still read its first folder was lost
        await this.#input.fill(folder);
      });
      await row.first().click();
    } else {
      await this.#again(this.#input, () => this.page.keyboard.press("Control+p"));
      await this.#pick(name, last);
    }
    await this.page.locator(".tab.active", { hasText: last }).waitFor();
  }

  async theme(name) {
    await this.page.emulateMedia({ colorScheme: name }); // the editor follows the system
    await this.page.locator(`.monaco-workbench.${name === "dark" ? "vs-dark" : "vs"}`).waitFor();
  }

  /** The web view takes new colours, and editors their words, some frames later: until two looks are the same. */
  async settled() {
    let last;
    await until(async () => {
      const shot = await this.page.screenshot(STILL);
      const same = last?.equals(shot) === true;
      last = shot;
      return same;
    }, "the window stands still", { pauseMs: 250 });
  }

  /** A picture in both themes, kept if the run is asked to keep pictures. */
  async picture(name) {
    const folder = process.env.SCREENSHOTS;
    for (const theme of ["light", "dark"]) {
      await this.theme(theme);
      if (!folder) continue;
      await this.settled();
      const shot = await this.page.screenshot(STILL);
      await mkdir(folder, { recursive: true });
      if (process.env.SCREENSHOTS_RAW) await writeFile(join(folder, `${name}-${theme}.png`), shot);
      else await writeFile(join(folder, `${name}-${theme}.webp`), await this.#small(shot));
    }
  }

  /** A picture as WebP, drawn by the browser itself. */
  async #small(png) {
    const page = await this.page.context().newPage();
    const url = await page.evaluate(async (data) => {
      const bitmap = await createImageBitmap(await (await fetch(`data:image/png;base64,${data}`)).blob());
      const canvas = new OffscreenCanvas(bitmap.width, bitmap.height);
      canvas.getContext("2d").drawImage(bitmap, 0, 0);
      const bytes = new Uint8Array(await (await canvas.convertToBlob({ type: "image/webp", quality: 0.9 })).arrayBuffer());
      return bytes.reduce((text, byte) => text + String.fromCharCode(byte), "");
    }, png.toString("base64"));
    await page.close();
    return Buffer.from(url, "latin1");
  }

  /** The messages that the editor keeps in its own list; this window of the tests shows no toasts. */
  async notices() {
    await this.page.locator(".statusbar-item[id*='notifications'] .codicon-bell-dot").waitFor(); // there is something new
    await this.#again(this.page.locator(".notifications-center.visible"), () =>
      this.page.locator(".statusbar-item[id*='notifications'] a").first().click(),
    );
    await this.page.mouse.move(900, 300);
    return this.page.locator(".notifications-center .notification-list-item");
  }
}
