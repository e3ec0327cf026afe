/**
 * Ops on tensor memory: what tensor cores of sm_100a add up in, and what moves between it, registers and shared memory. Products and copies run
 * behind the thread that started them, in its order, until a commit tells a barrier that all of them are over:
 *
 *   tcgen05_mma %sums, %a, %b        starts sums += a · b, and goes on
 *   tcgen05_commit %done[0]          arrives on the barrier once it is over
 *   barrier_wait %done[0]
 *   %tile = tmem_load %sums          reads what the product has written
 */
import type { Access } from "../schema.ts";
import { acts, allocates, computes, defineOps, lanes } from "./define.ts";

/** How a warp's registers name cells of tensor memory, as `tcgen05.ld` and `tcgen05.st` have it: lanes and bits of each. */
export const tmemShapes = ["32x32b", "16x64b", "16x128b", "16x256b", "16x32bx2"] as const;
export type TmemShape = (typeof tmemShapes)[number];

/** The shape that a text names. */
export function tmemShapeNamed(text: string | undefined): TmemShape | undefined {
  return tmemShapes.find((each) => each === text);
}

/** One lane starts what the tensor cores do for it. */
const started = <const O extends string>(mode: Access["mode"], of: O) =>
  ({ of, mode, actor: "one thread", proxy: "async", done: "copy" }) as const;

export const tensorMemoryOps = defineOps({
  alloc_tmem: {
    summary:
      "Uninitialised tensor memory of the block: tiles [rows, columns] of 128 or 64 rows, side by side along axes in front of these. `packed` elements of less than 32 bits share a column; `scales` of blocks along k, [rows, blocks], lie in atoms of 128 × 4; in `halves`, [256, blocks], either half of the lanes has an atom of its own. Of a `pair` of blocks both have it, at the same columns. Placed, it begins `at` a column of the kernel's own.",
    operands: {},
    attributes: {
      dtype: "dtype",
      shape: "integers",
      name: "text?",
      packed: "flag?",
      scales: "flag?",
      halves: "flag?",
      pair: "flag?",
      at: "integer?",
    },
    regions: {},
    traits: allocates,
  },
  tmem_member: {
    summary:
      "A member of a union in tensor memory, u32 [128, columns]: as many of its columns as its tiles need, from `column` on.",
    operands: { union: "one" },
    attributes: {
      column: "integer",
      dtype: "dtype",
      shape: "integers",
      name: "text?",
      packed: "flag?",
      scales: "flag?",
      halves: "flag?",
      pair: "flag?",
    },
    regions: {},
    traits: { ...computes, results: { window: "union" } },
  },
  tmem_load: {
    summary:
      "Reads a tile of tensor memory into registers, by instructions of the `shape`; each warp has a quarter of the rows.",
    operands: { ref: "one" },
    attributes: { shape: "text?" },
    regions: {},
    traits: {
      ...computes,
      accesses: [lanes("read", "ref")],
      stands: "whole thread",
      may: "drop",
    },
  },
  tmem_store: {
    summary: "Writes a tile to tensor memory, as `tmem_load` reads it.",
    operands: { ref: "one", value: "one" },
    attributes: { shape: "text?" },
    regions: {},
    traits: { ...acts, accesses: [lanes("write", "ref")], stands: "whole thread" },
  },
  tcgen05_mma: {
    summary:
      "Starts sums + a * b in tensor memory; a is a window [m, k] of shared or tensor memory, b one [k, n] of shared memory. Where `adds` is false, the product takes the place of what is there. With scales, [rows, blocks of k] of a and of the columns of b, each `block` of k counts times its scale: 16 elements of e4m3 scales and 32 of e8m0, unless told. Where blocks of a pair have 64 rows each, scales of b are in halves, 128 rows for either half of the columns. With `pair`, both blocks of a pair have own rows of a and of the sums, and half of the columns of b, [k, n / 2], at the same places; the block with the even rank has the first rows and columns.",
    operands: {
      sums: "one",
      a: "one",
      b: "one",
      adds: "optional",
      aScales: "optional",
      bScales: "optional",
    },
    attributes: { block: "integer?", pair: "flag?" },
    regions: {},
    traits: {
      ...acts,
      accesses: [
        ...([started("read", "a"), started("read", "b"), started("write", "sums")] as const),
        ...([started("read", "aScales"), started("read", "bScales")] as const),
      ],
      unrolls: "never",
    },
  },
  tcgen05_copy: {
    summary:
      "Starts a copy of scales from shared to tensor memory: atoms [rows / 128, blocks / 4, 32, 16] of bytes, of which row r and block b of an atom have byte 16 r + 4 (r / 32) + b, with r taken modulo 32 first, to [rows, blocks]. Those in halves lie as [1, blocks / 4, 64, 16], of the second half behind those of the first. With `pair`, both blocks of a pair copy their own.",
    operands: { source: "one", destination: "one" },
    attributes: { pair: "flag?" },
    regions: {},
    traits: {
      ...acts,
      accesses: [started("read", "source"), started("write", "destination")],
      unrolls: "never",
    },
  },
  tcgen05_commit: {
    summary:
      "Arrives once on `barrier` when all products and copies that this thread has started before are over; with `multicast` on that of every block along these axes of the cluster.",
    operands: { barrier: "one", index: "optional" },
    attributes: { multicast: "texts?" },
    regions: {},
    traits: {
      ...acts,
      accesses: [started("write", "barrier")],
      releases: { with: "multicast", scope: "cluster", otherwise: "nobody" },
      unrolls: "never",
    },
  },
});
