/**
 * Programs that access memory at computed places, with numbers that keep all of them inside and numbers that lead one outside. Which do what is
 * computed beside the program (`windows.ts`), for every block and round that comes to the access.
 */
import { dtypes } from "../../../src/formats/dtype.ts";
import type { DType } from "../../../src/formats/dtype.ts";
import {
  tensor,
  assert,
  barrier,
  clusterRank,
  clusterSync,
  commitGroup,
  commitShared,
  copyAsync,
  f32,
  fromNumbers,
  full,
  histogram,
  i32,
  i64,
  iota,
  kernel,
  loop,
  scalar,
  scoped,
  semaphore,
  smem,
  takeAlong,
  waitGroup,
  when,
} from "../../../src/index.ts";
import type { Barrier, HostArray, Ref, Scalar, Semaphore, Tile } from "../../../src/index.ts";
import type { Random } from "../../../src/support/random.ts";
import type { Program } from "../parts.ts";
import { drawLying, reachOf } from "../strides.ts";
import { drawExpression } from "./expressions.ts";
import type { Expression, Place, Whole } from "./expressions.ts";
import type { Faulty } from "./faulty.ts";
import { drawWindows, followed } from "./windows.ts";

/** What a kernel's body is given, by name. */
interface Given {
  readonly [name: string]: unknown;
}

/** An array of global memory. */
interface Memory {
  readonly dtype: DType;
  readonly shape: readonly number[];
}

/** What a round of a block does that may go wrong. */
interface Act {
  readonly name: string;
  /** Traces it; what it gives goes to an output, so that nobody leaves it out. */
  readonly trace: (given: Given, place: Place<Whole>) => Scalar<"f32"> | undefined;
  readonly isOutside: (place: Place<number>) => boolean;
  /** Codes by which the simulator tells it. */
  readonly told: readonly string[];
  /** Codes by which the emulator tells it; a trap's unless given. */
  readonly trapped?: readonly string[];
  readonly memory?: Memory | undefined;
  readonly scratch?: object;
  /** Whether blocks that did the same to one array would race. */
  readonly writes?: boolean;
  readonly cluster?: number;
}

const edge = 2 ** 31;
const numbers: readonly number[] = [
  ...Array.from({ length: 28 }, (_, at) => at - 6),
  ...[-edge, 1 - edge, -edge / 2, edge / 2, edge - 2, edge - 1, 65_536, -65_537, 1 << 28],
];

const formats = ["f32", "f32", "i32", "f16", "i8", "i64", "u8", "i4"] as const;
const added: ReadonlySet<string> = new Set(["f32", "i32", "i64"]);

function floatOf(value: Tile | Scalar): Scalar<"f32"> {
  const wide = value.cast(f32);
  return wide.kind === "tile" ? wide.max() : wide;
}

/** An access of a window of a window, by one of the ways there are. */
function windowAct(random: Random): Act {
  const isShared = random.below(2) === 0;
  const dtype = dtypes[random.pick(formats)];
  const shape = random.pick([[7], [12], [4, 6], [3, 8], [2, 3, 4], [1, 9], [2, 16]]);
  const steps = drawWindows(random, shape, isShared);
  const sizes = steps.at(-1)?.sizes ?? shape;
  const drawn = random.pick(["load", "store", "add", "masked"] as const);
  const way =
    (drawn === "add" && !added.has(dtype.name)) || (drawn === "masked" && sizes.length === 0)
      ? "load"
      : drawn;
  const one = dtype.bits === 64 ? 1n : 1;
  return {
    name: `${way} of ${isShared ? "shared" : "global"} ${dtype.name} [${shape.join()}]`,
    told: ["TW3004", "TW3005"],
    memory: isShared ? undefined : { dtype, shape },
    scratch: isShared ? { memory: smem(dtype, shape) } : {},
    writes: way !== "load" && way !== "masked" && !isShared,
    trace(given, place) {
      const ref = steps.reduce((each, step) => step.trace(each, place), given["memory"] as Ref);
      if (way === "store") ref.store(one as never);
      else if (way === "add")
        return floatOf(
          sizes.length === 0
            ? ref.atomicAdd(one as never)
            : (ref.atomicAdd(full(dtype, sizes, one as never) as never) as unknown as Tile),
        );
      else if (sizes.length === 0) return floatOf(ref.loadScalar());
      else {
        const own = iota(i32, [sizes.at(-1) ?? 1], { axis: 0 });
        return floatOf(ref.load(way === "masked" ? { where: own.lt(place.round) } : {}));
      }
      return undefined;
    },
    isOutside: (place) => followed(steps, shape, place) === undefined,
  };
}

/** Elements that a tile of indices picks, with some of them left out. */
function pickedAct(random: Random): Act {
  const isShared = random.below(2) === 0;
  const dtype = dtypes[random.pick(formats)];
  const count = random.pick([1, 4, 5, 8, 32, 40]);
  const extent = random.pick([5, 8, 17, 64]);
  const others = random.pick([[], [], [4], [16]]);
  const shape = [extent, ...others];
  const start = drawExpression(random, random.below(3));
  const by = 1 + random.below(3);
  const isLong = random.below(2) === 0;
  // As i64 an index may be a number that is inside once its upper half is forgotten.
  const lifts = isLong && random.below(3) === 0;
  const bound: Expression | undefined =
    random.below(2) === 0 ? drawExpression(random, random.below(2)) : undefined;
  const drawn = random.pick(["load", "load", "store", "add"] as const);
  const way = drawn === "add" && !added.has(dtype.name) ? "load" : drawn;
  const one = dtype.bits === 64 ? 1n : 1;
  const indexOf = (place: Place<number>, lane: number): number => {
    const own = start.value(place) + lane * by;
    if (!isLong) return own | 0;
    return lifts && place.given > 2 ? own + 2 ** 32 : own;
  };
  return {
    name: `${way} of ${count} picked of ${isShared ? "shared" : "global"} ${dtype.name} [${shape.join()}]`,
    told: ["TW3005"],
    memory: isShared ? undefined : { dtype, shape },
    scratch: isShared ? { memory: smem(dtype, shape) } : {},
    writes: way !== "load" && !isShared,
    trace(given, place) {
      const lanes = iota(i32, [count], { axis: 0 });
      const first = start.trace(place);
      const short = lanes.mul(by).add(first);
      const long = lanes.cast(i64).mul(BigInt(by)).add(first.cast(i64));
      const index = isLong
        ? lifts
          ? long.add(place.given.gt(2).cast(i64).shl(32n))
          : long
        : short;
      const mask = bound === undefined ? undefined : lanes.lt(bound.trace(place));
      const where =
        mask === undefined ? {} : { where: others.length === 0 ? mask : mask.expand({ axis: 1 }) };
      const picked = (given["memory"] as Ref).at(index as Tile<"i32">);
      if (way === "store") picked.store(one as never, where);
      else if (way === "add")
        return floatOf(
          picked.atomicAdd(
            full(dtype, [count, ...others], one as never) as never,
            where,
          ) as unknown as Tile,
        );
      else return floatOf(picked.load(where));
      return undefined;
    },
    isOutside: (place) =>
      Array.from({ length: count }, (_, lane) => lane).some((lane) => {
        if (bound !== undefined && lane >= bound.value(place)) return false;
        const index = indexOf(place, lane);
        return index < 0 || index >= extent;
      }),
  };
}

/** Elements of a tile, or places of a count, by number. */
function tileAct(random: Random): Act {
  const [count, extent] = [random.pick([4, 8, 13]), random.pick([5, 8, 32])];
  const start = drawExpression(random, random.below(3));
  const counts = random.below(2) === 0;
  return {
    name: counts ? "histogram" : "takeAlong",
    told: ["TW3005"],
    trace(_, place) {
      const indices = iota(i32, [count], { axis: 0 }).add(start.trace(place));
      if (counts) return floatOf(histogram(indices, extent));
      const tile = iota(f32, [extent], { axis: 0 }).add(place.round.cast(f32));
      return floatOf(takeAlong(tile, indices, { axis: 0 }));
    },
    isOutside: (place) => {
      const first = start.value(place);
      return [first | 0, (first + count - 1) | 0, ...(first > 0 ? [first] : [])].some(
        (each) => each < 0 || each >= extent,
      );
    },
  };
}

/** A copy of a row that an index names, into shared memory or out of it. */
function copyAct(random: Random): Act {
  const [rows, columns] = [random.pick([3, 5]), random.pick([16, 32])];
  const index = drawExpression(random, random.below(3));
  const out = random.below(2) === 0;
  const isShared = random.below(2) === 0;
  const buffered = isShared ? [rows, columns] : [columns];
  return {
    name: `copy ${out ? "out" : "in"}, a row of ${isShared ? "shared" : "global"} memory by number`,
    told: ["TW3004", "TW3005"],
    memory: { dtype: f32, shape: isShared ? [columns] : [rows, columns] },
    writes: out,
    trace: (given, place) =>
      scoped({ buffer: smem(f32, buffered), landed: barrier() }, ({ buffer, landed }) => {
        const memory = given["memory"] as Ref<"f32">;
        const row = index.trace(place);
        const near = isShared ? buffer.at(row) : buffer;
        const far = isShared ? memory : memory.at(row);
        if (out) {
          buffer.store(3);
          commitShared();
          copyAsync(near, far);
          commitGroup();
          waitGroup();
        } else {
          copyAsync(far, near, { barrier: landed });
          landed.wait();
        }
        return near.load().max();
      }),
    isOutside: (place) => {
      const row = index.value(place);
      return row < 0 || row >= rows;
    },
  };
}

/** A barrier, or a counter, of several. */
function meetingAct(random: Random): Act {
  const count = 2 + random.below(3);
  const index = drawExpression(random, random.below(3));
  const counts = random.below(2) === 0;
  return {
    name: counts ? "a semaphore by number" : "a barrier by number",
    told: ["TW3005", "TW3006"],
    scratch: counts ? { told: semaphore([count]) } : { told: barrier({ count }) },
    trace(given, place) {
      const at = index.trace(place);
      if (counts) (given["told"] as Semaphore).at(at).signal(1);
      else {
        const met = (given["told"] as Barrier).at(at);
        met.arrive();
        met.wait();
      }
      return undefined;
    },
    isOutside: (place) => {
      const at = index.value(place);
      return at < 0 || at >= count;
    },
  };
}

/** Memory of another block of the cluster. */
function peerAct(random: Random): Act {
  const cluster = 2;
  const rank = drawExpression(random, random.below(3));
  const arrives = random.below(3) === 0;
  return {
    name: arrives ? "a peer's barrier" : "a peer's memory",
    told: ["TW3019"],
    cluster,
    scratch: { memory: smem(f32, [16]), told: barrier({ count: 8 }) },
    trace(given, place) {
      const memory = given["memory"] as Ref<"f32">;
      // Everybody has a barrier of its own for each round, in all blocks.
      const own = clusterRank("i").mul(4).add(place.round);
      if (arrives) (given["told"] as Barrier).at(own).arrive({ peer: rank.trace(place) });
      else return memory.peer(rank.trace(place)).load().max();
      return undefined;
    },
    isOutside: (place) => {
      const at = rank.value(place);
      return at < 0 || at >= cluster;
    },
  };
}

/** What is said to hold, and a loop that may stand still. */
function promiseAct(random: Random): Act {
  const value = drawExpression(random, random.below(3));
  const steps = random.below(2) === 0;
  const told = steps ? ["TW3014"] : ["TW3012"];
  return {
    name: steps ? "the step of a loop" : "an assertion",
    told,
    trapped: told,
    trace(_, place) {
      const own = value.trace(place);
      if (!steps) {
        assert(own.ge(1).and(own.lt(9)), "it is small");
        return own.cast(f32);
      }
      const first = place.round.cast(f32);
      return loop({ to: place.block.add(3), step: own, carry: first }, (k, sum) =>
        sum.add(k.cast(f32)),
      );
    },
    isOutside: (place) => {
      const own = value.value(place);
      return own < 1 || (!steps && own >= 9);
    },
  };
}

const acts = [
  windowAct,
  windowAct,
  windowAct,
  pickedAct,
  pickedAct,
  tileAct,
  copyAct,
  meetingAct,
  peerAct,
  promiseAct,
];

/** Which rounds and blocks come to the act. */
interface Way {
  readonly trace: (place: Place<Whole>) => Scalar<"bool"> | undefined;
  readonly comes: (place: Place<number>) => boolean;
}

function drawWay(random: Random): Way {
  const least = random.below(3);
  const most = random.below(20);
  const ways: readonly Way[] = [
    { trace: () => undefined, comes: () => true },
    { trace: () => undefined, comes: () => true },
    { trace: ({ round }) => round.ge(least), comes: ({ round }) => round >= least },
    { trace: ({ block }) => block.lt(least), comes: ({ block }) => block < least },
    { trace: ({ given }) => given.lt(most), comes: ({ given }) => given < most },
    {
      trace: ({ given }) => given.ge(0).and(given.lt(most)),
      comes: ({ given }) => given >= 0 && given < most,
    },
    { trace: ({ read }) => read.ge(least), comes: ({ read }) => read >= least },
  ];
  return random.pick(ways);
}

/** An array as the kernel declares it, and what it holds. */
interface LaidOut {
  readonly inouts: object;
  readonly dimensions: Program["dimensions"];
  readonly data: NonNullable<Program["data"]>;
}

const nothing: LaidOut = { inouts: {}, dimensions: {}, data: {} };

function laidOut(random: Random, { dtype, shape }: Memory): LaidOut {
  const lying = drawLying(random, "memory", shape, { overlaps: false });
  const count = lying
    ? reachOf(shape, lying.strides)
    : shape.reduce((product, size) => product * size, 1);
  const numbers = Array.from({ length: count }, (_, at) => at % 7);
  return {
    inouts: { memory: tensor(dtype, shape, lying && { strides: lying.declared }) },
    dimensions: lying?.dimensions ?? {},
    data: { memory: fromNumbers(dtype, [count], numbers as never) as HostArray },
  };
}

interface Numbers {
  readonly given: number;
  readonly read: readonly number[];
}

/** A program by which numbers lead outside, and by which not; nothing where none of either were found. */
export function bounds(random: Random): Faulty | undefined {
  const act = random.pick(acts)(random);
  const { cluster = 1, memory, scratch = {}, writes = false } = act;
  const blocks = writes ? 1 : cluster * (1 + random.below(2));
  const rounds = 1 + random.below(3);
  const way = drawWay(random);
  const isOutside = ({ given, read }: Numbers): boolean =>
    Array.from({ length: blocks * rounds }, (_, at) => {
      const block = Math.floor(at / rounds);
      return { block, round: at % rounds, given, read: read[block] ?? 0 };
    }).some((place) => way.comes(place) && act.isOutside(place));
  const drawNumbers = (): Numbers => ({
    given: random.pick(numbers),
    read: Array.from({ length: blocks }, () => random.pick(numbers)),
  });
  const found = new Map<boolean, Numbers>();
  for (let left = 60; left > 0 && found.size < 2; left--) {
    const drawn = drawNumbers();
    found.set(isOutside(drawn), drawn);
  }
  const [inside, outside] = [found.get(false), found.get(true)];
  if (inside === undefined || outside === undefined) return undefined;
  const { inouts, dimensions, data } = memory === undefined ? nothing : laidOut(random, memory);
  const { kernel: traced } = kernel(
    {
      name: "bounds",
      grid: { i: blocks },
      ...(cluster > 1 && { cluster: { i: cluster } }),
      inputs: { number: scalar(i32), table: tensor(i32, [blocks]) },
      outputs: { out: tensor(f32, [blocks, rounds]) },
      inouts,
      scratch,
    } as never,
    (given: Given) => {
      const [block, number] = [given["i"] as Whole, given["number"] as Whole];
      const [table, out] = [given["table"] as Ref<"i32">, given["out"] as Ref<"f32">];
      const read = table.at(block).loadScalar();
      if ("memory" in scratch) {
        const own = given["memory"] as Ref;
        own.store((own.dtype.bits === 64 ? 2n : 2) as never);
      }
      if (cluster > 1) clusterSync();
      loop(rounds, (round) => {
        const place = { block, round, given: number, read };
        const body = (): void => {
          const result = act.trace(given, place);
          out.at(block, round).store(result ?? 1);
        };
        const condition = way.trace(place);
        if (condition === undefined) body();
        else when(condition, body, () => out.at(block, round).store(0));
      });
      if (cluster > 1) clusterSync();
    },
  );
  const programOf = ({ given, read }: Numbers): Program => ({
    kernel: traced,
    dimensions,
    scalars: { number: given },
    data: {
      table: fromNumbers(i32, [blocks], read as number[]),
      ...data,
    },
    ...(cluster > 1 && { targets: ["sm_90a", "sm_100a"] }),
  });
  return {
    name: `${act.name}, ${JSON.stringify(outside)}`,
    right: programOf(inside),
    wrong: () => programOf(outside),
    told: act.told,
    trapped: act.trapped ?? ["TW8016"],
  };
}
