// What a person does in the window: the steps that several stories share.

import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { EXTENSION } from "./rig.mjs";

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
    await this.page.locator(".squiggly-warning, .squiggly-error, .squiggly-info").first().click({ force: true });
    await this.page.keyboard.press("Control+.");
    await this.page.locator(".action-widget .monaco-list-row").first().waitFor();
  }

  async pickFix(name) {
    await this.page.locator(".action-widget .monaco-list-row", { hasText: name }).first().click();
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
    await this.page.keyboard.press("Control+p");
    const input = this.page.locator(".quick-input-widget input[type='text']");
    await input.fill(name);
    await this.page.locator(".quick-input-list .monaco-list-row", { hasText: name.split("/").at(-1) }).first().waitFor();
    await input.press("Enter");
    await this.page.locator(".tab.active", { hasText: name.split("/").at(-1) }).waitFor();
  }

  async theme(name) {
    await this.page.emulateMedia({ colorScheme: name }); // the editor follows the system
    await this.page.locator(`.monaco-workbench.${name === "dark" ? "vs-dark" : "vs"}`).waitFor();
  }

  /** A picture in both themes, kept if the run is asked to keep pictures. */
  async picture(name, clip) {
    const folder = process.env.SCREENSHOTS;
    for (const theme of ["light", "dark"]) {
      await this.theme(theme);
      if (!folder) continue;
      await mkdir(folder, { recursive: true });
      await this.page.waitForTimeout(250); // the web view takes the new colours a moment later
      await this.page.screenshot({ path: join(folder, `${name}-${theme}.png`), ...(clip ? { clip } : {}) });
    }
  }
}

export const PICTURES = join(EXTENSION, "media/screenshots");
