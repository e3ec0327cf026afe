/**
 * Bits of NaNs, where the language promises them: `neg` and `abs` change the sign alone, and sorting makes every
 * NaN the one of its format. Elements go in and come out as integers, since floats are compared NaN for NaN.
 */
import { bf16, f16, f32, f64, u16, u32, u64 } from "../../src/formats/dtype.ts";
import type { DType } from "../../src/formats/dtype.ts";
import { hostArray } from "../../src/formats/hostarray.ts";
import type { HostArray } from "../../src/formats/hostarray.ts";
import { tensor, kernel } from "../../src/lang/index.ts";
import type { Tile } from "../../src/lang/index.ts";
import { Random } from "../../src/support/random.ts";
import { exactCase } from "./case.ts";
import type { MatrixCase } from "./case.ts";
import { methodsOf } from "./elementwise.ts";

interface Form {
  readonly dtype: DType;
  readonly bits: DType;
  /** Of infinity, and of the NaN that operations make. */
  readonly infinity: bigint;
  readonly made: bigint;
}

export const forms: readonly Form[] = [
  { dtype: f16, bits: u16, infinity: 0x7c00n, made: 0x7e00n },
  { dtype: bf16, bits: u16, infinity: 0x7f80n, made: 0x7fc0n },
  { dtype: f32, bits: u32, infinity: 0x7f800000n, made: 0x7fc00000n },
  { dtype: f64, bits: u64, infinity: 0x7ff0000000000000n, made: 0x7ff8000000000000n },
];

const count = 50;

/** NaNs of either sign with any payload, quiet and signalling, among other numbers. */
function manyNans({ dtype, bits, infinity }: Form): HostArray {
  const random = new Random(dtype.bits);
  const words = new Uint32Array(2 * count).map(() => random.below(2 ** 32));
  const drawn = hostArray(bits, [count]);
  for (let lane = 0; lane < count; lane += 1) {
    const wide = (BigInt(words[2 * lane] ?? 0) << 32n) | BigInt(words[2 * lane + 1] ?? 0);
    const narrow = BigInt.asUintN(dtype.bits, wide);
    const element = lane % 3 === 0 ? narrow : narrow | infinity;
    (drawn.data as { [lane: number]: number | bigint })[lane] =
      bits === u64 ? element : Number(element);
  }
  return drawn;
}

function sortedWithItself(tile: Tile): readonly [Tile, Tile] {
  return methodsOf(tile)["sortWith"]?.([tile], { axis: 0 }) as unknown as readonly [Tile, Tile];
}

type Change = (tile: Tile) => Tile;

export const changes: { readonly [name: string]: Change } = {
  neg: (tile) => methodsOf(tile)["neg"]?.() as Tile,
  abs: (tile) => methodsOf(tile)["abs"]?.() as Tile,
  sort: (tile) => methodsOf(tile)["sort"]?.({ axis: 0 }) as Tile,
  "sort descending": (tile) => methodsOf(tile)["sort"]?.({ axis: 0, descending: true }) as Tile,
  sortWith: (tile) => sortedWithItself(tile)[0],
  payload: (tile) => sortedWithItself(tile)[1],
};

export function nanBitCases(): readonly MatrixCase[] {
  return forms.flatMap((form) =>
    Object.entries(changes).map(([name, change]) =>
      exactCase(`bits of NaN ${name} ${form.dtype.name}`, { x: manyNans(form) }, () =>
        kernel(
          {
            name: "nans",
            inputs: { x: tensor(form.bits, [count]) },
            outputs: { out: tensor(form.bits, [count]) },
          },
          ({ x, out }) => {
            const changed = change(x.load().bitcast(form.dtype) as Tile);
            out.store(methodsOf(changed)["bitcast"]?.(form.bits) as never);
          },
        ),
      ),
    ),
  );
}
