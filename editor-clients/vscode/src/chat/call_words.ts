/** How a tool call is named in one line. Pure; display only: nothing is decided by it. */

import { visibleLine } from "./visible.ts";

export interface CallLabel {
  icon: string;
  verb: string;
  /** What it acts on, as code. */
  target: string;
}

type Args = Record<string, unknown>;

const LABELS: Record<string, (args: Args) => CallLabel> = {
  read_file: (args) => ({ icon: "file", verb: "Read", target: `${text(args, "path")}${lines(args)}` }),
  list_files: (args) => ({
    icon: "list-tree",
    verb: "List",
    target: [text(args, "path"), text(args, "glob")].filter(Boolean).join(" ") || ".",
  }),
  search: (args) => ({ icon: "search", verb: "Search", target: text(args, "pattern") }),
  write_file: (args) => ({ icon: "new-file", verb: "Write", target: text(args, "path") }),
  edit_file: (args) => ({ icon: "edit", verb: "Edit", target: text(args, "path") }),
  apply_patch: (args) => ({ icon: "diff", verb: "Patch", target: patched(args["patch"]) }),
  run_command: (args) => ({ icon: "terminal", verb: "Run", target: text(args, "command") }),
  process: (args) => ({ icon: "server-process", verb: "Process", target: text(args, "action") }),
  git: (args) => ({ icon: "git-commit", verb: "Git", target: text(args, "action") }),
  update_plan: () => ({ icon: "checklist", verb: "Plan", target: "" }),
  read_result: () => ({ icon: "history", verb: "Read again", target: "" }),
};

export function callLabel(tool: string, args: Args): CallLabel {
  const known = Object.hasOwn(LABELS, tool) ? LABELS[tool] : undefined;
  if (known) return known(args);
  const first = Object.values(args).find((value) => typeof value === "string");
  return {
    icon: "tools",
    verb: visibleLine(tool) || "Call",
    target: typeof first === "string" ? visibleLine(first, 120) : "",
  };
}

/** The arguments as a person reads them: a command or patch as it is, anything else as JSON. */
export function argsText(tool: string, args: Args): string {
  const plain: Record<string, string> = { run_command: "command", apply_patch: "patch", write_file: "content" };
  const main = Object.hasOwn(plain, tool) ? plain[tool] : undefined;
  if (main === undefined || typeof args[main] !== "string") return JSON.stringify(args, null, 2);
  const { [main]: body, ...rest } = args;
  const others = Object.entries(rest).map(([name, value]) => `${name}: ${JSON.stringify(value)}`);
  return [...others, String(body)].join("\n");
}

function text(args: Args, name: string): string {
  const value = args[name];
  return typeof value === "string" ? visibleLine(value, 120) : "";
}

function lines(args: Args): string {
  const { offset, limit } = args;
  if (typeof offset !== "number") return "";
  return typeof limit === "number" ? `:${offset}-${offset + limit - 1}` : `:${offset}`;
}

function patched(patch: unknown): string {
  if (typeof patch !== "string") return "";
  const names = [...patch.matchAll(/\*\*\* (?:Update|Add|Delete) File: (\S+)/g)].map((match) => match[1] ?? "");
  const more = names.length > 3 ? ` and ${names.length - 3} more` : "";
  return visibleLine(names.slice(0, 3).join(", ") + more);
}
