/** Claims about where lanes meet: none is wrong, and none that could be made is missing. */
import { describe, expect, test } from "vitest";
import { f32 } from "../../src/formats/dtype.ts";
import { fromNumbers } from "../../src/formats/hostarray.ts";
import { opKinds, opTable } from "../../src/ir/ops.ts";
import type { OpKind } from "../../src/ir/ops.ts";
import { walkOps } from "../../src/ir/traverse.ts";
import { simplify } from "../../src/lower/simplify.ts";
import type { KernelDefinition } from "../../src/lang/index.ts";
import { runEdited, withoutLines } from "../support/edited-kernel.ts";
import { between, length, meeting, quiet } from "./kernels.ts";
import type { Group } from "./kernels.ts";

const inputs = {
  "list[0]": fromNumbers(f32, [length], new Float32Array(length).fill(1)),
  "list[1]": fromNumbers(f32, [length], new Float32Array(length).fill(2)),
  x: fromNumbers(
    f32,
    [length],
    Array.from({ length }, (_, index) => index % 5),
  ),
};

/** The compiler's own barrier between the writing and the reading. */
const inserted = /bar\.sync.*other lanes may have written own$/m;

const groups = (list: { readonly [name: string]: Group }) => Object.entries(list);

function kindsIn({ kernel }: KernelDefinition): ReadonlySet<OpKind> {
  const kinds = new Set<OpKind>();
  walkOps(simplify(kernel).body, ({ kind }) => kinds.add(kind));
  return kinds;
}

/** Those that meet as they are ordered claim nothing by their kind. */
const meets = (kind: OpKind): boolean => {
  const { synchronizes } = opTable[kind].traits;
  return synchronizes !== "as ordered" && synchronizes.some(({ who }) => who !== "warp");
};

/** Kinds that are held against the emulator elsewhere, or whose instructions are others'. */
const elsewhere: { readonly [reason: string]: readonly OpKind[] } = {
  "numbers of the launch": ["block_index", "grid_size", "thread_index", "size"],
  "memory begins before anything runs": [
    ...([
      "alloc_union",
      "union_member",
      "alloc_barrier",
      "alloc_semaphore",
      "alloc_scratch",
    ] as const),
  ],
  "in accesses.test.ts": ["copy_async", "dot"],
  "in test/scaled-dot.test.ts": ["scaled_dot"],
  "in test/launch-control.test.ts": ["take_block", "taken_block"],
  "in test/tensor-memory.test.ts": [
    ...([
      "alloc_tmem",
      "tmem_load",
      "tmem_store",
      "tcgen05_mma",
      "tcgen05_copy",
      "tcgen05_commit",
    ] as const),
  ],
  "in test/tensor-memory-unions.test.ts": ["tmem_member"],
  "what they meet for is their scratch": [
    "convert_layout",
    "debug_print",
    "assert",
    "semaphore_read",
  ],
  "gone, unless a profile is asked for": ["profile_mark"],
  "in src/lang/inline-ptx-memory.test.ts": ["address_of", "inline_ptx_memory", "is_simulated"],
  "threads and registers": ["on_threads", "set_registers"],
  "the compiler puts them where they are needed": [
    ...([
      "lane_barrier",
      "barriers_ready",
      "products_wait",
      "cluster_barrier",
      "copies_read",
    ] as const),
  ],
};

test("every kind has its place among these tests", () => {
  const tested = [...groups(quiet), ...groups(meeting)].flatMap(([, { kinds }]) => kinds);
  const placed = [...tested, ...Object.values(elsewhere).flat()];
  const missing = opKinds.filter((kind) => !placed.includes(kind));
  const where =
    "a kernel of test/traits/kernels.ts, or to `elsewhere` in test/traits/meetings.test.ts";
  expect(missing, `add each to ${where}`).toEqual([]);
  const twice = placed.filter((kind, index) => placed.indexOf(kind) < index);
  expect(twice, "a kind has one place").toEqual([]);
});

describe("ops that claim no meeting", () => {
  test.each(groups(quiet))("have none: %s", async (_, group) => {
    const definition = between(group);
    expect(group.kinds.filter((kind) => !kindsIn(definition).has(kind))).toEqual([]);
    expect(group.kinds.filter(meets)).toEqual([]);
    const { ptx, codes } = await runEdited(definition, inputs);
    expect(ptx).toMatch(inserted);
    expect(codes).toEqual([]);
    const without = await runEdited(definition, inputs, { edit: withoutLines(inserted) });
    expect(without.codes).toContain("TW8014");
  });
});

describe("ops that claim a meeting", () => {
  test.each(groups(meeting))("have it: %s", async (_, group) => {
    const definition = between(group);
    expect(group.kinds.filter((kind) => !kindsIn(definition).has(kind))).toEqual([]);
    expect(group.kinds.some(meets)).toBe(true);
    const { ptx, codes } = await runEdited(definition, inputs);
    expect(ptx).not.toMatch(inserted);
    expect(codes).toEqual([]);
  });
});
