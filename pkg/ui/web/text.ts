// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Text that is shown, and lines that are pasted into a shell. Both may have in them what others wrote.

// hidden are characters that are not seen, or that change the order of those around them: a name could look like another one.
const hidden = /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

/** printable makes hidden characters visible, as \u202e. */
export function printable(text: string): string {
  return text.replace(hidden, (c) => "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0"));
}

/** quote makes one word for a shell of it. */
export function quote(word: string): string {
  return /^[\w.,:/@%+=-]+$/.test(word) ? word : "'" + printable(word).replace(/'/g, `'\\''`) + "'";
}

/** command is the line that a user pastes. The flags come last: kubectl takes none before the name of a plugin. */
export function command(kubectl: string, args: string): string {
  const flags = kubectl.replace(/^kubectl\s*/, "");
  return "kubectl " + args + (flags ? " " + flags : "");
}

const units: [string, number][] = [
  ["y", 365 * 86400],
  ["d", 86400],
  ["h", 3600],
  ["m", 60],
  ["s", 1],
];

/** age is how long ago it was, as kubectl writes it: 5m, 3h, 12d. Of what is to come it says in how long. */
export function age(since: string | undefined, now: number): string {
  const at = Date.parse(since ?? "");
  if (Number.isNaN(at)) {
    return "";
  }
  const seconds = Math.round((now - at) / 1000);
  const text = duration(Math.abs(seconds));
  return seconds < 0 ? "in " + text : text;
}

function duration(seconds: number): string {
  for (const [unit, length] of units) {
    // As kubectl, a unit comes when there are two of it: 90s, not 1m. A year is long enough.
    if (seconds >= 2 * length || unit === "s") {
      return Math.floor(seconds / length) + unit;
    }
  }
  return "";
}

/** milliseconds reads a duration as Go writes it, such as 1h30m. */
export function milliseconds(text: string | undefined): number | undefined {
  const part: Record<string, number> = { h: 3600000, m: 60000, s: 1000, ms: 1 };
  let sum = 0;
  const rest = (text ?? "").replace(/(\d+(?:\.\d+)?)(ms|h|m|s)/g, (_, n: string, unit: string) => {
    sum += Number(n) * (part[unit] ?? 0);
    return "";
  });
  return text && rest === "" ? sum : undefined;
}

/** count is a number with its noun. */
export function count(n: number, one: string, many = one + "s"): string {
  return n.toLocaleString("en-US") + " " + (n === 1 ? one : many);
}

/** list joins what people read: a, b and c. */
export function list(words: string[], last = "and"): string {
  return words.length < 2 ? words.join("") : words.slice(0, -1).join(", ") + ` ${last} ` + words[words.length - 1];
}
