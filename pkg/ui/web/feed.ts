// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// How the page reads the API: one page of a list after the other, and then a watch of what is shown.
import { id, type Obj } from "./rows";

/** Problem is an answer that is no success. */
export class Problem extends Error {
  constructor(
    readonly code: number,
    message: string,
  ) {
    super(message);
  }
}

/** A Source is what a section reads. */
export interface Source {
  path: string;
  query?: Record<string, string>;
  /** one is the name of the object, if the path is that of one. */
  one?: string;
  /** table asks the server for its own columns. */
  table?: boolean;
  /** watch follows changes; else they are looked for from time to time. It is not for tables. */
  watch?: boolean;
  /** body is sent with POST. */
  body?: unknown;
  /** read takes the items out of an answer that is no list. */
  read?: (body: unknown) => Page;
  /** text says that the answer is text and no JSON. */
  text?: boolean;
  /** answer says that the path is one of an answer that the server of the page makes; each reads a lot. */
  answer?: boolean;
}

/** A Page is one answer to a list. */
export interface Page {
  items: Obj[];
  version?: string;
  next?: string;
  rest?: number;
  columns?: string[];
}

/** A State is what a feed knows. */
export interface State {
  items: Obj[];
  loaded: boolean;
  /** more says that there is more than what is shown. */
  more: boolean;
  rest?: number;
  columns?: string[];
  /** live says that changes come by a watch. */
  live: boolean;
  /** events is how many changes a watch has told of. */
  events: number;
  problem?: Problem;
}

/** World is what a feed needs besides: tests have their own. */
export interface World {
  fetch: (url: string, init: RequestInit) => Promise<Response>;
  sleep: (ms: number, signal: AbortSignal) => Promise<void>;
  random: () => number;
}

/** pageSize is how many objects are asked for at once, and shown at first. */
export const pageSize = 100;

const pollEvery = 30_000;
const answerEvery = 300_000;

/** backoff is how long to wait after so many failures: up to half a minute, and not at the same time as all other pages. */
export function backoff(failures: number, random: number): number {
  return Math.min(30_000, 500 * 2 ** Math.min(failures, 10)) * (0.5 + random / 2);
}

/** An Event is a line of a watch. */
export interface Event {
  type: string;
  object: Obj;
}

/** Changes is what the events of a watch come to. */
export class Changes {
  items = new Map<string, Obj>();
  version = "";

  replace(page: Page) {
    this.items = new Map();
    this.append(page);
  }

  append(page: Page) {
    for (const item of page.items) {
      this.items.set(id(item), item);
    }
    this.version = page.version ?? "";
  }

  /** apply says whether what is known is still right; if not, it has to be listed anew. */
  apply(e: Event): boolean {
    const at = e.object.metadata?.resourceVersion;
    switch (e.type) {
      case "ADDED":
      case "MODIFIED":
        this.items.set(id(e.object), e.object);
        break;
      case "DELETED":
        this.items.delete(id(e.object));
        break;
      case "BOOKMARK":
        break;
      default:
        return false;
    }
    this.version = at ?? this.version;
    return true;
  }
}

interface ListBody {
  kind?: string;
  metadata?: { resourceVersion?: string; continue?: string; remainingItemCount?: number };
  items?: Obj[];
  columnDefinitions?: { name: string; priority?: number }[];
  rows?: { cells: unknown[]; object?: Obj }[];
}

/** readList reads a list or a Table. The items of a Table have the cells of the columns that are always shown. */
export function readList(body: unknown): Page {
  const { metadata, items, rows, columnDefinitions } = body as ListBody;
  const page = { version: metadata?.resourceVersion, next: metadata?.continue || undefined, rest: metadata?.remainingItemCount };
  if (!rows) {
    return { ...page, items: items ?? [] };
  }
  const shown = (columnDefinitions ?? []).map((c) => !c.priority);
  return {
    ...page,
    columns: columnDefinitions?.filter((_, i) => shown[i]).map((c) => c.name),
    items: rows.map((row) => ({ metadata: row.object?.metadata, cells: row.cells.filter((_, i) => shown[i]) })),
  };
}

/** Feed keeps the objects of a source. */
export class Feed {
  readonly state: State = { items: [], loaded: false, more: false, live: false, events: 0 };
  private want = pageSize;
  private next?: string;
  private known = new Changes();
  private stopped?: AbortController;
  private wake = new AbortController();

  constructor(
    private source: Source,
    private world: World,
    private changed: () => void,
  ) {}

  /** start reads and follows until stop. */
  start() {
    if (!this.stopped) {
      this.stopped = new AbortController();
      void this.run(this.stopped.signal);
    }
  }

  stop() {
    this.stopped?.abort();
    this.stopped = undefined;
  }

  /** more reads one more page. */
  more() {
    this.want = this.known.items.size + pageSize;
    this.again();
  }

  /** again reads at once. */
  again() {
    this.wake.abort();
    this.wake = new AbortController();
  }

  private async run(signal: AbortSignal) {
    let failures = 0;
    while (!signal.aborted) {
      let wait = this.source.answer ? answerEvery : pollEvery;
      try {
        await this.load(signal);
        failures = 0;
        // A watch tells of all objects: it is for lists that are all shown.
        if (this.source.watch && !this.next) {
          await this.follow(signal);
          wait = 1000;
        }
      } catch (e) {
        if (signal.aborted) {
          return;
        }
        this.state.problem = e instanceof Problem ? e : new Problem(0, String((e as Error)?.message ?? e));
        this.publish(false);
        // What is refused, or is not there, may come: it is asked for again, but not often.
        wait = this.state.problem.code >= 400 && this.state.problem.code < 429 && this.state.problem.code !== 410
          ? pollEvery
          : backoff(failures++, this.world.random());
      }
      await this.world.sleep(wait, either(signal, this.wake.signal));
    }
  }

  // load reads as many objects as are wanted. What was read before is shown until all of it is there.
  private async load(signal: AbortSignal) {
    const all: Page = { items: [] };
    do {
      const limit = Math.min(500, Math.max(1, this.want - all.items.length));
      const query: Record<string, string> = { ...this.source.query };
      if (!this.source.one && !this.source.body && !this.source.text && !this.source.answer) {
        query.limit = String(limit);
      }
      if (all.next) {
        query.continue = all.next;
      }
      const page = this.read(await this.get(query, signal));
      all.items.push(...page.items);
      all.version = page.version;
      all.next = page.next;
      all.rest = page.rest;
      all.columns ??= page.columns;
    } while (all.next && all.items.length < this.want);
    this.known.replace(all);
    this.next = all.next;
    this.state.rest = all.rest;
    this.state.columns = all.columns ?? this.state.columns;
    this.state.problem = undefined;
    this.publish(false);
  }

  private read(body: unknown): Page {
    if (this.source.read) {
      return this.source.read(body);
    }
    if (this.source.one && !this.source.table) {
      return { items: [body as Obj], version: (body as Obj).metadata?.resourceVersion };
    }
    return readList(body);
  }

  // follow applies events until a list is needed.
  private async follow(signal: AbortSignal) {
    const { path, query, one } = this.source;
    let failures = 0;
    while (!signal.aborted) {
      const before = this.known.version;
      try {
        const answer = await this.request(one ? path.slice(0, path.lastIndexOf("/")) : path, {
          ...query,
          ...(one ? { fieldSelector: "metadata.name=" + one } : {}),
          watch: "1",
          allowWatchBookmarks: "true",
          timeoutSeconds: "300",
          resourceVersion: before,
        }, signal);
        this.publish(true);
        for await (const line of lines(answer)) {
          if (!this.known.apply(JSON.parse(line) as Event)) {
            return;
          }
          this.state.events++;
          this.publish(true);
          // Where much is added, only the first of it is wanted.
          if (this.known.items.size > this.want + pageSize) {
            return;
          }
        }
      } catch (e) {
        if (signal.aborted || (e instanceof Problem && e.code === 410)) {
          return;
        }
        if (e instanceof Problem && e.code >= 400 && e.code < 429) {
          // Who may list need not be allowed to watch.
          this.publish(false);
          await this.world.sleep(pollEvery, either(signal, this.wake.signal));
          return;
        }
      }
      if (signal.aborted) {
        return;
      }
      failures = this.known.version === before ? failures + 1 : 0;
      if (failures > 1) {
        this.publish(false);
      }
      await this.world.sleep(backoff(failures, this.world.random()), signal);
      if (failures > 3) {
        return;
      }
    }
  }

  private async get(query: Record<string, string>, signal: AbortSignal): Promise<unknown> {
    const answer = await this.request(this.source.path, query, signal);
    return this.source.text ? answer.text() : answer.json();
  }

  private async request(path: string, query: Record<string, string>, signal: AbortSignal): Promise<Response> {
    const { table, body, text, answer: made } = this.source;
    const url = (made ? "/answers" : "/hub") + path + (Object.keys(query).length ? "?" + new URLSearchParams(query).toString() : "");
    const headers: Record<string, string> = {
      Accept: text
        ? "text/plain, application/json"
        : table
          ? "application/json;as=Table;v=v1;g=meta.k8s.io"
          : body || made
            ? "application/json"
            : "application/json;as=States", // the server of the page adds the states of objects
    };
    const init: RequestInit = { headers, signal, cache: "no-store" };
    if (body) {
      headers["Content-Type"] = "application/json";
      init.method = "POST";
      init.body = JSON.stringify(body);
    }
    const answer = await this.world.fetch(url, init);
    if (!answer.ok && !(text && answer.status === 500)) {
      throw new Problem(answer.status, await reason(answer));
    }
    return answer;
  }

  private publish(live: boolean) {
    this.state.items = [...this.known.items.values()];
    this.state.loaded ||= !this.state.problem;
    this.state.more = this.next !== undefined;
    this.state.live = live;
    this.changed();
  }
}

// reason is what the server says; most answers are a Status.
async function reason(answer: Response): Promise<string> {
  const text = await answer.text().catch(() => "");
  try {
    return (JSON.parse(text) as { message?: string }).message ?? text;
  } catch {
    return text.slice(0, 500) || `the answer was ${answer.status}`;
  }
}

async function* lines(answer: Response): AsyncGenerator<string> {
  const reader = answer.body!.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    rest += decoder.decode(value, { stream: !done });
    const parts = rest.split("\n");
    rest = parts.pop() ?? "";
    for (const line of parts) {
      if (line) {
        yield line;
      }
    }
    if (done) {
      return;
    }
  }
}

// either ends with the first of the two.
function either(a: AbortSignal, b: AbortSignal): AbortSignal {
  const c = new AbortController();
  for (const s of [a, b]) {
    if (s.aborted) {
      c.abort();
    }
    s.addEventListener("abort", () => c.abort(), { once: true, signal: c.signal });
  }
  return c.signal;
}
