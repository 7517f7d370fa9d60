// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Elements of the page. All text goes through text nodes: what others wrote is never read as markup.
import { age, command, printable } from "./text";
import type { Block, Cell, Row, Tone } from "./rows";

type Child = Node | string | undefined | false;

/** el makes an element. Attributes that are false or undefined are left out. */
export function el<K extends keyof HTMLElementTagNameMap>(
  name: K,
  attributes: Record<string, string | boolean | undefined> = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const e = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value !== undefined && value !== false) {
      e.setAttribute(key, value === true ? "" : value);
    }
  }
  e.append(...children.filter((c): c is Node | string => Boolean(c)).map((c) => (typeof c === "string" ? printable(c) : c)));
  return e;
}

/** say puts a text into an element, if it is another one: what reads the page aloud is not told of what stays. */
export function say(e: HTMLElement, text: string) {
  const shown = printable(text);
  if (e.textContent !== shown) {
    e.textContent = shown;
  }
}

const icons: Record<Tone, string> = { good: "✓", bad: "✗", wait: "…", unknown: "?" };

/** time is an age that grows. */
function time(since: string, before: string): HTMLElement {
  const e = el("time", { datetime: since, title: since, "data-before": before });
  tick(e, Date.now());
  return e;
}

function tick(e: HTMLElement, now: number) {
  const text = age(e.getAttribute("datetime") ?? "", now);
  say(e, text && (e.dataset.before ?? "") + text);
}

/** tickAll lets the ages grow. */
export function tickAll() {
  const now = Date.now();
  document.querySelectorAll<HTMLElement>("time[datetime]").forEach((e) => tick(e, now));
}

/** Context is what elements need of the page. */
export interface Context {
  kubectl: string;
  announce: (text: string) => void;
}

/** copyButton copies a line. */
export function copyButton(line: string, context: Context): HTMLElement {
  const button = el("button", { type: "button", class: "copy", "aria-label": "Copy: " + line }, "Copy");
  button.addEventListener("click", () => {
    navigator.clipboard.writeText(line).then(
      () => context.announce("Copied."),
      () => context.announce("The browser does not allow copying: select the line."),
    );
  });
  return button;
}

function content(c: Cell, context: Context): Child[] {
  const icon = c.tone && el("span", { class: "icon", "aria-hidden": "true" }, icons[c.tone]);
  const text = c.to ? el("a", { href: c.to }, c.text) : c.line !== undefined ? el("code", {}, c.text) : c.text;
  const state = c.tone ? el("span", { class: "state " + c.tone }, icon, text) : text;
  const since = c.since && time(c.since, c.text ? " for " : "");
  return [
    state,
    since,
    c.line !== undefined && copyButton(c.line, context),
    c.command !== undefined && copyButton(command(context.kubectl, c.command), context),
    c.more ? el("div", { class: "more" }, c.more) : undefined,
  ];
}

const isEmpty = (c: Cell) => !c.text && !c.since && c.command === undefined;

function rowOf(row: Row, columns: string[], context: Context): HTMLTableRowElement {
  // The roles keep a table a table where the style shows it as cards.
  const tr = el("tr", { role: "row" });
  row.cells.forEach((c, i) => {
    const attributes = { "data-label": columns[i] ?? "" };
    tr.append(
      i === 0
        ? el("th", { ...attributes, scope: "row", role: "rowheader" }, ...content(c, context))
        : el("td", { ...attributes, role: "cell" }, isEmpty(c) ? undefined : el("div", {}, ...content(c, context))),
    );
  });
  return tr;
}

/** Table shows a block, and changes only the rows that have changed. */
export class Table {
  readonly root = el("div", { class: "block" });
  private title = el("h3");
  private body = el("tbody", { role: "rowgroup" });
  private empty = el("p", { class: "empty", role: "status" });
  private table = el("table", { role: "table" });
  private rows = new Map<string, { text: string; tr: HTMLTableRowElement }>();
  private columns = "";

  constructor(private context: Context) {
    this.root.append(this.title, this.table, this.empty);
  }

  show(block: Block, label: string) {
    say(this.title, block.title);
    this.title.hidden = !block.title;
    this.table.setAttribute("aria-label", printable(block.title || label));
    say(this.empty, block.rows.length ? "" : block.empty);
    this.table.hidden = !block.rows.length;
    if (this.columns !== block.columns.join("\n")) {
      this.columns = block.columns.join("\n");
      const head = el("tr", { role: "row" });
      head.append(...block.columns.map((c) => el("th", { scope: "col", role: "columnheader" }, c)));
      this.table.className = block.columns.length === 2 ? "facts" : "";
      this.table.replaceChildren(el("thead", { role: "rowgroup" }, head), this.body);
      this.rows.clear();
      this.body.replaceChildren();
    }
    const before = this.rows;
    this.rows = new Map();
    let at: ChildNode | null = this.body.firstChild;
    for (const row of block.rows) {
      const text = JSON.stringify(row.cells);
      const old = before.get(row.key);
      before.delete(row.key);
      let tr = old?.tr;
      if (!tr || old?.text !== text) {
        tr = rowOf(row, block.columns, this.context);
        if (old) {
          if (at === old.tr) {
            at = tr;
          }
          replace(old.tr, tr);
        }
      }
      this.rows.set(row.key, { text, tr });
      if (at === tr) {
        at = tr.nextSibling;
      } else {
        this.body.insertBefore(tr, at);
      }
    }
    before.forEach((old) => old.tr.remove());
  }
}

// replace keeps the focus where it is: a row may change while a user is in it.
function replace(old: HTMLElement, by: HTMLElement) {
  const can = "a, button";
  const index = [...old.querySelectorAll<HTMLElement>(can)].indexOf(document.activeElement as HTMLElement);
  old.replaceWith(by);
  if (index >= 0) {
    by.querySelectorAll<HTMLElement>(can)[index]?.focus();
  }
}
