/** The line to the extension, and what the page remembers while it is out of sight. */

import type { FromPage, ToPage } from "../messages.ts";

interface Kept {
  draft: string;
  /** The id under which an unanswered message was sent: sent again, it is the same message. */
  sendingId?: string;
}

const api = acquireVsCodeApi<Kept>();

export function tell(message: FromPage): void {
  api.postMessage(message);
}

export function listen(handle: (message: ToPage) => void): void {
  window.addEventListener("message", (event: MessageEvent<ToPage>) => handle(event.data));
}

export function remember(kept: Kept): void {
  api.setState(kept);
}

export function remembered(): Kept {
  return api.getState() ?? { draft: "" };
}
