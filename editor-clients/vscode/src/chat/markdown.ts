/**
 * Model text as HTML, block by block, safe by construction: no raw HTML, no images, links that only ask (ATK-42).
 * Pure: text in, text out.
 */

import MarkdownIt from "markdown-it";
import { visible } from "./visible.ts";

const markdown = new MarkdownIt({ html: false, linkify: false, typographer: false, breaks: false });
type RenderRule = NonNullable<(typeof markdown.renderer.rules)[string]>;
const escapeHtml = markdown.utils.escapeHtml;

/** Only web addresses become links; anything else (`command:`, `file:`, `javascript:`, `data:`) stays as written. */
markdown.validateLink = (url) => /^https?:\/\//i.test(url);

/** An image is not loaded: its source text is shown. */
const image: RenderRule = (tokens, at) => {
  const token = tokens[at];
  return `<span class="unloaded">![${escapeHtml(token?.content ?? "")}](${escapeHtml(String(token?.attrGet("src") ?? ""))})</span>`;
};

const linkOpen: RenderRule = (tokens, at) => {
  const url = escapeHtml(String(tokens[at]?.attrGet("href") ?? ""));
  return `<a role="link" tabindex="0" data-url="${url}" title="${url}">`;
};

const fence: RenderRule = (tokens, at) => {
  const token = tokens[at];
  const language = escapeHtml((token?.info ?? "").trim().split(/\s+/)[0] ?? "");
  const head = `<div class="code-head"><span>${language}</span><button type="button" class="copy" title="Copy">Copy</button></div>`;
  return `<div class="code">${head}<pre><code>${escapeHtml(token?.content ?? "")}</code></pre></div>`;
};

markdown.renderer.rules["image"] = image;
markdown.renderer.rules["link_open"] = linkOpen;
markdown.renderer.rules["fence"] = fence;
markdown.renderer.rules["code_block"] = fence;

/** The HTML of each top-level block. While text streams in, only the last blocks change. */
export function markdownBlocks(source: string): string[] {
  const env = {};
  const tokens = markdown.parse(visible(source), env);
  const blocks: string[] = [];
  let begin = 0;
  let depth = 0;
  tokens.forEach((token, at) => {
    depth += token.nesting;
    if (depth > 0) return;
    blocks.push(markdown.renderer.render(tokens.slice(begin, at + 1), markdown.options, env));
    begin = at + 1;
  });
  return blocks;
}
