// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// The page: it starts the session, follows the address, and shows the sections of a view.
import { Table, copyButton, el, say, tickAll, type Context } from "./dom";
import { Feed, type World } from "./feed";
import { id, type Obj } from "./rows";
import { command } from "./text";
import { matches, navigation, view, type Filter, type Section, type View } from "./views";

interface Session {
  server?: string;
  context?: string;
  user?: string;
  impersonating?: boolean | string;
  kubectl?: string;
  /** signOut is where a login is ended, where the page is for all who log in. */
  signOut?: string;
}

const main = document.querySelector<HTMLElement>("main")!;
const status = document.querySelector<HTMLElement>("#status")!;
const ended = document.querySelector<HTMLElement>("#ended")!;

const context: Context = {
  kubectl: "kubectl",
  announce: (text) => {
    // What is said twice is to be heard twice.
    status.textContent = "";
    setTimeout(() => say(status, text), 50);
  },
};

// Browsers open six connections to a server. A watch keeps one, and there may be a second window.
const mostWatches = 2;

let parts: Part[] = [];

// at is the address that is shown.
let at = "";

// end shows that nothing more is answered, and what to do. Who refuses says it; a proxy that logs users in says nothing that is for people.
async function end(answer: Response) {
  parts.forEach((p) => p.stop());
  parts = [];
  ended.hidden = false;
  main.querySelector("h1") || main.append(el("h1", {}, "No session"));
  let said: { kind?: string; reason?: string; message?: string } = {};
  try {
    said = (await answer.clone().json()) as typeof said;
  } catch {
    // It is no status.
  }
  if (said.kind === "Status" && said.reason === "NoSession" && said.message) {
    say(ended, said.message.charAt(0).toUpperCase() + said.message.slice(1) + ".");
  } else if (said.kind === "Status") {
    say(ended, "The hub does not accept your login, or no longer does: log in again, and reload this page.");
  } else {
    say(ended, "Your login has ended: reload this page to log in again.");
  }
}

// The key of the session: unlike its cookie, the browser gives it to no other port of this machine.
const key = {
  name: "page-key",
  now: "",
  set(value: string) {
    this.now = value;
    try {
      localStorage.setItem(this.name, value);
    } catch {
      // Then it is this window's alone.
    }
  },
  get(): string {
    try {
      return this.now || localStorage.getItem(this.name) || "";
    } catch {
      return this.now;
    }
  },
};

const world: World = {
  fetch: async (url, init) => {
    const headers = { ...(init.headers as Record<string, string>), ...(key.get() ? { "X-Page-Key": key.get() } : {}) };
    const answer = await fetch(url, { ...init, headers, credentials: "same-origin", redirect: "error" });
    if (answer.status === 401) {
      await end(answer);
    }
    return answer;
  },
  sleep: (ms, signal) =>
    new Promise((done) => {
      if (signal.aborted) {
        return done();
      }
      const timer = setTimeout(done, ms);
      signal.addEventListener("abort", () => (clearTimeout(timer), done()), { once: true });
    }),
  random: Math.random,
};

/** Part shows one section. */
class Part {
  readonly root = el("section");
  private feed!: Feed;
  private section!: Section;
  private tables: Table[] = [];
  private text = "";
  private timer = 0;
  private events = 0;
  private heading = el("h2");
  private note = el("p", { class: "note" });
  private lines = el("div");
  private summary = el("p", { class: "summary", role: "status" });
  private problem = el("p", { class: "problem", role: "alert" });
  private blocks = el("div");
  private foot = el("p", { class: "foot" });
  private mode = el("span", { class: "mode" });
  private button = el("button", { type: "button" });

  constructor(section: Section, index: number, private watch: boolean) {
    const heading = `section-${index}`;
    this.heading.id = heading;
    this.root.setAttribute("aria-labelledby", heading);
    this.foot.append(this.button, this.mode);
    this.root.append(this.heading, this.note, this.lines, this.summary, this.problem, this.blocks, this.foot);
    this.button.addEventListener("click", () => {
      this.button.disabled = true;
      this.feed.more();
    });
    this.use(section);
  }

  private use(section: Section) {
    this.section = section;
    say(this.heading, section.title);
    say(this.note, section.note ?? "");
    this.lines.replaceChildren(
      ...[section.kubectl, section.why].flatMap((args) => {
        const line = args && command(context.kubectl, args);
        return line ? [el("p", { class: "line" }, el("code", {}, line), copyButton(line, context))] : [];
      }),
    );
    this.tables = [];
    this.blocks.replaceChildren();
    say(this.summary, "Reading …");
    this.button.hidden = true;
    this.feed = new Feed({ ...section.source, watch: this.watch && section.source.watch }, world, () => this.changed());
  }

  start() {
    this.feed.start();
  }

  stop() {
    this.feed.stop();
    clearTimeout(this.timer);
    this.timer = 0;
  }

  filter(text: string) {
    this.text = text;
    this.show();
  }

  // Many events at once are shown at once.
  private changed() {
    this.timer ||= window.setTimeout(() => {
      this.timer = 0;
      this.show();
    }, 50);
  }

  private show() {
    const { state } = this.feed;
    const { section } = this;
    if (state.events > this.events) {
      this.events = state.events;
      parts.forEach((p) => p !== this && p.section.follows && p.feed.again());
    }
    if (state.problem?.code === 403 && section.fallback) {
      this.feed.stop();
      this.use(section.fallback);
      this.feed.start();
      return;
    }
    say(this.problem, state.problem ? problemText(state.problem.code, state.problem.message, section.right) : "");
    this.root.classList.toggle("stale", Boolean(state.problem));
    if (!state.loaded) {
      say(this.summary, state.problem ? "" : "Reading …");
      return;
    }
    // What is refused now is not shown on.
    const items: Obj[] = state.problem && [403, 404].includes(state.problem.code) ? [] : [...state.items].sort(byName);
    say(this.summary, items.length ? (section.summary?.(items, state) ?? "") : "");
    const blocks = state.problem && !items.length ? [] : section.blocks(items, state);
    blocks.forEach((block, i) => {
      const table = (this.tables[i] ??= new Table(context));
      table.root.isConnected || this.blocks.append(table.root);
      const rows = block.rows.filter((r) => matches(r, this.text));
      const empty = block.rows.length ? "No rows contain this text." : block.empty;
      table.show({ ...block, rows, empty }, section.title);
    });
    this.tables.splice(blocks.length).forEach((t) => t.root.remove());
    this.button.hidden = !state.more;
    this.button.disabled = false;
    say(this.button, "More");
    say(this.mode, state.problem ? "Not up to date." : state.live ? "Live." : section.source.answer ? "Checked every 5 minutes." : "Refreshed every 30 seconds.");
    this.root.dataset.live = String(state.live);
  }
}

// Lists come in the order of their keys; members by their set first. The explanation comes in the order of names.
function byName(a: Obj, b: Obj): number {
  const key = (o: Obj) => ((o as { spec?: { clusterSet?: string } }).spec?.clusterSet ?? "") + "\n" + id(o);
  const [x, y] = [key(a), key(b)];
  return x < y ? -1 : x > y ? 1 : 0;
}

function problemText(code: number, message: string, right: string): string {
  switch (code) {
    case 403:
      return `You lack the right to ${right}. The hub says: ${message}`;
    case 404:
      return `It does not exist, or the hub does not serve it: ${message}`;
    case 0:
      return `The hub does not respond (${message}). Retrying.`;
  }
  return `The hub returned ${code}: ${message}. Retrying.`;
}

function form(filters: Filter[], search: URLSearchParams): HTMLFormElement {
  const f = el("form", { role: "search", "aria-label": "Filter" });
  for (const filter of filters) {
    const value = search.get(filter.name) ?? "";
    const name = `filter-${filter.name}`;
    const field: HTMLInputElement | HTMLSelectElement = filter.options
      ? el("select", { id: name, name: filter.name }, ...filter.options.map((o) => el("option", { value: o, selected: o === value }, o || "all")))
      : el("input", { id: name, name: filter.name, placeholder: filter.hint, autocomplete: "off", spellcheck: "false" });
    field.value = value;
    f.append(el("div", {}, el("label", { for: name }, filter.label), field));
    if (filter.name === "q") {
      field.addEventListener("input", () => {
        parts.forEach((p) => p.filter(field.value));
        history.replaceState(null, "", (at = address(f)));
      });
    } else if (filter.options) {
      field.addEventListener("change", () => f.requestSubmit());
    }
  }
  f.append(el("button", { type: "submit" }, "Apply"));
  f.addEventListener("submit", (e) => {
    e.preventDefault();
    go(address(f));
  });
  return f;
}

function address(f: HTMLFormElement): string {
  const query = new URLSearchParams();
  new FormData(f).forEach((value, name) => String(value).trim() && query.set(name, String(value).trim()));
  const text = query.toString();
  return location.pathname + (text ? "?" + text : "");
}

function go(to: string) {
  history.pushState(null, "", to);
  show(true);
}

/** show shows the view of the address. Focus moves to its title, as it would on a new page. */
function show(moved: boolean) {
  parts.forEach((p) => p.stop());
  at = location.pathname + location.search;
  const search = new URLSearchParams(location.search);
  const found: View = view(location.pathname, search) ?? { title: "Page not found", nav: "", sections: [], filters: [] };
  let watches = 0;
  parts = found.sections.map((s, i) => new Part(s, i, Boolean(s.source.watch) && watches++ < mostWatches));
  const title = el("h1", { tabindex: "-1" }, found.title);
  main.replaceChildren(title, ...(found.filters.length ? [form(found.filters, search)] : []), ...parts.map((p) => p.root));
  document.title = title.textContent + " · Clusterhub";
  document.querySelectorAll("nav a").forEach((a) => {
    if (a.getAttribute("href") === "/v/" + found.nav) {
      a.setAttribute("aria-current", "page");
    } else {
      a.removeAttribute("aria-current");
    }
  });
  parts.forEach((p) => {
    p.filter(search.get("q") ?? "");
    p.start();
  });
  if (moved) {
    window.scrollTo(0, 0);
    title.focus();
  }
}

async function session(): Promise<boolean> {
  const token = /^#token=(.+)$/.exec(location.hash)?.[1];
  if (token) {
    // The secret is not to stay in the address, nor in the history.
    history.replaceState(null, "", location.pathname + location.search);
    const answer = await world.fetch("/session", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ token: decodeURIComponent(token) }),
    });
    if (!answer.ok) {
      answer.status === 401 || (await end(answer));
      return false;
    }
    key.set(((await answer.json()) as { key?: string }).key ?? "");
  }
  const answer = await world.fetch("/session", { cache: "no-store" });
  if (answer.status === 401) {
    return false;
  }
  // Where the page is served without kubectl there is no session to tell of.
  const s: Session = answer.ok ? ((await answer.json()) as Session) : {};
  context.kubectl = s.kubectl || "kubectl";
  // The one who is acted for is what matters: the page shows what they may see.
  const who = [
    s.user && `as ${s.user}`,
    s.impersonating && `acting for ${typeof s.impersonating === "string" ? s.impersonating : "another user"}`,
    s.server && `on ${s.server}`,
    s.context && `context ${s.context}`,
  ];
  const line = document.querySelector<HTMLElement>("#session")!;
  say(line, who.filter(Boolean).join(", "));
  if (s.signOut?.startsWith("/")) {
    line.append(" ", el("a", { href: s.signOut }, "Sign out"));
  }
  return true;
}

async function start() {
  if (location.pathname === "/" || location.pathname === "/index.html") {
    history.replaceState(null, "", "/v/clusters" + location.search + location.hash);
  }
  document.querySelector("nav ul")!.append(...navigation.map(([at, name]) => el("li", {}, el("a", { href: "/v/" + at }, name))));
  document.addEventListener("click", (e) => {
    const a = (e.target as Element).closest?.("a");
    const plain = e.button === 0 && !e.metaKey && !e.ctrlKey && !e.shiftKey && !e.altKey;
    if (a && plain && a.pathname.startsWith("/v/") && a.origin === location.origin && !a.hash) {
      e.preventDefault();
      go(a.pathname + a.search);
    }
  });
  // The link to the content changes the address, too, and shows nothing else.
  window.addEventListener("popstate", () => location.pathname + location.search !== at && show(true));
  // A page that is not looked at costs the hub nothing.
  document.addEventListener("visibilitychange", () => parts.forEach((p) => (document.hidden ? p.stop() : p.start())));
  setInterval(tickAll, 1000);
  try {
    if (await session()) {
      show(false);
    }
  } catch (e) {
    ended.hidden = false;
    say(ended, `The server of this page does not respond (${(e as Error).message}). Start kubectl hub ui again and open the address that it prints, or reload the page.`);
  }
}

void start();
