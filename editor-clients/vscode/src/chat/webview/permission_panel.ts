/** The question whether a call may be carried out: what it is, its risks, the difference; then the answers. */

import type { Permission } from "../../generated/protocol.ts";
import { fileName } from "../../words.ts";
import { visible } from "../visible.ts";
import { tell } from "./bridge.ts";
import { diffView } from "./diff_view.ts";
import { button, h, icon } from "./dom.ts";

const KINDS = { add: "new file", update: "change", delete: "delete", move: "move" };

export function permissionPanel(ask: Permission): HTMLElement {
  const answer = (decision: "allow" | "deny" | "allowSession") => () =>
    tell({ type: "decide", callId: ask.callId, digest: ask.digest, decision });
  const openDiff = (): void => tell({ type: "showDiff", subject: { callId: ask.callId } });
  return h(
    "section",
    { class: "ask", role: "group", "aria-label": "Permission needed" },
    h(
      "p",
      { class: "ask-title" },
      icon("bell-dot"),
      h("strong", {}, "May this be done?"),
      ask.files.length === 0 && sandbox(ask.sandbox),
    ),
    h("pre", { class: "ask-summary" }, visible(ask.summary)),
    ...ask.risks.map((risk) => h("p", { class: "risk" }, icon("warning"), visible(risk))),
    ...ask.files.map((file) =>
      h(
        "div",
        { class: "ask-file" },
        h(
          "div",
          { class: "file-head" },
          icon("file"),
          h("strong", {}, fileName(file.uri)),
          h("span", { class: "dim" }, KINDS[file.kind]),
        ),
        file.diff ? diffView(file.diff, openDiff) : undefined,
      ),
    ),
    h(
      "div",
      { class: "row" },
      button("Allow", answer("allow"), { class: "primary" }),
      button("Allow for this session", answer("allowSession"), {
        title: "This identical command in this folder, or edits of these files",
      }),
      button("Deny", answer("deny")),
      ask.files.length > 0 && button("Open difference", openDiff, { class: "link" }),
    ),
  );
}

function sandbox(kind: string): HTMLElement | false {
  if (!kind) return false;
  const none = kind === "none";
  return h(
    "span",
    { class: "badge", title: "Whether the command can reach beyond its folder" },
    none ? "no sandbox" : `sandbox: ${visible(kind)}`,
  );
}
