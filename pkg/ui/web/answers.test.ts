// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

import assert from "node:assert/strict";
import { test } from "node:test";
import { answerBlocks, commandRows, componentRow, reportBlocks, whoRow } from "./answers";
import { view } from "./views";

const broken = {
  verdict: "Cluster c1 waits to be accepted",
  steps: [
    { name: "there", state: "Passed", text: "it is on the hub" },
    { name: "accepted", state: "Broken", text: "no admin has accepted it" },
    { name: "agent heard", state: "NotReached" },
  ],
  finding: { id: "ClusterNotAccepted", severity: "Error", cause: "It is not accepted", turn: "an admin", since: "2026-01-02T03:04:05Z", fix: ["kubectl hub accept --clusters c1"] },
  unseen: ["you may not get leases"],
  link: "docs/findings.md#clusternotaccepted",
  tone: "bad" as const,
};

test("an answer says what is broken, what to do, and what was not seen", () => {
  const [answer, todo, steps, unseen] = answerBlocks(broken);
  const facts = new Map(answer!.rows.map((r) => [r.cells[0]!.text, r.cells[1]!]));
  assert.equal(facts.get("Answer")?.tone, "bad");
  assert.equal(facts.get("Waiting for")?.text, "an admin");
  assert.equal(facts.get("Since")?.since, "2026-01-02T03:04:05Z");
  assert.deepEqual(todo!.rows.map((r) => r.cells[1]!.line), ["kubectl hub accept --clusters c1"]);
  assert.deepEqual(steps!.rows.map((r) => [r.cells[1]!.text, r.cells[1]!.tone]), [["Passed", "good"], ["Broken", "bad"], ["Not reached", undefined]]);
  assert.deepEqual(unseen!.rows.map((r) => r.cells[0]!.text), ["you may not get leases"]);
});

test("a verdict is as good as the server says, and else not known", () => {
  const tone = (a: Parameters<typeof answerBlocks>[0]) => answerBlocks(a)[0]!.rows[0]!.cells[1]!.tone;
  assert.equal(tone({ verdict: "It works", steps: [{ name: "a", state: "Passed" }], tone: "good" }), "good");
  assert.equal(tone({ verdict: "You may not see enough", steps: [{ name: "a", state: "Passed" }] }), "unknown");
  assert.equal(tone(broken), "bad");
});

test("a report has each finding with its commands", () => {
  const blocks = reportBlocks({ findings: [broken.finding, { ...broken.finding, severity: "Warning", object: "cluster/c2", fix: [] }], checked: ["clusters"], unseen: [] });
  assert.deepEqual(blocks.map((b) => b.title), ["1. Error: ClusterNotAccepted", "2. Warning: cluster/c2", "What was checked"]);
  assert.equal(blocks[0]!.rows.find((r) => r.cells[1]!.line)?.cells[1]!.line, "kubectl hub accept --clusters c1");
  assert.deepEqual(reportBlocks({}).map((b) => b.rows.length), [0]);
});

test("two commands that are alike are two rows", () => {
  assert.equal(new Set(commandRows(["a", "a"]).map((r) => r.key)).size, 2);
});

test("who may is not known where the rules may not be read", () => {
  assert.equal(whoRow({ verb: "get", by: "get c1", holders: ["user ann", "group b"] }).cells[1]!.text, "user ann, group b");
  assert.equal(whoRow({ verb: "get", by: "get c1", holders: [] }).cells[1]!.text, "nobody");
  assert.equal(whoRow({ verb: "get", by: "get c1", holders: [], unseen: "you may not list clusterroles" }).cells[1]!.tone, "unknown");
});

test("each answer has an address, and the command that gives it", () => {
  for (const [at, path, kubectl] of [
    ["/v/why/cluster/c1", "/why/cluster/c1", "hub why cluster c1"],
    ["/v/why/member/c1/payments", "/why/member/c1/payments", "hub why member c1 --set payments"],
    ["/v/why/placement/dev/web/c1", "/why/placement/dev/web/c1", "hub why placement web -n dev --cluster c1"],
    ["/v/why/work/c1/web", "/why/work/c1/web", "hub why work web --cluster c1"],
    ["/v/why/accessrequest/teams/ann", "/why/accessrequest/teams/ann", "hub why accessrequest ann -n teams"],
    ["/v/why/access?user=ann&verb=get&what=set/a", "/why/access", "hub why access ann get set/a"],
    ["/v/doctor", "/doctor", "hub doctor"],
  ] as const) {
    const url = new URL("http://hub" + at);
    const section = view(url.pathname, url.searchParams)?.sections[0];
    assert.equal(section?.source.path, path);
    assert.equal(section?.source.answer, true);
    assert.equal(section?.kubectl, kubectl);
  }
  assert.deepEqual(view("/v/why/access", new URLSearchParams("user=ann"))?.sections, []);
  const odd = view("/v/why/cluster/" + encodeURIComponent("a;b"), new URLSearchParams())?.sections[0];
  assert.equal(odd?.kubectl, "hub why cluster 'a;b'");
});

test("a component has the state of the server", () => {
  assert.deepEqual(componentRow({ name: "hub-apiserver", state: { text: "2 of 3 ready", tone: "bad" } }).cells[1], { text: "2 of 3 ready", tone: "bad" });
  assert.equal(componentRow({ name: "hub-apiserver" }).cells[1]!.tone, "unknown");
});
