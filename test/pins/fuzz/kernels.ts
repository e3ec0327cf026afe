/**
 * Random kernels in which layouts are stated between steps that simplification takes away, merges or keeps:
 *
 *   t = x.load()   t.mul(2).layoutCast(A)   t.mul(2).layoutCast(B)   loop({ to: 0, carry: t }, …).layoutCast(C)
 *
 * Numbers are small and whole, so that the order in which elements meet changes no result. A seed always gives the same kernel.
 */
import {
  accumulator,
  bf16,
  commitShared,
  concatenate,
  constant,
  dot,
  f32,
  full,
  i32,
  iota,
  kernel,
  loop,
  namedLayouts,
  scoped,
  smem,
  tensor,
  wgmma,
  when,
} from "tilewright";
import type { KernelDefinition, Ref, Scalar, Tile } from "tilewright";
import { Random } from "../../../src/support/random.ts";

/** Each output is stored once. */
const outputs = 2;
const mostSteps = 12;

type T = Tile<"f32">;

export function pinnedKernel(seed: number): KernelDefinition {
  const random = new Random(seed);
  const rows = random.pick([16, 32, 64]);
  const shape = [rows, rows];
  const names = Array.from({ length: outputs }, (_, place) => `out${place}`);
  return kernel(
    {
      name: `pinned_${seed}`,
      inputs: { x: tensor(f32, shape), y: tensor(f32, shape) },
      outputs: Object.fromEntries(names.map((name) => [name, tensor(f32, shape)])),
    },
    (things) => {
      const windows = things as unknown as { readonly [name: string]: Ref<"f32"> };
      new Steps(random, rows).run(windowOf(windows, "x"), windowOf(windows, "y"), (tile, place) =>
        windowOf(windows, `out${place}`).store(tile),
      );
    },
  );
}

function windowOf(windows: { readonly [name: string]: Ref<"f32"> }, name: string): Ref<"f32"> {
  const window = windows[name];
  if (window === undefined) throw new Error(`no array ${name}`);
  return window;
}

class Steps {
  readonly #random: Random;
  readonly #rows: number;
  /** Layouts of this kernel, few, so that they meet. */
  readonly #layouts: readonly string[];
  #depth = 0;

  constructor(random: Random, rows: number) {
    this.#random = random;
    this.#rows = rows;
    this.#layouts = [
      this.#layout(),
      this.#layout(),
      random.pick(["wgmma", "wgmmaTransposed", "(R0 L0 L1 | R1 L2 L3)", "(L0 L1 | L2 L3 L4 W0)"]),
      random.pick([namedLayouts.tcgen05.text, "()", "flat(L0 L1 L2 L3 L4 W0 W1)"]),
    ];
  }

  run(x: Ref<"f32">, y: Ref<"f32">, store: (tile: T, place: number) => void): void {
    const pool: T[] = [x.load(), y.load()];
    if (this.#chance(0.4)) pool.push(iota(f32, [this.#rows, this.#rows], { axis: 1 }));
    if (this.#chance(0.2)) pool.push(full(f32, [this.#rows, this.#rows], 2));
    if (this.#chance(0.3)) pool.push(this.#product(pool));
    const count = 3 + this.#random.below(mostSteps - 2);
    for (let step = 0; step < count; step++) pool.push(this.#next(pool));
    for (let place = 0; place < outputs; place++) store(this.#recent(pool), place);
  }

  #chance(share: number): boolean {
    return this.#random.uniform() < share;
  }

  /** Bits of the tile's coordinates in any order, some of them without a lane of their own. */
  #layout(): string {
    const bits = Math.log2(this.#rows);
    const registers = Array.from({ length: Math.max(0, 2 * bits - 7) }, (_, index) => `R${index}`);
    const names = ["L0", "L1", "L2", "L3", "L4", "W0", "W1", ...registers];
    for (let last = names.length - 1; last > 0; last--) {
      const other = this.#random.below(last + 1);
      [names[last], names[other]] = [names[other] ?? "", names[last] ?? ""];
    }
    return `(${names.slice(0, bits).join(" ")} | ${names.slice(bits, 2 * bits).join(" ")})`;
  }

  #recent(pool: readonly T[]): T {
    const near = this.#chance(0.7) ? pool.slice(-2) : pool;
    return this.#random.pick(near);
  }

  #stated(tile: T): T {
    const layout = this.#chance(0.03) ? "splat" : this.#random.pick(this.#layouts);
    if (this.#chance(0.12)) return tile.layoutHint(layout);
    if (this.#chance(0.12)) return tile.convertLayout(layout);
    return tile.layoutCast(layout);
  }

  #next(pool: readonly T[]): T {
    const tile = this.#recent(pool);
    if (this.#chance(0.45)) return this.#stated(tile);
    if (this.#chance(0.5)) return this.#idle(tile);
    if (this.#depth < 2 && this.#chance(0.25)) return this.#nested(tile);
    return this.#working(tile, pool);
  }

  /** Something that simplification may take away. */
  #idle(tile: T): T {
    const n = this.#rows;
    const one = this.#random.pick([1, 2, 4]);
    const steps: readonly (() => T)[] = [
      () => tile.mul(1),
      () => tile.div(1),
      () => tile.sub(0),
      () => tile.neg().neg(),
      () => tile.transpose().transpose(),
      () => tile.reshape([n * one, n / one]).reshape([n, n]),
      () => tile.slice([0, 0], [n, n]),
      () => tile.maximum(tile),
      () => tile.cast(f32),
      () => tile.gt(0).select(tile, tile),
      () => concatenate([tile], { axis: 0 }),
      () => loop({ to: 0, carry: tile }, (_, carried) => this.#inside(carried)),
      () => loop({ to: 2, carry: tile }, (_, carried) => carried),
      () =>
        when(
          constant(i32, this.#random.below(2)).eq(1),
          () => this.#inside(tile),
          () => this.#inside(tile),
        ),
    ];
    return this.#random.pick(steps)();
  }

  /** Few steps inside a region. */
  #inside(tile: T): T {
    this.#depth += 1;
    const pool = [tile];
    const count = 1 + this.#random.below(2);
    if (this.#depth <= 2) for (let step = 0; step < count; step++) pool.push(this.#next(pool));
    this.#depth -= 1;
    return pool.at(-1) ?? tile;
  }

  #nested(tile: T): T {
    const n = this.#rows;
    const steps: readonly (() => T)[] = [
      () => loop({ to: 2, carry: tile }, (_, carried) => this.#inside(carried).minimum(8)),
      () =>
        loop({ to: 2, carry: { p: tile, q: tile.add(1) } }, (_, { p, q }) => ({
          p: this.#inside(q).minimum(8),
          q: p,
        })).p,
      () =>
        when(
          this.#someNumber(tile).gt(0),
          () => this.#inside(tile),
          () => this.#inside(tile),
        ),
      () =>
        scoped({ buffer: smem(f32, [n, n]) }, ({ buffer }) => {
          buffer.store(tile);
          return this.#inside(buffer.load());
        }),
    ];
    return this.#random.pick(steps)();
  }

  #someNumber(tile: T): Scalar<"f32"> {
    return tile.max();
  }

  #working(tile: T, pool: readonly T[]): T {
    const n = this.#rows;
    const other = this.#recent(pool);
    const axis = this.#random.below(2);
    const steps: readonly (() => T)[] = [
      // Equal things, which are computed once.
      () => this.#stated(tile.mul(2)).minimum(this.#stated(tile.mul(2))),
      () => this.#stated(tile.transpose()).add(this.#stated(tile.transpose())),
      () => this.#stated(tile).add(this.#stated(tile)),
      () => tile.add(other),
      () => tile.mul(0).add(other),
      () => tile.sub(1).maximum(other),
      () => tile.transpose(),
      () => tile.max({ axis, keepDims: true }).broadcastTo([n, n]),
      () => tile.min({ axis }).expand({ axis }).add(tile),
      () => this.#stated(tile).sort({ axis }),
      () => this.#small(tile).cumsum({ axis }),
      () => {
        const half = n / 2;
        const lower = tile.slice([0, 0], [half, n]);
        return concatenate([tile.slice([half, 0], [half, n]), lower], { axis: 0 });
      },
      () => this.#product([tile, other]),
      () => {
        this.#stated(this.#stated(tile.add(3)).mul(1));
        return tile;
      },
    ];
    return this.#random.pick(steps)();
  }

  #small(tile: T): T {
    return tile.maximum(-2).minimum(2);
  }

  #product(pool: readonly T[]): T {
    const n = this.#rows;
    const [left, right] = [this.#recent(pool), this.#recent(pool)];
    if (n === 64 && this.#depth === 0 && this.#chance(0.6))
      return scoped({ a: smem(bf16, [n, n]), b: smem(bf16, [n, n]) }, ({ a, b }) => {
        a.store(this.#small(left).cast(bf16));
        b.store(this.#small(right).cast(bf16));
        if (this.#chance(0.5)) return dot(a.load(), b.load());
        commitShared();
        return wgmma(accumulator(f32, [n, n]), a, b).wait();
      });
    return dot(this.#small(left).cast(bf16), this.#small(right).cast(bf16));
  }
}
