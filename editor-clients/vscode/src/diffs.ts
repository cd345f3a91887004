/** Shows what a call, a conflict or a run changes, in VS Code's own difference and merge editors. Read-only texts. */

import * as vscode from "vscode";
import type { Connection } from "./client.ts";
import { type DiffGetParams, DiffGetRequest, type FileDiff } from "./generated/protocol.ts";
import { fileName } from "./words.ts";

export const DIFF_SCHEME = "standfast-diff";
const KEPT_TEXTS = 300;
const MERGE_EDITOR = "_open.mergeEditor";

type Side = "before" | "after" | "proposed";

export class Diffs implements vscode.TextDocumentContentProvider, vscode.Disposable {
  readonly #connection: Connection;
  readonly #texts = new Map<string, string>();
  readonly #registration: vscode.Disposable;
  #next = 1;

  constructor(connection: Connection) {
    this.#connection = connection;
    this.#registration = vscode.workspace.registerTextDocumentContentProvider(DIFF_SCHEME, this);
  }

  dispose(): void {
    this.#registration.dispose();
  }

  provideTextDocumentContent(uri: vscode.Uri): string {
    return this.#texts.get(uri.query) ?? "This text is no longer held. Please open the difference again.";
  }

  /** Asks the daemon for the texts and opens them: the merge editor for a conflict, else a difference of one or many files. */
  async show(subject: DiffGetParams): Promise<void> {
    const { files } = await this.#connection.request(DiffGetRequest, subject);
    const [first] = files;
    if (!first) {
      void vscode.window.showInformationMessage("There is no difference to show: no file is concerned.");
    } else if (subject.conflictId !== undefined) {
      await this.#showConflict(first);
    } else if (files.length === 1) {
      await vscode.commands.executeCommand(
        "vscode.diff",
        this.#side(first, "before"),
        this.#side(first, "after"),
        `${fileName(first.uri)} (before ↔ after)`,
      );
    } else {
      const rows = files.map((file) => [
        vscode.Uri.parse(file.uri),
        this.#side(file, "before"),
        this.#side(file, "after"),
      ]);
      await vscode.commands.executeCommand("vscode.changes", `${files.length} files (before ↔ after)`, rows);
    }
  }

  /** `before` is what the agent saw, `after` what is there now, `proposed` what it wanted. */
  async #showConflict(file: FileDiff): Promise<void> {
    const name = fileName(file.uri);
    const hasAll =
      typeof file.before === "string" && typeof file.after === "string" && typeof file.proposed === "string";
    if (hasAll && (await this.#openMergeEditor(file))) return;
    const [now, wanted] = [this.#side(file, "after"), this.#side(file, "proposed")];
    await vscode.commands.executeCommand("vscode.diff", now, wanted, `${name} (now ↔ what the agent wanted)`);
  }

  /** VS Code's own three-way editor. Its command is internal, so it may be missing in another version: false. */
  async #openMergeEditor(file: FileDiff): Promise<boolean> {
    try {
      await vscode.commands.executeCommand(MERGE_EDITOR, {
        base: this.#side(file, "before"),
        input1: { uri: this.#side(file, "after"), title: "Now", description: "the file as it is", detail: "" },
        input2: {
          uri: this.#side(file, "proposed"),
          title: "Proposed",
          description: "what the agent wanted",
          detail: "",
        },
        output: vscode.Uri.parse(file.uri),
      });
      return true;
    } catch {
      return false;
    }
  }

  #side(file: FileDiff, side: Side): vscode.Uri {
    const id = `${this.#next++}-${side}`;
    this.#texts.set(id, file[side] ?? "");
    for (const oldest of this.#texts.keys()) {
      if (this.#texts.size <= KEPT_TEXTS) break;
      this.#texts.delete(oldest);
    }
    // The file's own path, so that the language is recognised and the tab has the file's name.
    return vscode.Uri.parse(file.uri).with({ scheme: DIFF_SCHEME, authority: "", query: id });
  }
}
