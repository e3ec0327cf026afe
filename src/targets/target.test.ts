import { expect, test } from "vitest";
import { occupancy, targets } from "./target.ts";

// Worked out by hand: 64 warps and 65536 registers a processor, registers in units of 256 a warp.
test.each([
  [
    { threads: 128, sharedBytes: 0, registers: 32 },
    { blocks: 16, limit: "threads" },
  ],
  [
    { threads: 128, sharedBytes: 0, registers: 168 },
    { blocks: 3, limit: "registers" },
  ],
  [
    { threads: 384, sharedBytes: 0, registers: 168 },
    { blocks: 1, limit: "registers" },
  ],
  [
    { threads: 256, sharedBytes: 0, registers: 40 },
    { blocks: 6, limit: "registers" },
  ],
  [
    { threads: 128, sharedBytes: 65536, registers: 32 },
    { blocks: 3, limit: "shared memory" },
  ],
  [
    { threads: 32, sharedBytes: 0, registers: 16 },
    { blocks: 32, limit: "blocks" },
  ],
  [
    { threads: 512, sharedBytes: 100 },
    { blocks: 4, limit: "threads" },
  ],
])("%j of sm_90a is %j", (needs, expected) => {
  expect(occupancy(targets.sm_90a, needs)).toEqual(expected);
});

test("a block that does not fit runs nowhere", () => {
  const needs = { threads: 1024, sharedBytes: 0, registers: 255 };
  expect(occupancy(targets.sm_90a, needs)).toEqual({ blocks: 0, limit: "registers" });
});

test.each([
  ["sm_86", { blocks: 12, limit: "threads" }, { blocks: 16, limit: "blocks" }],
  ["sm_89", { blocks: 12, limit: "threads" }, { blocks: 24, limit: "blocks" }],
  ["sm_120a", { blocks: 12, limit: "threads" }, { blocks: 24, limit: "blocks" }],
] as const)("a processor of %s has 1536 threads and 100 KB", (name, ofThreads, ofBlocks) => {
  const target = targets[name];
  expect(occupancy(target, { threads: 128, sharedBytes: 0 })).toEqual(ofThreads);
  expect(occupancy(target, { threads: 32, sharedBytes: 0 })).toEqual(ofBlocks);
  const half = { threads: 128, sharedBytes: 49 * 1024 };
  expect(occupancy(target, half)).toEqual({ blocks: 2, limit: "shared memory" });
  const whole = { threads: 128, sharedBytes: 99 * 1024 };
  expect(occupancy(target, whole)).toEqual({ blocks: 1, limit: "shared memory" });
  expect(target.sharedMemoryPerBlock).toBe(99 * 1024);
});
