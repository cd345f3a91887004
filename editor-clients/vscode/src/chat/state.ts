/**
 * What the chat shows, as a fold over events and deltas. Pure: no DOM, no vscode, no clock.
 * It decides nothing: verdicts, recovery and permissions are shown as the daemon says them.
 */

import type {
  ChangedFile,
  DeltaNotice,
  Event,
  EventPlanStep,
  Goal,
  PermissionResolvedEvent,
  RecoveryResolvedEvent,
  RunError,
  RunFinishedEvent,
  Target,
  ToolRecoveryEvent,
} from "../generated/protocol.ts";
import { GOAL_WORDS } from "../words.ts";
import { JoinedText } from "./join.ts";

/** One step of what the chat was told, in the order in which it was told. Deltas are text that is no event yet. */
export type Entry = { event: Event } | { delta: DeltaNotice };

interface Common {
  key: string;
  runId: string | undefined;
  atMs: number;
  /** Changes whenever what is to be drawn changes; equal stamps of one key mean equal content. */
  touches: number;
}

export interface UserItem extends Common {
  kind: "user";
  text: string;
  steer: boolean;
}

export interface AssistantItem extends Common {
  kind: "assistant";
  attempt: number;
  stream: JoinedText;
  text: string;
  thinking: string;
  /** `cut`: the run ended before the reply was whole. `dropped`: this try failed and was, or will be, made again. */
  state: "streaming" | "done" | "cut" | "dropped";
}

export interface ConflictNote {
  conflictId: string;
  uri: string;
  reason: string;
  message: string;
  settledBy: string | undefined;
}

export type CallState = "waiting" | "permission" | "running" | "ok" | "error" | "denied" | "cancelled" | "uncertain";

export interface CallItem extends Common {
  kind: "call";
  callId: string;
  tool: string;
  args: Record<string, unknown>;
  state: CallState;
  output: JoinedText;
  result: string | undefined;
  exitCode: number | undefined;
  files: ChangedFile[];
  recovered: boolean;
  /** What checking found after a crash, in the daemon's words. */
  verdict: ToolRecoveryEvent["status"] | undefined;
  evidence: string;
  targets: Target[];
  settledBy: RecoveryResolvedEvent["action"] | undefined;
  decision: PermissionResolvedEvent["decision"] | undefined;
  conflicts: ConflictNote[];
}

export interface RunItem extends Common {
  kind: "run";
  status: RunFinishedEvent["status"];
  error: RunError | undefined;
  /** Files that the run's calls say they changed. */
  changed: string[];
}

export interface NoteItem extends Common {
  kind: "note";
  level: "info" | "warning";
  text: string;
  detail: string;
}

export type Item = UserItem | AssistantItem | CallItem | RunItem | NoteItem;

export interface ChatState {
  items: Item[];
  plan: { goal: string; steps: EventPlanStep[] } | undefined;
  /** What was last said of the goal. */
  goalSays: string;
  activeRunId: string | undefined;
  endedRuns: Set<string>;
  firstSeq: number;
  headSeq: number;
  headHash: string | undefined;
  /** Open drafts by run, calls by id: for O(1) folding. */
  drafts: Map<string, AssistantItem>;
  calls: Map<string, CallItem>;
  conflicts: Map<string, { call: CallItem; note: ConflictNote }>;
  /** URIs of changed files by run. */
  changed: Map<string, Set<string>>;
}

export function emptyChat(): ChatState {
  return {
    items: [],
    plan: undefined,
    goalSays: "",
    activeRunId: undefined,
    endedRuns: new Set(),
    firstSeq: 0,
    headSeq: 0,
    headHash: undefined,
    drafts: new Map(),
    calls: new Map(),
    conflicts: new Map(),
    changed: new Map(),
  };
}

export function foldChat(entries: Iterable<Entry>): ChatState {
  const state = emptyChat();
  for (const entry of entries) apply(state, entry);
  return state;
}

/** Takes one more entry in. An event that is already in (by `seq`) changes nothing. */
export function apply(state: ChatState, entry: Entry): void {
  if ("delta" in entry) {
    applyDelta(state, entry.delta);
    return;
  }
  const event = entry.event;
  if (event.seq <= state.headSeq) return;
  if (state.firstSeq === 0) state.firstSeq = event.seq;
  state.headSeq = event.seq;
  state.headHash = event.hash;
  const fold = FOLDS[event.type] as Fold | undefined;
  fold?.(state, event);
}

/** What is drawn of an item changes only if this does. */
export function stamp(item: Item): string {
  return `${item.kind}.${item.touches}`;
}

// -- deltas -----------------------------------------------------------------------------------------------------------

function applyDelta(state: ChatState, delta: DeltaNotice): void {
  if (delta.callId !== undefined) {
    const call = state.calls.get(delta.callId);
    if (call && call.result === undefined) touch(call).output.add(delta.offset, delta.text);
    return;
  }
  const draft = state.drafts.get(delta.runId);
  if (draft && draft.attempt === delta.attempt) extend(draft, delta.offset, delta.text);
}

function extend(draft: AssistantItem, offset: number, text: string): void {
  touch(draft).stream.add(offset, text, draft.key.startsWith("request-"));
  draft.text = draft.stream.text;
}

// -- events -----------------------------------------------------------------------------------------------------------

type Fold = (state: ChatState, event: Event) => void;
type Folds = { [Type in Event["type"]]?: (state: ChatState, event: Extract<Event, { type: Type }>) => void };

const FOLDS: Folds = {
  user_message(state, event) {
    push(state, {
      kind: "user",
      key: `message-${event.messageId}`,
      ...common(event),
      text: event.content.map((part) => part.text).join("\n"),
      steer: event.steer === true,
    });
  },

  run_started(state, event) {
    state.activeRunId = event.runId;
    if (event.resumesRunId) note(state, event, "info", "The run goes on where it was interrupted.");
  },

  run_finished(state, event) {
    endRun(state, event.runId);
    push(state, {
      kind: "run",
      key: `run-${event.seq}`,
      ...common(event),
      status: event.status,
      error: event.error ?? undefined,
      changed: [...(state.changed.get(event.runId ?? "") ?? [])],
    });
  },

  model_request(state, event) {
    openDraft(state, event, `request-${event.seq}`);
  },

  assistant_chunk(state, event) {
    const known = state.drafts.get(event.runId ?? "");
    const draft = known?.attempt === event.attempt ? known : openDraft(state, event, `chunk-${event.seq}`);
    extend(draft, event.offset, event.text);
  },

  assistant_message(state, event) {
    const draft =
      state.drafts.get(event.runId ?? "") ??
      openDraft(state, Object.assign({ attempt: 1 }, event), `reply-${event.seq}`);
    state.drafts.delete(event.runId ?? "");
    touch(draft).state = "done";
    draft.text = joined(event.blocks, "text");
    draft.thinking = joined(event.blocks, "thinking");
  },

  model_error(state, event) {
    closeDraft(state, event.runId, "dropped");
    if (typeof event.retryAfterMs !== "number") return; // the end of the run says it
    const wait = Math.max(1, Math.round(event.retryAfterMs / 1000));
    note(
      state,
      event,
      "warning",
      `The model could not answer (${event.reason}). Trying again in ${wait} s.`,
      event.message ?? "",
    );
  },

  tool_call(state, event) {
    state.calls.set(event.callId, touch(pushCall(state, event, event.tool, event.args)));
  },

  permission_requested: onCall((call) => {
    call.state = "permission";
  }),

  permission_resolved: onCall((call, event) => {
    call.decision = event.decision;
    if (call.state === "permission") call.state = "waiting";
  }),

  tool_started: onCall((call) => {
    call.state = "running";
  }),

  tool_output: onCall((call, event) => {
    call.output.add(event.offset, event.text);
  }),

  tool_result: onCall((call, event) => {
    call.state = event.status;
    call.result = event.content;
    call.exitCode = event.exitCode ?? undefined;
    call.files = event.files ?? [];
    call.recovered = event.recovered === true;
  }, noteChanged),

  tool_recovery: onCall((call, event) => {
    call.state = "uncertain";
    call.verdict = event.status;
    call.evidence = event.evidence ?? call.evidence;
    call.targets = event.targets ?? call.targets;
  }),

  recovery_resolved: onCall((call, event) => {
    call.verdict = event.verdict;
    call.settledBy = event.action;
  }),

  conflict_raised(state, event) {
    const call = callOf(state, event);
    const raised: ConflictNote = {
      conflictId: event.conflictId,
      uri: event.uri,
      reason: event.reason,
      message: event.message ?? "",
      settledBy: undefined,
    };
    touch(call).conflicts.push(raised);
    state.conflicts.set(event.conflictId, { call, note: raised });
  },

  conflict_resolved(state, event) {
    const known = state.conflicts.get(event.conflictId);
    if (!known) return; // raised on a page that is not loaded
    touch(known.call);
    known.note.settledBy = event.action;
  },

  plan_updated(state, event) {
    state.plan = { goal: event.goal ?? "", steps: event.steps };
  },

  goal_updated(state, event) {
    const says = goalSays(event.goal as Goal | null);
    if (says === state.goalSays) return; // what it used is told with each reply
    state.goalSays = says;
    note(state, event, "info", says);
  },

  summary_created(state, event) {
    note(state, event, "info", "The history up to here was summarised for the model. Nothing was deleted.", event.text);
  },

  session_rebound(state, event) {
    note(state, event, "info", `The session now works in ${event.workspaceUri}.`);
  },
};

// -- parts ------------------------------------------------------------------------------------------------------------

function goalSays(goal: Goal | null): string {
  return goal ? `Goal (${GOAL_WORDS[goal.status]}): ${goal.objective}` : "The goal was taken away.";
}

type CallEvent = Extract<Event, { callId: string }>;

/** A fold that changes the event's call, and then perhaps more of the state. */
function onCall<Type extends CallEvent["type"]>(
  change: (call: CallItem, event: Extract<CallEvent, { type: Type }>) => void,
  then?: (state: ChatState, event: Extract<CallEvent, { type: Type }>) => void,
) {
  return (state: ChatState, event: Extract<CallEvent, { type: Type }>): void => {
    change(touch(callOf(state, event)), event);
    then?.(state, event);
  };
}

function noteChanged(state: ChatState, event: Extract<Event, { type: "tool_result" }>): void {
  const runId = event.runId ?? "";
  const changed = state.changed.get(runId) ?? new Set();
  for (const file of event.files ?? []) changed.add(file.uri);
  state.changed.set(runId, changed);
}

/** The call an event speaks of; a stand-in where its `tool_call` lies on a page that is not loaded. */
function callOf(state: ChatState, event: CallEvent): CallItem {
  const known = state.calls.get(event.callId);
  if (known) return known;
  const made = pushCall(state, event, "", {});
  state.calls.set(event.callId, made);
  return made;
}

function pushCall(state: ChatState, event: CallEvent, tool: string, args: Record<string, unknown>): CallItem {
  return push(state, {
    kind: "call",
    key: `call-${event.callId}`,
    ...common(event),
    callId: event.callId,
    tool,
    args,
    state: "waiting",
    output: new JoinedText(),
    result: undefined,
    exitCode: undefined,
    files: [],
    recovered: false,
    verdict: undefined,
    evidence: "",
    targets: [],
    settledBy: undefined,
    decision: undefined,
    conflicts: [],
  });
}

function openDraft(state: ChatState, event: Event & { attempt: number }, key: string): AssistantItem {
  closeDraft(state, event.runId, "dropped");
  const draft: AssistantItem = {
    kind: "assistant",
    key,
    ...common(event),
    attempt: event.attempt,
    stream: new JoinedText(),
    text: "",
    thinking: "",
    state: "streaming",
  };
  state.drafts.set(event.runId ?? "", draft);
  return push(state, draft);
}

function closeDraft(state: ChatState, runId: string | undefined, as: "cut" | "dropped"): void {
  const draft = state.drafts.get(runId ?? "");
  if (!draft) return;
  touch(draft).state = as;
  state.drafts.delete(runId ?? "");
}

function endRun(state: ChatState, runId: string | undefined): void {
  closeDraft(state, runId, "cut");
  if (state.activeRunId === runId) state.activeRunId = undefined;
  if (runId !== undefined) state.endedRuns.add(runId);
}

function note(state: ChatState, event: Event, level: NoteItem["level"], text: string, detail = ""): void {
  push(state, { kind: "note", key: `note-${event.seq}`, ...common(event), level, text, detail });
}

function common(event: Event): Omit<Common, "key"> {
  return { runId: event.runId, atMs: event.atMs, touches: 0 };
}

function push<T extends Item>(state: ChatState, item: T): T {
  state.items.push(item);
  return item;
}

function touch<T extends Item>(item: T): T {
  item.touches += 1;
  return item;
}

/** The text of all blocks of a type; the blocks are the Messages API's own. */
function joined(blocks: Record<string, unknown>[], type: "text" | "thinking"): string {
  return blocks.flatMap((block) => (block["type"] === type ? [String(block[type] ?? "")] : [])).join("\n\n");
}
