/**
 * Random programs of one thread that copies and others that compute, by `warpSpecialized`, whose results are computed beside them: tiles dealt in any
 * order, counted, or split along their steps, inputs that move with steps, with tiles or not at all, waited for by the helper or by the body, a step early,
 * handed around in clusters.
 *
 *   for tile t, thread p, step k:   carries = step(t, p, k, x0[window(t, k)], …, carries)     results[t, p] = last(t, p, carries)
 */
import { dtypes, i32 } from "../../../src/formats/dtype.ts";
import {
  tensor,
  constant,
  gmem,
  kernel,
  scalar,
  semaphore,
  smem,
  storeThrough,
  tiles,
  warpSpecialized,
} from "../../../src/index.ts";
import type { Ref, Scalar, Semaphore, Tile } from "../../../src/index.ts";
import { fromNumbers } from "../../../src/index.ts";
import type { Random } from "../../../src/support/random.ts";
import { elementsText } from "../data.ts";
import type { Program } from "../parts.ts";
import { bodyLike, carried, like, whole } from "./control-steps.ts";
import { grainOf } from "./copy-steps.ts";
import { Draft, isInteger } from "./draft.ts";
import { countOf, held } from "./held.ts";
import type { Held } from "./held.ts";
import { movesEachStep, shapeOf, tracedMoving, usesOfMoving } from "./moving.ts";
import type { At, Whole } from "./moving.ts";
import { binary } from "./numbers.ts";
import { computedBlock, drawInput, tracedBlock } from "./pipeline-steps.ts";
import type { Input } from "./pipeline-steps.ts";
import { computeBody, computeSteps, neededSteps, traceBody, traceSteps, usesOf } from "./steps.ts";
import type { Body, Computing, Slot, Step, TracedValue, Tracing } from "./steps.ts";
import {
  computingOf,
  declaredSources,
  drawMemory,
  drawSource,
  hostOf,
  missing,
  sourceView,
  tracingOf,
} from "./surroundings.ts";
import { stepsApart } from "./warp-steps.ts";

/** How work is shared out. */
interface Setting {
  readonly rows: number;
  readonly columns: number;
  readonly workers: number;
  readonly computing: number;
  readonly cluster: number;
  /** Steps of a tile; tiles may have fewer, one after the other. */
  readonly steps: number;
  readonly uneven: boolean;
  readonly way: "dealt" | "counted" | "split";
  readonly order: object;
  /** Whether the first input is a step early, and all are waited for by the body. */
  readonly early: boolean;
  readonly copiesLast: boolean;
  readonly stores: "plainly" | "through";
}

function drawSetting(random: Random): Setting {
  const way = random.pick(["dealt", "dealt", "counted", "split"] as const);
  const [rows, columns] = [random.pick([1, 1, 2, 3]), 1 + random.below(3)];
  const order = rows > 1 ? { order: random.pick(["plain", "snake", "grouped"]), groupSize: 2 } : {};
  const isDealt = way === "dealt";
  const early = way !== "split" && random.below(4) === 0;
  return {
    ...{ way, rows, columns, early },
    workers: 1 + random.below(3),
    computing: 1 + random.below(2),
    cluster: isDealt && random.below(5) === 0 ? 2 : 1,
    steps: early ? 1 + random.below(4) : random.below(5),
    uneven: way !== "split" && random.below(3) === 0,
    order: { ...order, ...(isDealt && random.below(4) === 0 && { alternate: true }) },
    copiesLast: random.below(4) === 0,
    stores: random.below(2) === 0 ? "plainly" : "through",
  };
}

/** Steps of a tile, where it depends on the tile: some have one less, and one more of those that may have none. */
function stepsOf({ steps, uneven, early }: Setting, tile: number): number {
  return uneven ? Math.max(early ? 1 : 0, steps - (tile % 3)) : steps;
}

/** What computing threads do: with their first values, in each step, and at the end. */
interface Work {
  readonly carries: readonly Slot[];
  readonly before: Body;
  readonly step: Body;
  readonly after: Body;
}

/** Everything that a program is made of. */
class WarpSpecialized {
  readonly #random: Random;
  readonly #draft: Draft;
  readonly #setting: Setting;
  readonly #number: Slot;
  readonly #given: number;
  readonly #sources;
  readonly #memories: ReadonlyMap<string, Held>;
  readonly #inputs: readonly Input[];
  /** Names of inputs that the body waits for itself. */
  readonly #manual: ReadonlySet<string>;
  readonly #options: object;
  readonly #work: Work;

  constructor(random: Random) {
    this.#random = random;
    this.#setting = drawSetting(random);
    const draft = new Draft(random, { blocks: 1 });
    this.#draft = draft;
    this.#number = draft.slot(i32, []);
    this.#given = random.below(9) - 3;
    draft.pool.push(this.#number);
    const [a = 1, b = 1, c = 1] = draft.extents;
    this.#sources = [0, 1].map((at) =>
      drawSource(random, `in${at}`, random.pick([[a], [a, b], [b, a], [a, b, c], [a + 30, b]])),
    );
    this.#memories = new Map(
      this.#sources.map((source) => [source.name, drawMemory(source, random)]),
    );
    const { early } = this.#setting;
    const inputs: Input[] = [];
    for (let left = early ? 2 : 1 + random.below(3); left > 0;) {
      const input = drawInput(draft, this.#sources, left);
      if (input === undefined || (early && !movesEachStep(input.moving))) continue;
      inputs.push(input);
      left -= 1;
    }
    this.#inputs = inputs;
    this.#manual = new Set(
      this.#inputs.flatMap(({ name, moving }) =>
        early || (movesEachStep(moving) && draft.chance(0.3)) ? [name] : [],
      ),
    );
    this.#options = this.#drawOptions();
    this.#work = this.#setting.way === "split" ? this.#drawSum() : this.#drawWork();
  }

  #drawOptions(): object {
    const [draft, random] = [this.#draft, this.#random];
    const depth = random.pick([1, 2, 2, 3]);
    const delay = draft.chance(0.3) ? { delay: depth > 1 ? random.below(2) : 0 } : {};
    const names = this.#inputs.map(({ name }) => name);
    const prefetch = draft.chance(0.3) ? { prefetch: names.toReversed() } : {};
    return { depth, ...delay, ...prefetch, ...(draft.chance(0.1) && { synchronous: true }) };
  }

  #drawWork(): Work {
    const draft = this.#draft;
    const fill = stepsApart(this.#sources);
    const place = (): readonly Slot[] => [0, 1].map(() => draft.slot(i32, []));
    const carries = carried(draft);
    const blocks = this.#blocks();
    const results = like(draft, this.#drawResults());
    return {
      carries,
      before: bodyLike(draft, place(), carries, fill),
      step: bodyLike(
        draft,
        [...place(), draft.slot(i32, []), ...blocks, ...like(draft, carries)],
        carries,
        fill,
      ),
      after: bodyLike(draft, [...place(), ...like(draft, carries)], results, fill),
    };
  }

  /** Where tiles are split, steps add to a sum of zeros, whose order is no matter. */
  #drawSum(): Work {
    const draft = this.#draft;
    const fill = stepsApart(this.#sources);
    const dtype = dtypes[this.#random.pick(["i32", "i64", "u32", "i16"] as const)];
    const sum = this.#asStored(draft.slot(dtype, draft.shape()));
    const { shape } = sum;
    const place = (): readonly Slot[] => [0, 1].map(() => draft.slot(i32, []));
    const last = draft.slot(dtype, shape);
    return {
      carries: [sum],
      before: draft.body(place(), () => [draft.constantOf(dtype, shape, 0n)]),
      step: bodyLike(draft, [...place(), draft.slot(i32, []), ...this.#blocks()], [sum], fill),
      after: draft.body([...place(), last], () => [last]),
    };
  }

  #blocks(): readonly Slot[] {
    return this.#inputs.map(({ source: { dtype }, seen }) => this.#draft.slot(dtype, seen.shape));
  }

  /** Formats and shapes of results. */
  #drawResults(): readonly Slot[] {
    const isTile = ({ dtype, shape }: Slot): boolean => shape.length > 0 && isInteger(dtype);
    return Array.from({ length: 1 + this.#random.below(2) }, () =>
      this.#asStored(this.#draft.some(isTile)),
    );
  }

  /** What leaves by copies has rows of whole sixteens of bytes. */
  #asStored(slot: Slot): Slot {
    if (this.#setting.stores === "plainly") return slot;
    return this.#draft.slot(slot.dtype, [...slot.shape.slice(0, -1), grainOf(slot.dtype)]);
  }

  /** What comes before all tiles. */
  get #steps(): readonly Step[] {
    const { before, step, after } = this.#work;
    const bodies = [before, step, after].flatMap(usesOf);
    const windows = this.#inputs.flatMap(({ moving }) => usesOfMoving(moving));
    return neededSteps(this.#draft.steps, [...bodies, ...windows]);
  }

  get #results(): readonly Slot[] {
    return this.#work.after.results;
  }

  /** The number of a tile, in the order of rows. */
  #tile({ i, j }: { readonly i: Whole; readonly j: Whole }): Whole {
    return i.mul(this.#setting.columns).add(j);
  }

  #at(t: Whole, k: Whole): At<Whole> {
    return { i: t, k, count: this.#setting.steps };
  }

  /** Steps of a tile as the kernel counts them. */
  #count(t: Whole): Whole {
    const { steps, uneven, early } = this.#setting;
    if (!uneven) return constant(i32, steps);
    return t
      .rem(3)
      .mul(-1)
      .add(steps)
      .maximum(early ? 1 : 0);
  }

  /** Parts of a window that blocks of a cluster copy for each other begin at multiples of 128 bytes. */
  #shared({ moving, source: { dtype } }: Input): object {
    const { cluster } = this.#setting;
    const shape = shapeOf(moving);
    const axis = shape.findIndex((extent) => extent % cluster === 0);
    const bytes = (countOf(shape.slice(Math.max(0, axis))) * dtype.bits) / 8 / cluster;
    const rows = ((shape.at(-1) ?? 1) * dtype.bits) / 8 / (axis === shape.length - 1 ? cluster : 1);
    const fits = cluster > 1 && axis >= 0 && bytes % 128 === 0 && rows % 16 === 0;
    return fits ? { multicast: "rank" } : {};
  }

  program(): Program {
    const { workers, computing, cluster, rows, columns, way, copiesLast } = this.#setting;
    const { inputs, dimensions } = declaredSources(this.#sources);
    const count = rows * columns;
    const isLone = way !== "dealt";
    const names = Array.from({ length: computing }, (_, part) => `compute${part}`);
    const [sum] = this.#work.carries;
    const outputs = this.#results.map(
      ({ dtype, shape }, at) =>
        [`out${at}`, tensor(dtype, [cluster, count, computing, ...shape])] as const,
    );
    const buffers = this.#results.map(
      ({ dtype, shape }, at) => [`buffer${at}`, smem(dtype, [computing, 1, ...shape])] as const,
    );
    const { kernel: traced } = kernel(
      {
        name: "warp_specialized",
        grid: isLone ? { worker: workers } : { worker: workers, rank: cluster },
        ...(cluster > 1 && { cluster: { rank: cluster } }),
        threads: copiesLast ? [...names, "copier"] : ["copier", ...names],
        inputs: { ...inputs, number: scalar(i32) },
        outputs: Object.fromEntries(outputs),
        ...(way === "counted" && { inouts: { counter: tensor(i32, [1]) } }),
        scratch: {
          ...(this.#setting.stores === "through" && Object.fromEntries(buffers)),
          ...(way === "split" &&
            sum !== undefined && {
              sums: gmem(sum.dtype, [workers, computing, ...sum.shape]),
              told: semaphore([workers, computing]),
            }),
        },
      } as never,
      (given: { readonly [name: string]: unknown }) => {
        this.#trace(given);
      },
    );
    const expected = [
      ...outputs.map(([name], at) => `${name}: ${this.#expected(at)}`),
      ...(way === "counted" ? ["counter: 0"] : []),
    ];
    return {
      kernel: traced,
      dimensions,
      scalars: { number: this.#given },
      data: {
        ...Object.fromEntries([...this.#memories].map(([name, memory]) => [name, hostOf(memory)])),
        ...(way === "counted" && { counter: fromNumbers(i32, [1], [0]) }),
      },
      expected: expected.join("\n"),
      ...(cluster > 1 && { targets: ["sm_90a", "sm_100a"] }),
    };
  }

  #trace(given: { readonly [name: string]: unknown }): void {
    const { rows, columns, way, order, copiesLast, cluster } = this.#setting;
    const number = given["number"] as Scalar;
    const tracing = tracingOf(
      new Map([[this.#number, number]]),
      (name) => (given[name] as Ref | undefined) ?? missing(name),
    );
    traceSteps(this.#steps, tracing);
    const described = this.#inputs.map((input, at) => {
      const { name, source, moving, options } = input;
      const window = ({ i, j, k }: { readonly i: Whole; readonly j: Whole; readonly k: Whole }) =>
        tracedMoving(
          moving,
          this.#at(this.#tile({ i, j }), k),
          tracing.array(source.name),
          tracing.read,
        );
      const isManual = this.#manual.has(name);
      const early = this.#setting.early && at === 0;
      const own = { at: window, ...options, ...this.#shared(input), manual: isManual, early };
      return [name, own] as const;
    });
    const shared = {
      along: "worker",
      ...order,
      ...(way === "counted" && { counter: given["counter"] as Ref<"i32"> }),
      ...(way === "split" && {
        streamK: { sums: given["sums"] as Ref, flags: given["told"] as Semaphore },
      }),
    };
    const steps = constant(i32, this.#setting.steps);
    warpSpecialized(
      {
        tiles: tiles({ i: rows, j: columns }, shared as object),
        grid:
          way === "split"
            ? { k: steps }
            : (tile: { readonly i: Whole; readonly j: Whole }) => ({
                k: this.#count(this.#tile(tile)),
              }),
        inputs: Object.fromEntries(described),
        ...this.#options,
        ...(copiesLast && { copy: "copier" }),
      } as never,
      ((tile: TileArgument) => {
        const rank = cluster > 1 ? (given["rank"] as Whole) : constant(i32, 0);
        this.#traceTile(tile, rank, given, tracing);
      }) as never,
    );
  }

  #traceTile(
    tile: TileArgument,
    rank: Whole,
    given: { readonly [name: string]: unknown },
    tracing: Tracing,
  ): void {
    const { part } = tile;
    const t = this.#tile(tile);
    const done = (values: readonly TracedValue[]): void => {
      const results = traceBody(this.#work.after, tracing, [t, part, ...values]);
      results.forEach((value, at) => {
        const window = (given[`out${at}`] as Ref).at(rank, t, part);
        const starts = window.shape.map(() => 0);
        if (this.#setting.stores === "plainly") window.store(value as never);
        else {
          const buffers = (given[`buffer${at}`] as Ref).at(part);
          storeThrough(buffers, value as never, window as never, starts);
        }
      });
    };
    const first = traceBody(this.#work.before, tracing, [t, part]);
    if (this.#setting.way === "split") this.#traceSum(tile, t, first, done, tracing);
    else if (this.#setting.early) this.#traceEarly(tile, t, first, done, tracing);
    else {
      const ended = tile.steps([...first], (step, values) =>
        traceBody(this.#work.step, tracing, [
          ...[t, part, step["k"] as Whole],
          ...this.#read(this.#inputs, step),
          ...(values as readonly TracedValue[]),
        ]),
      );
      done(ended as readonly TracedValue[]);
    }
  }

  /** The blocks of a step, each waited for where the body is to. */
  #read(inputs: readonly Input[], blocks: StepArgument): readonly Tile[] {
    return inputs.map((input) => {
      const { name } = input;
      if (!this.#manual.has(name)) return tracedBlock(input, blocks[name] as Ref);
      const tile = tracedBlock(input, blocks.wait(name));
      blocks.release(name);
      return tile;
    });
  }

  #traceSum(
    tile: TileArgument,
    t: Whole,
    [first]: readonly TracedValue[],
    done: (values: readonly TracedValue[]) => void,
    tracing: Tracing,
  ): void {
    tile.steps(
      first,
      (step, sum) => {
        const values = [t, tile.part, step["k"] as Whole, ...this.#read(this.#inputs, step)];
        const [more] = traceBody(this.#work.step, tracing, values);
        return (sum as Tile).add(more as never);
      },
      (sum) => {
        done([sum as Tile]);
      },
    );
  }

  /** A step has the next block of the first input with its own of the others, so that blocks of the first are carried. */
  #traceEarly(
    tile: TileArgument,
    t: Whole,
    first: readonly TracedValue[],
    done: (values: readonly TracedValue[]) => void,
    tracing: Tracing,
  ): void {
    const [early, ...others] = this.#inputs;
    if (early === undefined) throw new Error("an input is early");
    const work = (k: Whole, block: Tile, blocks: readonly Tile[], values: readonly TracedValue[]) =>
      traceBody(this.#work.step, tracing, [t, tile.part, k, block, ...blocks, ...values]);
    const [block] = this.#read([early], tile);
    const carry = { block, values: [...first] };
    const ended = tile.steps(carry, (step, given) => {
      const now = given as { readonly block: Tile; readonly values: readonly TracedValue[] };
      const [next] = this.#read([early], step);
      const blocks = this.#read(others, step);
      return { block: next, values: work(step["k"] as Whole, now.block, blocks, now.values) };
    }) as { readonly block: Tile; readonly values: readonly TracedValue[] };
    const blocks = this.#read(others, tile);
    done(work(this.#count(t).sub(1), ended.block, blocks, ended.values));
  }

  /** The elements of a result, as text. */
  #expected(at: number): string {
    const { rows, columns, computing, cluster } = this.#setting;
    const arrays = new Map(
      this.#sources.map((source) => {
        const { name } = source;
        return [name, sourceView(source, this.#memories.get(name) ?? missing(name))] as const;
      }),
    );
    const number = held(i32, [], () => BigInt(this.#given));
    const computed = computingOf(new Map([[this.#number, number]]), arrays);
    computeSteps(this.#steps, computed);
    const items = Array.from({ length: rows * columns * computing }, (_, each) =>
      this.#computed(Math.floor(each / computing), each % computing, computed),
    ).map((results) => results[at]?.items ?? []);
    const { dtype, shape } = this.#results[at] ?? missing(`result ${at}`);
    const all = Array.from({ length: cluster }, () => items.flat()).flat();
    return elementsText(hostOf({ dtype, shape: [cluster, items.length, ...shape], items: all }));
  }

  #computed(tile: number, part: number, computing: Computing): readonly Held[] {
    const { steps, way } = this.#setting;
    const { before, step, after, carries } = this.#work;
    const place = [whole(tile), whole(part)];
    let values = computeBody(before, computing, place);
    for (let k = 0; k < stepsOf(this.#setting, tile); k++) {
      const blocks = this.#inputs.map((input) =>
        computedBlock(input, { i: tile, k, count: steps }, computing),
      );
      const given = [...place, whole(k), ...blocks];
      if (way !== "split") values = computeBody(step, computing, [...given, ...values]);
      else {
        const [more] = computeBody(step, computing, given);
        values = values.map((sum) => added(sum, more ?? missing("more")));
      }
    }
    if (values.length !== carries.length) throw new Error("a step hands on what it is given");
    return computeBody(after, computing, [...place, ...values]);
  }
}

function added(sum: Held, more: Held): Held {
  const items = sum.items.map((item, at) => binary("add", sum.dtype, item, more.items[at] ?? 0n));
  return { ...sum, items };
}

/** What bodies are given. */
interface StepArgument {
  readonly [name: string]: unknown;
  readonly wait: (name: string) => Ref;
  readonly release: (name: string) => void;
}

interface TileArgument extends StepArgument {
  readonly i: Whole;
  readonly j: Whole;
  readonly part: Whole;
  readonly steps: (
    carry: unknown,
    body: (step: StepArgument, carry: unknown) => unknown,
    done?: (sums: unknown) => void,
  ) => unknown;
}

export function specialized(random: Random): Program {
  return new WarpSpecialized(random).program();
}
