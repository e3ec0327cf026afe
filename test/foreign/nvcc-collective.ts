/** Lanes and blocks that work together: reductions, scans, atomics, barriers, clusters, copies. */
import { expect } from "vitest";
import { Random } from "../../src/support/random.ts";
import { at, expectClose, input, made, output, scalar, sum } from "./case.ts";
import type { ForeignCase } from "./case.ts";

function integers(seed: number, count: number, low: number, high: number): number[] {
  const random = new Random(seed);
  return made(count, () => low + random.below(high - low));
}

function blockReduction(): ForeignCase {
  const count = 1000;
  const random = new Random(1);
  const values = Float32Array.from(made(count, () => random.normal()));
  return {
    file: "nvcc/block-reduction.ptx",
    entry: "block_reduction",
    blocks: [3, 1, 1],
    threads: [128, 1, 1],
    arguments: [input("input", values), output("sums", new Float32Array(3)), scalar(count)],
    check(results) {
      const parts = made(3, (block) =>
        [...values].filter((_, i) => Math.floor(i / 128) % 3 === block),
      );
      // Each element passes through at most 3 additions of the loop and 7 of the tree.
      expectClose(
        results.numbers("sums"),
        parts.map(sum),
        (block) => 10 * 2 ** -24 * 1.01 * sum((parts[block] ?? []).map(Math.abs)),
      );
    },
  };
}

function warpReduction(): ForeignCase {
  const [count, lanes] = [150, 192];
  const values = integers(2, count, -20, 20);
  const warps = made(lanes / 32, (warp) => values.slice(warp * 32, warp * 32 + 32));
  const lowest = -(2 ** 31);
  return {
    file: "nvcc/warp-reduction.ptx",
    entry: "warp_reduction",
    blocks: [2, 1, 1],
    threads: [lanes / 2, 1, 1],
    arguments: [
      input("input", Int32Array.from(values)),
      output("largest", new Int32Array(6)),
      output("position", new Int32Array(6)),
      input("positives", new Uint32Array(2)),
      scalar(count),
    ],
    check(results) {
      const largest = warps.map((warp) => Math.max(lowest, ...warp));
      expect([...results.numbers("largest")]).toEqual(largest);
      const positions = warps.map((warp, index) =>
        warp.length === 0 ? index * 32 : index * 32 + warp.indexOf(Math.max(...warp)),
      );
      expect([...results.numbers("position")]).toEqual(positions);
      const positives = values.filter((value) => value > 0).length;
      // Lanes 64 to 95 of a block of 96 have the largest sum of numbers.
      const numbers = sum(made(32, (lane) => 64 + lane));
      expect([...results.numbers("positives")]).toEqual([positives, numbers]);
    },
  };
}

function scan(): ForeignCase {
  const values = integers(3, 1024, -1000, 1000);
  return {
    file: "nvcc/scan.ptx",
    entry: "scan",
    blocks: [2, 1, 1],
    threads: [512, 1, 1],
    arguments: [input("input", Int32Array.from(values)), output("output", new Int32Array(1024))],
    check(results) {
      let total = 0;
      const sums = values.map((value, index) => (total = (index === 512 ? 0 : total) + value));
      expect([...results.numbers("output")]).toEqual(sums);
    },
  };
}

function histogram(): ForeignCase {
  const values = integers(4, 3000, 0, 256).map((value) => (value * value) >> 8);
  return {
    file: "nvcc/histogram.ptx",
    entry: "histogram",
    blocks: [3, 1, 1],
    threads: [96, 1, 1],
    arguments: [
      input("input", Uint8Array.from(values)),
      input("bins", new Uint32Array(256)),
      input("total", new BigUint64Array([2n ** 40n])),
      scalar(values.length),
    ],
    check(results) {
      const bins = made(256, (bin) => values.filter((value) => value === bin).length);
      expect([...results.numbers("bins")]).toEqual(bins);
      expect([...results.bigints("total")]).toEqual([2n ** 40n + BigInt(sum(values))]);
    },
  };
}

function spinLock(): ForeignCase {
  const threads = 3 * 40;
  return {
    file: "nvcc/spin-lock.ptx",
    entry: "spin_lock",
    blocks: [3, 1, 1],
    threads: [40, 1, 1],
    arguments: [
      input("counter", new Uint32Array([0, 7])),
      output("order", new Uint32Array(threads)),
    ],
    check(results) {
      let mixed = 7;
      for (let turn = 0; turn < threads; turn++) mixed = ((mixed * 31) % 65521) + turn;
      expect([...results.numbers("counter")]).toEqual([threads, mixed]);
      const turns = [...results.numbers("order")].sort((left, right) => left - right);
      expect(turns).toEqual(made(threads, (turn) => turn));
    },
  };
}

function asyncPipeline(): ForeignCase {
  const [blocks, rows] = [2, 5];
  const random = new Random(5);
  const values = Float32Array.from(made(blocks * rows * 256, () => random.normal()));
  return {
    file: "nvcc/async-pipeline.ptx",
    entry: "async_pipeline",
    blocks: [blocks, 1, 1],
    threads: [64, 1, 1],
    arguments: [
      input("input", values),
      output("output", new Float32Array(blocks * 256)),
      scalar(rows),
    ],
    check(results) {
      const sums = made(blocks * 256, (element) => {
        const [block, within] = [Math.floor(element / 256), element % 256];
        // Lane l reads what lane l ^ 1 copied, four floats each.
        const place = (Math.floor(within / 4) ^ 1) * 4 + (within % 4);
        let total = 0;
        for (let row = 0; row < rows; row++)
          total = Math.fround(total + at(values, (block * rows + row) * 256 + place));
        return total;
      });
      expect([...results.numbers("output")]).toEqual(sums);
    },
  };
}

function namedBarriers(): ForeignCase {
  const turns = 7;
  const values = integers(6, turns * 64, -50, 50);
  return {
    file: "nvcc/named-barriers.ptx",
    entry: "named_barriers",
    blocks: [1, 1, 1],
    threads: [128, 1, 1],
    arguments: [
      input("input", Int32Array.from(values)),
      output("output", new Int32Array(65)),
      scalar(turns),
    ],
    check(results) {
      const sums = made(64, (lane) => {
        let total = 0;
        for (let turn = 0; turn < turns; turn++)
          total = total * 3 + at(values, turn * 64 + 63 - lane);
        return total;
      });
      expect([...results.numbers("output")]).toEqual([...sums, 64]);
    },
  };
}

function cluster(): ForeignCase {
  const values = integers(7, 512, -1000, 1000);
  return {
    file: "nvcc/cluster.ptx",
    entry: "cluster",
    blocks: [8, 1, 1],
    threads: [64, 1, 1],
    cluster: 4,
    arguments: [
      input("input", Int32Array.from(values)),
      output("output", new Int32Array(512)),
      output("totals", new Int32Array(2)),
    ],
    check(results) {
      const expected = made(512, (index) => {
        const [block, lane] = [Math.floor(index / 64), index % 64];
        const neighbour = Math.floor(block / 4) * 4 + ((block + 1) % 4);
        return at(values, neighbour * 64 + 63 - lane);
      });
      expect([...results.numbers("output")]).toEqual(expected);
      const totals = [sum(values.slice(0, 256)), sum(values.slice(256))];
      expect([...results.numbers("totals")]).toEqual(totals);
    },
  };
}

function bulkCopy(): ForeignCase {
  const [blocks, turns] = [2, 3];
  const values = Float32Array.from(integers(8, blocks * turns * 256, -100, 100));
  return {
    file: "nvcc/bulk-copy.ptx",
    entry: "bulk_copy",
    blocks: [blocks, 1, 1],
    threads: [128, 1, 1],
    arguments: [
      input("input", values),
      output("output", new Float32Array(values.length)),
      scalar(turns),
    ],
    check(results) {
      const expected = [...values].map((value, index) =>
        index % 256 < 128 ? value * 2 + 1 : value - 1,
      );
      expect([...results.numbers("output")]).toEqual(expected);
    },
  };
}

function tensorMap(): ForeignCase {
  const [rows, columns] = [40, 72];
  const values = integers(9, rows * columns, 0, 65536);
  // The box starts left of the array's end and above its start: what lies outside is zero.
  const [x, y] = [24, -3];
  return {
    file: "nvcc/tensor-map.ptx",
    entry: "tensor_map",
    blocks: [1, 1, 1],
    threads: [64, 1, 1],
    arguments: [
      {
        kind: "map",
        data: Uint16Array.from(values),
        map: {
          type: "u16",
          extents: [columns, rows],
          strides: [columns * 2],
          box: [64, 32],
          swizzle: 128,
          fill: "zero",
        },
      },
      output("output", new Uint16Array(32 * 64)),
      scalar(x),
      scalar(y),
    ],
    check(results) {
      const expected = made(32 * 64, (index) => {
        const [row, column] = [y + Math.floor(index / 64), x + (index % 64)];
        const inside = row >= 0 && row < rows && column < columns;
        return inside ? at(values, row * columns + column) : 0;
      });
      expect([...results.numbers("output")]).toEqual(expected);
    },
  };
}

export const collectiveCases: readonly ForeignCase[] = [
  blockReduction(),
  warpReduction(),
  scan(),
  histogram(),
  spinLock(),
  asyncPipeline(),
  namedBarriers(),
  cluster(),
  bulkCopy(),
  tensorMap(),
];
