/**
 * Random kernels that load from and store to windows at random indices: blocks, counters, sizes of the launch
 * and numbers read from memory, put together by every function on integers. What is read are numbers at the
 * edges of i32 and of the array.
 */
import type { KernelDefinition } from "../../src/lang/index.ts";
import {
  tensor,
  cdiv,
  constant,
  dim,
  gridSize,
  kernel,
  loop,
  slice,
} from "../../src/lang/index.ts";
import type { Ref, Scalar } from "../../src/lang/index.ts";
import { f32, i16, i32, i64, i8, u32 } from "../../src/formats/dtype.ts";
import type { Random } from "../../src/support/random.ts";

type Whole = Scalar<"i32">;

const [n, m] = [dim("n", { multipleOf: 8 }), dim("m")];

/** Launches of few blocks; of m there are at most two groups of 3. */
export const launches: readonly { readonly n: number; readonly m: number }[] = [
  { n: 8, m: 1 },
  { n: 16, m: 6 },
  { n: 24, m: 4 },
  { n: 0, m: 3 },
];

/** Elements of the array of fixed extent. */
export const extent = 96;
const edge = 2 ** 31;

const edges: readonly number[] = [
  -edge,
  1 - edge,
  8 - edge,
  extent - edge,
  -extent,
  -8,
  -7,
  -1,
  0,
  1,
  7,
  extent - 8,
  extent - 1,
  extent,
  edge / 2,
  edge - extent,
  edge - 8,
  edge - 2,
  edge - 1,
];

const constants = [0, 1, 2, 3, 4, 7, 8, 10, 16, 24, 64, 96, -1, -3, -8, edge - 1, -edge, edge / 2];

class Expressions {
  readonly #random: Random;
  readonly #leaves: readonly (() => Whole)[];

  constructor(random: Random, known: readonly Whole[]) {
    this.#random = random;
    this.#leaves = [
      ...known.map((value) => () => value),
      () => constant(i32, random.pick(constants)),
      () => constant(i32, random.pick([n, m, cdiv(n, 8), cdiv(m, 3)])),
      () => gridSize("j"),
    ];
  }

  make(depth: number): Whole {
    const random = this.#random;
    if (depth === 0 || random.below(8) === 0) return random.pick(this.#leaves)();
    const left = (): Whole => this.make(depth - 1);
    // Small constants and sizes on the right are what indices are made with.
    const right = (): Whole =>
      random.below(2) === 0 ? this.make(0) : constant(i32, random.pick(constants));
    const makers: readonly (() => Whole)[] = [
      () => left().add(right()),
      () => left().add(right()),
      () => left().sub(right()),
      () => left().mul(right()),
      () => left().mul(right()),
      () => left().div(right()),
      () => left().rem(right()),
      () => left().minimum(right()),
      () => left().maximum(right()),
      () => left().and(right()),
      () => left().or(right()),
      () => left().xor(right()),
      () => left().shl(random.below(34)),
      () => left().shr(random.below(34)),
      () => left().neg(),
      () => left().abs(),
      () => left().not(),
      () => left().lt(right()).select(left(), right()),
      () =>
        left()
          .cast(random.pick([i8, i16, i64, u32]))
          .cast(i32),
      () => left().cast(f32).mul(0.5).cast(i32),
    ];
    return random.pick(makers)();
  }
}

/** Shapes of windows; each axis has an index of its own. */
const tiles: readonly (readonly number[])[] = [
  [1, 1, 1],
  [2, 2, 8],
  [1, 4, 4],
  [3, 1, 6],
];

/** Blocks, each with a start of its own. */
const blocks = 6;

export interface IndexKernel {
  readonly definition: KernelDefinition;
  readonly starts: readonly number[];
  /** The shapes of what it writes. */
  readonly outputs: { readonly out: readonly number[]; readonly written: readonly number[] };
  /** How many indices it has. */
  readonly expressions: number;
}

/** A kernel that loads `count` windows at random indices, and stores to one. */
export function indexKernel(random: Random, count: number): IndexKernel {
  const tile = random.pick(tiles);
  const outputs = {
    out: [blocks, 2, count, ...tile],
    written: [blocks, 2, 4, extent / 4],
  };
  let expressions = 0;
  const definition = kernel(
    {
      name: "indices",
      grid: { s: blocks, j: cdiv(m, 3) },
      inputs: {
        starts: tensor(i32, [blocks]),
        x: tensor(f32, [4, 6, extent]),
        y: tensor(f32, [m, 3, n]),
      },
      inouts: { out: tensor(f32, outputs.out), written: tensor(f32, outputs.written) },
    },
    ({ s, j, starts: given, x, y, out, written }) => {
      const start = given.at(s).loadScalar();
      const bounds = { from: random.pick([0, 8]), to: random.pick([n, 16]), step: 8 };
      loop(bounds, (counter) => {
        const made = new Expressions(random, [s, j, start, start, counter, counter]);
        const at = (ref: Ref<"f32">, sizes: readonly number[]): Ref<"f32"> => {
          expressions += sizes.length;
          return ref.at(...sizes.map((size) => slice(made.make(1 + random.below(4)), size)));
        };
        const window = (ref: Ref<"f32">, sizes: readonly number[]): Ref<"f32"> =>
          random.below(3) > 0
            ? at(ref, sizes)
            : at(
                at(
                  ref,
                  sizes.map((size) => size * (1 + random.below(3))),
                ),
                sizes,
              );
        for (let position = 0; position < count; position += 1)
          // What the last round loads stays.
          out.at(s, j, position).store(window(random.pick([x, y]), tile).load({ fill: -1 }));
        window(written.at(s, j), [2, 8]).store(counter.cast(f32));
      });
    },
  );
  const starts = Array.from({ length: blocks }, () => random.pick(edges));
  return { definition, starts, outputs, expressions };
}

/** The shapes of what it reads. */
export function inputShapes({ n: columns, m: rows }: (typeof launches)[number]) {
  return { x: [4, 6, extent], y: [rows, 3, columns] } as const;
}
