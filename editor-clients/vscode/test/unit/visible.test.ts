import assert from "node:assert/strict";
import { test } from "node:test";
import { plainSentence, sentenceParts, visible, visibleLine } from "../../src/chat/visible.ts";

test("ATK-43: terminal escapes are shown, not obeyed", () => {
  assert.equal(visible("a\u001b]52;c;aGk=\u0007b\u009b1m"), "a␛]52;c;aGk=␇b⟨U+009B⟩1m");
});

test("ATK-45: bidi overrides, tags and zero-width characters are shown", () => {
  assert.equal(visible("\u202eevil\u2066\u{e0041}\u200b\ufeff"), "⟨U+202E⟩evil⟨U+2066⟩⟨U+E0041⟩⟨U+200B⟩⟨U+FEFF⟩");
});

test("ordinary text stays as it is", () => {
  const text = "Grüße\t日本語 שלום 👩‍💻 é\nnext\r\nlast";
  assert.equal(visible(text), text.replace("\r\n", "\n"));
});

test("a joiner outside of an emoji is shown", () => {
  assert.equal(visible("a\u200db"), "a⟨U+200D⟩b");
});

test("a label is one line of bounded length", () => {
  assert.equal(visibleLine("a\n  b\u001b"), "a b␛");
  assert.equal(visibleLine("x".repeat(300), 10), `${"x".repeat(9)}…`);
});

test("a command that a sentence names between backticks is told apart, by quotes where there is no other way", () => {
  const says = "Run `standfast login`, then resume. Lone ` stays.\u001b";
  assert.deepEqual(sentenceParts(says), ["Run ", "standfast login", ", then resume. Lone ` stays.␛"]);
  assert.equal(plainSentence(says), "Run “standfast login”, then resume. Lone ` stays.␛");
  assert.equal(plainSentence("Nothing was changed."), "Nothing was changed.");
});
