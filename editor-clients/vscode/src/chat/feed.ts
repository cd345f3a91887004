/**
 * The session that the chat shows: its events as loaded so far, and the facts beside them. Follows it live, loads older
 * pages, and joins again after a reconnect without losing or doubling an event. Knows nothing of how it is drawn.
 */

import * as vscode from "vscode";
import type { Connection } from "../client.ts";
import {
  type DeltaNotice,
  DeltaNotification,
  type Event,
  EventNotification,
  type QueueItem,
  QueueListRequest,
  type Recovery,
  RecoveryGetRequest,
  RunListRequest,
  type Session,
  SessionAttachRequest,
  type SessionAttachResult,
  SessionChangedNotification,
  SessionDeletedNotification,
  SessionDetachRequest,
  SessionEventsRequest,
} from "../generated/protocol.ts";
import type { Entry } from "./state.ts";

const PAGE = 200;
const REFRESH_MS = 60;

/** What the daemon keeps beside the log; asked again when an event says that it may have changed. */
export interface Facts {
  session: Session;
  queue: QueueItem[];
  queueHeld: boolean;
  recovery: Recovery | undefined;
  tokens: { input: number; output: number } | undefined;
  /** A sentence, if the history that was on screen is not the stored one. */
  damage: string | undefined;
}

const QUEUE_EVENTS = new Set([
  "message_queued",
  "message_edited",
  "message_dequeued",
  "run_finished",
  "session_updated",
]);
const RECOVERY_EVENTS = new Set(["tool_recovery", "recovery_resolved", "tool_result", "run_started", "run_finished"]);
const TOKEN_EVENTS = new Set(["assistant_message", "run_finished"]);

export class Feed implements vscode.Disposable {
  readonly #connection: Connection;
  readonly #reset = new vscode.EventEmitter<void>();
  readonly #appended = new vscode.EventEmitter<Entry[]>();
  readonly #prepended = new vscode.EventEmitter<Event[]>();
  readonly #factsChanged = new vscode.EventEmitter<void>();
  readonly onReset = this.#reset.event;
  readonly onAppended = this.#appended.event;
  readonly onPrepended = this.#prepended.event;
  readonly onFacts = this.#factsChanged.event;

  sessionId: string | undefined;
  facts: Facts | undefined;
  events: Event[] = [];
  hasOlder = false;
  #deltas: DeltaNotice[] = [];
  /** While an attach is under way, live events wait here. */
  #waiting: Event[] | undefined;
  #loadingOlder = false;
  #stale = new Set<"queue" | "recovery" | "tokens">();
  #refreshTimer: NodeJS.Timeout | undefined;

  constructor(connection: Connection) {
    this.#connection = connection;
    connection.onNotice(EventNotification, ({ sessionId, event }) => this.#live(sessionId, event));
    connection.onNotice(DeltaNotification, (delta) => this.#delta(delta));
    connection.onNotice(SessionChangedNotification, ({ session }) => this.#sessionChanged(session));
    connection.onNotice(SessionDeletedNotification, ({ sessionId }) => {
      if (sessionId === this.sessionId) this.#clear(undefined);
    });
    connection.onConnected(() => void this.#rejoin());
  }

  /** Everything loaded, in the order in which it is to be folded. */
  get entries(): Entry[] {
    return [...this.events.map((event) => ({ event })), ...this.#deltas.map((delta) => ({ delta }))];
  }

  /** Shows another session, from its newest page. Raises what the daemon says if it cannot. */
  async open(sessionId: string): Promise<void> {
    const before = this.sessionId;
    if (before === sessionId && this.facts && this.#connection.isConnected) return;
    this.#clear(sessionId);
    if (before && before !== sessionId && this.#connection.isConnected) {
      void this.#connection.request(SessionDetachRequest, { sessionId: before }).catch(() => undefined);
    }
    await this.#attach(undefined);
  }

  close(): void {
    const before = this.sessionId;
    this.#clear(undefined);
    if (before && this.#connection.isConnected) {
      void this.#connection.request(SessionDetachRequest, { sessionId: before }).catch(() => undefined);
    }
  }

  /** Loads the page before the first loaded event. */
  async older(): Promise<void> {
    const first = this.events[0];
    const sessionId = this.sessionId;
    if (!first || !sessionId || !this.hasOlder || this.#loadingOlder) return;
    this.#loadingOlder = true;
    try {
      const page = await this.#connection.request(SessionEventsRequest, {
        sessionId,
        beforeSeq: first.seq,
        limit: PAGE,
      });
      if (this.sessionId !== sessionId || this.events[0] !== first) return;
      this.events = [...page.events, ...this.events];
      this.hasOlder = page.hasMore;
      this.#prepended.fire(page.events);
    } finally {
      this.#loadingOlder = false;
    }
  }

  dispose(): void {
    clearTimeout(this.#refreshTimer);
    for (const emitter of [this.#reset, this.#appended, this.#prepended, this.#factsChanged]) emitter.dispose();
  }

  // -- joining ------------------------------------------------------------------------------------------------------------

  #clear(sessionId: string | undefined): void {
    this.sessionId = sessionId;
    this.facts = undefined;
    this.events = [];
    this.#deltas = [];
    this.hasOlder = false;
    this.#waiting = undefined;
    this.#stale.clear();
    this.#reset.fire();
  }

  /** After a reconnect: everything after the last event that is held. */
  async #rejoin(): Promise<void> {
    if (!this.sessionId || this.#waiting) return;
    try {
      await this.#attach(this.events.at(-1));
    } catch {
      // Lost again, or the session is gone: the connection's state or the next command says so.
    }
  }

  async #attach(last: Event | undefined): Promise<void> {
    const sessionId = this.sessionId;
    if (!sessionId) return;
    this.#waiting = [];
    try {
      const after = last ? { afterSeq: last.seq, ...(last.hash ? { afterHash: last.hash } : {}) } : {};
      const attached = await this.#connection.request(SessionAttachRequest, { sessionId, limit: PAGE, ...after });
      if (this.sessionId !== sessionId) return;
      if (attached.damage && last) {
        await this.#startOver(sessionId, attached.damage.reason);
        return;
      }
      await this.#take(attached, last !== undefined);
    } finally {
      this.#waiting = undefined;
    }
  }

  /** What was on screen is not what is stored: throw it away and load it again. */
  async #startOver(sessionId: string, reason: string): Promise<void> {
    this.#clear(sessionId);
    await this.#attach(undefined);
    if (this.facts)
      this.facts.damage = `The history on screen was not the stored one (${reason}). It was loaded again.`;
    this.#factsChanged.fire();
  }

  async #take(attached: SessionAttachResult, continues: boolean): Promise<void> {
    this.facts = {
      session: attached.session,
      queue: attached.queue,
      queueHeld: attached.queueHeld,
      recovery: attached.recovery ?? undefined,
      tokens: this.facts?.tokens,
      damage: attached.damage ? `The stored history is damaged (${attached.damage.reason}).` : undefined,
    };
    if (continues) {
      this.#append(attached.events);
      await this.#catchUp(attached.headSeq, attached.hasMore);
    } else {
      this.events = attached.events;
      this.hasOlder = attached.hasMore;
      this.#reset.fire();
    }
    this.#append(this.#waiting ?? []);
    this.#factsChanged.fire();
    this.#refresh("tokens");
  }

  async #catchUp(headSeq: number, hasMore: boolean): Promise<void> {
    let more = hasMore;
    const sessionId = this.sessionId;
    while (more && sessionId && this.sessionId === sessionId) {
      const afterSeq = this.events.at(-1)?.seq ?? 0;
      if (afterSeq >= headSeq) return;
      const page = await this.#connection.request(SessionEventsRequest, { sessionId, afterSeq, limit: 1000 });
      this.#append(page.events);
      more = page.hasMore;
    }
  }

  // -- live -----------------------------------------------------------------------------------------------------------------

  #live(sessionId: string, event: Event): void {
    if (sessionId !== this.sessionId) return;
    if (this.#waiting) {
      this.#waiting.push(event);
      return;
    }
    this.#append([event]);
  }

  #append(events: Event[]): void {
    const last = this.events.at(-1)?.seq ?? 0;
    const fresh = events.filter((event) => event.seq > last);
    if (fresh.length === 0) return;
    this.events.push(...fresh);
    for (const event of fresh) this.#settleDeltas(event);
    this.#appended.fire(fresh.map((event) => ({ event })));
    for (const event of fresh) {
      if (QUEUE_EVENTS.has(event.type)) this.#refresh("queue");
      if (RECOVERY_EVENTS.has(event.type)) this.#refresh("recovery");
      if (TOKEN_EVENTS.has(event.type)) this.#refresh("tokens");
    }
  }

  #delta(delta: DeltaNotice): void {
    if (delta.sessionId !== this.sessionId) return;
    this.#deltas.push(delta);
    this.#appended.fire([{ delta }]);
  }

  /** Streamed text that is now in an event is no longer needed. */
  #settleDeltas(event: Event): void {
    if (this.#deltas.length === 0) return;
    const callId = event.type === "tool_result" ? event.callId : undefined;
    const endsText = ["assistant_message", "model_error", "model_request", "run_finished"].includes(event.type);
    if (callId === undefined && !endsText) return;
    this.#deltas = this.#deltas.filter((delta) =>
      delta.callId === undefined ? !(endsText && delta.runId === event.runId) : delta.callId !== callId,
    );
  }

  #sessionChanged(session: Session): void {
    if (session.sessionId !== this.sessionId || !this.facts) return;
    this.facts.session = session;
    this.#factsChanged.fire();
  }

  // -- facts ------------------------------------------------------------------------------------------------------------------

  #refresh(what: "queue" | "recovery" | "tokens"): void {
    this.#stale.add(what);
    this.#refreshTimer ??= setTimeout(() => {
      this.#refreshTimer = undefined;
      void this.#ask().catch(() => undefined); // no connection: asked again on the next attach
    }, REFRESH_MS);
  }

  async #ask(): Promise<void> {
    const sessionId = this.sessionId;
    if (!sessionId) return;
    const stale = new Set(this.#stale);
    this.#stale.clear();
    const [queue, recovery, runs] = await Promise.all([
      stale.has("queue") ? this.#connection.request(QueueListRequest, { sessionId }) : undefined,
      stale.has("recovery") ? this.#connection.request(RecoveryGetRequest, { sessionId }) : undefined,
      stale.has("tokens") ? this.#connection.request(RunListRequest, { sessionId, limit: 1 }) : undefined,
    ]);
    const facts = this.facts;
    if (!facts || this.sessionId !== sessionId) return;
    if (queue) [facts.queue, facts.queueHeld] = [queue.queue, queue.queueHeld];
    if (recovery) facts.recovery = recovery.recovery;
    if (runs) facts.tokens = { input: runs.statistics.inputTokens, output: runs.statistics.outputTokens };
    this.#factsChanged.fire();
  }
}
