/**
 * Claims about which ops end by themselves, held against the emitted code: instructions come to an end where none is jumped
 * back to, so that a kernel jumps back once for each op that repeats its regions or may never end, and for no other.
 */
import { expect, test } from "vitest";
import { opKinds, opTable } from "../../src/ir/ops.ts";
import type { Kernel } from "../../src/ir/node.ts";
import { traitsOf } from "../../src/ir/traits.ts";
import { walkOps } from "../../src/ir/traverse.ts";
import { simplify } from "../../src/lower/simplify.ts";
import { ptxOf } from "../support/edited-kernel.ts";
import { between, meeting, quiet } from "./kernels.ts";

/** Jumps to a label that stands before them. */
function jumpsBack(ptx: string): number {
  const seen = new Set<string>();
  let count = 0;
  for (const line of ptx.split("\n")) {
    const [, label] = /^\s*(\$\w+):/.exec(line) ?? [];
    if (label !== undefined) seen.add(label);
    const [, target] = /\bbra(?:\.uni)?\s+(\$\w+)/.exec(line) ?? [];
    if (target !== undefined && seen.has(target)) count += 1;
  }
  return count;
}

function repeating({ body }: Kernel): number {
  let count = 0;
  walkOps(body, (op) => {
    const { ends, regions } = traitsOf(op);
    if (ends === "perhaps never" || regions === "repeat") count += 1;
  });
  return count;
}

test.each(Object.entries({ ...quiet, ...meeting }))(
  "code jumps back for what may never end alone: %s",
  (_, group) => {
    const definition = between(group);
    expect(jumpsBack(ptxOf(definition))).toBe(repeating(simplify(definition.kernel)));
  },
);

test("every kind that may never end is among them", () => {
  const tried = Object.values({ ...quiet, ...meeting }).flatMap(({ kinds }) => kinds);
  const endless = opKinds.filter((kind) => opTable[kind].traits.ends === "perhaps never");
  expect(endless.filter((kind) => !tried.includes(kind))).toEqual([]);
  expect(endless.length).toBeGreaterThan(0);
});
