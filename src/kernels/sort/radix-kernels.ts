/**
 * The kernels of a least-significant-digit radix sort, one pass over memory for each digit (`radix-pass.ts`). The histograms of all digits
 * are computed at once beforehand.
 */
import { dtypes } from "../../formats/dtype.ts";
import type { DType } from "../../formats/dtype.ts";
import {
  tensor,
  cdiv,
  dim,
  full,
  iota,
  kernel,
  loop,
  slice,
  smem,
  zeros,
} from "../../lang/index.ts";
import type { KernelDefinition, Scalar, Tile } from "../../lang/index.ts";
import { keysOf } from "./sortable-keys.ts";
import { digitBits, digits } from "./radix-rank.ts";
import { totalsRow } from "./decoupled-look-back.ts";

const { i32, u32 } = dtypes;

/** How a radix sort is carried out. */
export interface RadixConfiguration {
  /** Warps of a block. */
  readonly warps: number;
  /** Keys of a thread. */
  readonly items: number;
}

export interface RadixForm extends RadixConfiguration {
  readonly dtype: DType;
  readonly descending: boolean;
}

/** Keys of a tile. */
export function tileKeys({ warps, items }: RadixConfiguration): number {
  return 32 * warps * items;
}

export function passesOf({ bits }: DType): number {
  return bits / digitBits;
}

/**
 * The state that blocks share, zero at first: for each pass and row the totals of digits, a row whose first element is the next ticket, and
 * the status words of each tile.
 */
export function stateShape(
  form: RadixForm,
  rows: number,
  length: number,
): readonly [passes: number, rows: number, tileRows: number, digits: number] {
  return [passesOf(form.dtype), rows, 2 + Math.ceil(length / tileKeys(form)), digits];
}
/** Rows, and their length. */
export const [rows, length] = [dim("rows"), dim("length")];
const splits = dim("parts");

/** The digit histograms of all passes; `splits` blocks share a row. */
export function countDigitsKernel(form: RadixForm): KernelDefinition {
  const { dtype, descending, warps: count } = form;
  const span = tileKeys(form);
  const passes = passesOf(dtype);
  return kernel(
    {
      name: "count_digits",
      grid: { row: rows, split: splits },
      warps: count,
      inputs: { x: tensor(dtype, [rows, length]) },
      inouts: { state: tensor(u32, [passes, rows, cdiv(length, span).add(2), digits]) },
      scratch: { counts: smem(u32, [passes, digits]) },
    },
    ({ row, split, x, state, counts }) => {
      counts.store(zeros(u32, [passes, digits]));
      loop({ from: split, to: cdiv(length, span), step: splits }, (piece) => {
        const here = slice(piece.mul(span), span);
        const keys = keysOf(x.at(row, here).load(), descending);
        const where = iota(i32, [span], { axis: 0 }).add(piece.mul(span)).lt(length);
        for (let pass = 0; pass < passes; pass += 1)
          counts
            .at(pass, digitOf(keys, pass * digitBits))
            .atomicAdd(full(u32, [span], 1), { where });
      });
      for (let pass = 0; pass < passes; pass += 1)
        state.at(pass, row, totalsRow).atomicAdd(counts.at(pass).load());
    },
  );
}

export function digitOf(keys: Tile<"u32">, shift: number | Scalar<"u32">): Tile<"i32"> {
  return keys
    .shr(shift)
    .cast(u32)
    .and(digits - 1)
    .cast(i32);
}
