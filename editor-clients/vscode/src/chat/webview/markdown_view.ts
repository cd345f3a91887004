/** Puts rendered Markdown into the page; only blocks that changed are touched, so streaming text does not flicker. */

import { markdownBlocks } from "../markdown.ts";

const TAGS = new Set(
  "A BLOCKQUOTE BR BUTTON CODE DIV EM H1 H2 H3 H4 H5 H6 HR LI OL P PRE S SPAN STRONG TABLE TBODY TD TH THEAD TR UL".split(
    " ",
  ),
);
const ATTRIBUTES = new Set(["class", "data-url", "role", "start", "tabindex", "title", "type"]);

const shown = new WeakMap<HTMLElement, string[]>();

export function showMarkdown(container: HTMLElement, source: string): void {
  const blocks = markdownBlocks(source);
  const before = shown.get(container) ?? [];
  blocks.forEach((html, at) => {
    if (before[at] === html) return;
    const block = document.createElement("div");
    block.className = "block";
    block.append(safe(html));
    const old = container.children[at];
    if (old) old.replaceWith(block);
    else container.append(block);
  });
  while (container.children.length > blocks.length) container.lastElementChild?.remove();
  shown.set(container, blocks);
}

/** A second fence behind the renderer: elements and attributes that are not on the list are dropped. */
function safe(html: string): DocumentFragment {
  const template = document.createElement("template");
  template.innerHTML = html;
  for (const element of template.content.querySelectorAll("*")) {
    if (!TAGS.has(element.tagName)) {
      element.replaceWith(element.textContent ?? "");
      continue;
    }
    for (const name of element.getAttributeNames()) {
      if (!ATTRIBUTES.has(name)) element.removeAttribute(name);
    }
  }
  return template.content;
}
