// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Answers that the server of the page makes as kubectl hub does become sections here. Nothing in this file knows of a browser.
import type { Page } from "./feed";
import { facts, link, plain, type Block, type Cell, type Obj, type Row, type Tone } from "./rows";
import { count, quote } from "./text";
import type { Section } from "./views";

/** A Finding is one thing that is wrong, as pkg/inspect/diagnosis says it. */
export interface Finding {
  id?: string;
  severity?: string;
  object?: string;
  cause?: string;
  turn?: string;
  since?: string;
  fix?: string[];
  link?: string;
}

/** An Answer says why something is as it is. */
export interface Answer {
  verdict?: string;
  steps?: { name?: string; state?: string; text?: string }[];
  finding?: Finding;
  unseen?: string[];
  link?: string;
  /** tone is how good the verdict is. */
  tone?: Tone;
}

/** A Report is what a doctor has found. */
export interface Report {
  findings?: Finding[];
  checked?: string[];
  unseen?: string[];
}

/** Who may do something with a cluster, by which right. */
export interface Who {
  verb?: string;
  by?: string;
  holders?: string[];
  unseen?: string;
}

// whole is an answer as the one item of a list.
const whole = (body: unknown): Page => ({ items: [{ metadata: { name: "answer" }, said: body } as Obj] });
const said = <T>(items: Obj[]): T | undefined => (items[0] as { said?: T } | undefined)?.said;

const tones: Record<string, [string, Tone]> = {
  Passed: ["Passed", "good"],
  Broken: ["Broken", "bad"],
  Unseen: ["Not seen", "unknown"],
};

/** stepRow is a step of a chain. One that was not reached says nothing of itself. */
export function stepRow(s: { name?: string; state?: string; text?: string }): Row {
  const [text, tone] = tones[s.state ?? ""] ?? ["Not reached", undefined];
  return { key: s.name ?? "", cells: [plain(s.name), { text, tone }, plain(s.text)] };
}

/** commandRows are lines to paste. Only what is a command of kubectl is one to copy: the others are comments. */
export function commandRows(fix: string[] | undefined): Row[] {
  return (fix ?? []).map((line, i) => ({ key: `${i} ${line}`, cells: [plain(i + 1), { text: line, line }] }));
}

const commands = (fix: string[] | undefined): Block => ({
  title: "What to do",
  columns: ["Step", "Command"],
  empty: "No command is available.",
  rows: commandRows(fix),
});

const notSeen = (unseen: string[] | undefined): Block[] =>
  unseen?.length ? [{ title: "What you may not see", columns: ["Not checked"], empty: "", rows: unseen.map((u) => ({ key: u, cells: [plain(u)] })) }] : [];

const sinceOf = (f: Finding): Cell | undefined => (f.since ? { text: "", since: f.since } : undefined);

/** answerBlocks show an answer. */
export function answerBlocks(a: Answer): Block[] {
  const f = a.finding;
  return [
    facts("Answer", [
      ["Answer", { text: a.verdict ?? "", tone: a.tone ?? "unknown" }],
      ["Cause", f && plain(f.cause)],
      ["Waiting for", f?.turn ? plain(f.turn) : undefined],
      ["Since", f && sinceOf(f)],
      ["More", a.link ? plain(a.link) : undefined],
    ]),
    ...(f ? [commands(f.fix)] : []),
    { title: "Step by step", columns: ["Step", "State", "What was found"], empty: "No steps.", rows: (a.steps ?? []).map(stepRow) },
    ...notSeen(a.unseen),
  ];
}

/** why is a section with an answer. */
export function why(title: string, path: string[], kubectl: string, right: string, query: Record<string, string> = {}): Section {
  return {
    title,
    source: { path: "/" + ["why", ...path].map(encodeURIComponent).join("/"), query, answer: true, read: whole },
    kubectl: "hub why " + kubectl,
    right,
    blocks: (items) => answerBlocks(said<Answer>(items) ?? {}),
  };
}

/** reportBlocks show each finding with what to do about it. */
export function reportBlocks(r: Report): Block[] {
  return [
    ...(r.findings ?? []).map((f, i): Block => ({
      title: `${i + 1}. ${f.severity ?? ""}: ${f.object || f.id || ""}`,
      columns: ["Fact", "Value"],
      empty: "",
      rows: facts("", [
        ["Cause", { text: f.cause ?? "", tone: f.severity === "Error" ? "bad" : "wait" }],
        ["Waiting for", f.turn ? plain(f.turn) : undefined],
        ["Since", sinceOf(f)],
        ...(f.fix ?? []).map((line, n): [string, Cell] => [`Step ${n + 1}`, { text: line, line }]),
        ["More", f.link ? plain(f.link) : undefined],
      ]).rows,
    })),
    {
      title: "What was checked",
      columns: ["Checks"],
      empty: "Nothing was checked.",
      rows: (r.checked ?? []).map((c) => ({ key: c, cells: [plain(c)] })),
    },
    ...notSeen(r.unseen),
  ];
}

/** doctor is the section with all that is wrong with a hub. */
export function doctor(): Section {
  return {
    title: "What is wrong with the hub",
    source: { path: "/doctor", answer: true, read: whole },
    kubectl: "hub doctor",
    right: "read what the doctor checks",
    note: "The page only reads. The command also sends a dry-run write to the hub, and can check a managed cluster.",
    blocks: (items) => reportBlocks(said<Report>(items) ?? {}),
    summary: (items) => {
      const found = said<Report>(items)?.findings ?? [];
      return found.length ? count(found.length, "finding") + "." : "No problems found in what you may see.";
    },
  };
}

/** whoRow says who has a right. */
export function whoRow(w: Who): Row {
  const nobody: Cell = w.unseen ? { text: "Not known", tone: "unknown", more: w.unseen } : plain("nobody");
  return { key: `${w.verb} ${w.by}`, cells: [plain(w.verb), w.unseen || !w.holders?.length ? nobody : plain(w.holders.join(", ")), plain(w.by)] };
}

/** whoMay says who may do what with a cluster. */
export function whoMay(name: string): Section {
  return {
    title: "Who may do what with it",
    source: { path: "/who/cluster/" + encodeURIComponent(name), answer: true, read: whole },
    kubectl: "get clusterrolebindings,clusterroles",
    right: "list clusterroles and clusterrolebindings",
    note: "By the roles that you may read. What a webhook or another authorizer of the hub allows is not included.",
    blocks: (items) => [
      {
        title: "",
        columns: ["What", "Who", "By the right to"],
        empty: "No information.",
        rows: (said<{ who?: Who[] }>(items)?.who ?? []).map(whoRow),
      },
    ],
  };
}

/** accessOf is the section about one right of one user. */
export function accessOf(get: (name: string) => string): Section[] {
  const [user, verb, what, namespace, group] = ["user", "verb", "what", "namespace", "group"].map(get) as [string, string, string, string, string];
  if (!user || !verb || !what) {
    return [];
  }
  const query = Object.fromEntries(Object.entries({ user, verb, what, namespace, group }).filter(([, v]) => v)) as Record<string, string>;
  const flags = (namespace && ` -n ${quote(namespace)}`) + (group && ` --group ${quote(group)}`);
  return [why("Answer", ["access"], `access ${quote(user)} ${quote(verb)} ${quote(what)}${flags}`, "read roles and ask for rights of others", query)];
}

/** ask leads to the answer of a question. */
export const ask = (text: string, ...path: (string | undefined)[]): Cell => link(text, "why", ...path);

/** Component is a program of the hub. */
export interface Component {
  name?: string;
  version?: string;
  state?: Cell;
}

/** componentRow shows a component with its state. */
export function componentRow(c: Component): Row {
  return { key: c.name ?? "", cells: [plain(c.name), c.state ?? { text: "Unknown", tone: "unknown" }, plain(c.version || "not known")] };
}

/** consists is the section of what a hub consists of. */
export function consists(): Section {
  interface State {
    components?: Component[];
    etcdBytes?: number;
    unseen?: string[];
  }
  return {
    title: "Components and storage",
    source: { path: "/hub", answer: true, read: whole },
    kubectl: "get deployments -n clusterhub-system -o wide",
    right: "list deployments in the namespace clusterhub-system",
    blocks: (items) => {
      const s = said<State>(items) ?? {};
      return [
        {
          title: "",
          columns: ["Component", "State", "Version"],
          empty: "No pods of the hub are seen in the namespace clusterhub-system.",
          rows: (s.components ?? []).map(componentRow),
        },
        ...(s.etcdBytes ? [facts("Storage", [["etcd of the front", plain(`${(s.etcdBytes / 1e6).toFixed(1)} MB`)]])] : []),
        ...notSeen(s.unseen),
      ];
    },
  };
}
