/**
 * Joins pieces of streamed text by their offsets, so that a client that rejoins neither doubles nor loses text.
 * Pieces may overlap, repeat, or arrive before the piece that precedes them; those wait until the gap is closed.
 */
export class JoinedText {
  #text = "";
  #start: number | undefined;
  #waiting: { offset: number; text: string }[] = [];

  /** What is known without a gap. */
  get text(): string {
    return this.#text;
  }

  /** Offset of the first known unit: above 0 where the beginning lies on a page that is not loaded. */
  get start(): number {
    return this.#start ?? 0;
  }

  get end(): number {
    return this.start + this.#text.length;
  }

  /** Takes a piece. `fromStart`: the stream is known from its first unit, so a piece that begins later waits. */
  add(offset: number, text: string, fromStart = false): void {
    this.#start ??= fromStart ? 0 : offset;
    this.#waiting.push({ offset, text });
    this.#waiting.sort((a, b) => a.offset - b.offset);
    while (this.#waiting[0] && this.#waiting[0].offset <= this.end) {
      const piece = this.#waiting.shift();
      if (piece && piece.offset + piece.text.length > this.end) {
        this.#text += piece.text.slice(this.end - piece.offset);
      }
    }
  }
}
