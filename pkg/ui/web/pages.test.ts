// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

import assert from "node:assert/strict";
import { test } from "node:test";
import { backoff, Feed, pageSize, readList, type Event, type Source } from "./feed";
import type { Obj } from "./rows";
import { explained, matches, navigation, readExplanation, view } from "./views";

const object = (name: string, resourceVersion = "1"): Obj => ({ metadata: { name, resourceVersion } });
const many = (from: number, n: number) => Array.from({ length: n }, (_, i) => object("c" + String(from + i).padStart(6, "0")));

/** Hub answers as an API server, and its clock stands still until it is moved on. */
class Hub {
  asked: URL[] = [];
  sleeps: { ms: number; wake: () => void }[] = [];
  answers: ((url: URL) => Response)[] = [];

  // fetch answers with the next of the answers; without one it waits until the request is given up.
  fetch = (url: string, init: RequestInit) => {
    this.asked.push(new URL("http://hub" + url));
    const answer = this.answers.shift();
    return answer
      ? Promise.resolve(answer(this.asked[this.asked.length - 1]!))
      : new Promise<Response>((_, no) => init.signal?.addEventListener("abort", () => no(new Error("given up"))));
  };
  sleep = (ms: number, signal: AbortSignal) =>
    new Promise<void>((wake) => {
      this.sleeps.push({ ms, wake });
      signal.addEventListener("abort", () => wake());
    });
  random = () => 1;

  list(items: Obj[], next?: string, rest?: number) {
    this.answers.push(() => Response.json({ metadata: { resourceVersion: "10", continue: next, remainingItemCount: rest }, items }));
  }
  status(code: number, message: string) {
    this.answers.push(() => Response.json({ kind: "Status", code, message }, { status: code }));
  }
  watch(...events: Event[]) {
    this.answers.push(() => new Response(events.map((e) => JSON.stringify(e) + "\n").join("")));
  }
}

// settled waits until everything has happened that can, with the clock standing still.
const settled = async () => {
  for (let i = 0; i < 50; i++) {
    await Promise.resolve();
  }
  await new Promise<void>((done) => setTimeout(done));
};

async function run(hub: Hub, source: Partial<Source> = {}): Promise<Feed> {
  const feed = new Feed({ path: "/apis/g/v1/things", watch: true, ...source }, hub, () => {});
  feed.start();
  await settled();
  return feed;
}
const shown = (feed: Feed) => feed.state.items.map((o) => o.metadata?.name);

test("a list that is all shown is watched from its version on", async () => {
  const hub = new Hub();
  hub.list([object("a"), object("b")]);
  hub.watch({ type: "ADDED", object: object("c", "11") }, { type: "DELETED", object: object("a", "12") }, { type: "BOOKMARK", object: { metadata: { resourceVersion: "20" } } });
  const feed = await run(hub);
  assert.deepEqual(shown(feed), ["b", "c"]);
  assert.equal(hub.asked[1]?.searchParams.get("resourceVersion"), "10");
  // The watch has ended: the next one begins where it was.
  hub.sleeps[0]?.wake();
  await settled();
  assert.equal(hub.asked[2]?.searchParams.get("resourceVersion"), "20");
  feed.stop();
});

test("of a fleet of 100,000 clusters one page is read, and no watch tells of the others", async () => {
  const hub = new Hub();
  hub.list(many(0, pageSize), "next", 100_000 - pageSize);
  const feed = await run(hub);
  assert.deepEqual(hub.asked.map((u) => u.search), ["?limit=100"]);
  assert.equal(feed.state.more, true);
  assert.equal(feed.state.rest, 100_000 - pageSize);
  assert.equal(feed.state.live, false);
  // What is shown is read again after a while, and one page more when it is asked for.
  hub.list(many(0, 200), "next2", 100_000 - 200);
  feed.more();
  await settled();
  assert.deepEqual(hub.asked.map((u) => u.search).slice(1), ["?limit=200"]);
  assert.equal(feed.state.items.length, 200);
  feed.stop();
});

test("a version that is gone is listed anew, however the hub says so", async () => {
  for (const gone of [(hub: Hub) => hub.status(410, "too old"), (hub: Hub) => hub.watch({ type: "ERROR", object: { code: 410 } as Obj })]) {
    const hub = new Hub();
    hub.list([object("a")]);
    gone(hub);
    hub.list([object("b")]);
    const feed = await run(hub);
    assert.equal(hub.sleeps[0]?.ms, 1000);
    hub.sleeps[0]?.wake();
    await settled();
    assert.deepEqual(shown(feed), ["b"]);
    assert.equal(feed.state.problem, undefined);
    feed.stop();
  }
});

test("a watch that tells of too much is given up for the first page", async () => {
  const hub = new Hub();
  hub.list([]);
  hub.watch(...many(0, 1000).map((o) => ({ type: "ADDED", object: o })));
  const feed = await run(hub);
  assert(feed.state.items.length <= 2 * pageSize + 1, `it keeps ${feed.state.items.length}`);
  hub.list(many(0, pageSize), "next");
  hub.sleeps[0]?.wake();
  await settled();
  assert.equal(feed.state.items.length, pageSize);
  feed.stop();
});

test("a right that is missing is said, and is not asked for again and again", async () => {
  const hub = new Hub();
  hub.status(403, "things is forbidden");
  const feed = await run(hub);
  assert.equal(feed.state.problem?.code, 403);
  assert.equal(feed.state.problem?.message, "things is forbidden");
  assert.equal(feed.state.loaded, false);
  assert.equal(hub.sleeps[0]?.ms, 30_000);
  feed.stop();
});

test("a user who may list and not watch gets the list, read again from time to time", async () => {
  const hub = new Hub();
  hub.list([object("a")]);
  hub.status(403, "watch is forbidden");
  const feed = await run(hub);
  assert.deepEqual(shown(feed), ["a"]);
  assert.equal(feed.state.live, false);
  assert.equal(hub.sleeps[0]?.ms, 30_000);
  feed.stop();
});

test("a hub that fails is asked less and less, and what was shown stays", async () => {
  const hub = new Hub();
  hub.list([object("a")]);
  const feed = await run(hub, { watch: false });
  const waits: (number | undefined)[] = [];
  for (let i = 0; i < 8; i++) {
    hub.status(503, "busy");
    hub.sleeps[hub.sleeps.length - 1]?.wake();
    await settled();
    waits.push(hub.sleeps[hub.sleeps.length - 1]?.ms);
  }
  assert.deepEqual(waits, [500, 1000, 2000, 4000, 8000, 16000, 30000, 30000]);
  assert.deepEqual(shown(feed), ["a"]);
  assert.equal(feed.state.problem?.code, 503);
  assert(backoff(3, 0) < backoff(3, 1), "all pages would come back at the same moment");
  feed.stop();
});

test("a feed that is stopped asks for nothing more", async () => {
  const hub = new Hub();
  hub.list([object("a")]);
  const feed = await run(hub);
  assert.equal(hub.asked.length, 2);
  feed.stop();
  hub.sleeps.forEach((s) => s.wake());
  await settled();
  assert.equal(hub.asked.length, 2);
});

test("one object is watched by its name", async () => {
  const hub = new Hub();
  hub.answers.push(() => Response.json(object("a", "7")));
  hub.watch({ type: "MODIFIED", object: { ...object("a", "8"), spec: 1 } as Obj });
  const feed = await run(hub, { path: "/apis/g/v1/things/a", one: "a" });
  assert.equal(hub.asked[1]?.pathname, "/hub/apis/g/v1/things");
  assert.equal(hub.asked[1]?.searchParams.get("fieldSelector"), "metadata.name=a");
  assert.equal((feed.state.items[0] as { spec?: number }).spec, 1);
  feed.stop();
});

test("a Table has the columns that kubectl shows", () => {
  const page = readList({
    kind: "Table",
    metadata: { resourceVersion: "3" },
    columnDefinitions: [{ name: "Name" }, { name: "Wide", priority: 1 }, { name: "Age" }],
    rows: [{ cells: ["a", "b", "c"], object: object("a") }],
  });
  assert.deepEqual(page.columns, ["Name", "Age"]);
  assert.deepEqual((page.items[0] as { cells?: unknown[] }).cells, ["a", "c"]);
});

test("every entry of the navigation is a page, and nothing else is", () => {
  for (const [at] of navigation) {
    const found = view("/v/" + at, new URLSearchParams());
    assert.equal(found?.nav, at);
    for (const section of found?.sections ?? []) {
      assert(section.kubectl && section.right && section.source.path.startsWith("/"), section.title);
    }
  }
  for (const path of ["/", "/v", "/v/nothing", "/v/clusters/a/b", "/v/sets/%ff", "/x/clusters", "/v/toString", "/v/works/replicasets"]) {
    assert.equal(view(path, new URLSearchParams()), undefined, path);
  }
  for (const path of ["/v/clusters/c1", "/v/sets/s", "/v/placements/n/p", "/v/works/c1/w", "/v/works/replicasets/n/r", "/v/access/n/a"]) {
    assert(view(path, new URLSearchParams())?.sections.length, path);
  }
});

test("names of an address stay in their place of the path and of the command", () => {
  const found = view("/v/clusters/" + encodeURIComponent("a/../b?x; rm"), new URLSearchParams());
  assert.equal(found?.sections[0]?.source.path, "/apis/cluster.open-cluster-management.io/v1/managedclusters/a%2F..%2Fb%3Fx%3B%20rm");
  assert.equal(found?.sections[0]?.kubectl, "get managedclusters 'a/../b?x; rm' -o yaml");
});

test("filters are asked of the server, but for the text", () => {
  const found = view("/v/clusters", new URLSearchParams("l=env=production&accepted=true&q=paris"));
  assert.deepEqual(found?.sections[0]?.source.query, { labelSelector: "env=production", fieldSelector: "spec.hubAcceptsClient=true" });
  const set = view("/v/clusters", new URLSearchParams("set=devset&l=a=b"));
  assert.deepEqual(set?.sections[0]?.source.query, { labelSelector: "a=b", fieldSelector: "spec.clusterSet=devset" });
  assert(matches({ key: "", cells: [{ text: "Paris-1" }] }, "paris"));
  assert(!matches({ key: "", cells: [{ text: "berlin-1" }] }, "paris"));
});

test("who may not list clusters is shown members", () => {
  const fleet = view("/v/clusters", new URLSearchParams())?.sections[0];
  assert.match(fleet?.fallback?.source.path ?? "", /clustersetmembers$/);
  const one = view("/v/clusters/c1", new URLSearchParams())?.sections[0];
  assert.match(one?.fallback?.source.path ?? "", /clusterview.*managedclusters\/c1$/);
  assert.match(one?.fallback?.fallback?.source.path ?? "", /clustersetmembers$/);
});

test("an explanation is read by pages", () => {
  const page = readExplanation({ status: { continue: "x", clusters: [{ clusterName: "c1", chosen: true }] } });
  assert.equal(page.next, "x");
  assert.equal(page.items[0]?.explained.clusterName, "c1");
  assert.equal(explained({ counts: [{ clusters: 3 }, { clusters: 1200, filteredBy: "Predicate" }], partial: true }),
    "3 chosen; 1,200 not matched by a predicate. Your rights do not cover all sets of the placement: there may be more clusters.");
});
