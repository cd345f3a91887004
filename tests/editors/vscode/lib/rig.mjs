// A whole world for one run: a workspace, a home, the fake model, the daemon, code-server, and a browser in front of it.
// Every process is ended by its own id.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, realpath, rm, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { createInterface } from "node:readline";

// The packages lie in a cache outside of the checkout.
const { chromium } = createRequire(join(process.env.TEST_MODULES, "here.js"))("playwright-core");
const HERE = resolve(import.meta.dirname, "..");
const ROOT = resolve(HERE, "../../..");
export const EXTENSION = join(ROOT, "editor-clients/vscode");
/** The oldest code-server knows neither the options of the smoke-test driver nor, so, extensions from a folder. */
export const OLDEST = process.env.CODE_SERVER.includes("code-server-4.100");
const VSIX = join(EXTENSION, "standfast.vsix");
const FLAGS = "--no-sandbox --disable-gpu --no-first-run --disable-background-networking --disable-component-update --disable-sync".split(" ");

const SHOP = {
  "shop/__init__.py": "",
  "shop/money.py": `"""Amounts of money, in cents."""


def with_discount(cents: int, percent: int) -> int:
    """The price after a discount."""
    return int(cents * (100 - percent) / 100)
`,
  "shop/cart.py": `"""A shopping cart."""


class Cart:
    def __init__(self) -> None:
        self.items: list[tuple[str, int, int]] = []

    def add(self, name: str, cents: int, quantity: int = 1) -> None:
        self.items.append((name, cents, quantity))

    def total(self) -> int:
        return sum(cents for _, cents, _ in self.items)
`,
};

export class Rig {
  #children = [];
  #closers = [];

  /**
   * `env` goes to the editor (and to what it starts); `settings` are the user's; `packed`: the package is installed, as a
   * person would; not `trusted`: the folder is, to the editor, one that the person has not vouched for.
   */
  static async start({ env = {}, settings = {}, packed = OLDEST, trusted = true } = {}) {
    const rig = new Rig();
    try {
      await rig.#prepare(env, settings, packed, trusted);
    } catch (error) {
      await rig.stop();
      throw error;
    }
    return rig;
  }

  async #prepare(env, settings, packed, trusted) {
    this.folder = await realpath(await mkdtemp(join(tmpdir(), "sf-vscode-")));
    this.home = join(this.folder, "home");
    this.workspace = join(this.folder, "shop-project");
    await mkdir(this.home, { mode: 0o700 });
    for (const [name, text] of Object.entries(SHOP)) await this.write(name, text);
    await this.#git();
    await this.#fakeModel();
    await writeFile(join(this.home, "config.toml"), `[model]\nbase_url = "${this.modelUrl}"\n`);
    this.env = {
      ...process.env,
      STANDFAST_HOME: this.home,
      HOME: this.folder,
      ANTHROPIC_API_KEY: "test-key",
      EXTENSIONS_GALLERY: "{}",
      MODEL_URL: this.modelUrl,
      ...env,
    };
    this.packed = packed;
    await this.#codeServer(settings, trusted);
  }

  // -- parts ---------------------------------------------------------------------------------------------------------

  async write(name, text) {
    const file = join(this.workspace, name);
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, text);
    return file;
  }

  async #git() {
    const who = ["-c", "user.name=Test", "-c", "user.email=test@example.org", "-c", "commit.gpgsign=false"];
    for (const words of [["init", "-q", "-b", "main"], ["add", "."], [...who, "commit", "-q", "-m", "first"]]) {
      await this.run("git", words, { cwd: this.workspace, env: { ...process.env, HOME: this.folder } });
    }
  }

  async #fakeModel() {
    const python = join(dirname(process.env.STANDFAST_PROGRAM), "python");
    const words = ["-m", "fake_api", "--script", join(HERE, "model_script.py")];
    const child = this.#spawn(python, words, { cwd: join(ROOT, "tests"), stdio: ["pipe", "pipe", "inherit"] });
    const [line] = await once(createInterface(child.stdout), "line");
    this.modelUrl = line;
  }

  /** Lets the model's stream go on that stands, or will stand, at a gate. */
  async release(gate) {
    const answer = await fetch(`${this.modelUrl}/_fake/gates/${gate}/release`, { method: "POST" });
    if (!answer.ok) throw new Error(`no stream came to the gate ${gate}`);
  }

  /** What the fake of the API refused, as the real one would. */
  async refused() {
    const requests = await (await fetch(`${this.modelUrl}/_fake/requests`)).json();
    return requests.map((request) => request.error).filter((error) => error !== null);
  }

  /** Starts the daemon before the editor does; `failpoints` say where it dies. */
  async daemon(failpoints = "") {
    const child = this.#spawn(process.env.STANDFAST_PROGRAM, ["daemon", "run"], {
      env: { ...this.env, FAILPOINTS: failpoints },
      stdio: "ignore",
    });
    await until(async () => (await this.status()) !== undefined, "the daemon answers");
    return child;
  }

  /** What `standfast daemon status` says; undefined: no daemon. */
  async status() {
    const { code, out } = await this.run(process.env.STANDFAST_PROGRAM, ["daemon", "status", "--json"], { env: this.env, check: false });
    return code === 0 ? JSON.parse(out) : undefined;
  }

  async #codeServer(settings, trusted) {
    const user = join(this.folder, "user");
    const own = {
      "workbench.startupEditor": "none",
      "workbench.tips.enabled": false,
      "chat.disableAIFeatures": true,
      "chat.commandCenter.enabled": false,
      "editor.minimap.enabled": false,
      "editor.cursorBlinking": "solid", // two pictures of one state are equal
      "git.openRepositoryInParentFolders": "never",
      "git.autofetch": false,
      "extensions.ignoreRecommendations": true,
      "workbench.secondarySideBar.defaultVisibility": "hidden",
      "security.workspace.trust.enabled": !trusted,
      "security.workspace.trust.startupPrompt": "never",
      "window.commandCenter": false,
      "window.autoDetectColorScheme": true,
      ...settings,
    };
    await mkdir(join(user, "User"), { recursive: true });
    await writeFile(join(user, "User/settings.json"), JSON.stringify(own));
    // What only the machine may set; a login shell may have changed PATH.
    await mkdir(join(user, "Machine"), { recursive: true });
    await writeFile(join(user, "Machine/settings.json"), JSON.stringify({ "standfast.path": process.env.STANDFAST_PROGRAM }));
    await writeFile(join(this.folder, "code-server.yaml"), "auth: none\n");
    const places = ["--config", join(this.folder, "code-server.yaml"), "--user-data-dir", user];
    places.push("--extensions-dir", join(this.folder, "extensions"));
    if (this.packed) await this.run(process.execPath, [process.env.CODE_SERVER, ...places, "--install-extension", VSIX], { env: this.env });
    this.port = await freePort();
    const words = [process.env.CODE_SERVER, "--bind-addr", `127.0.0.1:${this.port}`, "--auth", "none", "--disable-telemetry"];
    words.push("--disable-update-check", ...(trusted ? ["--disable-workspace-trust"] : []), ...places);
    if (!OLDEST) words.push("--reconnection-grace-time", "2", "--vscode-option", "enable-smoke-test-driver");
    this.#spawn(process.execPath, words, { env: this.env, stdio: process.env.RIG_LOUD ? "inherit" : "ignore" });
    await until(async () => (await fetch(`http://127.0.0.1:${this.port}/healthz`).catch(() => undefined))?.ok, "code-server answers");
  }

  // -- the browser -----------------------------------------------------------------------------------------------------

  async browser() {
    if (!this.chrome) {
      this.chrome = await chromium.launch({ executablePath: process.env.CHROMIUM, args: FLAGS });
      this.#closers.push(() => this.chrome.close());
    }
    return this.chrome;
  }

  /** A window on the workspace, with the extension from the checkout. `tests`: a folder with tests for its host. */
  async window({ tests, folder = this.workspace, size = { width: 1180, height: 740 }, onLog } = {}) {
    const browser = await this.browser();
    const context = await browser.newContext({ viewport: size, reducedMotion: "reduce", colorScheme: "light" });
    context.setDefaultTimeout(60_000); // bounds what hangs; a busy machine is not a failure
    const page = await context.newPage();
    const remote = (path) => `vscode-remote://127.0.0.1:${this.port}${path}`;
    const payload = this.packed ? [] : [["extensionDevelopmentPath", remote(EXTENSION)]];
    let ended;
    if (tests) {
      payload.push(["extensionTestsPath", remote(join(tests, "index.cjs"))]);
      ended = new Promise((done) => page.exposeFunction("codeAutomationExit", done));
      await page.exposeFunction("codeAutomationLog", (_kind, said) => onLog?.(said));
    }
    const query = new URLSearchParams({ folder, payload: JSON.stringify(payload) });
    await page.goto(`http://127.0.0.1:${this.port}/?${query}`);
    return { page, context, ended };
  }

  // -- processes ---------------------------------------------------------------------------------------------------------

  async run(program, words, { check = true, ...more } = {}) {
    const child = spawn(program, words, { stdio: ["ignore", "pipe", "pipe"], ...more });
    let [out, err] = ["", ""];
    child.stdout.on("data", (data) => (out += data));
    child.stderr.on("data", (data) => (err += data));
    const [code] = await once(child, "close");
    if (check && code !== 0) throw new Error(`${program} ${words.join(" ")} ended with ${code}: ${err}`);
    return { code, out, err };
  }

  #spawn(program, words, more) {
    const child = spawn(program, words, { cwd: "/", ...more });
    this.#children.push(child);
    return child;
  }

  async stop() {
    for (const close of this.#closers) await close().catch(() => undefined);
    for (const child of this.#children) {
      if (child.exitCode !== null || child.signalCode !== null) continue;
      const closed = once(child, "exit");
      child.kill("SIGTERM");
      const timer = setTimeout(() => child.kill("SIGKILL"), 5000);
      await closed;
      clearTimeout(timer);
    }
    // Only now: an extension that still runs would start the daemon again.
    if (this.env) await this.run(process.env.STANDFAST_PROGRAM, ["daemon", "stop", "--force"], { env: this.env, check: false });
    if (this.folder && !process.env.RIG_KEEP) await rm(this.folder, { recursive: true, force: true, maxRetries: 5 });
  }
}

/** Waits until `what` is so; bounded. */
export async function until(check, what, { timeoutMs = 60_000, pauseMs = 50 } = {}) {
  const end = Date.now() + timeoutMs;
  for (;;) {
    const found = await check();
    if (found) return found;
    if (Date.now() > end) throw new Error(`waited ${timeoutMs / 1000} s until ${what}`);
    await new Promise((done) => setTimeout(done, pauseMs));
  }
}

async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  server.close();
  return port;
}
