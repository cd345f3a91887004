/** What the extension and the chat's page say to each other. The page asks for things; the extension decides nothing either. */

import type {
  Degraded,
  Event,
  HistoryMessage,
  Permission,
  PermissionAnswer,
  QueueItem,
  Recovery,
  RecoveryResolveParams,
  Session,
  WorkspaceFile,
} from "../generated/protocol.ts";
import type { Entry } from "./state.ts";

/** All that is drawn beside the history. Sent whole whenever something of it changed. */
export interface View {
  connected: boolean;
  /** What to say while not connected, and the words on the button that helps. */
  trouble: { text: string; action: string } | undefined;
  session: Session | undefined;
  /** Name of the folder that a new session would work in; undefined: no folder is open. */
  folder: string | undefined;
  queue: QueueItem[];
  queueHeld: boolean;
  asks: Permission[];
  recovery: Recovery | undefined;
  tokens: { input: number; output: number } | undefined;
  damage: string | undefined;
  degraded: Degraded[];
  /** The editor trusts the folder; without it only `plan` and `ask` are possible. */
  trusted: boolean;
  sendWith: "enter" | "ctrlEnter";
}

export type ToPage =
  | { type: "reset"; entries: Entry[]; hasOlder: boolean }
  | { type: "append"; entries: Entry[] }
  | { type: "prepend"; events: Event[]; hasOlder: boolean }
  | { type: "view"; view: View }
  | { type: "sent"; clientMessageId: string }
  | { type: "refused"; clientMessageId: string; message: string }
  | { type: "history"; messages: HistoryMessage[] }
  | { type: "files"; query: string; files: WorkspaceFile[] }
  | { type: "insert"; text: string }
  | { type: "focus" };

export type Subject = { callId: string } | { conflictId: string } | { runId: string };

export type FromPage =
  | { type: "ready" }
  | { type: "send"; text: string; clientMessageId: string; steer: boolean }
  | { type: "stop" }
  | { type: "resume"; runId: string }
  | { type: "undo"; runId: string }
  | { type: "decide"; callId: string; digest: string; decision: PermissionAnswer["decision"] }
  | { type: "settle"; callId: string; action: RecoveryResolveParams["action"] }
  | { type: "showDiff"; subject: Subject }
  | { type: "openFile"; uri: string }
  | { type: "openLink"; url: string }
  | { type: "copy"; text: string }
  | { type: "older" }
  | { type: "history" }
  | { type: "files"; query: string }
  | { type: "queueEdit"; messageId: string; text: string }
  | { type: "queueRemove"; messageId: string }
  | { type: "queueMove"; messageId: string; position: number }
  | { type: "queueResume" }
  | { type: "mode"; mode: Session["mode"] }
  | { type: "setKey" }
  | { type: "rebind" }
  | { type: "openFolder" }
  | { type: "help" };
