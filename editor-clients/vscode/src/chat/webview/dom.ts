/** Building elements without HTML text. */

import { sentenceParts } from "../visible.ts";

type Props = Record<string, string | boolean | ((event: Event) => void) | undefined>;
type Child = Node | string | undefined | false;

/** `h("button", {class: "primary", onclick: f}, "Allow")`. Text is set as text, never parsed. */
export function h<Tag extends keyof HTMLElementTagNameMap>(
  tag: Tag,
  props: Props = {},
  ...children: Child[]
): HTMLElementTagNameMap[Tag] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(
    ...children.filter((child): child is Node | string => child !== undefined && child !== false && child !== ""),
  );
  return element;
}

/** A decorative symbol; what it says is said in words beside it. */
export function icon(name: string, more = ""): HTMLElement {
  return h("span", { class: `codicon codicon-${name} ${more}`.trim(), "aria-hidden": "true" });
}

export function button(label: string, act: () => void, more: Props = {}): HTMLButtonElement {
  return h("button", { type: "button", ...more, onclick: act }, label);
}

export function iconButton(name: string, label: string, act: () => void, more: Props = {}): HTMLButtonElement {
  return h(
    "button",
    { type: "button", class: "icon", title: label, "aria-label": label, ...more, onclick: act },
    icon(name),
  );
}

/** A sentence of the daemon's; what stood between backticks is set as code. */
export function sentence(text: string): Child[] {
  return sentenceParts(text).map((part, at) => (at % 2 === 1 ? h("code", {}, part) : part));
}

/** Replaces an element's children only if they would differ: no flicker, no lost focus. */
export function fill(element: HTMLElement, key: string, build: () => Child[]): void {
  if (element.dataset["shown"] === key) return;
  element.dataset["shown"] = key;
  element.replaceChildren(
    ...build().filter((child): child is Node | string => child !== undefined && child !== false && child !== ""),
  );
}
