// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Objects of the API become rows of tables here. Nothing in this file knows of a browser.
import type {
  AccessRequest,
  ClusterSetMember,
  Condition,
  EdgeNode,
  EdgePlacement,
  ExplainedCluster,
  LabelSelector,
  ManagedCluster,
  ManagedClusterSet,
  ManagedClusterSetBinding,
  ManifestWork,
  ManifestWorkReplicaSet,
  ObjectMeta,
  Placement,
  PlacementDecision,
} from "./types";
import { count, list, milliseconds, quote } from "./text";

/** Tone is how good a state is. What is not known is never good. */
export type Tone = "good" | "bad" | "wait" | "unknown";

/** A Cell is shown as text, with what goes with it. */
export interface Cell {
  text: string;
  tone?: Tone;
  /** since is a time: of a state, since when it is so; without a text, the age itself. */
  since?: string;
  /** to is a page of ours. */
  to?: string;
  /** more is a longer text below it. */
  more?: string;
  /** command can be copied; it is what follows "kubectl". */
  command?: string;
  /** line can be copied as it is. */
  line?: string;
}

/** A Row has a cell for each column. Its first is its header. */
export interface Row {
  key: string;
  cells: Cell[];
}

/** A Block is one table. */
export interface Block {
  title: string;
  columns: string[];
  rows: Row[];
  /** empty is said when there are no rows. */
  empty: string;
}

/** States are what the server of the page says of an object: no rule about health is here. */
export interface States {
  cells?: Record<string, Cell>;
  /** conditions are the tones of the object's conditions, in their order. */
  conditions?: (Tone | "")[];
  /** manifests are the states of the objects of a work. */
  manifests?: Record<string, Cell>[];
}

/** Obj is an object of which nothing is known but that it has metadata, and states from the server of the page. */
export interface Obj {
  metadata?: ObjectMeta;
  states?: States;
}

export const plain = (text: string | number | undefined): Cell => ({ text: text === undefined ? "" : String(text) });
export const link = (text: string | undefined, ...path: (string | undefined)[]): Cell => ({
  text: text ?? "",
  to: "/v/" + path.map((p) => encodeURIComponent(p ?? "")).join("/"),
});
export const aged = (o: Obj): Cell => ({ text: "", since: o.metadata?.creationTimestamp });

const notKnown: Cell = { text: "Unknown", tone: "unknown" };

/** state is a state of an object, as the server of the page has computed it. */
export const state = (o: object, name = "state"): Cell => (o as Obj).states?.cells?.[name] ?? notKnown;

/** conditions shows what an object says of itself. A condition's True need not be good, so none has a tone unless the server knows it. */
export function conditions(o: object & { status?: { conditions?: Condition[] } }): Block {
  const tones = (o as Obj).states?.conditions;
  return {
    title: "Conditions",
    columns: ["Condition", "Status", "Reason", "Message", "Since"],
    empty: "It has no conditions yet.",
    rows: (o.status?.conditions ?? []).map((c, i) => ({
      key: c.type ?? "",
      cells: [
        plain(c.type),
        { text: c.status ?? "Unknown", tone: tones?.[i] || undefined },
        plain(c.reason),
        plain(c.message),
        { text: "", since: c.lastTransitionTime },
      ],
    })),
  };
}

/** facts is a table of names and values. */
export function facts(title: string, of: [string, Cell | undefined][]): Block {
  return {
    title,
    columns: ["What", "Value"],
    empty: "",
    rows: of.flatMap(([name, cell]) => (cell && (cell.text || cell.since) ? [{ key: name, cells: [plain(name), cell] }] : [])),
  };
}

export const setLabel = "cluster.open-cluster-management.io/clusterset";

export const clusterColumns = ["Cluster", "Available", "Accepted", "Joined", "Version", "Set label", "Taints", "Age"];

export function clusterRow(c: ManagedCluster): Row {
  const name = c.metadata?.name;
  return {
    key: name ?? "",
    cells: [
      link(name, "clusters", name),
      state(c, "available"),
      state(c, "accepted"),
      state(c, "joined"),
      plain(c.status?.version?.kubernetes),
      plain(c.metadata?.labels?.[setLabel]),
      plain((c.spec?.taints ?? []).map((t) => `${t.key}=${t.value ?? ""}:${t.effect}`).join(", ")),
      aged(c),
    ],
  };
}

/** fleetSummary counts what is shown, and says what is not. */
export function fleetSummary(tones: (Tone | undefined)[], rest: number | undefined, more: boolean, noun = "cluster"): string {
  const of = (tone: Tone) => tones.filter((t) => t === tone).length;
  const parts = [
    [of("good"), "available"],
    [of("bad"), "not available"],
    [of("unknown"), "unknown"],
    [of("wait"), "waiting to be accepted"],
  ].flatMap(([n, text]) => (n ? [`${(n as number).toLocaleString("en-US")} ${text}`] : []));
  const states = parts.length ? ": " + list(parts) : "";
  if (!more) {
    return count(tones.length, noun) + states + ".";
  }
  const total = rest === undefined ? "there are more" : `of ${count(tones.length + rest, noun)} in all`;
  return `${tones.length.toLocaleString("en-US")} shown, ${total}. Of those shown${states}.`;
}

export const memberColumns = ["Cluster", "Set", "Available", "Accepted", "Joined", "Version", "Why it is in the set", "Taints", "Age"];

/** why says by what a cluster is in a set. */
export function why(m: ClusterSetMember): string {
  const by = m.status?.selectedBy;
  if (!by?.selector) {
    return "the set has every cluster";
  }
  return by.type === "LabelSelector" ? `its labels match ${by.selector}` : `its label ${by.selector} puts it there; no other set can have that label`;
}

export function memberRow(m: ClusterSetMember): Row {
  const { cluster, clusterSet } = m.spec ?? {};
  const status = m.status;
  return {
    key: m.metadata?.name ?? "",
    cells: [
      link(cluster, "clusters", cluster),
      link(clusterSet, "sets", clusterSet),
      state(m, "available"),
      state(m, "accepted"),
      state(m, "joined"),
      plain(status?.kubernetesVersion),
      plain(why(m)),
      plain((status?.taints ?? []).join(", ")),
      aged(m),
    ],
  };
}

/** memberFacts is what a member tells of its cluster. */
export function memberFacts(m: ClusterSetMember): Block {
  const cells = memberRow(m).cells;
  const labels = Object.entries(m.metadata?.labels ?? {});
  return facts("Cluster", [
    ...[2, 3, 4, 5, 7].map((i): [string, Cell | undefined] => [memberColumns[i] ?? "", cells[i]]),
    ...labels.map(([k, v]): [string, Cell] => ["Label " + k, plain(v)]),
  ]);
}

/** selectorWords reads a label selector as kubectl writes it. */
export function selectorWords(s: LabelSelector | undefined): string {
  const terms = Object.entries(s?.matchLabels ?? {}).map(([k, v]) => `${k} is ${v}`);
  for (const e of s?.matchExpressions ?? []) {
    const values = list(e.values ?? [], "or");
    switch (e.operator) {
      case "In":
        terms.push(`${e.key} is ${values}`);
        break;
      case "NotIn":
        terms.push(`${e.key} is not ${values}`);
        break;
      case "Exists":
        terms.push(`there is a label ${e.key}`);
        break;
      default:
        terms.push(`there is no label ${e.key}`);
    }
  }
  return terms.length ? list(terms) : "every cluster";
}

// A set that v1beta2 cannot express has its selector here, as v1beta1 writes it.
const selectorAnnotation = "clusterhub.dev/v1beta1-cluster-selector";

interface Selector {
  selectorType?: string;
  exclusiveLabel?: { key?: string; value?: string };
  labelSelector?: LabelSelector;
}

function selectorOf(s: ManagedClusterSet): Selector {
  const annotation = s.metadata?.annotations?.[selectorAnnotation];
  try {
    return annotation ? (JSON.parse(annotation) as Selector) : (s.spec?.clusterSelector ?? {});
  } catch {
    return s.spec?.clusterSelector ?? {};
  }
}

/** setWords says which clusters a set has. */
export function setWords(s: ManagedClusterSet): string {
  const selector = selectorOf(s);
  if (selector.selectorType === "LabelSelector") {
    const words = selectorWords(selector.labelSelector);
    return !selector.labelSelector ? "no cluster: it has no selector" : words === "every cluster" ? words : "clusters of which " + words;
  }
  const { key = setLabel, value = s.metadata?.name } = selector.exclusiveLabel ?? {};
  return `clusters of which ${key} is ${value}; a cluster is in one such set only`;
}

export const setColumns = ["Set", "Which clusters", "State", "Age"];

export function setRow(s: ManagedClusterSet): Row {
  const name = s.metadata?.name;
  return { key: name ?? "", cells: [link(name, "sets", name), plain(setWords(s)), state(s), aged(s)] };
}

export const bindingColumns = ["Namespace", "Bound", "Age"];

export function bindingRow(b: ManagedClusterSetBinding): Row {
  return {
    key: id(b),
    cells: [plain(b.metadata?.namespace), state(b), aged(b)],
  };
}

export const id = (o: Obj): string => (o.metadata?.namespace ? o.metadata.namespace + "/" : "") + (o.metadata?.name ?? "");

export const placementColumns = ["Placement", "Namespace", "Satisfied", "Chosen", "Age"];

export function placementRow(p: Placement): Row {
  const { namespace, name } = p.metadata ?? {};
  return {
    key: id(p),
    cells: [link(name, "placements", namespace, name), plain(namespace), state(p), plain(p.status?.numberOfSelectedClusters), aged(p)],
  };
}

export const decisionColumns = ["Cluster", "Decision", "Reason", "Age"];

export function decisionRows(d: PlacementDecision): Row[] {
  return (d.status?.decisions ?? []).map((c) => ({
    key: id(d) + "/" + c.clusterName,
    cells: [link(c.clusterName, "clusters", c.clusterName), plain(d.metadata?.name), plain(c.reason), aged(d)],
  }));
}

export const explainColumns = ["Cluster", "Chosen", "Why", "Scores", "Total", "Rank", "Group", "Sets"];

export function explainRow(c: ExplainedCluster): Row {
  return {
    key: c.clusterName ?? "",
    cells: [
      link(c.clusterName, "clusters", c.clusterName),
      c.chosen ? { text: "Chosen", tone: "good" } : { text: fallen(c.filteredBy) },
      plain(c.message),
      plain((c.scores ?? []).map((s) => `${s.name}=${s.score ?? "?"}${s.weight === 1 ? "" : "×" + s.weight}`).join(" ")),
      plain(c.totalScore),
      plain(c.rank),
      plain(c.decisionGroupName || c.decisionGroupIndex),
      plain((c.clusterSets ?? []).join(", ")),
    ],
  };
}

/** fallen says what a cluster fell out by. */
export function fallen(by: string | undefined): string {
  const words: Record<string, string> = {
    ClusterSet: "In no set of the placement",
    Deletion: "Being deleted",
    Predicate: "Not matched by a predicate",
    TaintToleration: "Has a taint that is not tolerated",
    Spread: "Excluded by the spreadPolicy",
    NumberOfClusters: "Not needed: other clusters are preferred",
  };
  return by ? (words[by] ?? "Excluded by " + by) : "Not in the last decisions";
}

export const workColumns = ["Work", "Cluster", "Applied", "Available", "Manifests", "Age"];

export function workRow(w: ManifestWork): Row {
  const { namespace, name } = w.metadata ?? {};
  return {
    key: id(w),
    cells: [
      link(name, "works", namespace, name),
      link(namespace, "clusters", namespace),
      state(w, "applied"),
      state(w, "available"),
      plain(w.spec?.workload?.manifests?.length ?? 0),
      aged(w),
    ],
  };
}

export function manifestBlock(w: ManifestWork): Block {
  const states = (w as Obj).states?.manifests;
  return {
    title: "Manifests",
    columns: ["Manifest", "Applied", "Available", "Feedback"],
    empty: "The agent has not reported its manifests yet.",
    rows: (w.status?.resourceStatus?.manifests ?? []).map((m, i) => {
      const r = m.resourceMeta;
      const values = (m.statusFeedback?.values ?? []).map((v) => {
        const f = v.fieldValue as Record<string, unknown> | undefined;
        return `${v.name}=${f?.string ?? f?.integer ?? f?.boolean ?? f?.jsonRaw ?? ""}`;
      });
      return {
        key: String(i),
        cells: [
          plain(`${r?.kind ?? r?.resource ?? ""} ${r?.namespace ? r.namespace + "/" : ""}${r?.name ?? ""}`),
          states?.[i]?.applied ?? notKnown,
          states?.[i]?.available ?? notKnown,
          plain(values.join(", ")),
        ],
      };
    }),
  };
}

export const replicaSetColumns = ["Rollout", "Namespace", "State", "Updated", "Available", "Degraded", "Wanted", "Age"];

export function replicaSetRow(r: ManifestWorkReplicaSet): Row {
  const { namespace, name } = r.metadata ?? {};
  const s = r.status?.summary;
  return {
    key: id(r),
    cells: [
      link(name, "works", "replicasets", namespace, name),
      plain(namespace),
      state(r),
      plain(s?.updated ?? 0),
      plain(s?.available ?? 0),
      (r as Obj).states?.cells?.degraded ?? plain(s?.degraded ?? 0),
      plain(s?.desiredTotal ?? 0),
      aged(r),
    ],
  };
}

export const accessColumns = ["Request", "Namespace", "Cluster", "State", "Waiting for", "Expires", "Age", "Kubeconfig"];

export function accessRow(a: AccessRequest): Row {
  const { namespace, name, creationTimestamp } = a.metadata ?? {};
  const ref = a.spec?.clusterRef;
  const ttl = milliseconds(a.spec?.ttl);
  const secret = a.status?.secretRef?.name;
  return {
    key: id(a),
    cells: [
      link(name, "access", namespace, name),
      plain(namespace),
      plain(ref ? `${ref.namespace}/${ref.name}` : a.spec?.requestRef ? `of request ${a.spec.requestRef.name}` : ""),
      state(a),
      (a as Obj).states?.cells?.waits ?? plain(""),
      ttl === undefined || !creationTimestamp
        ? plain("Never")
        : { text: "", since: new Date(Date.parse(creationTimestamp) + ttl).toISOString() },
      aged(a),
      secret
        ? { text: secret, command: `get secret ${quote(secret)} -n ${quote(namespace ?? "")} -o go-template='{{.data.kubeconfig | base64decode}}'` }
        : plain(""),
    ],
  };
}

export const edgeColumns = ["Placement", "Namespace", "Node", "Of", "Services", "State", "Age"];

export function edgeRow(p: EdgePlacement): Row {
  const { namespace, name } = p.metadata ?? {};
  return {
    key: id(p),
    cells: [
      plain(name),
      plain(namespace),
      plain(p.spec?.node),
      plain(`${p.spec?.origin?.kind ?? ""} ${p.spec?.origin?.name ?? ""}`),
      plain((p.spec?.services ?? []).map((s) => `${s.name} ${s.version} (${s.arch}) in ${s.targetNamespace}`).join(", ")),
      state(p),
      aged(p),
    ],
  };
}

export const nodeColumns = ["Node", "Type", "Pattern", "Reported", "CPU", "Memory (MB)", "Architecture", "Namespace", "Age"];

export function nodeRow(n: EdgeNode): Row {
  const s = n.status;
  return {
    key: n.metadata?.name ?? "",
    cells: [
      plain(n.metadata?.name),
      plain(n.spec?.nodeType),
      plain(n.spec?.pattern),
      state(n),
      plain(s?.cpu),
      plain(s?.memory),
      plain(s?.arch),
      plain(s?.namespace),
      aged(n),
    ],
  };
}

/** A Request is a CertificateSigningRequest, as far as the page reads it. */
export interface Request extends Obj {
  spec?: { username?: string; signerName?: string };
}

export const clusterNameLabel = "open-cluster-management.io/cluster-name";
export const requestColumns = ["Certificate request", "Cluster", "Requested by", "State", "Age"];

export function requestRow(r: Request): Row {
  const cluster = r.metadata?.labels?.[clusterNameLabel];
  return {
    key: id(r),
    cells: [plain(r.metadata?.name), link(cluster, "clusters", cluster), plain(r.spec?.username), state(r), aged(r)],
  };
}

export const joiningColumns = ["Cluster", "Waits", "To accept it"];

export function joiningRow(c: ManagedCluster): Row {
  const name = c.metadata?.name ?? "";
  const accept = `hub accept --clusters ${quote(name)} --wait`;
  return {
    key: name,
    cells: [link(name, "clusters", name), state(c, "available"), { text: "kubectl " + accept, command: accept }],
  };
}

/** An APIService, as far as the page reads it. */
export interface APIService extends Obj {
  spec?: { service?: { namespace?: string; name?: string } };
}

export const serviceColumns = ["API", "Available", "Served by"];

export function serviceRows(s: APIService): Row[] {
  const by = s.spec?.service;
  if (!by) {
    return []; // the front itself serves it
  }
  return [
    {
      key: id(s),
      cells: [
        plain(s.metadata?.name),
        state(s),
        plain(`${by.namespace}/${by.name}`),
      ],
    },
  ];
}

/** A Lease, as far as the page reads it. */
export interface Lease extends Obj {
  spec?: { holderIdentity?: string; renewTime?: string; leaseDurationSeconds?: number };
}

export const leaseColumns = ["Lease", "Held by", "Renewed"];

export function leaseRow(l: Lease): Row {
  return {
    key: id(l),
    cells: [plain(l.metadata?.name), plain(l.spec?.holderIdentity), { text: "", since: l.spec?.renewTime }],
  };
}

/** readyRow reads a line of /readyz?verbose. */
export function readyRow(line: string): Row[] {
  const m = /^\[([+-])\](\S+) (.*)$/.exec(line);
  if (!m) {
    return [];
  }
  return [{ key: m[2] ?? "", cells: [plain(m[2]), m[1] === "+" ? { text: "ok", tone: "good" } : { text: m[3] ?? "failed", tone: "bad" }] }];
}
