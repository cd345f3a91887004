import assert from "node:assert/strict";
import { chmod, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { findProgram } from "../../src/server.ts";

let root = "";
const search = { setting: "", path: "", extensionFolder: "/nowhere", folders: [] as string[] };

async function program(...parts: string[]): Promise<string> {
  const folder = join(root, ...parts);
  await mkdir(folder, { recursive: true });
  const file = join(folder, "standfast");
  await writeFile(file, "#!/bin/sh\n");
  await chmod(file, 0o755);
  return file;
}

before(async () => {
  root = await mkdtemp(join(tmpdir(), "sf-"));
});
after(() => rm(root, { recursive: true }));

test("the setting is the only place looked at", async () => {
  const [set, other] = [await program("set"), await program("path")];
  const path = join(root, "path");
  assert.deepEqual(await findProgram({ ...search, setting: set, path }), { program: set });
  assert.deepEqual(await findProgram({ ...search, setting: "/gone/standfast", path }), {
    program: undefined,
    looked: ["/gone/standfast"],
  });
  assert.deepEqual(await findProgram({ ...search, path }), { program: other });
});

test("a program in an opened folder, or on a relative PATH, is not taken", async () => {
  const planted = await program("project", "bin");
  const path = [join(root, "project", "bin"), "bin", "."].join(":");
  const found = await findProgram({ ...search, path, folders: [join(root, "project")] });
  assert.notEqual(found.program, planted);
});

test("a file that cannot be run is passed over, and the bundled one is found", async () => {
  const bundled = await program("extension", "bundled", "bin");
  await mkdir(join(root, "plain"), { recursive: true });
  await writeFile(join(root, "plain", "standfast"), "");
  const found = await findProgram({ ...search, path: join(root, "plain"), extensionFolder: join(root, "extension") });
  assert.ok(found.program === bundled || found.program?.endsWith(".local/bin/standfast"));
});
