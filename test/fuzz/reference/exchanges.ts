/**
 * Random programs of threads and blocks that hand tiles to each other, whose results are computed beside them for all of them in step: through
 * shared memory behind meetings or barriers, through peers' memory in clusters, by copies into memory and barriers of a scope, by atomic updates in
 * shared and global memory, in loops, branches and parts of warps.
 *
 *   step       traced once, for whoever runs it          computed for every thread of every block
 *   exchange   buffer.at(thread).store(a) … sync         d = what another thread, maybe of another block, has in a
 *
 * Tiles are of i32, whose sums wrap, so that the order of atomic updates is no matter; buffers are of other formats, too.
 */
import { dtypes, i32 } from "../../../src/formats/dtype.ts";
import type { DType } from "../../../src/formats/dtype.ts";
import {
  tensor,
  barrier,
  blockSync,
  clusterRank,
  clusterSync,
  commitShared,
  copyAsync,
  fromNumbers,
  kernel,
  loop,
  scalar,
  scoped,
  slice,
  smem,
  threadIndex,
  warps,
  when,
} from "../../../src/index.ts";
import type { Barrier, Ref, Scalar, Tile } from "../../../src/index.ts";
import type { Random } from "../../../src/support/random.ts";
import { elementsText } from "../data.ts";
import type { Program } from "../parts.ts";
import { cast } from "./numbers.ts";

type Index = Scalar<"i32">;
type Tiles = readonly Tile<"i32">[];
type Numbers = readonly number[];

/** What a program is for. */
interface Setting {
  readonly shape: readonly [rows: number, columns: number];
  readonly threads: number;
  /** Blocks of a cluster, and of the grid. */
  readonly cluster: number;
  readonly blocks: number;
  readonly warps: number;
  /** A number that only the launch knows. */
  readonly number: number;
}

/** What traced steps refer to. */
interface Place {
  readonly thread: Index;
  readonly rank: Index | undefined;
  readonly number: Index;
  readonly x: Ref<"i32">;
  readonly sums: Ref<"i32">;
  readonly buffer: (name: string) => Ref;
  readonly barrier: (name: string) => Barrier;
}

/** A program thread of a block, with the tiles that it holds. */
interface Agent {
  readonly block: number;
  readonly thread: number;
  held: readonly Numbers[];
}

interface World {
  readonly agents: readonly Agent[];
  readonly x: (block: number, thread: number) => Numbers;
  readonly sums: number[];
}

interface Step {
  readonly trace: (tiles: Tiles, place: Place) => Tiles;
  /** By the agents that come here: all, or those of one branch. */
  readonly compute: (here: readonly Agent[], world: World) => void;
}

const registers = 3;
const formats = ["i32", "i64", "i16", "i8", "u8", "u32", "f64"] as const;

/** An i32 as it comes back from a buffer of another format. */
function through(dtype: DType, value: number): number {
  const stored = cast(i32, dtype, BigInt(value));
  return Number(cast(dtype, i32, stored));
}

function replaced<T>(values: readonly T[], at: number, by: T): readonly T[] {
  return values.with(at, by);
}

/** Gives each agent a new tile in place of one, all of them at the same time. */
function giveEach(
  here: readonly Agent[],
  at: number,
  made: (agent: Agent, place: number) => number,
): void {
  const results = here.map((agent) =>
    (agent.held[at] ?? []).map((_, place) => made(agent, place) | 0),
  );
  here.forEach((agent, index) => {
    agent.held = replaced(agent.held, at, results[index] ?? []);
  });
}

class Drawing {
  readonly #random: Random;
  readonly #setting: Setting;
  /** Memory and barriers of the whole kernel, by name. */
  readonly scratch: { [name: string]: ReturnType<typeof smem> | ReturnType<typeof barrier> } = {};
  #names = 0;

  constructor(random: Random, setting: Setting) {
    this.#random = random;
    this.#setting = setting;
  }

  /** Steps that all threads take together; `alone` where some come here and others do not. */
  steps(count: number, depth: number, alone = false): readonly Step[] {
    const own = [() => this.#combine(), () => this.#combine(), () => this.#warps()];
    const update = () => this.#update();
    const common = [
      ...[() => this.#exchange(), () => this.#exchange(), () => this.#sharedSum()],
      ...[() => this.#copy(), () => this.#peerStore(), () => this.#keep(depth)],
    ];
    const nested = [() => this.#loop(depth, alone), () => this.#branch(depth, alone)];
    const kinds = [...own, update, ...(alone ? [] : common), ...(depth < 2 ? nested : [])];
    return Array.from({ length: count }, () => this.#random.pick(kinds)());
  }

  #register(): number {
    return this.#random.below(registers);
  }

  #name(kind: string): string {
    this.#names += 1;
    return `${kind}${this.#names}`;
  }

  #buffer(dtype: DType): string {
    const { threads, shape } = this.#setting;
    const name = this.#name("buffer");
    this.scratch[name] = smem(dtype, [threads, ...shape]);
    return name;
  }

  /** All threads of the block, or of the cluster, have come here. */
  #meeting(ofCluster: boolean): (place: Place) => void {
    const { threads } = this.#setting;
    if (ofCluster) return () => clusterSync();
    if (threads === 1) return () => undefined;
    if (this.#random.below(2) === 0) return () => blockSync();
    const name = this.#name("met");
    this.scratch[name] = barrier({ arrivals: threads });
    return (place) => {
      place.barrier(name).arrive();
      place.barrier(name).wait();
    };
  }

  #combine(): Step {
    const [a, b, d] = [this.#register(), this.#register(), this.#register()];
    const kind = this.#random.below(4);
    const [rows, columns] = this.#setting.shape;
    return {
      trace(tiles) {
        const [left, right] = [tiles[a] as Tile<"i32">, tiles[b] as Tile<"i32">];
        const made = [
          () => left.mul(3).add(right),
          () => left.xor(right.max({ axis: 0, keepDims: true })),
          () => left.cumsum({ axis: 1 }).sub(right),
          () => left.transpose().reshape([rows, columns]).minimum(right),
        ][kind];
        return made === undefined ? tiles : replaced(tiles, d, made());
      },
      compute(here) {
        giveEach(here, d, ({ held }, place) => {
          const [left = [], right = []] = [held[a], held[b]];
          const [own, other] = [left[place] ?? 0, right[place] ?? 0];
          const [row, column] = [Math.floor(place / columns), place % columns];
          if (kind === 0) return Math.imul(own, 3) + other;
          if (kind === 1)
            return own ^ Math.max(...right.filter((_, at) => at % columns === column));
          if (kind === 2)
            return (
              left.slice(row * columns, place + 1).reduce((sum, each) => (sum + each) | 0, 0) -
              other
            );
          const turned = left[(place % rows) * columns + Math.floor(place / rows)] ?? 0;
          return Math.min(turned, other);
        });
      },
    };
  }

  /** Each thread gets what another one of its block, or of another of the cluster, has. */
  #exchange(): Step {
    const { threads, cluster } = this.#setting;
    const [a, d] = [this.#register(), this.#register()];
    const dtype = dtypes[this.#random.pick(formats)];
    const [along, across] = [this.#random.below(threads), this.#random.below(cluster)];
    const name = this.#buffer(dtype);
    const [before, after] = [this.#meeting(across > 0), this.#meeting(across > 0)];
    return {
      trace(tiles, place) {
        const buffer = place.buffer(name);
        buffer.at(place.thread).store((tiles[a] as Tile<"i32">).cast(dtype));
        before(place);
        const other = place.rank?.add(across).rem(cluster);
        const memory = across === 0 || other === undefined ? buffer : buffer.peer(other);
        const got = memory.at(place.thread.add(along).rem(threads)).load().cast(i32);
        after(place);
        return replaced(tiles, d, got);
      },
      compute(here, { agents }) {
        giveEach(here, d, ({ block, thread }, place) => {
          const first = block - (block % cluster);
          const from = first + ((block + across) % cluster);
          const other = agents.find(
            (each) => each.block === from && each.thread === (thread + along) % threads,
          );
          return through(dtype, other?.held[a]?.[place] ?? 0);
        });
      },
    };
  }

  /** Each block writes into the memory of another. */
  #peerStore(): Step {
    const { cluster } = this.#setting;
    if (cluster === 1) return this.#combine();
    const [a, d] = [this.#register(), this.#register()];
    const across = this.#random.below(cluster);
    const name = this.#buffer(i32);
    return {
      trace(tiles, place) {
        const buffer = place.buffer(name);
        const other = place.rank?.add(across).rem(cluster);
        clusterSync();
        if (other !== undefined)
          buffer
            .peer(other)
            .at(place.thread)
            .store(tiles[a] as Tile<"i32">);
        clusterSync();
        return replaced(tiles, d, buffer.at(place.thread).load() as Tile<"i32">);
      },
      compute(here, { agents }) {
        giveEach(here, d, ({ block, thread }, place) => {
          const from = block - (block % cluster) + ((block + cluster - across) % cluster);
          const other = agents.find((each) => each.block === from && each.thread === thread);
          return other?.held[a]?.[place] ?? 0;
        });
      },
    };
  }

  /** The sum of what all threads of the block have. */
  #sharedSum(): Step {
    const [a, d] = [this.#register(), this.#register()];
    const name = this.#buffer(i32);
    const meetings = [0, 1, 2].map(() => this.#meeting(false));
    return {
      trace(tiles, place) {
        const buffer = place.buffer(name).at(0) as Ref<"i32">;
        when(place.thread.eq(0), () => {
          buffer.store(0);
        });
        meetings[0]?.(place);
        buffer.atomicAdd(tiles[a] as Tile<"i32">);
        meetings[1]?.(place);
        const sum = buffer.load();
        meetings[2]?.(place);
        return replaced(tiles, d, sum);
      },
      compute(here) {
        giveEach(here, d, ({ block }, place) =>
          here
            .filter((each) => each.block === block)
            .reduce((sum, { held }) => (sum + (held[a]?.[place] ?? 0)) | 0, 0),
        );
      },
    };
  }

  /** Adds to an array that all blocks share. */
  #update(): Step {
    const a = this.#register();
    return {
      trace(tiles, { sums }) {
        sums.atomicAdd(tiles[a] as Tile<"i32">);
        return tiles;
      },
      compute(here, { sums }) {
        for (const { held } of here)
          held[a]?.forEach((value, place) => {
            sums[place] = ((sums[place] ?? 0) + value) | 0;
          });
      },
    };
  }

  /** A copy into memory, and by a barrier, of a scope. */
  #copy(): Step {
    const { blocks, threads, shape } = this.#setting;
    const d = this.#register();
    const [block, thread] = [this.#random.below(blocks), this.#random.below(threads)];
    return {
      trace: (tiles, place) =>
        replaced(
          tiles,
          d,
          scoped(
            { landing: smem(i32, [threads, ...shape]), landed: barrier({ count: threads }) },
            ({ landing, landed }) => {
              const [own, told] = [landing.at(place.thread), landed.at(place.thread)];
              copyAsync(place.x.at(block, thread), own, { barrier: told });
              told.wait();
              return own.load();
            },
          ),
        ),
      compute(here, { x }) {
        giveEach(here, d, (_, place) => x(block, thread)[place] ?? 0);
      },
    };
  }

  /** A tile kept in memory of a scope while other steps are taken. */
  #keep(depth: number): Step {
    const { threads, shape } = this.#setting;
    const [a, d] = [this.#register(), this.#register()];
    const dtype = dtypes[this.#random.pick(formats)];
    const body = this.steps(1 + this.#random.below(2), depth + 1);
    return {
      trace: (tiles, place) =>
        scoped({ kept: smem(dtype, [threads, ...shape]) }, ({ kept }) => {
          const own = (kept as Ref).at(place.thread);
          own.store((tiles[a] as Tile<"i32">).cast(dtype));
          const after = traced(body, tiles, place);
          return [
            ...replaced(
              after,
              d,
              own
                .load()
                .cast(i32)
                .add(after[d] as Tile<"i32">),
            ),
          ];
        }) as Tiles,
      compute(here, world) {
        const kept = new Map(here.map((agent) => [agent, agent.held[a] ?? []]));
        computed(body, here, world);
        giveEach(
          here,
          d,
          (agent, place) =>
            (agent.held[d]?.[place] ?? 0) + through(dtype, kept.get(agent)?.[place] ?? 0),
        );
      },
    };
  }

  /** Each warp changes its rows of a buffer. */
  #warps(): Step {
    const { shape, warps: count } = this.#setting;
    const [rows, columns] = shape;
    if (rows % count !== 0) return this.#combine();
    const [a, d, part] = [this.#register(), this.#register(), rows / count];
    const name = this.#buffer(i32);
    return {
      trace(tiles, place) {
        const buffer = place.buffer(name).at(place.thread) as Ref<"i32">;
        buffer.store(tiles[a] as Tile<"i32">);
        warps((warp) => {
          const own = buffer.at(slice(warp.mul(part), part));
          own.store(own.load().cumsum({ axis: 1 }).add(warp));
        });
        return replaced(tiles, d, buffer.load());
      },
      compute(here) {
        giveEach(here, d, ({ held }, place) => {
          const row = Math.floor(place / columns);
          const before = (held[a] ?? []).slice(row * columns, place + 1);
          return before.reduce((sum, each) => (sum + each) | 0, Math.floor(row / part));
        });
      },
    };
  }

  #loop(depth: number, alone: boolean): Step {
    const rounds = this.#random.pick(["number", 0, 1, 2, 3] as const);
    const body = this.steps(1 + this.#random.below(3), depth + 1, alone);
    const { number } = this.#setting;
    return {
      trace: (tiles, place) =>
        loop(
          { to: rounds === "number" ? place.number : rounds, carry: [...tiles] },
          (_, carried) => {
            const [first, ...others] = traced(body, carried, place);
            return [...others, first] as Tile<"i32">[];
          },
        ),
      compute(here, world) {
        for (let left = rounds === "number" ? number : rounds; left > 0; left -= 1) {
          computed(body, here, world);
          for (const agent of here) agent.held = [...agent.held.slice(1), agent.held[0] ?? []];
        }
      },
    };
  }

  /** A condition on the launch, which all meet, or on the thread, whose branches do not meet others. */
  #branch(depth: number, alone: boolean): Step {
    const { number } = this.#setting;
    const ofThread = this.#random.below(2) === 0;
    const least = this.#random.below(3);
    const [then, otherwise] = [0, 1].map(() =>
      this.steps(1 + this.#random.below(2), depth + 1, alone || ofThread),
    ) as [readonly Step[], readonly Step[]];
    return {
      trace: (tiles, place) =>
        when(
          ofThread ? place.thread.ge(least) : place.number.ge(least),
          () => [...traced(then, tiles, place)],
          () => [...traced(otherwise, tiles, place)],
        ),
      compute(here, world) {
        const isThen = ({ thread }: Agent): boolean => (ofThread ? thread : number) >= least;
        computed(then, here.filter(isThen), world);
        computed(
          otherwise,
          here.filter((agent) => !isThen(agent)),
          world,
        );
      },
    };
  }
}

function traced(steps: readonly Step[], tiles: Tiles, place: Place): Tiles {
  return steps.reduce((held, step) => step.trace(held, place), tiles);
}

function computed(steps: readonly Step[], here: readonly Agent[], world: World): void {
  if (here.length > 0) for (const step of steps) step.compute(here, world);
}

function settingOf(random: Random): Setting {
  const cluster = random.pick([1, 1, 2, 4]);
  return {
    shape: [random.pick([4, 8, 16, 5]), random.pick([4, 8, 12, 32])],
    threads: random.pick([1, 2, 2, 3]),
    ...{ cluster, blocks: cluster * random.pick([1, 2]) },
    ...{ warps: random.pick([4, 4, 1, 2]), number: random.below(4) },
  };
}

export function exchanges(random: Random): Program {
  const setting = settingOf(random);
  const { shape, threads, cluster, blocks, number } = setting;
  const size = shape[0] * shape[1];
  const drawing = new Drawing(random, setting);
  const steps = drawing.steps(3 + random.below(5), 0);
  const data = Array.from({ length: blocks * threads * size }, () => random.below(2000) - 1000);
  const x = (block: number, thread: number): Numbers =>
    data.slice((block * threads + thread) * size, (block * threads + thread + 1) * size);
  const { kernel: made } = kernel(
    {
      name: "exchanges",
      grid: { i: blocks },
      ...(cluster > 1 && { cluster: { i: cluster } }),
      warps: setting.warps,
      threads: Array.from({ length: threads }, (_, thread) => `thread${thread}`),
      inputs: { x: tensor(i32, [blocks, threads, ...shape]), number: scalar(i32) },
      outputs: { out: tensor(i32, [blocks, threads, registers, ...shape]) },
      inouts: { sums: tensor(i32, shape) },
      scratch: drawing.scratch,
    } as never,
    (given: { readonly [name: string]: unknown }) => {
      const args = given as { readonly i: Index; readonly x: Ref<"i32">; readonly out: Ref<"i32"> };
      const place: Place = {
        thread: threadIndex(),
        rank: cluster > 1 ? clusterRank("i") : undefined,
        number: given["number"] as Index,
        ...{ x: args.x, sums: given["sums"] as Ref<"i32"> },
        buffer: (name) => given[name] as Ref,
        barrier: (name) => given[name] as Barrier,
      };
      const first = args.x.at(args.i, place.thread).load();
      const tiles = Array.from({ length: registers }, (_, at) => first.add(at));
      traced(steps, tiles, place).forEach((tile, at) => {
        args.out.at(args.i, place.thread, at).store(tile);
      });
      commitShared();
      if (cluster > 1) clusterSync();
    },
  );
  const agents = Array.from({ length: blocks * threads }, (_, at): Agent => {
    const [block, thread] = [Math.floor(at / threads), at % threads];
    const own = x(block, thread);
    const held = Array.from({ length: registers }, (__, each) => own.map((value) => value + each));
    return { block, thread, held };
  });
  const sums = new Array<number>(size).fill(0);
  computed(steps, agents, { agents, x, sums });
  const out = agents.flatMap(({ held }) => held.flat());
  const line = (name: string, values: Numbers): string =>
    `${name}: ${elementsText(fromNumbers(i32, [values.length], values))}`;
  return {
    kernel: made,
    dimensions: {},
    scalars: { number },
    data: {
      x: fromNumbers(i32, [blocks, threads, ...shape], data),
      sums: fromNumbers(i32, shape, new Float64Array(size)),
    },
    expected: [line("out", out), line("sums", sums)].join("\n"),
    targets: cluster > 1 ? ["sm_90a", "sm_100a"] : ["sm_80", "sm_90a", "sm_100a"],
  };
}
