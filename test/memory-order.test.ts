/** Blocks that hand data on by acquire and release are ordered, on the simulator and on the emulator; by relaxed accesses they race. */
import { describe, expect, test } from "vitest";
import { f32, i32 } from "../src/formats/dtype.ts";
import { fromNumbers, toNumbers } from "../src/formats/hostarray.ts";
import type { HostArray } from "../src/formats/hostarray.ts";
import type { KernelDefinition } from "../src/lang/index.ts";
import { codesOf, runKernel, schedules } from "./simulation.ts";
import { emulateKernel } from "./support/emulated-kernel.ts";
import { handedRows, lockedSum, lookBackScan, ordered } from "./support/ordered-programs.ts";
import type { Orders } from "./support/ordered-programs.ts";

type Arrays = { readonly [name: string]: HostArray };

interface Program {
  readonly make: (orders: Orders) => KernelDefinition;
  readonly inputs: Arrays;
  readonly expected: { readonly [name: string]: readonly number[] };
}

const blocks = 6;
const zeros = (count: number): HostArray => fromNumbers(i32, [count], new Float64Array(count));
const parts = Array.from({ length: blocks * 64 }, (_, index) => ((index * 7) % 11) - 4);
const row = Array.from({ length: 256 }, (_, index) => index - 100);
let sum = 0;

const programs: { readonly [name: string]: Program } = {
  "a lock": {
    make: (orders) => lockedSum(blocks, orders),
    inputs: { lock: zeros(1), total: zeros(1) },
    expected: { lock: [0], total: [21] },
  },
  "a flag": {
    make: (orders) => handedRows(blocks, orders),
    inputs: { x: fromNumbers(f32, [256], row), flags: zeros(blocks) },
    expected: {
      rows: Array.from({ length: blocks }, (_, block) => row.map((each) => each + block)).flat(),
    },
  },
  "a scan that looks back": {
    make: (orders) => lookBackScan(blocks, orders),
    inputs: { x: fromNumbers(i32, [parts.length], parts), status: zeros(blocks) },
    expected: { out: parts.map((each) => (sum += each)) },
  },
};

const all = [...schedules, { schedule: "timed" } as const];
const seeds = [1, 2, 3];

describe.each(Object.entries(programs))("%s", (_, { make, inputs, expected }) => {
  test("is ordered on the simulator, under every schedule", async () => {
    for (const schedule of all)
      for (const checks of [true, false]) {
        const run = await runKernel(make(ordered), inputs, { ...schedule, checks });
        expect(codesOf(run), JSON.stringify(schedule)).toEqual([]);
        for (const [name, numbers] of Object.entries(expected))
          expect(run.numbers(name), name).toEqual(numbers);
      }
  });

  test("is ordered on the emulator", () => {
    for (const seed of seeds) {
      const run = emulateKernel(make(ordered), inputs, { seed });
      expect(run.findings.map(({ message }) => message)).toEqual([]);
      for (const [name, numbers] of Object.entries(expected)) {
        const found = run.results[name];
        expect(found && [...toNumbers(found)], name).toEqual(numbers);
      }
    }
  });

  const broken: readonly (readonly [string, Orders])[] = [
    ["acquires nothing", { ...ordered, acquire: "relaxed" }],
    ["releases nothing", { ...ordered, release: "relaxed" }],
    ["stays in the block", { ...ordered, scope: "block" }],
  ];
  test.each(broken)("is a race where it %s", async (_what, orders) => {
    for (const schedule of all) {
      const codes = codesOf(await runKernel(make(orders), inputs, schedule));
      expect([...new Set(codes)], JSON.stringify(schedule)).toEqual(["TW3001"]);
    }
    for (const seed of seeds) {
      const codes = emulateKernel(make(orders), inputs, { seed }).findings.map(({ code }) => code);
      expect(codes).toContain("TW8014");
    }
  });
});
