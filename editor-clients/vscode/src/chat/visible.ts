/**
 * Makes visible what a text could hide: control characters, terminal escapes, bidi controls, zero-width and tag
 * characters. Line breaks and tabs stay. Pure; used on everything that comes from a model, a tool or a file name.
 */

// C0 but tab and LF, DEL and C1; soft hyphen; Arabic letter mark; Mongolian separator; zero width and directional marks;
// line and paragraph separators, embeddings and overrides; word joiner, invisible operators, isolates, deprecated
// controls; BOM; interlinear marks; tags. The zero width joiner (U+200D) is handled apart, since emoji use it.
const HIDDEN =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u115f\u1160\u180e\u200b\u200c\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\u{e0000}-\u{e0fff}]|(?<!\p{Extended_Pictographic}\ufe0f?)\u200d|\u200d(?!\p{Extended_Pictographic})/gu;

const CONTROL_PICTURES = 0x2400;

function shown(hidden: string): string {
  const code = hidden.codePointAt(0) ?? 0;
  if (code < 0x20) return String.fromCodePoint(CONTROL_PICTURES + code);
  if (code === 0x7f) return "\u2421";
  return `\u27e8U+${code.toString(16).toUpperCase().padStart(4, "0")}\u27e9`;
}

/** The text with each hidden character replaced by a visible sign: `␛` for ESC, `⟨U+202E⟩` for a bidi override. */
export function visible(text: string): string {
  return text.replaceAll("\r\n", "\n").replace(HIDDEN, shown);
}

/** One line of visible text, for labels and titles. */
export function visibleLine(text: string, max = 200): string {
  const line = visible(text.replace(/\s+/g, " ").trim());
  return line.length > max ? `${line.slice(0, max - 1)}…` : line;
}

/** A sentence of the daemon's in parts: each second one stood between backticks, as a command or a setting does. */
export function sentenceParts(text: string): string[] {
  return visible(text).split(/`([^`\n]+)`/);
}

/** A sentence of the daemon's where only plain text can be shown. */
export function plainSentence(text: string): string {
  return sentenceParts(text)
    .map((part, at) => (at % 2 === 1 ? `“${part}”` : part))
    .join("");
}
