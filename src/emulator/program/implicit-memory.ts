/**
 * Memory that a program uses without declaring it: the workspace of a grid that synchronises, whose address the
 * driver hands over in %envreg1 and %envreg2; the first kilobyte of shared memory, which belongs to the system
 * and to libraries; the heap of `malloc`.
 */
import type { Variable } from "../../ptx/module.ts";
import { deviceHeapBytes } from "../machine/device-heap.ts";

export const gridWorkspace = "%grid_workspace";
export const reservedShared = "%reserved_smem";
export const deviceHeap = "%device_heap";

const bytes = { kind: "variable", type: "b8" } as const;

const implicit: readonly { readonly used: RegExp; readonly variable: Variable }[] = [
  {
    used: /^%envreg[12]$/,
    variable: { ...bytes, name: gridWorkspace, space: "global", count: 64, alignment: 16 },
  },
  {
    used: /^%reserved_smem_offset_/,
    variable: { ...bytes, name: reservedShared, space: "shared", count: 1024, alignment: 16 },
  },
  {
    used: /^malloc$/,
    variable: {
      ...bytes,
      name: deviceHeap,
      space: "global",
      count: deviceHeapBytes,
      alignment: 16,
    },
  },
];

/** What a program needs that mentions these names. */
export function implicitVariables(names: ReadonlySet<string>): readonly Variable[] {
  return implicit
    .filter(({ used }) => [...names].some((name) => used.test(name)))
    .map(({ variable }) => variable);
}

/** Places in the reserved shared memory, from its start. */
export const reservedOffsets: { readonly [name: string]: number } = {
  "%reserved_smem_offset_begin": 0,
  "%reserved_smem_offset_0": 0,
  "%reserved_smem_offset_1": 128,
  "%reserved_smem_offset_end": 1024,
  "%reserved_smem_offset_cap": 1024,
};
