import { describe, expect, test } from "vitest";
import { tensor, bf16, dim, f32, kernel, slice, smem } from "tilewright";
import type { KernelDefinition, Ref } from "tilewright";
import type { Value } from "../../ir/node.ts";
import { walkOps } from "../../ir/traverse.ts";
import { bankConflicts } from "../algebra/bank-conflicts.ts";
import { coalescedLayout, namedLayouts } from "../algebra/named-layouts.ts";
import { parseLayout } from "../algebra/parse-layout.ts";
import { globalAccess, globalCost, SharedAccesses } from "./access-cost.ts";
import { memoryLayouts } from "./register-candidates.ts";
import { swizzleCandidates } from "./swizzle-candidates.ts";
import { costs } from "./cost.ts";
import { windowsOf } from "./windows.ts";
import type { GlobalWindow, SharedWindow } from "./windows.ts";

/** The window of the first load in the kernel. */
function loaded({ kernel: traced }: KernelDefinition) {
  let ref: Value | undefined;
  walkOps(traced.body, (op) => {
    if (op.kind === "load") ref ??= op.operands.ref;
  });
  if (ref === undefined) throw new Error("nothing is loaded");
  return windowsOf(traced).of(ref);
}

function globalWindow(make: (x: Ref<"f32">) => Ref<"f32">, columns = 128): GlobalWindow {
  const window = loaded(
    kernel(
      {
        name: "k",
        grid: { i: 4 },
        inputs: { x: tensor(f32, [dim("m"), columns]) },
        outputs: { out: tensor(f32, [64]) },
      },
      ({ x }) => {
        make(x).load();
      },
    ),
  );
  if (window.space !== "gmem") throw new Error("not in global memory");
  return window;
}

function sharedWindow(
  shape: readonly number[],
  make: (x: Ref<"bf16">) => Ref<"bf16">,
): SharedWindow {
  const window = loaded(
    kernel(
      {
        name: "k",
        grid: { i: 4 },
        inputs: { x: tensor(bf16, [64, 64]) },
        outputs: { out: tensor(bf16, [64, 64]) },
        scratch: { tile: smem(bf16, shape) },
      },
      ({ tile }) => {
        make(tile).load();
      },
    ),
  );
  if (window.space === "gmem") throw new Error("not in shared memory");
  return window;
}

describe("global memory", () => {
  const shape = [64, 128];
  const rows = (start: number, size: number) => slice(start, size);

  test("16 bytes a thread, a warp's row after row", () => {
    const window = globalWindow((x) => x.at(rows(0, 64)));
    const layout = coalescedLayout(shape, 4);
    expect(globalAccess(layout, window, shape)).toEqual({ vector: 4, instructions: 16 });
    // 32 lanes of 16 bytes are 16 sectors.
    expect(globalCost(layout, window, shape)).toBe(16 * (4 + 16));
  });

  test("the accumulator of wgmma moves 8 bytes a thread and fills its sectors", () => {
    const window = globalWindow((x) => x.at(rows(0, 64)));
    const { wgmma } = namedLayouts;
    expect(globalAccess(wgmma, window, shape)).toEqual({ vector: 2, instructions: 32 });
    expect(globalCost(wgmma, window, shape)).toBe(32 * (4 + 8));
  });

  test("rows that start anywhere are moved one element at a time", () => {
    const window = globalWindow((x) => x.at(rows(0, 64)), 127);
    expect(globalAccess(coalescedLayout([64, 127], 1), window, [64, 127]).vector).toBe(1);
    const wide = parseLayout("(W0 W1 | R0 R1 L0 L1 L2 L3 L4)");
    expect(globalAccess(wide, window, [64, 127]).vector).toBe(1);
  });

  test("a window that starts between 16 bytes is moved by what its start allows", () => {
    const window = globalWindow((x) => x.at(rows(0, 64), slice(2, 64)));
    expect(globalAccess(coalescedLayout([64, 64], 4), window, [64, 64]).vector).toBe(2);
  });

  test("of a transposed window the first axis is the contiguous one", () => {
    const window = globalWindow((x) => x.at(rows(0, 64)).transpose());
    const layout = parseLayout("(R0 R1 L0 L1 L2 L3 L4 | W0 W1)");
    expect(globalAccess(layout, window, [128, 64])).toEqual({ vector: 4, instructions: 16 });
    expect(globalAccess(coalescedLayout([128, 64], 4), window, [128, 64]).vector).toBe(1);
  });
});

describe("shared memory: one instruction stands for all", () => {
  test.each([
    ["a tile", [64, 64], (tile: Ref<"bf16">) => tile],
    ["its transpose", [64, 64], (tile: Ref<"bf16">) => tile.transpose()],
    ["a stage", [2, 64, 128], (tile: Ref<"bf16">) => tile.at(1)],
    ["a part", [64, 128], (tile: Ref<"bf16">) => tile.at(slice(32, 32), slice(64, 64))],
    // Costs are kept by what windows look like: the same part of rows of another length is another window.
    ["a part of short rows", [64, 64], (tile: Ref<"bf16">) => tile.at(slice(0, 32), slice(0, 32))],
    ["a part of odd rows", [64, 72], (tile: Ref<"bf16">) => tile.at(slice(0, 32), slice(0, 32))],
  ] as const)("%s", (_, shape, make) => {
    const window = sharedWindow(shape, make);
    const accesses = new SharedAccesses(window);
    const extent = { shape: window.shape, bits: 16, warps: 4 };
    const whole = window.shape[0] === 64 ? [namedLayouts.wgmma] : [];
    const registers = [...memoryLayouts(extent, 1), ...memoryLayouts(extent, 0), ...whole];
    for (const layout of registers) {
      for (const shared of swizzleCandidates(shape, 16)) {
        const { vector, instructions } = accesses.plan(layout, shared);
        const [view] = window.views(shared) ?? [];
        if (view === undefined) throw new Error("the window has no view");
        const exact = bankConflicts(layout, view, vector * 2);
        const what = `${layout.text} in ${shared.text}, ${vector}`;
        expect(exact, what).toBeDefined();
        expect(exact?.instructions, what).toBe(4 * instructions);
        const wavefronts = (exact?.wavefronts ?? 0) / (exact?.instructions ?? 1);
        expect(accesses.cost(layout, shared), what).toBe(
          instructions * (costs.sharedInstruction + wavefronts * costs.sharedWavefront),
        );
      }
    }
  });

  test("whether whole warps may move matrices, and which lanes must differ, is part of what a cost is kept by", () => {
    const window = sharedWindow([64, 64], (tile) => tile);
    const layout = parseLayout("(L2 L3 L4 R1 W0 W1 | R0 L0 L1)");
    const [shared] = swizzleCandidates([64, 64], 16);
    if (shared === undefined) throw new Error("no layout of shared memory");
    const cost = (apart?: number) =>
      new SharedAccesses(window, apart === undefined ? undefined : { apart }).cost(layout, shared);
    const [alone, together, apart] = [cost(), cost(0), cost(127)];
    expect(together).toBeLessThan(alone);
    expect([cost(127), cost(0), cost()]).toEqual([apart, together, alone]);
    const copies = parseLayout("(L2 L3 L4 R1 W0 | R0 L0 L1)");
    expect(new SharedAccesses(window, { apart: 0 }).cost(copies, shared)).toBeLessThan(
      new SharedAccesses(window, { apart: 127 }).cost(copies, shared),
    );
  });
});
