// Bundles the extension (Node), the chat's page (browser) or, with `test`, the unit tests. `--production` minifies.
import { cp, mkdir, readdir } from "node:fs/promises";
import { build } from "esbuild";

const production = process.argv.includes("--production");
const shared = {
  bundle: true,
  logLevel: "warning",
  sourcemap: production ? false : "linked",
  minify: production,
  legalComments: "none",
};
const node = { ...shared, platform: "node", target: "node20", format: "cjs", external: ["vscode"] };

async function product() {
  await Promise.all([
    // vscode-languageclient's `exports` names its entry by the condition `node`.
    build({ ...node, entryPoints: ["src/extension.ts"], outfile: "dist/extension.cjs" }),
    build({
      ...shared,
      platform: "browser",
      target: "es2023",
      format: "iife",
      entryPoints: ["src/chat/webview/main.ts"],
      outfile: "dist/chat.js",
    }),
    copy("src/chat/webview/chat.css", "dist/chat.css"),
    copy("node_modules/@vscode/codicons/dist/codicon.css", "dist/codicon.css"),
    copy("node_modules/@vscode/codicons/dist/codicon.ttf", "dist/codicon.ttf"),
  ]);
}

async function copy(from, to) {
  await mkdir("dist", { recursive: true });
  await cp(from, to);
}

async function tests() {
  const names = await readdir("test/unit");
  const entryPoints = names.filter((name) => name.endsWith(".test.ts")).map((name) => `test/unit/${name}`);
  await build({
    ...node,
    format: "esm",
    entryPoints,
    outdir: "dist/test",
    outExtension: { ".js": ".mjs" },
    packages: "external",
  });
}

await (process.argv.includes("test") ? tests() : product());
