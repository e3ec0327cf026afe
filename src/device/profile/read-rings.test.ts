/** Rings as two processors would have written them, whose clocks know nothing of each other. */
import { expect, test } from "vitest";
import { headSlots, slotWords } from "../../ir/profile-ring.ts";
import { f32 } from "../../formats/dtype.ts";
import { tensor, kernel, profile } from "../../lang/index.ts";
import { profiledKernel } from "../../passes/profile-marks.ts";
import { edgesFor } from "./profiler.ts";
import { readRings } from "./read-rings.ts";

const definition = kernel(
  { name: "two", grid: { i: 2 }, outputs: { out: tensor(f32, [2]) } },
  ({ i, out }) => profile("store", () => out.at(i).store(1)),
);

const edges = 16;
const length = (headSlots + edges) * slotWords;

interface Written {
  readonly processor: number;
  readonly clocks: readonly [started: bigint, ended: bigint];
  readonly timers: readonly [started: bigint, ended: bigint];
  readonly edges: readonly bigint[];
}

function ring({ processor, clocks, timers, edges: told }: Written): readonly number[] {
  const words = new Array<number>(length).fill(0);
  const wide = (at: number, value: bigint): void => {
    words[at] = Number(value & 0xffffffffn);
    words[at + 1] = Number(value >> 32n);
  };
  words[0] = processor;
  words[1] = told.length;
  wide(2, clocks[0]);
  wide(4, timers[0]);
  wide(6, timers[1]);
  wide(8, clocks[1]);
  told.forEach((clock, edge) => {
    const at = (headSlots + (edge % edges)) * slotWords;
    words[at] = 1 + (edge % 2);
    wide(at + 2, clock);
  });
  return words;
}

function read(...rings: readonly Written[]) {
  const profiled = profiledKernel(definition.kernel);
  if (profiled === undefined) throw new Error("the kernel has a scope");
  const words = Uint32Array.from(rings.flatMap(ring));
  return readRings(words, profiled, new Map([[profiled.edges, edges]]));
}

const epoch = 1_800_000_000_000_000_000n;

test("processors are brought onto one axis by the timer, at the clock's own rate", () => {
  // Two ticks of the clock for one of the timer. The second processor begins 500 later, by a clock that stands elsewhere.
  const first = { processor: 7, clocks: [2n ** 40n, 2n ** 40n + 4000n] } as const;
  const second = { processor: 9, clocks: [10n, 4010n] } as const;
  const { spans, lost } = read(
    { ...first, timers: [epoch, epoch + 2000n], edges: [2n ** 40n + 100n, 2n ** 40n + 300n] },
    { ...second, timers: [epoch + 500n, epoch + 2500n], edges: [110n, 260n] },
  );
  expect(lost).toBe(0);
  expect(spans.map(({ block, from, to }) => [block, from, to])).toEqual([
    [[0], 100, 300],
    [[1], 1100, 1250],
  ]);
});

test("threads of one processor are told apart by its own clock", () => {
  const timers = [epoch, epoch] as const;
  const { spans } = read(
    { processor: 0, clocks: [50n, 90n], timers, edges: [60n, 70n] },
    { processor: 0, clocks: [40n, 80n], timers, edges: [44n, 45n] },
  );
  expect(spans.map(({ from, to }) => [from, to])).toEqual([
    [20, 30],
    [4, 5],
  ]);
});

test("of more edges than there is room for, the newest are kept", () => {
  const told = Array.from({ length: 21 }, (_, edge) => BigInt(edge));
  const { spans, lost } = read({
    processor: 0,
    clocks: [0n, 30n],
    timers: [epoch, epoch + 30n],
    edges: told,
  });
  // Edges 5 to 20 are there: an end without its beginning, seven pairs, and a beginning without its end.
  expect(spans.map(({ from }) => from)).toEqual([6, 8, 10, 12, 14, 16, 18]);
  expect(lost).toBe(5 + 1 + 1);
});

test("rings of blocks that never ran are empty", () => {
  const timers = [0n, 0n] as const;
  const silent = { processor: 0, clocks: timers, timers, edges: [] };
  expect(read(silent, silent)).toEqual({ spans: [], lost: 0 });
});

test("rings of large grids are small, and those of the largest are not smaller than they must be", () => {
  expect([1, 1024, 1025, 2 ** 14, 2 ** 30].map(edgesFor)).toEqual([4096, 4096, 2048, 256, 16]);
});
