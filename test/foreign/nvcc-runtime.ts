/** What kernels ask of the driver and of each other: exits, counters, look-back, heaps, stacks, polls. */
import { expect } from "vitest";
import { Random } from "../../src/support/random.ts";
import { at, input, made, output, scalar, sum } from "./case.ts";
import type { ForeignCase } from "./case.ts";

function integers(seed: number, count: number, low: number, high: number): number[] {
  const random = new Random(seed);
  return made(count, () => low + random.below(high - low));
}

function earlyExit(): ForeignCase {
  const count = 300;
  const values = integers(21, count, -1000, 1000);
  return {
    file: "nvcc/early-exit.ptx",
    entry: "early_exit",
    blocks: [3, 1, 1],
    threads: [128, 1, 1],
    arguments: [
      input("input", Int32Array.from(values)),
      output("output", new Int32Array(count)),
      scalar(count),
    ],
    check(results) {
      const expected = [0, 128, 256].flatMap((start) => values.slice(start, start + 128).reverse());
      expect([...results.numbers("output")]).toEqual(expected);
    },
  };
}

function lastBlock(): ForeignCase {
  const [blocks, lanes] = [5, 96];
  const values = integers(22, blocks * lanes, -1000, 1000);
  return {
    file: "nvcc/last-block.ptx",
    entry: "last_block",
    blocks: [blocks, 1, 1],
    threads: [lanes, 1, 1],
    arguments: [
      input("input", Int32Array.from(values)),
      output("parts", new Int32Array(blocks * lanes)),
      output("sums", new Int32Array(lanes)),
      input("counter", new Uint32Array(1)),
    ],
    check(results) {
      const sums = made(lanes, (lane) =>
        sum(made(blocks, (block) => 3 * at(values, block * lanes + lane))),
      );
      expect([...results.numbers("sums")]).toEqual(sums);
      expect([...results.numbers("counter")]).toEqual([0]);
    },
  };
}

function lookBack(): ForeignCase {
  const blocks = 9;
  const values = integers(23, blocks * 128, -1000, 1000);
  return {
    file: "nvcc/look-back.ptx",
    entry: "look_back",
    blocks: [blocks, 1, 1],
    threads: [128, 1, 1],
    arguments: [
      input("input", Int32Array.from(values)),
      output("output", new Int32Array(blocks * 128)),
    ],
    check(results) {
      let total = 0;
      expect([...results.numbers("output")]).toEqual(values.map((value) => (total += value)));
    },
  };
}

function gridBarrier(): ForeignCase {
  const [blocks, lanes, turns] = [6, 40, 3];
  const values = integers(24, blocks * lanes, -1000, 1000);
  return {
    file: "nvcc/grid-barrier.ptx",
    entry: "grid_barrier",
    blocks: [blocks, 1, 1],
    threads: [lanes, 1, 1],
    arguments: [input("values", Int32Array.from(values)), scalar(turns)],
    check(results) {
      let expected = values;
      for (let turn = 0; turn < turns; turn++)
        expected = expected.map((_, index) => at(expected, (index + 1) % expected.length) * 2 + 1);
      expect([...results.numbers("values")]).toEqual(expected);
    },
  };
}

function deviceHeap(): ForeignCase {
  const lengths = integers(25, 80, 0, 7);
  return {
    file: "nvcc/device-heap.ptx",
    entry: "device_heap",
    blocks: [2, 1, 1],
    threads: [40, 1, 1],
    arguments: [
      input("lengths", Int32Array.from(lengths)),
      output("sums", new Int32Array(lengths.length)),
    ],
    check(results) {
      const sums = lengths.map((length, index) => {
        let total = 0;
        for (let node = length - 1; node >= 0; node--) total = total * 3 + node * index;
        return total;
      });
      expect([...results.numbers("sums")]).toEqual(sums);
    },
  };
}

function virtualCalls(): ForeignCase {
  const sizes = integers(26, 64, 0, 100);
  return {
    file: "nvcc/virtual-calls.ptx",
    entry: "virtual_calls",
    blocks: [1, 1, 1],
    threads: [64, 1, 1],
    arguments: [input("sizes", Int32Array.from(sizes)), output("areas", new Int32Array(64))],
    check(results) {
      const areas = sizes.map((size) =>
        size % 3 === 0 ? 10 * size * size + 4 : 30 * (size + 1) * (size + 1),
      );
      expect([...results.numbers("areas")]).toEqual(areas);
    },
  };
}

function dynamicStack(): ForeignCase {
  const values = integers(27, 6, -50, 50);
  const fold = (given: readonly number[]): number => {
    const [first, ...others] = [...given].reverse();
    return first === undefined ? 1 : fold(others) * 7 + first;
  };
  return {
    file: "nvcc/dynamic-stack.ptx",
    entry: "dynamic_stack",
    blocks: [1, 1, 1],
    threads: [48, 1, 1],
    arguments: [input("input", Int32Array.from(values)), output("output", new Int32Array(48))],
    check(results) {
      const expected = made(48, (lane) => fold(values.slice(0, lane % 6)));
      expect([...results.numbers("output")]).toEqual(expected);
    },
  };
}

function paddedPoints(): ForeignCase {
  const values = integers(28, 192, -100, 100);
  return {
    file: "nvcc/padded-points.ptx",
    entry: "padded_points",
    blocks: [1, 1, 1],
    threads: [64, 1, 1],
    arguments: [input("input", Float32Array.from(values)), output("output", new Float32Array(64))],
    check(results) {
      const expected = made(64, (lane) => {
        const point = 3 * (63 - (lane ^ 5));
        return at(values, point) + 2 * at(values, point + 1) + 4 * at(values, point + 2);
      });
      expect([...results.numbers("output")]).toEqual(expected);
    },
  };
}

function polledPipeline(): ForeignCase {
  const turns = 8;
  const values = integers(29, turns * 64, -50, 50);
  return {
    file: "nvcc/polled-pipeline.ptx",
    entry: "polled_pipeline",
    blocks: [1, 1, 1],
    threads: [128, 1, 1],
    arguments: [
      input("input", Int32Array.from(values)),
      output("output", new Int32Array(64)),
      scalar(turns),
    ],
    check(results) {
      const expected = made(64, (lane) => {
        let total = 0;
        for (let turn = 0; turn < turns; turn++)
          total = total * 3 + at(values, turn * 64 + 63 - lane);
        return total;
      });
      expect([...results.numbers("output")]).toEqual(expected);
    },
  };
}

export const runtimeCases: readonly ForeignCase[] = [
  earlyExit(),
  lastBlock(),
  lookBack(),
  gridBarrier(),
  deviceHeap(),
  virtualCalls(),
  dynamicStack(),
  paddedPoints(),
  polledPipeline(),
];
