// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Which page shows what: an address becomes a title and sections, each of which reads one source.
import type {
  AccessRequest,
  ClusterSetMember,
  EdgeNode,
  EdgePlacement,
  ExplainedCluster,
  ManagedCluster,
  ManagedClusterSet,
  ManagedClusterSetBinding,
  ManifestWork,
  ManifestWorkReplicaSet,
  Placement,
  PlacementDecision,
  PlacementExplanation,
} from "./types";
import type { Page, Source, State } from "./feed";
import * as rows from "./rows";
import type { Block, Cell, Obj, Row } from "./rows";
import { accessOf, ask, consists, doctor, whoMay, why as because } from "./answers";
import { rightsColumns, rightsRows, rightsSummary, type Review } from "./rights";
import { count, quote } from "./text";

/** A Section is one part of a page. */
export interface Section {
  title: string;
  source: Source;
  /** kubectl is the line that gives the same, without "kubectl". */
  kubectl: string;
  /** why is the line that says why it is as it is, without "kubectl". */
  why?: string;
  /** right is what is missing when the answer is 403: "list managedclusters". */
  right: string;
  blocks: (items: Obj[], state: State) => Block[];
  summary?: (items: Obj[], state: State) => string;
  /** fallback is shown instead to users without the right. */
  fallback?: Section;
  /** follows says that it is read again when another section of the page changes. */
  follows?: boolean;
  /** note is said above what is shown. */
  note?: string;
}

/** A Filter is a field of a form that becomes part of the address. */
export interface Filter {
  name: string;
  label: string;
  hint?: string;
  options?: string[];
}

/** A View is a page. */
export interface View {
  title: string;
  /** nav is the entry of the navigation that it belongs to. */
  nav: string;
  sections: Section[];
  filters: Filter[];
}

/** navigation is in the order of the page. */
export const navigation: [string, string][] = [
  ["clusters", "Clusters"],
  ["sets", "Sets"],
  ["placements", "Placements"],
  ["works", "Works"],
  ["access", "Access"],
  ["edge", "Edge"],
  ["joining", "Joining"],
  ["rights", "My rights"],
  ["why/access", "Who may"],
  ["hub", "Hub"],
  ["doctor", "Doctor"],
];

const cluster = "/apis/cluster.open-cluster-management.io";
const members = "/apis/view.clusterhub.dev/v1alpha1/clustersetmembers";
const viewed = "/apis/clusterview.open-cluster-management.io";
const works = "/apis/work.open-cluster-management.io";
const requests = "/apis/clusters.openmcp.cloud/v1alpha1";
const edge = "/apis/edge.clusterhub.dev/v1alpha1";

const text: Filter = { name: "q", label: "Filter rows" };
const inNamespace: Filter = { name: "n", label: "Namespace", hint: "all" };
const byLabel: Filter = { name: "l", label: "Label selector", hint: "env=production" };

/** matches says whether a row has the text that is looked for. */
export function matches(row: Row, q: string): boolean {
  return !q || row.cells.some((c) => c.text.toLowerCase().includes(q.toLowerCase()));
}

// table is a list in one table.
function table<T extends Obj>(columns: string[], row: (o: T) => Row | Row[], empty: string, title = ""): Section["blocks"] {
  return (items) => [{ title, columns, empty, rows: (items as T[]).flatMap((o) => row(o)) }];
}

const counted = (noun: string) => (items: Obj[], s: State) =>
  s.more ? `${items.length.toLocaleString("en-US")} shown, there are more.` : count(items.length, noun) + ".";

interface Listed {
  title: string;
  path: string;
  resource: string;
  query?: Record<string, string>;
  namespace?: string;
  args?: string;
}

// listed is what all sections of a list have in common.
function listed(l: Listed): Pick<Section, "title" | "source" | "kubectl" | "right"> {
  const at = l.path.lastIndexOf("/");
  const path = l.namespace ? `${l.path.slice(0, at)}/namespaces/${encodeURIComponent(l.namespace)}${l.path.slice(at)}` : l.path;
  const { labelSelector, fieldSelector } = l.query ?? {};
  const where = l.namespace === undefined ? "" : l.namespace ? ` -n ${quote(l.namespace)}` : " -A";
  return {
    title: l.title,
    source: { path, query: l.query, watch: true },
    kubectl:
      `get ${l.resource}${where}${labelSelector ? ` -l ${quote(labelSelector)}` : ""}` +
      `${fieldSelector ? ` --field-selector ${quote(fieldSelector)}` : ""}${l.args ?? ""}`,
    right: `list ${l.resource}` + (l.namespace ? ` in the namespace ${l.namespace}` : l.namespace === "" ? " in all namespaces" : ""),
  };
}

// single is what all sections of one object have in common.
function single(path: string, resource: string, name: string, namespace?: string): Pick<Section, "title" | "source" | "kubectl" | "right"> {
  const group = path + (namespace === undefined ? "" : `/namespaces/${encodeURIComponent(namespace)}`);
  const where = namespace === undefined ? "" : ` -n ${quote(namespace)}`;
  return {
    title: "Now",
    source: { path: `${group}/${resource.split(".")[0]}/${encodeURIComponent(name)}`, one: name, watch: true },
    kubectl: `get ${resource} ${quote(name)}${where} -o yaml`,
    right: `get ${resource} ${name}` + (namespace === undefined ? "" : ` in the namespace ${namespace}`),
  };
}

const one = <T>(say: (o: T) => Block[]) => (items: Obj[]) => items.flatMap((o) => say(o as T));

const selectors = (of: { labelSelector?: string; fieldSelector?: string }) =>
  Object.fromEntries(Object.entries(of).filter(([, v]) => v)) as Record<string, string>;

/** view finds the page of an address, or none. */
export function view(pathname: string, search: URLSearchParams): View | undefined {
  const parts = pathname.split("/").slice(1);
  if (parts.shift() !== "v") {
    return undefined;
  }
  let path: string[];
  try {
    path = parts.filter(Boolean).map(decodeURIComponent);
  } catch {
    return undefined;
  }
  const get = (name: string) => search.get(name)?.trim() ?? "";
  const nav = path[0] ?? "";
  const make = views[path.length === 4 ? `${nav}/${path[1]}` : `${nav}/${path.length - 1}`];
  const made = make?.(path.slice(1), get);
  return made && { nav, ...made };
}

type Make = (path: string[], get: (name: string) => string) => Omit<View, "nav"> & { nav?: string };

const views: Record<string, Make> = {
  "clusters/0": (_, get) => ({
    title: "Clusters",
    filters: [
      byLabel,
      { name: "set", label: "Set" },
      { name: "accepted", label: "Accepted", options: ["", "true", "false"] },
      text,
    ],
    sections: [get("set") ? membersOf(get("set"), get("l"), "clusters of the set") : fleet(get("l"), get("accepted"))],
  }),
  "clusters/1": ([name = ""]) => clusterView(name),
  "sets/0": () => ({ title: "Sets", filters: [text], sections: [sets()] }),
  "sets/1": ([name = ""]) => ({ title: `Set ${name}`, filters: [], sections: setSections(name) }),
  "placements/0": (_, get) => ({ title: "Placements", filters: [inNamespace, text], sections: [placements(get("n"))] }),
  "placements/2": ([namespace = "", name = ""], get) => ({
    title: `Placement ${namespace}/${name}`,
    filters: [{ name: "cluster", label: "Why, for one cluster", hint: "name" }],
    sections: placementSections(namespace, name, get("cluster")),
  }),
  "works/0": (_, get) => ({ title: "Works", filters: [inNamespace, byLabel, text], sections: workSections(get("n"), get("l")) }),
  "works/2": ([namespace = "", name = ""]) => ({
    title: `Work ${name} on ${namespace}`,
    filters: [],
    sections: [
      {
        ...single(works + "/v1", "manifestworks.work.open-cluster-management.io", name, namespace),
        why: `hub why work ${quote(name)} --cluster ${quote(namespace)}`,
        blocks: one<ManifestWork>((w) => [
          rows.facts("Work", [
            ["Cluster", rows.link(namespace, "clusters", namespace)],
            ["Why it is so", ask("Step by step", "work", namespace, name)],
            ["Created", rows.aged(w)],
            ["Executor", rows.plain(executor(w))],
            ["Being deleted since", w.metadata?.deletionTimestamp ? { text: "", since: w.metadata.deletionTimestamp } : undefined],
          ]),
          rows.manifestBlock(w),
          rows.conditions(w),
        ]),
      },
    ],
  }),
  "works/replicasets": ([, namespace = "", name = ""]) => replicaSetView(namespace, name),
  "access/0": (_, get) => ({ title: "Access", filters: [inNamespace, text], sections: [access(get("n"))] }),
  "access/2": ([namespace = "", name = ""]) => ({
    title: `Access request ${namespace}/${name}`,
    filters: [],
    sections: [
      {
        ...single(requests, "accessrequests.clusters.openmcp.cloud", name, namespace),
        why: `hub why accessrequest ${quote(name)} -n ${quote(namespace)}`,
        blocks: one<AccessRequest>((a) => [
          rows.facts("Request", [
            ...rows.accessColumns.slice(1).map((c, i): [string, Cell | undefined] => [c, rows.accessRow(a).cells[i + 1]]),
            ["Why it is so", ask("Step by step", "accessrequest", namespace, name)],
          ]),
          rows.conditions(a),
        ]),
      },
    ],
  }),
  "edge/0": (_, get) => ({ title: "Edge", filters: [inNamespace, text], sections: edgeSections(get("n")) }),
  "joining/0": () => ({ title: "Joining", filters: [text], sections: joining() }),
  "rights/0": (_, get) => ({
    title: "My rights",
    filters: [{ name: "n", label: "Namespace", hint: "default" }, text],
    sections: [rights(get("n") || "default")],
  }),
  "why/1": (_, get) => ({
    title: "Who may",
    nav: "why/access",
    filters: [
      { name: "user", label: "User", hint: "ann" },
      { name: "verb", label: "Verb", hint: "get, accept, deliver" },
      { name: "what", label: "What", hint: "set/NAME, cluster/NAME, or a label KEY=VALUE" },
      { name: "group", label: "Groups of the user", hint: "a,b" },
      { name: "namespace", label: "Namespace, to bind a set", hint: "team-a" },
    ],
    sections: accessOf(get),
  }),
  "why/2": ([, name = ""]) => ({
    title: `Why is the cluster ${name} as it is`,
    nav: "clusters",
    filters: [],
    sections: [because("Answer", ["cluster", name], `cluster ${quote(name)}`, `get managedclusters ${name}`), whoMay(name)],
  }),
  "why/member": ([, name = "", set = ""]) => ({
    title: `Why is ${name} in the set ${set}, or not`,
    nav: "sets",
    filters: [],
    sections: [because("Answer", ["member", name, set], `member ${quote(name)} --set ${quote(set)}`, `get managedclusters ${name} and managedclustersets ${set}`)],
  }),
  "why/work": ([, clusterName = "", name = ""]) => ({
    title: `Why is the work ${name} on ${clusterName} as it is`,
    nav: "works",
    filters: [],
    sections: [because("Answer", ["work", clusterName, name], `work ${quote(name)} --cluster ${quote(clusterName)}`, `get manifestworks in the namespace ${clusterName}`)],
  }),
  "why/accessrequest": ([, namespace = "", name = ""]) => ({
    title: `For whom does the access request ${namespace}/${name} wait`,
    nav: "access",
    filters: [],
    sections: [because("Answer", ["accessrequest", namespace, name], `accessrequest ${quote(name)} -n ${quote(namespace)}`, `get accessrequests in the namespace ${namespace}`)],
  }),
  "why/4": ([, namespace = "", name = "", clusterName = ""]) => ({
    title: `Why does the placement ${namespace}/${name} choose ${clusterName}, or not`,
    nav: "placements",
    filters: [],
    sections: [
      because("Answer", ["placement", namespace, name, clusterName], `placement ${quote(name)} -n ${quote(namespace)} --cluster ${quote(clusterName)}`, `get placements/explain in the namespace ${namespace}`),
    ],
  }),
  "doctor/0": () => ({ title: "Doctor", filters: [], sections: [doctor()] }),
  "hub/0": () => ({ title: "Hub", filters: [text], sections: hub() }),
};

function executor(w: ManifestWork): string {
  const account = w.spec?.executor?.subject?.serviceAccount;
  return account ? `${account.namespace}/${account.name}` : "";
}

function membersOf(set: string, labelSelector: string, title = "Members"): Section {
  return {
    ...listed({
      title: set ? `Members of ${set}` : title,
      path: members,
      resource: "clustersetmembers",
      query: selectors({ labelSelector, fieldSelector: set && `spec.clusterSet=${set}` }),
      args: " -o wide",
    }),
    blocks: table(rows.memberColumns, rows.memberRow, set ? "The set has no clusters that you may see." : "There are no sets with clusters that you may see."),
    summary: (items, s) => rows.fleetSummary(items.map((m) => rows.state(m, "available").tone), s.rest, s.more, "member"),
  };
}

function fleet(labelSelector: string, accepted: string): Section {
  return {
    ...listed({
      title: "Fleet",
      path: cluster + "/v1/managedclusters",
      resource: "managedclusters",
      query: selectors({ labelSelector, fieldSelector: accepted && `spec.hubAcceptsClient=${accepted}` }),
    }),
    blocks: table(rows.clusterColumns, rows.clusterRow, "There are no such clusters."),
    summary: (items, s) => rows.fleetSummary(items.map((c) => rows.state(c, "available").tone), s.rest, s.more),
    fallback: {
      ...membersOf("", labelSelector),
      note: "You may not list all clusters. These are the members of the sets that you may see: a cluster in several sets is there several times.",
    },
  };
}

function clusterView(name: string): Omit<View, "nav"> {
  const say = one<ManagedCluster>((c) => [
    rows.facts("Cluster", [
      ["Available", rows.state(c, "available")],
      ["Why it is so, and who may do what", ask("Step by step", "cluster", name)],
      ["Kubernetes", rows.plain(c.status?.version?.kubernetes)],
      ["API servers", rows.plain((c.spec?.managedClusterClientConfigs ?? []).map((x) => x.url).join(", "))],
      ["Capacity", rows.plain(resources(c.status?.capacity))],
      ["Allocatable", rows.plain(resources(c.status?.allocatable))],
      ["Lease", rows.plain(`${c.spec?.leaseDurationSeconds || 60} seconds`)],
      ["Accepted", { text: "", since: c.metadata?.annotations?.["registration.clusterhub.dev/accepted-at"] }],
      ["Created", rows.aged(c)],
      ["Being deleted since", c.metadata?.deletionTimestamp ? { text: "", since: c.metadata.deletionTimestamp } : undefined],
      ...(c.spec?.hubAcceptsClient ? [] : [["To accept it", rows.joiningRow(c).cells[2]] as [string, Cell | undefined]]),
    ]),
    rows.conditions(c),
    pairs("Labels", "It has no labels.", Object.entries(c.metadata?.labels ?? {})),
    pairs("Claims", "It has no claims.", (c.status?.clusterClaims ?? []).map((x) => [x.name ?? "", x.value ?? ""])),
  ]);
  const why = `hub why cluster ${quote(name)}`;
  return {
    title: `Cluster ${name}`,
    filters: [],
    sections: [
      {
        ...single(cluster + "/v1", "managedclusters", name),
        why,
        blocks: say,
        fallback: {
          ...single(viewed + "/v1", "managedclusters.clusterview.open-cluster-management.io", name),
          why,
          blocks: say,
          fallback: {
            why,
            ...listed({ title: "Now", path: members, resource: "clustersetmembers", query: { fieldSelector: `spec.cluster=${name}` }, args: " -o wide" }),
            blocks: (items) => items.slice(0, 1).map((m) => rows.memberFacts(m as ClusterSetMember)),
            note: "You may not see the whole cluster. This is what its sets show.",
          },
        },
      },
      {
        ...listed({
          title: "Why it is in its sets",
          path: members,
          resource: "clustersetmembers",
          query: { fieldSelector: `spec.cluster=${name}` },
          args: " -o wide",
        }),
        blocks: table<ClusterSetMember>(
          ["Set", "Why", "Since", "Step by step"],
          (m) => ({
            key: rows.id(m),
            cells: [rows.memberRow(m).cells[1]!, rows.plain(rows.why(m)), rows.aged(m), ask("Why", "member", name, m.spec?.clusterSet)],
          }),
          "It is in no set that you may see.",
        ),
      },
      { ...worksIn(name, ""), title: "Works" },
      {
        ...listed({ title: "Lease", path: "/apis/coordination.k8s.io/v1/leases", resource: "leases", namespace: name }),
        blocks: table(rows.leaseColumns, rows.leaseRow, "Its agent has not renewed its lease yet."),
      },
      { ...certificates(`${rows.clusterNameLabel}=${name}`), title: "Certificate requests of its agent" },
      tableOf({ title: "Events", path: "/api/v1/events", resource: "events", namespace: name }, "No recent events."),
    ],
  };
}

const resources = (of: Record<string, string> | undefined) =>
  Object.entries(of ?? {})
    .map(([k, v]) => `${k} ${v}`)
    .join(", ");

const pairs = (title: string, empty: string, of: [string, string][]): Block => ({
  title,
  columns: ["Name", "Value"],
  empty,
  rows: of.map(([k, v]) => ({ key: k, cells: [rows.plain(k), rows.plain(v)] })),
});

// tableOf shows the columns that the server has for kubectl.
function tableOf(l: Listed, empty: string): Section {
  const base = listed(l);
  return {
    ...base,
    source: { ...base.source, table: true, watch: false },
    blocks: (items, s) => [
      {
        title: "",
        columns: s.columns ?? [],
        empty,
        rows: items.map((o, i) => ({
          key: rows.id(o) || String(i),
          cells: ((o as { cells?: unknown[] }).cells ?? []).map((c) => rows.plain(c === null || c === undefined ? "" : String(c))),
        })),
      },
    ],
  };
}

function sets(): Section {
  return {
    ...listed({
      title: "Sets that you may see",
      path: viewed + "/v1alpha1/managedclustersets",
      resource: "managedclustersets.clusterview.open-cluster-management.io",
    }),
    blocks: table(rows.setColumns, rows.setRow, "There are no sets that you may see: you need the right to get managedclustersets, with the name of a set."),
    summary: counted("set"),
  };
}

function setSections(name: string): Section[] {
  return [
    {
      ...single(viewed + "/v1alpha1", "managedclustersets.clusterview.open-cluster-management.io", name),
      blocks: one<ManagedClusterSet>((s) => [
        rows.facts("Set", [
          ["Which clusters", rows.plain(rows.setWords(s))],
          ["State", rows.state(s)],
          ["Created", rows.aged(s)],
        ]),
      ]),
    },
    membersOf(name, ""),
    {
      ...listed({
        title: "Bound in",
        path: cluster + "/v1beta2/managedclustersetbindings",
        resource: "managedclustersetbindings",
        namespace: "",
        query: { fieldSelector: `spec.clusterSet=${name}` },
      }),
      blocks: table<ManagedClusterSetBinding>(rows.bindingColumns, rows.bindingRow, "The set is bound in no namespace."),
    },
  ];
}

function placements(namespace: string): Section {
  return {
    ...listed({ title: "Placements", path: cluster + "/v1beta1/placements", resource: "placements", namespace }),
    blocks: table<Placement>(rows.placementColumns, rows.placementRow, "There are no placements."),
    summary: counted("placement"),
  };
}

/** readExplanation takes the page of clusters out of an explanation, and what is said of all of them. */
export function readExplanation(body: unknown): Page & { items: (Obj & { explained: ExplainedCluster })[] } {
  const e = body as PlacementExplanation;
  return {
    next: e.status?.continue || undefined,
    items: (e.status?.clusters ?? []).map((c) => ({ metadata: { name: c.clusterName }, explained: c, of: e.status })),
  };
}

function placementSections(namespace: string, name: string, clusterName: string): Section[] {
  const path = `${cluster}/v1beta1/namespaces/${encodeURIComponent(namespace)}/placements/${encodeURIComponent(name)}/explain`;
  const only = clusterName ? ` --cluster ${quote(clusterName)}` : "";
  return [
    {
      ...single(cluster + "/v1beta1", "placements", name, namespace),
      blocks: one<Placement>((p) => [
        rows.facts("Placement", [
          ["Satisfied", rows.state(p)],
          ["Chosen", rows.plain(p.status?.numberOfSelectedClusters)],
          ["Wanted", rows.plain(p.spec?.numberOfClusters ?? "all that match")],
          ["Sets", rows.plain((p.spec?.clusterSets ?? []).join(", ") || "all that are bound in the namespace")],
          ["Created", rows.aged(p)],
        ]),
        rows.conditions(p),
      ]),
    },
    {
      title: clusterName ? `Why, for ${clusterName}` : "Why these, and not the others",
      source: { path, query: clusterName ? { cluster: clusterName } : {}, read: readExplanation },
      kubectl: `hub explain placement ${quote(name)} -n ${quote(namespace)}${only}`,
      right: `get placements/explain in the namespace ${namespace}`,
      follows: true,
      blocks: (items) => [
        {
          title: "",
          columns: [...rows.explainColumns, "Step by step"],
          empty: "No cluster that you may see is in a set of the placement.",
          rows: items.map((o) => {
            const of = (o as { explained?: ExplainedCluster }).explained ?? {};
            const row = rows.explainRow(of);
            return { ...row, cells: [...row.cells, ask("Why", "placement", namespace, name, of.clusterName)] };
          }),
        },
      ],
      summary: (items) => explained((items[0] as { of?: PlacementExplanation["status"] } | undefined)?.of),
    },
    {
      ...listed({
        title: "Decisions",
        path: cluster + "/v1beta1/placementdecisions",
        resource: "placementdecisions",
        namespace,
        query: { labelSelector: `cluster.open-cluster-management.io/placement=${name}` },
        args: " -o yaml",
      }),
      blocks: table<PlacementDecision>(rows.decisionColumns, rows.decisionRows, "No cluster is chosen."),
    },
  ];
}

/** explained says how many are chosen, and what the others fell out by. */
export function explained(status: PlacementExplanation["status"]): string {
  const counts = (status?.counts ?? []).map((c) =>
    c.filteredBy ? `${c.clusters?.toLocaleString("en-US")} ${lower(rows.fallen(c.filteredBy))}` : `${c.clusters?.toLocaleString("en-US")} chosen`,
  );
  return [
    status?.problem,
    counts.length ? counts.join("; ") + "." : "",
    status?.partial ? "Your rights do not cover all sets of the placement: there may be more clusters." : "",
  ]
    .filter(Boolean)
    .join(" ");
}

const lower = (s: string) => s.slice(0, 1).toLowerCase() + s.slice(1);

function worksIn(namespace: string, labelSelector: string): Section {
  return {
    ...listed({
      title: "Works of clusters",
      path: works + "/v1/manifestworks",
      resource: "manifestworks.work.open-cluster-management.io",
      namespace,
      query: selectors({ labelSelector }),
    }),
    blocks: table<ManifestWork>(rows.workColumns, rows.workRow, "There are no works."),
    summary: counted("work"),
  };
}

function workSections(namespace: string, labelSelector: string): Section[] {
  return [
    {
      ...listed({
        title: "Rollouts",
        path: works + "/v1alpha1/manifestworkreplicasets",
        resource: "manifestworkreplicasets",
        namespace,
        query: selectors({ labelSelector }),
      }),
      blocks: table<ManifestWorkReplicaSet>(rows.replicaSetColumns, rows.replicaSetRow, "There are no rollouts."),
      summary: counted("rollout"),
    },
    worksIn(namespace, labelSelector),
  ];
}

function replicaSetView(namespace: string, name: string): Omit<View, "nav"> {
  return {
    title: `Rollout ${namespace}/${name}`,
    filters: [],
    sections: [
      {
        ...single(works + "/v1alpha1", "manifestworkreplicasets", name, namespace),
        kubectl: `hub rollout status ${quote(name)} -n ${quote(namespace)}`,
        blocks: one<ManifestWorkReplicaSet>((r) => [
          rows.facts("Rollout", rows.replicaSetColumns.slice(2).map((c, i) => [c, rows.replicaSetRow(r).cells[i + 2]])),
          {
            title: "Placements",
            columns: ["Placement", "Strategy", "Groups done", "Updated", "Wanted"],
            empty: "It has no placements.",
            rows: (r.spec?.placementRefs ?? []).map((p) => {
              const s = r.status?.placementSummary?.find((x) => x.name === p.name);
              return {
                key: p.name ?? "",
                cells: [
                  rows.link(p.name, "placements", namespace, p.name),
                  rows.plain(p.rolloutStrategy?.type),
                  rows.plain(s?.availableDecisionGroups),
                  rows.plain(s?.summary?.updated),
                  rows.plain(s?.summary?.desiredTotal),
                ],
              };
            }),
          },
          rows.conditions(r),
        ]),
      },
      // A label has at most 63 characters: works of a longer name have a hash, which cannot be asked for by the name.
      ...(namespace.length + name.length < 63
        ? [{ ...worksIn("", `work.open-cluster-management.io/manifestworkreplicaset=${namespace}.${name}`), title: "Its works" }]
        : []),
    ],
  };
}

function access(namespace: string): Section {
  return {
    ...listed({ title: "Access requests", path: requests + "/accessrequests", resource: "accessrequests", namespace, args: " -o wide" }),
    blocks: table<AccessRequest>(rows.accessColumns, rows.accessRow, "There are no access requests."),
    summary: counted("request"),
  };
}

function edgeSections(namespace: string): Section[] {
  return [
    {
      ...listed({ title: "Edge placements", path: edge + "/edgeplacements", resource: "edgeplacements", namespace }),
      blocks: table<EdgePlacement>(rows.edgeColumns, rows.edgeRow, "Nothing is placed on edge nodes."),
      summary: counted("placement"),
    },
    {
      ...listed({ title: "Edge nodes", path: edge + "/edgenodes", resource: "edgenodes" }),
      blocks: table<EdgeNode>(rows.nodeColumns, rows.nodeRow, "There are no edge nodes."),
      summary: counted("node"),
    },
  ];
}

function joining(): Section[] {
  return [
    {
      ...listed({
        title: "Pending clusters",
        path: cluster + "/v1/managedclusters",
        resource: "managedclusters",
        query: { fieldSelector: "spec.hubAcceptsClient=false" },
      }),
      blocks: table<ManagedCluster>(rows.joiningColumns, rows.joiningRow, "No cluster waits to be accepted."),
      summary: counted("cluster"),
    },
    certificates(rows.clusterNameLabel),
  ];
}

function certificates(labelSelector: string): Section {
  return {
    ...listed({
      title: "Certificate requests of agents",
      path: "/apis/certificates.k8s.io/v1/certificatesigningrequests",
      resource: "certificatesigningrequests",
      query: { labelSelector },
    }),
    blocks: table(rows.requestColumns, rows.requestRow, "There are no certificate requests."),
    summary: counted("request"),
  };
}

function rights(namespace: string): Section {
  return {
    title: `Of the whole hub, and in the namespace ${namespace}`,
    source: {
      path: "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews",
      body: { apiVersion: "authorization.k8s.io/v1", kind: "SelfSubjectRulesReview", spec: { namespace } },
      read: (body) => ({ items: [body as Obj] }),
    },
    kubectl: `auth can-i --list -n ${quote(namespace)}`,
    right: "create selfsubjectrulesreviews",
    blocks: (items) => [
      {
        title: "",
        columns: rightsColumns,
        empty: "You have no rights on the hub.",
        rows: rightsRows((items[0] as Review | undefined)?.status?.resourceRules ?? []),
      },
    ],
    summary: (items) => rightsSummary((items[0] as Review | undefined) ?? {}),
  };
}

const asLines = (body: unknown): Page => ({
  items: String(body)
    .split("\n")
    .filter(Boolean)
    .map((line) => ({ metadata: { name: line } })),
});

function hub(): Section[] {
  return [
    {
      ...listed({ title: "APIs that other servers serve", path: "/apis/apiregistration.k8s.io/v1/apiservices", resource: "apiservices" }),
      blocks: table(rows.serviceColumns, rows.serviceRows, "No other server serves an API."),
    },
    {
      ...listed({ title: "Leader", path: "/apis/coordination.k8s.io/v1/leases", resource: "leases", namespace: "clusterhub-system" }),
      blocks: table(rows.leaseColumns, rows.leaseRow, "No controller of the hub runs."),
    },
    consists(),
    {
      title: "Readiness",
      source: { path: "/readyz", query: { verbose: "" }, text: true, read: asLines },
      kubectl: `get --raw '/readyz?verbose'`,
      right: "get the path /readyz",
      blocks: table(["Check", "State"], (o) => rows.readyRow(o.metadata?.name ?? ""), "The server returned nothing."),
    },
    {
      title: "Version",
      source: { path: "/version", query: {}, text: true, read: (body) => ({ items: [{ version: JSON.parse(String(body)) } as Obj] }) },
      kubectl: "version",
      right: "get the path /version",
      blocks: (items) => [
        pairs("", "The server returned nothing.", Object.entries((items[0] as { version?: Record<string, string> } | undefined)?.version ?? {})),
      ],
    },
  ];
}
