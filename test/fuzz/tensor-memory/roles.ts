/**
 * Random programs on tensor memory by several threads: one copies factors into a ring, one may bring the left one to tensor memory, one starts products, and one or two
 * store the sums of a tile while the next one is added up beside it.
 *
 *   copy       x, y ▶ full[slot]                       again behind empty[slot]
 *   convert    full, left[slot] → factor[slot] ▶ given[slot]
 *   multiply   full, given, products ▶ empty[slot] … ▶ ready[sum]     again behind free[sum]
 *   store      ready, load, store ▶ free[sum]
 */
import {
  all,
  barrier,
  commitShared,
  copyAsync,
  f8e8m0fnu,
  fromNumbers,
  i32,
  kernel,
  loop,
  scalar,
  slice,
  smem,
  tcgen05Commit,
  tcgen05Copy,
  tcgen05Mma,
  tensor,
  tmem,
  toNumbers,
  when,
} from "../../../src/index.ts";
import type { Barrier, HostArray, Ref, Scalar } from "../../../src/index.ts";
import { elementCount } from "../../../src/formats/shape.ts";
import type { Kernel } from "../../../src/ir/node.ts";
import type { Random } from "../../../src/support/random.ts";
import { mostlySmall } from "../parts.ts";
import type { Program } from "../parts.ts";
import { cellsOf, multiply } from "./compute.ts";
import { drawFormats, grainOf } from "./draft.ts";
import { byRowsOfK, drawNumbers, drawScales, scalesOf } from "./programs.ts";

interface Setting extends ReturnType<typeof drawFormats> {
  readonly columns: number;
  readonly depth: number;
  readonly isWhole: boolean;
  /** Whether the right factor lies along k. */
  readonly along: boolean;
  readonly converts: boolean;
  readonly blocks: number;
  readonly tiles: number;
  readonly steps: number;
  /** Whether the number of steps is one of the launch. */
  readonly isDynamic: boolean;
  readonly stages: number;
  readonly sums: number;
  readonly consumers: number;
  /** Whether threads come in another order. */
  readonly turned: boolean;
}

type Whole = Scalar<"i32">;
type Given = { readonly [name: string]: unknown };

function draw(random: Random): Setting {
  for (;;) {
    const formats = drawFormats(random);
    const { a, rows, isScaled } = formats;
    const grain = Math.max(16, grainOf(rows, a));
    const columns = grain * mostlySmall([1, 2, 4], random);
    const depth = (isScaled ? 128 : 256 / a.bits) * mostlySmall([1, 2], random);
    const stages = 1 + random.below(3);
    const sums = 1 + random.below(2);
    const converts = !isScaled && a.bits === 16 && random.below(3) === 0;
    const setting: Setting = {
      ...{ ...formats, columns, depth, stages, sums, converts },
      isWhole: random.below(2) === 0,
      along: (columns * a.bits) % 128 !== 0 || random.below(2) === 0,
      blocks: 1 + random.below(2),
      tiles: 1 + random.below(3),
      steps: 1 + random.below(4),
      isDynamic: random.below(2) === 0,
      consumers: columns >= 32 ? 1 + random.below(2) : 1,
      turned: random.below(2) === 0,
    };
    const tensorColumns =
      sums * columns +
      (converts ? (stages * depth * a.bits) / 32 : 0) +
      (isScaled ? 8 * stages * (depth / 128) : 0);
    const sharedBytes = (stages * (rows + columns) * depth * a.bits) / 8;
    if (tensorColumns <= 512 && sharedBytes <= 160_000) return setting;
  }
}

const rightOf = ({ along, columns, depth }: Setting): readonly [number, number] =>
  along ? [columns, depth] : [depth, columns];

const atomsOf = ({ depth }: Setting): readonly [number, number, number, number] => [
  ...([1, depth / 128, 32, 16] as const),
];

class Roles {
  readonly #setting: Setting;
  readonly #given: Given;

  constructor(setting: Setting, given: Given) {
    this.#setting = setting;
    this.#given = given;
  }

  #ref(name: string): Ref {
    return this.#given[name] as Ref;
  }

  #barrier(name: string, at: Whole): Barrier {
    return (this.#given[name] as Barrier).at(at);
  }

  /** Every step of every tile, with its number among all of the block and the slot that it has. */
  #each(
    body: (at: {
      readonly tile: Whole;
      readonly step: Whole;
      readonly slot: Whole;
      readonly count: Whole;
    }) => void,
    done?: (tile: Whole) => void,
    before?: (tile: Whole) => void,
  ): void {
    const { tiles, steps, isDynamic, stages } = this.#setting;
    const length = isDynamic ? (this.#given["none"] as Whole).add(steps) : steps;
    loop(tiles, (tile) => {
      before?.(tile);
      loop(length, (step) => {
        const count = tile.mul(steps).add(step);
        body({ tile, step, count, slot: count.rem(stages) });
      });
      done?.(tile);
    });
  }

  copy(): void {
    const { stages, isScaled } = this.#setting;
    const block = this.#given["i"] as Whole;
    this.#each(({ tile, step, count, slot }) => {
      when(count.ge(stages), () => this.#barrier("empty", slot).wait());
      const landed = { barrier: this.#barrier("full", slot) };
      copyAsync(this.#ref("x").at(block, step), this.#ref("left").at(slot), landed);
      copyAsync(this.#ref("y").at(tile, step), this.#ref("right").at(slot), landed);
      if (!isScaled) return;
      copyAsync(this.#ref("xScales").at(block, step), this.#ref("leftAtoms").at(slot), landed);
      copyAsync(this.#ref("yScales").at(tile, step), this.#ref("rightAtoms").at(slot), landed);
    });
  }

  convert(): void {
    const { stages } = this.#setting;
    this.#each(({ count, slot }) => {
      this.#barrier("full", slot).wait();
      when(count.ge(stages), () => this.#barrier("used", slot).wait());
      this.#ref("factor").at(slot).store(this.#ref("left").at(slot).load());
      // The next copy comes behind these loads, too.
      commitShared();
      this.#barrier("given", slot).arrive();
      this.#barrier("empty", slot).arrive();
    });
  }

  multiply(): void {
    const { sums, isScaled, converts, along } = this.#setting;
    this.#each(
      ({ tile, step, slot }) => {
        this.#barrier("full", slot).wait();
        if (converts) this.#barrier("given", slot).wait();
        const right = this.#ref("right").at(slot);
        const [aScales, bScales] = isScaled
          ? ["left", "right"].map((side) => {
              const scales = this.#ref(`${side}Scales`).at(slot);
              tcgen05Copy(this.#ref(`${side}Atoms`).at(slot), scales);
              return scales;
            })
          : [];
        tcgen05Mma(
          this.#ref("sums").at(tile.rem(sums)),
          this.#ref(converts ? "factor" : "left").at(slot),
          along ? right.transpose() : right,
          {
            adds: step.gt(0),
            ...(aScales && bScales && { scales: [aScales, bScales] as const }),
          },
        );
        tcgen05Commit(this.#barrier("empty", slot));
        if (converts) tcgen05Commit(this.#barrier("used", slot));
      },
      (tile) => tcgen05Commit(this.#barrier("ready", tile.rem(sums))),
      (tile) => when(tile.ge(sums), () => this.#barrier("free", tile.rem(sums)).wait()),
    );
  }

  store(part: number): void {
    const { tiles, sums, consumers, columns } = this.#setting;
    const width = columns / consumers;
    const own = slice(part * width, width);
    loop(tiles, (tile) => {
      this.#barrier("ready", tile.rem(sums)).wait();
      const loaded = this.#ref("sums").at(tile.rem(sums), all, own).load();
      this.#barrier("free", tile.rem(sums)).arrive();
      this.#ref("out")
        .at(this.#given["i"] as Whole, tile, all, own)
        .store(loaded as never);
    });
  }
}

function traced(setting: Setting): Kernel {
  const { a, b, sum, rows, columns, depth, isScaled, converts } = setting;
  const { blocks, tiles, steps, stages, sums, consumers, turned } = setting;
  const stores = Array.from({ length: consumers }, (_, part) => `store${part}`);
  const names = ["copy", ...(converts ? ["convert"] : []), "multiply", ...stores];
  const threads = turned ? names.toReversed() : names;
  const atoms = atomsOf(setting);
  const { kernel: made } = kernel(
    {
      name: "tensor_roles",
      grid: { i: blocks },
      threads,
      inputs: {
        x: tensor(a, [blocks, steps, rows, depth]),
        y: tensor(b, [tiles, steps, ...rightOf(setting)]),
        ...(isScaled && {
          xScales: tensor(f8e8m0fnu, [blocks, steps, ...atoms]),
          yScales: tensor(f8e8m0fnu, [tiles, steps, ...atoms]),
        }),
        none: scalar(i32),
      },
      outputs: { out: tensor(sum, [blocks, tiles, rows, columns]) },
      scratch: {
        left: smem(a, [stages, rows, depth]),
        right: smem(b, [stages, ...rightOf(setting)]),
        sums: tmem(sum, [sums, rows, columns]),
        full: barrier({ count: stages, arrivals: isScaled ? 4 : 2 }),
        empty: barrier({ count: stages, arrivals: converts ? 2 : 1 }),
        ready: barrier({ count: sums }),
        free: barrier({ count: sums, arrivals: consumers }),
        ...(isScaled && {
          leftAtoms: smem(f8e8m0fnu, [stages, ...atoms]),
          rightAtoms: smem(f8e8m0fnu, [stages, ...atoms]),
          leftScales: tmem(f8e8m0fnu, [stages, 128, depth / 32], { scales: true }),
          rightScales: tmem(f8e8m0fnu, [stages, 128, depth / 32], { scales: true }),
        }),
        ...(converts && {
          factor: tmem(a, [stages, rows, depth], { packed: true }),
          given: barrier({ count: stages }),
          used: barrier({ count: stages }),
        }),
      },
    } as never,
    (given: Given) => {
      const roles = new Roles(setting, given);
      const bodies: { readonly [name: string]: () => void } = {
        copy: () => roles.copy(),
        convert: () => roles.convert(),
        multiply: () => roles.multiply(),
      };
      for (const name of threads) {
        const body = bodies[name] ?? ((): void => roles.store(Number(name.slice(5))));
        (given[name] as (body: () => void) => void)(body);
      }
    },
  );
  return made;
}

/** A part of an array, of those of its first two axes. */
function partOf(array: HostArray | undefined, first: number, second: number): Float64Array {
  if (array === undefined) throw new Error("no such array");
  const { shape } = array;
  const count = elementCount(shape.slice(2));
  const at = first * (shape[1] ?? 1) + second;
  return toNumbers(array).subarray(at * count, (at + 1) * count);
}

export function tensorRoles(random: Random): Program {
  const setting = draw(random);
  const { a, b, sum, rows, columns, depth, blocks, tiles, steps, isScaled, isWhole } = setting;
  const numbers = (dtype: typeof a, shape: readonly number[]): HostArray =>
    fromNumbers(dtype, shape, drawNumbers(dtype, elementCount(shape), isWhole, random));
  const scales = (count: number): HostArray => {
    const shape = [count, steps, ...atomsOf(setting)];
    return fromNumbers(f8e8m0fnu, shape, drawScales(elementCount(shape), isWhole, random));
  };
  const data: { [name: string]: HostArray } = {
    x: numbers(a, [blocks, steps, rows, depth]),
    y: numbers(b, [tiles, steps, ...rightOf(setting)]),
    ...(isScaled && { xScales: scales(blocks), yScales: scales(tiles) }),
  };
  const size = rows * columns;
  const out = cellsOf(blocks * tiles * size);
  for (let block = 0; block < blocks; block += 1)
    for (let tile = 0; tile < tiles; tile += 1)
      for (let step = 0; step < steps; step += 1) {
        const ownScales = (name: string, first: number): Float64Array | undefined =>
          isScaled ? scalesOf(partOf(data[name], first, step), 128, depth) : undefined;
        const right = byRowsOfK(partOf(data["y"], tile, step), rightOf(setting), setting.along);
        multiply(
          {
            ...{ rows, columns, depth, sum, isWhole, adds: step > 0 },
            a: {
              dtype: a,
              values: partOf(data["x"], block, step),
              scales: ownScales("xScales", block),
            },
            b: { dtype: b, values: right, scales: ownScales("yScales", tile) },
          },
          { cells: out, start: (block * tiles + tile) * size, stride: columns },
        );
      }
  return {
    kernel: traced(setting),
    dimensions: {},
    scalars: { none: 0 },
    data,
    near: { out },
    targets: ["sm_100a"],
  };
}
