// What a person does in the window: the steps that several stories share.

import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { OLDEST, until } from "./rig.mjs";
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
    await this.page.locator(".activitybar a[aria-label^='Standfast']").click();
    await this.box.waitFor({ timeout: 60_000 });
    await this.chat.locator("body[data-connection='connected']").waitFor({ timeout: 60_000 });
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

  /** The quick fixes of the line with the first squiggle. */
  async quickFixes() {
    await this.page.locator(".squiggly-warning:visible, .squiggly-error:visible, .squiggly-info:visible").first().click({ force: true });
    await this.page.keyboard.press("Control+.");
    await this.page.locator(".action-widget .monaco-list-row").first().waitFor();
  }

  async pickFix(name) {
    const focused = this.page.locator(".action-widget .monaco-list-row.focused");
    await until(async () => {
      if ((await focused.innerText()).includes(name)) return true;
      await this.page.keyboard.press("ArrowDown");
      return false;
    }, `the action ${name} is chosen`);
    await this.page.keyboard.press("Enter");
  }

  async say(text) {
    await this.box.fill(text);
    await this.box.press("Enter");
  }

  async reply(text, timeout = 30_000) {
    await this.chat.locator(".assistant", { hasText: text }).last().waitFor({ timeout });
  }

  /** Runs a command by the name that a person sees. */
  async command(name) {
    await this.page.keyboard.press("F1");
    const input = this.page.locator(".quick-input-widget input[type='text']");
    await input.waitFor();
    await input.fill(`>${name}`);
    await this.page.locator(".quick-input-list .monaco-list-row", { hasText: name }).first().click();
  }

  async openFile(name) {
    const input = this.page.locator(".quick-input-widget input[type='text']");
    if (OLDEST) {
      // Its search for files needs a program that is fetched at install time; its dialog does not.
      await this.command("File: Open File...");
      await until(async () => (await input.inputValue()).startsWith("/"), "the dialog is there");
      await input.fill(join(this.rig.workspace, name));
    } else {
      await this.page.keyboard.press("Control+p");
      await input.fill(name);
      await this.page.locator(".quick-input-list .monaco-list-row", { hasText: name.split("/").at(-1) }).first().waitFor();
    }
    await input.press("Enter");
    await this.page.locator(".tab.active", { hasText: name.split("/").at(-1) }).waitFor();
  }

  async theme(name) {
    await this.page.emulateMedia({ colorScheme: name }); // the editor follows the system
    await this.page.locator(`.monaco-workbench.${name === "dark" ? "vs-dark" : "vs"}`).waitFor();
  }

  /** A picture in both themes, kept if the run is asked to keep pictures. */
  async picture(name) {
    const folder = process.env.SCREENSHOTS;
    for (const theme of ["light", "dark"]) {
      await this.theme(theme);
      if (!folder) continue;
      await this.page.waitForTimeout(250); // the web view takes the new colours a moment later
      const shot = await this.page.screenshot();
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
    await this.page.locator(".statusbar-item[id*='notifications'] a").first().click();
    await this.page.mouse.move(900, 300);
    return this.page.locator(".notifications-center .notification-list-item");
  }
}
