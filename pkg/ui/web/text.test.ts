// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

import assert from "node:assert/strict";
import { test } from "node:test";
import { age, command, count, list, milliseconds, printable, quote } from "./text";

const now = Date.parse("2026-11-24T12:00:00Z");

test("ages are those of kubectl, and grow with the unit", () => {
  for (const [since, expected] of [
    ["2026-11-24T11:59:59Z", "1s"],
    ["2026-11-24T11:58:01Z", "119s"],
    ["2026-11-24T11:58:00Z", "2m"],
    ["2026-11-24T09:00:00Z", "3h"],
    ["2026-11-22T11:00:00Z", "2d"],
    ["2023-11-24T11:00:00Z", "3y"],
    ["2026-11-24T13:00:00Z", "in 60m"],
    ["no time", ""],
  ]) {
    assert.equal(age(since, now), expected, since);
  }
  assert.equal(age(undefined, now), "");
});

test("characters that are not seen are made visible: a name cannot look like another one", () => {
  assert.equal(printable("a\u202eb\u200bc\nd"), "a\\u202eb\\u200bc\\u000ad");
  assert.equal(printable("<img src=x onerror=alert(1)> äß日"), "<img src=x onerror=alert(1)> äß日");
});

test("a line that is pasted does only what it says", () => {
  assert.equal(quote("env=production"), "env=production");
  assert.equal(quote("env in (a, b)"), "'env in (a, b)'");
  assert.equal(quote("a'; rm -rf ~ #"), `'a'\\''; rm -rf ~ #'`);
  // A terminal runs what comes before the end of a line, whatever quotes are open.
  assert.equal(quote("a\nrm"), "'a\\u000arm'");
  assert.equal(quote(""), "''");
});

test("flags come last: kubectl takes none before the name of a plugin", () => {
  assert.equal(command("kubectl --context hub", "hub accept --clusters c1"), "kubectl hub accept --clusters c1 --context hub");
  assert.equal(command("kubectl", "get csm"), "kubectl get csm");
});

test("durations are read as Go writes them", () => {
  assert.equal(milliseconds("1h30m"), 5400000);
  assert.equal(milliseconds("24h0m0s"), 86400000);
  assert.equal(milliseconds("1.5s"), 1500);
  assert.equal(milliseconds("250ms"), 250);
  assert.equal(milliseconds("soon"), undefined);
  assert.equal(milliseconds(undefined), undefined);
});

test("numbers and lists read as text", () => {
  assert.equal(count(1, "cluster"), "1 cluster");
  assert.equal(count(100000, "cluster"), "100,000 clusters");
  assert.equal(list(["a", "b", "c"]), "a, b and c");
  assert.equal(list(["a"]), "a");
});
