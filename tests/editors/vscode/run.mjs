// All tests in a real VS Code: `node run.mjs [--oldest] [host.mjs | ui/story.mjs …]`. Installs what it needs into a cache
// outside of the checkout, and says what it did not run. `--pictures` renews the pictures of the README.
// `--oldest`: the oldest VS Code that the extension works with; it can run no tests inside its host, only the package.

import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join, resolve } from "node:path";

const ROOT = resolve(import.meta.dirname, "../../..");
const SUITES = ["host.mjs", "ui/story.mjs", "ui/windows.mjs", "ui/prompts.mjs", "ui/long.mjs", "ui/installed.mjs"];

const words = process.argv.slice(2);
const venv = join(ROOT, ".venv/bin");
const python = process.env.PYTHON ?? (existsSync(join(venv, "python")) ? join(venv, "python") : "python3");
const program = process.env.STANDFAST_PROGRAM ?? join(venv, "standfast");

const suites = words.includes("--oldest") ? SUITES.filter((suite) => suite !== "host.mjs") : SUITES;
const oldest = words.includes("--oldest") ? ["4.100.3"] : [];
const install = spawnSync(python, [join(import.meta.dirname, "install.py"), ...oldest], { encoding: "utf8", stdio: ["ignore", "pipe", "inherit"] });
const tools = JSON.parse(install.stdout);
if (tools.missing.length > 0) {
  console.log(`Not run: the tests in VS Code. Missing: ${tools.missing.join("; ")}`);
  process.exit(77);
}

const [npm, ...npmCli] = tools.npm;
const packed = spawnSync(npm, [...npmCli, "run", "--silent", "package"], { cwd: join(ROOT, "editor-clients/vscode"), stdio: ["ignore", "ignore", "inherit"], env: { ...process.env, PATH: `${tools.path}:${process.env.PATH}` } });
if (packed.status !== 0) process.exit(packed.status ?? 1);

const named = words.filter((word) => !word.startsWith("--"));
const env = {
  ...process.env,
  STANDFAST_PROGRAM: program,
  CODE_SERVER: tools.code_server,
  CHROMIUM: tools.chromium,
  TEST_MODULES: tools.modules,
  ...(words.includes("--pictures") ? { SCREENSHOTS: join(ROOT, "editor-clients/vscode/media/screenshots") } : {}),
};
const ran = spawnSync(tools.node, ["--test", "--test-concurrency=1", "--test-reporter=spec", ...(named.length > 0 ? named : suites)], {
  cwd: import.meta.dirname,
  stdio: "inherit",
  env,
});
process.exit(ran.status ?? 1);
