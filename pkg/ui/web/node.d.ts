// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// What the unit tests use of Node: its own types would be a dependency more.
declare module "node:test" {
  export function test(name: string, body: () => void | Promise<void>): void;
}
declare module "node:assert/strict" {
  const assert: {
    (value: unknown, message?: string): asserts value;
    equal(actual: unknown, expected: unknown, message?: string): void;
    notEqual(actual: unknown, expected: unknown, message?: string): void;
    deepEqual(actual: unknown, expected: unknown, message?: string): void;
    match(actual: string, expected: RegExp, message?: string): void;
  };
  export default assert;
}

declare const process: { cpuUsage(since?: { user: number; system: number }): { user: number; system: number } };
