/** Masks to try attention with: as its functions have them, and as a condition on numbers. */
import { i32, i64, u32 } from "../../src/formats/dtype.ts";
import type { AttentionSpec } from "../../src/kernels/attention/problem.ts";

interface TriedMask {
  readonly traced: NonNullable<AttentionSpec["mask"]>;
  readonly sees: (place: {
    readonly [N in "batch" | "head" | "row" | "column"]: number;
  }) => boolean;
}

export type MaskName =
  | "remainders"
  | "causal"
  | "prefix"
  | "documents"
  | "lists of documents"
  | "dilated"
  | "by head and batch"
  | "widened"
  | "wrapping"
  | "nothing"
  | "everything";

/** Where documents of different lengths begin. */
const beginnings = [37, 64, 150];

export const masks: { readonly [N in MaskName]: TriedMask } = {
  remainders: {
    traced: ({ row, column }) => row.rem(3).eq(column.rem(3)),
    sees: ({ row, column }) => row % 3 === column % 3,
  },
  causal: {
    traced: ({ row, column }) => row.ge(column),
    sees: ({ row, column }) => row >= column,
  },
  prefix: {
    traced: ({ row, column }) => column.lt(40).or(row.ge(column)),
    sees: ({ row, column }) => column < 40 || row >= column,
  },
  documents: {
    traced: ({ row, column }) => row.div(64).eq(column.shr(6)),
    sees: ({ row, column }) => Math.floor(row / 64) === Math.floor(column / 64),
  },
  "lists of documents": {
    traced: ({ row, column }) => {
      const [own, other] = [row, column].map((place) =>
        beginnings.map((begin) => place.ge(begin).cast(i32)).reduce((sum, each) => sum.add(each)),
      );
      if (own === undefined || other === undefined) throw new Error("two lists");
      return own.eq(other).and(row.ge(column));
    },
    sees: ({ row, column }) => {
      const document = (place: number) => beginnings.filter((begin) => place >= begin).length;
      return document(row) === document(column) && row >= column;
    },
  },
  dilated: {
    traced: ({ row, column }) => {
      const distance = row.sub(column).abs();
      return distance.le(48).and(distance.and(3).eq(0));
    },
    sees: ({ row, column }) => Math.abs(row - column) <= 48 && (row - column) % 4 === 0,
  },
  "by head and batch": {
    traced: ({ batch, head, row, column }) =>
      row.sub(column).abs().le(head.mul(40)).xor(batch.eq(1)),
    sees: ({ batch, head, row, column }) => Math.abs(row - column) <= 40 * head !== (batch === 1),
  },
  // Differences below 0 are great numbers without a sign.
  widened: {
    traced: ({ row, column }) =>
      row.cast(i64).ge(column.cast(i64)).and(row.sub(column).cast(u32).lt(80)),
    sees: ({ row, column }) => row >= column && row - column < 80,
  },
  // A product that leaves i32, of which ranges say nothing.
  wrapping: {
    traced: ({ row, column }) =>
      row
        .mul(1 << 26)
        .add(column.mul(1 << 26))
        .ge(0),
    sees: ({ row, column }) => (((row + column) << 26) | 0) >= 0,
  },
  nothing: { traced: ({ row, column }) => row.lt(0).and(column.lt(0)), sees: () => false },
  everything: { traced: ({ row, column }) => row.ge(0).or(column.ge(0)), sees: () => true },
};
