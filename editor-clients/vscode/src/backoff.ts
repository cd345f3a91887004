/** When to try again after the connection was lost. Pure: the clock is passed in. */

const FIRST_MS = 250;
const TRIES_MAX = 6;
const STABLE_MS = 20_000;

export class Backoff {
  #failures = 0;
  #connectedAtMs: number | undefined;

  /** A connection stands. Only one that lasts counts as success, so a daemon that dies at once is not restarted for ever. */
  connected(nowMs: number): void {
    this.#connectedAtMs = nowMs;
  }

  /** A connection was lost or could not be made: how long to wait, or undefined when it is the person's turn. */
  lost(nowMs: number): number | undefined {
    if (this.#connectedAtMs !== undefined && nowMs - this.#connectedAtMs >= STABLE_MS) this.#failures = 0;
    this.#connectedAtMs = undefined;
    this.#failures += 1;
    return this.#failures > TRIES_MAX ? undefined : FIRST_MS * 2 ** (this.#failures - 1);
  }

  reset(): void {
    this.#failures = 0;
    this.#connectedAtMs = undefined;
  }
}
