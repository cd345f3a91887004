/** Finds the `standfast` program. Looks at the user's own places only: nothing in an opened folder can name a program. */

import { constants } from "node:fs";
import { access, stat } from "node:fs/promises";
import { homedir } from "node:os";
import { delimiter, isAbsolute, join, relative } from "node:path";

export interface Search {
  /** The setting `standfast.path`; empty: look in the usual places. Machine-scoped, so no folder can set it. */
  setting: string;
  /** The `PATH` of the editor. */
  path: string;
  /** The extension's own folder: a virtual environment may be bundled in it. */
  extensionFolder: string;
  /** Open folders: a program that lies in one of them is not taken from `PATH`. */
  folders: readonly string[];
}

export type Found = { program: string } | { program: undefined; looked: string[] };

const NAME = process.platform === "win32" ? "standfast.exe" : "standfast";

/** The program to start. The setting, if there is one, is the only place looked at. */
export async function findProgram(search: Search): Promise<Found> {
  const places = search.setting ? [expand(search.setting)] : usualPlaces(search);
  for (const place of places) {
    if (await isProgram(place)) return { program: place };
  }
  return { program: undefined, looked: places };
}

function usualPlaces(search: Search): string[] {
  const onPath = search.path
    .split(delimiter)
    .filter((folder) => isAbsolute(folder) && !search.folders.some((open) => isInside(folder, open)))
    .map((folder) => join(folder, NAME));
  return [
    ...onPath,
    join(homedir(), ".local", "bin", NAME), // pipx, uv tool
    join(search.extensionFolder, "bundled", "bin", NAME),
  ];
}

function expand(setting: string): string {
  return setting.startsWith("~/") ? join(homedir(), setting.slice(2)) : setting;
}

function isInside(path: string, folder: string): boolean {
  const way = relative(folder, path);
  return way === "" || !(way.startsWith("..") || isAbsolute(way));
}

async function isProgram(path: string): Promise<boolean> {
  if (!isAbsolute(path)) return false;
  try {
    await access(path, constants.X_OK);
    return (await stat(path)).isFile();
  } catch {
    return false;
  }
}
