// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

import assert from "node:assert/strict";
import { test } from "node:test";
import * as rows from "./rows";
import { rightsRows, rightsSummary, sentences } from "./rights";
import type { AccessRequest, ManagedCluster, ManagedClusterSet, ManifestWork } from "./types";

test("what is not known is never good", () => {
  for (const o of [{}, { states: {} }, { states: { cells: {} } }]) {
    assert.equal(rows.state(o).tone, "unknown");
  }
  const empty: rows.Row[] = [
    rows.clusterRow({ spec: { hubAcceptsClient: true } }),
    rows.memberRow({ status: { accepted: true } }),
    rows.setRow({}),
    rows.bindingRow({}),
    rows.placementRow({}),
    rows.workRow({}),
    rows.replicaSetRow({}),
    rows.accessRow({}),
    rows.edgeRow({}),
    rows.nodeRow({}),
    rows.requestRow({}),
    ...rows.serviceRows({ spec: { service: {} } }),
  ];
  for (const row of empty) {
    for (const cell of row.cells) {
      assert.notEqual(cell.tone, "good", JSON.stringify(row));
    }
  }
});

test("every row has a cell for each column", () => {
  const all: [string[], rows.Row][] = [
    [rows.clusterColumns, rows.clusterRow({})],
    [rows.memberColumns, rows.memberRow({})],
    [rows.setColumns, rows.setRow({})],
    [rows.bindingColumns, rows.bindingRow({})],
    [rows.placementColumns, rows.placementRow({})],
    [rows.decisionColumns, rows.decisionRows({ status: { decisions: [{ clusterName: "c1" }] } })[0]!],
    [rows.explainColumns, rows.explainRow({})],
    [rows.workColumns, rows.workRow({})],
    [rows.replicaSetColumns, rows.replicaSetRow({})],
    [rows.accessColumns, rows.accessRow({})],
    [rows.edgeColumns, rows.edgeRow({})],
    [rows.nodeColumns, rows.nodeRow({})],
    [rows.requestColumns, rows.requestRow({})],
    [rows.joiningColumns, rows.joiningRow({})],
    [rows.serviceColumns, rows.serviceRows({ spec: { service: {} } })[0]!],
    [rows.leaseColumns, rows.leaseRow({})],
  ];
  for (const [columns, row] of all) {
    assert.equal(row.cells.length, columns.length, columns.join());
  }
});

test("states are shown as the server has computed them", () => {
  const lost: rows.Cell = { text: "Unknown", tone: "unknown", since: "2026-11-24T10:00:00Z", more: "no lease" };
  const cluster: ManagedCluster & rows.Obj = { metadata: { name: "c1" }, states: { cells: { available: lost, accepted: { text: "Yes", tone: "good" } } } };
  assert.deepEqual(rows.clusterRow(cluster).cells.slice(1, 3), [lost, { text: "Yes", tone: "good" }]);
  assert.deepEqual(rows.joiningRow(cluster).cells[1], lost);
  const applied: rows.Cell = { text: "Not applied", tone: "bad" };
  const work: ManifestWork & rows.Obj = { status: { resourceStatus: { manifests: [{}, {}] } }, states: { manifests: [{ applied }] } };
  assert.deepEqual(rows.manifestBlock(work).rows.map((r) => r.cells[1]?.tone), ["bad", "unknown"]);
});

test("a fleet is counted as far as it is shown", () => {
  assert.equal(rows.fleetSummary(["good", "good", "bad", "unknown", "wait"], undefined, false),
    "5 clusters: 2 available, 1 not available, 1 unknown and 1 waiting to be accepted.");
  assert.equal(rows.fleetSummary(["good"], 99999, true), "1 shown, of 100,000 clusters in all. Of those shown: 1 available.");
  assert.equal(rows.fleetSummary(["good"], undefined, true), "1 shown, there are more. Of those shown: 1 available.");
});

test("sets say in words which clusters they have", () => {
  const set = (clusterSelector: object, annotations = {}): ManagedClusterSet => ({ metadata: { name: "s", annotations }, spec: { clusterSelector } });
  const label = (labelSelector?: object) => ({ selectorType: "LabelSelector", labelSelector });
  assert.match(rows.setWords(set({})), /clusterset is s; a cluster is in one such set only/);
  assert.equal(rows.setWords(set(label({}))), "every cluster");
  assert.equal(rows.setWords(set(label())), "no cluster: it has no selector");
  assert.equal(
    rows.setWords(set(label({ matchLabels: { env: "prod" }, matchExpressions: [{ key: "r", operator: "In", values: ["a", "b"] }, { key: "x", operator: "DoesNotExist" }] }))),
    "clusters of which env is prod, r is a or b and there is no label x",
  );
  // v1beta2 shows an exclusive label as a selector, which another set could have, too: the annotation says what it is.
  const exclusive = JSON.stringify({ selectorType: "ExclusiveLabel", exclusiveLabel: { key: "k", value: "v" } });
  assert.match(rows.setWords(set(label({ matchLabels: { k: "v" } }), { "clusterhub.dev/v1beta1-cluster-selector": exclusive })), /k is v; a cluster is in one/);
  assert.equal(rows.setWords(set(label({}), { "clusterhub.dev/v1beta1-cluster-selector": "{" })), "every cluster");
});

test("conditions have the tones of the server", () => {
  const status = { conditions: [{ type: "Degraded", status: "True" }, { type: "Odd", status: "True" }, { type: "Later", status: "True" }] };
  const tones = rows.conditions({ status, states: { conditions: ["bad", ""] } } as object).rows.map((r) => r.cells[1]?.tone);
  assert.deepEqual(tones, ["bad", undefined, undefined]);
});

test("an access request says what it waits for, and when it ends", () => {
  const row = rows.accessRow({
    metadata: { namespace: "teams", name: "ann", creationTimestamp: "2026-11-24T09:00:00Z" },
    spec: { ttl: "24h0m0s", clusterRef: { namespace: "teams", name: "blue" } },
    states: { cells: { state: { text: "Pending", tone: "wait" }, waits: { text: "InvalidReference: not found" } } },
  } as AccessRequest);
  assert.equal(row.cells[3]?.tone, "wait");
  assert.equal(row.cells[4]?.text, "InvalidReference: not found");
  assert.equal(row.cells[5]?.since, "2026-11-25T09:00:00.000Z");
});

test("what others write comes through as text, and leads nowhere else", () => {
  const markup = `<img src=x onerror="alert(1)">`;
  const row = rows.clusterRow({ metadata: { name: `../../x?${markup}`, labels: { [rows.setLabel]: markup } } });
  assert.equal(row.cells[5]?.text, markup);
  assert.match(row.cells[0]?.to ?? "", /^\/v\/clusters\/[^/?<>"]+$/);
});

test("a line of /readyz is a check", () => {
  assert.deepEqual(rows.readyRow("[+]ping ok")[0]?.cells, [{ text: "ping" }, { text: "ok", tone: "good" }]);
  assert.equal(rows.readyRow("[-]etcd failed: reason withheld")[0]?.cells[1]?.tone, "bad");
  assert.deepEqual(rows.readyRow("readyz check passed"), []);
});

test("rights are sentences", () => {
  const group = "cluster.open-cluster-management.io";
  const rule = (verbs: string[], resources: string[], resourceNames?: string[]) => ({ verbs, apiGroups: [group], resources, resourceNames });
  assert.deepEqual(sentences(rule(["get"], ["managedclustersets"], ["devset"])), ["see the set devset, and which clusters are in it"]);
  assert.deepEqual(sentences(rule(["create"], ["managedclusters/label"], [group + "/clusterset:devset", "info.open-cluster-management.io/region:*"])), [
    `set the label ${group}/clusterset of clusters to devset`,
    "set the label info.open-cluster-management.io/region of clusters to any value",
  ]);
  assert.deepEqual(sentences({ verbs: ["*"], apiGroups: ["*"], resources: ["*"] }), ["do everything with clusters, sets, bindings and placements"]);
  // A right to the same words in another group is none on the hub.
  assert.deepEqual(sentences({ verbs: ["get"], apiGroups: ["example.com"], resources: ["managedclustersets"] }), []);
  const review = [rule(["list"], ["placements"]), rule(["create"], ["managedclustersets/bind"], ["devset"]), { verbs: ["get"], apiGroups: [""], resources: ["pods"] }];
  assert.deepEqual(rightsRows(review).map((r) => r.cells[0]?.text), ["Bind the set devset to namespaces in which you may make bindings", "List"]);
  assert.equal(rightsSummary({ status: { resourceRules: review, incomplete: true } }), "2 rules about the hub. It may not be all: the server could not find out more.");
});
