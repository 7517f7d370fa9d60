// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// The rights of the user in sentences: what RBAC says of the hub's own permissions, as docs/permissions.md has them.
import { count, list } from "./text";
import { plain, type Cell, type Row } from "./rows";

/** A Rule is one of a SelfSubjectRulesReview. */
export interface Rule {
  verbs?: string[];
  apiGroups?: string[];
  resources?: string[];
  resourceNames?: string[];
}

/** A Review is what is read of a SelfSubjectRulesReview. */
export interface Review {
  status?: { resourceRules?: Rule[]; incomplete?: boolean; evaluationError?: string };
}

export const rightsColumns = ["You may", "On", "In API groups"];

const hubGroups = /(^|\.)(open-cluster-management\.io|openmcp\.cloud|clusterhub\.dev)$/;
const clusterGroup = "cluster.open-cluster-management.io";

/** isHubs says whether a rule is about something of the hub: of all groups, or of one of ours. */
export function isHubs(r: Rule): boolean {
  return (r.apiGroups ?? []).some((g) => g === "*" || hubGroups.test(g));
}

const has = (of: string[] | undefined, what: string) => (of ?? []).some((x) => x === what || x === "*");

const names = (one: string, r: Rule, all: string) =>
  r.resourceNames?.length ? `the ${one}${r.resourceNames.length > 1 ? "s" : ""} ${list(r.resourceNames)}` : all;

// The words for the hub's own permissions: a verb, a resource, and what they let a user do.
const words: [string, string, (r: Rule) => string][] = [
  ["get", "managedclustersets", (r) => `see ${names("set", r, "every set")}, and which clusters are in it`],
  ["create", "managedclustersets/bind", (r) => `bind ${names("set", r, "every set")} to namespaces in which you may make bindings`],
  ["create", "managedclustersets/join", (r) => `put clusters into ${names("set", r, "every set")} by the label clusterset`],
  ["get", "managedclustersets/clusters", (r) => `see the clusters of ${names("set", r, "every set")} completely`],
  ["update", "managedclustersets/clusters", (r) => `change the clusters of ${names("set", r, "every set")}`],
  ["delete", "managedclustersets/clusters", (r) => `delete the clusters of ${names("set", r, "every set")}`],
  ["update", "managedclusters/accept", (r) => `accept ${names("cluster", r, "every cluster")}`],
];

/** labelWords says which labels a rule lets a user set: the names are KEY:VALUE, KEY:* or *. */
export function labelWords(r: Rule): string[] {
  if (!r.resourceNames?.length) {
    return ["set every reserved label of clusters that you may change"];
  }
  return r.resourceNames.map((name) => {
    const at = name.lastIndexOf(":");
    const [key, value] = [name.slice(0, at), name.slice(at + 1)];
    return name === "*"
      ? "set every reserved label of clusters that you may change"
      : `set the label ${key} of clusters to ${value === "*" ? "any value" : value}`;
  });
}

/** sentences are what a rule means on this hub, where that is more than its words say. */
export function sentences(r: Rule): string[] {
  // Who has these rights sees no more by them than what other rights let them see.
  if (r.apiGroups?.length === 1 && r.apiGroups[0] === "view.clusterhub.dev") {
    return has(r.verbs, "list") ? ["list the members of sets that you may see"] : [];
  }
  if (r.apiGroups?.length === 1 && r.apiGroups[0] === "clusterview.open-cluster-management.io") {
    return has(r.verbs, "list") ? ["list the sets and clusters that you may see"] : ["change clusters that you may see, as far as you may change them by another right"];
  }
  if (!has(r.apiGroups, clusterGroup)) {
    return [];
  }
  // Of a star the one sentence is clearer than all that follow from it.
  if (has(r.resources, "*") && has(r.verbs, "*") && (r.resources ?? []).includes("*")) {
    return r.resourceNames?.length ? [] : ["do everything with clusters, sets, bindings and placements"];
  }
  const found = words.filter(([verb, resource]) => has(r.verbs, verb) && has(r.resources, resource)).map(([, , say]) => say(r));
  return has(r.verbs, "create") && has(r.resources, "managedclusters/label") ? [...found, ...labelWords(r)] : found;
}

/** rightsRows are the rights on the hub's own kinds, first those that have a sentence, and of them first those that others do not have. */
export function rightsRows(rules: Rule[]): Row[] {
  const rows = rules.filter(isHubs).map((r, i): [number, Row] => {
    const said = sentences(r);
    const verbs = has(r.verbs, "*") ? "do everything" : list(r.verbs ?? []);
    const on = has(r.resources, "*") ? "every resource" : list(r.resources ?? []);
    const which = r.resourceNames?.length ? `${on}, by the ${r.resourceNames.length > 1 ? "names" : "name"} ${list(r.resourceNames)}` : on;
    const first: Cell = said.length ? plain(capital(list(said))) : plain(capital(verbs));
    return [!said.length ? 2 : (r.apiGroups ?? []).some((g) => g === "*" || g === clusterGroup) ? 0 : 1, { key: String(i), cells: [first, plain(said.length ? `${verbs}: ${which}` : which), plain(groups(r))] }];
  });
  return rows.sort(([a], [b]) => a - b).map(([, row]) => row);
}

const capital = (s: string) => s.slice(0, 1).toUpperCase() + s.slice(1);
const groups = (r: Rule) => (has(r.apiGroups, "*") ? "all" : (r.apiGroups ?? []).filter(Boolean).join(", "));

/** rightsSummary says how much of it there is, and whether it is all. */
export function rightsSummary(review: Review): string {
  const rules = (review.status?.resourceRules ?? []).filter(isHubs);
  const all = review.status?.incomplete ? ` It may not be all: ${review.status.evaluationError || "the server could not find out more"}.` : "";
  return `${count(rules.length, "rule")} about the hub.${all}`;
}
