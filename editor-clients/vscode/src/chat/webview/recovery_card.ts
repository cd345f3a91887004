/** After a crash: each call with what is certain, the evidence, and the actions that the daemon offers for it. */

import type { Call, Recovery, RecoveryResolveParams } from "../../generated/protocol.ts";
import { callLabel, fileName, TARGET_VERDICTS, VERDICTS } from "../../words.ts";
import { visible, visibleLine } from "../visible.ts";
import { tell } from "./bridge.ts";
import { button, h, icon } from "./dom.ts";

type Action = RecoveryResolveParams["action"];

const ACTIONS: Record<Action, [label: string, title: string]> = {
  keep: ["Keep as it is", "Leave the files as they are and settle this"],
  complete: ["Complete", "Carry the rest of this change out"],
  undo: ["Undo", "Put the files back as they were before"],
  dismiss: ["Dismiss", "Take this off the list; nothing is changed"],
  verify: ["Check again", "Look once more what became of it"],
  stop: ["Stop it", "End the command that is still running"],
  removeLock: ["Remove the lock", "Remove the lock file that was left behind"],
};

const CERTAIN = new Set<Call["verdict"]>(["applied", "not_applied", "finished"]);

export function recoveryCard(recovery: Recovery, connected: boolean): HTMLElement {
  const run = recovery.interruptedRun;
  const title = run ? "This run was interrupted" : "Left open by an interruption";
  const sure = recovery.calls.every((call) => CERTAIN.has(call.verdict));
  return h(
    "section",
    { class: "recovery", role: "region", "aria-label": title },
    h("p", { class: "recovery-title" }, icon(sure ? "shield" : "question"), h("strong", {}, title)),
    h("p", { class: "dim" }, opening(recovery, sure)),
    ...recovery.calls.map((call) => callRow(call, connected)),
    run && connected
      ? h(
          "div",
          { class: "row" },
          button("Resume", () => tell({ type: "resume", runId: run.runId }), { class: "primary" }),
          h("span", { class: "dim" }, "or write a message below; nothing runs until you do."),
        )
      : undefined,
  );
}

function opening(recovery: Recovery, sure: boolean): string {
  if (recovery.calls.length === 0) return "No action was under way. Nothing is in doubt.";
  return sure
    ? "What was under way has been checked. Nothing is in doubt."
    : "What was under way has been checked. Not everything is certain; the agent will be told.";
}

function callRow(call: Call, connected: boolean): HTMLElement {
  const certain = CERTAIN.has(call.verdict);
  const hasFiles = call.targets.some((target) => target.uri !== undefined);
  const settled = call.resolution ? ` · you chose: ${ACTIONS[call.resolution][0].toLowerCase()}` : "";
  return h(
    "div",
    { class: `recovered ${certain ? "certain" : "open"}` },
    h(
      "p",
      {},
      icon(certain ? "check" : "warning"),
      h("strong", {}, sentenceCase(callLabel(call))),
      " ",
      VERDICTS[call.verdict],
      settled,
    ),
    call.targets.length > 1
      ? h(
          "ul",
          {},
          ...call.targets.map((target) =>
            h(
              "li",
              {},
              h("code", {}, target.uri ? fileName(target.uri) : visibleLine(target.command ?? "")),
              " ",
              TARGET_VERDICTS[target.verdict],
            ),
          ),
        )
      : undefined,
    call.evidence ? h("p", { class: "dim evidence" }, visible(call.evidence)) : undefined,
    connected
      ? h(
          "div",
          { class: "row" },
          ...call.actions.map((action) =>
            button(ACTIONS[action][0], () => tell({ type: "settle", callId: call.callId, action }), {
              title: ACTIONS[action][1],
            }),
          ),
          hasFiles &&
            button("Show difference", () => tell({ type: "showDiff", subject: { callId: call.callId } }), {
              class: "link",
            }),
        )
      : undefined,
  );
}

function sentenceCase(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
