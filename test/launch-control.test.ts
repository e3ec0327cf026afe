/**
 * Tiles by cluster launch control: every tile is done once, whoever takes it and in whatever order, on simulator and emulator. Behaviours 43 and 44 of the
 * tests of others: one block more than there is room for, and a persistent kernel over more tiles than blocks.
 */
import { describe, expect, test } from "vitest";
import {
  f32,
  fromNumbers,
  full,
  i32,
  kernel,
  open,
  smem,
  tensor,
  tiles,
  toNumbers,
  warpSpecialized,
} from "tilewright";
import type { KernelDefinition, TileOptions } from "tilewright";
import { lower, place } from "../src/lower/stages.ts";
import { printPtx } from "../src/ptx/printer.ts";
import { targets } from "../src/targets/target.ts";
import type { TargetName } from "../src/targets/target.ts";
import { assemble } from "./support/accepted-assembly.ts";
import { hasPtxas } from "./support/assembler.ts";
import { emulateKernel } from "./support/emulated-kernel.ts";
import { runKernel, schedules } from "./simulation.ts";

/** A GPU that holds three blocks. */
const small = { ...targets.sm_100a, processors: 3, blocksPerProcessor: 1 };

/** Adds one to each tile, and says how many tiles its block has done before. */
function counting(rows: number, columns: number, options: TileOptions = {}): KernelDefinition {
  return kernel(
    {
      name: "counting",
      warps: 1,
      inputs: { before: tensor(i32, [rows, columns, 32]) },
      outputs: { after: tensor(i32, [rows, columns, 32]), turns: tensor(i32, [rows, columns, 32]) },
      scratch: { turn: smem(i32, [32]) },
    },
    ({ before, after, turns, turn }) => {
      turn.store(full(i32, [32], 0));
      tiles({ i: rows, j: columns }, { launchControl: true, ...options }).each(({ i, j }) => {
        after.at(i, j).store(before.at(i, j).load().add(1));
        turns.at(i, j).store(turn.load());
        turn.store(turn.load().add(1));
      });
    },
  );
}

const input = (count: number) => ({
  before: fromNumbers(
    i32,
    [1, count, 32],
    Float64Array.from({ length: 32 * count }, (_, at) => at),
  ),
});
const sums = (count: number): readonly number[] =>
  Array.from({ length: 32 * count }, (_, at) => at + 1);
/** Of tiles, how many were done by a block that had done others. */
const taken = (turns: readonly number[]): number =>
  turns.filter((turn, at) => at % 32 === 0 && turn > 0).length;

describe("43: one block more than the GPU holds", () => {
  test("its tile is taken, or it begins when there is room", async () => {
    const definition = counting(1, 4);
    const found = new Set<number>();
    for (const options of schedules) {
      const traced = { kernel: definition.kernelFor("sm_100a") };
      const run = await runKernel(traced, input(4), { ...options, target: small });
      expect(run.findings).toEqual([]);
      expect(run.numbers("after")).toEqual(sums(4));
      const count = taken(run.numbers("turns"));
      expect(run.statistics.blocks).toBe(4 - count);
      found.add(count);
    }
    expect(found).toContain(1);
  });

  test.each([1, 2, 3])("one request of the emulator succeeds, seed %i", (seed) => {
    const traced = { kernel: counting(1, 4).kernelFor("sm_100a") };
    const run = emulateKernel(traced, input(4), { target: small, seed });
    expect(run.findings).toEqual([]);
    expect([...toNumbers(run.results["after"] ?? expect.fail())]).toEqual(sums(4));
    expect(taken([...toNumbers(run.results["turns"] ?? expect.fail())])).toBe(1);
  });
});

/** Copies in one thread, and computes in two others, a row of each tile's sums each. */
function specialized(rows: number, columns: number, options: TileOptions = {}) {
  return kernel(
    {
      name: "specialized",
      threads: ["copy", "first", "second"],
      inputs: { x: tensor(f32, [rows, columns, 2, 2, 32]) },
      outputs: { out: tensor(f32, [rows, columns, 2, 32]) },
    },
    ({ x, out }) => {
      warpSpecialized(
        {
          tiles: tiles({ i: rows, j: columns }, { launchControl: true, ...options }),
          grid: { k: 2 },
          inputs: { step: { at: ({ i, j, k }) => x.at(i, j, k), depth: 3 } },
        },
        ({ i, j, part, steps }) => {
          const sum = steps(full(f32, [32], 0), ({ step }, carried) =>
            carried.add(step.at(part).load()),
          );
          out.at(i, j, part).store(sum);
        },
      );
    },
  );
}

describe("44: a persistent kernel over more tiles than blocks", () => {
  const [rows, columns] = [4, 5];
  const values = Float64Array.from({ length: rows * columns * 128 }, (_, at) => at % 251);
  const inputs = { x: fromNumbers(f32, [rows, columns, 2, 2, 32], values) };
  // Both steps of a tile.
  const expected = Array.from({ length: values.length / 2 }, (_, at) => {
    const first = 2 * (at & ~63) + (at & 63);
    return (values[first] ?? NaN) + (values[first + 64] ?? NaN);
  });

  test.each(["plain", "snake", "grouped"] as const)("in the order %s", async (order) => {
    const definition = specialized(rows, columns, {
      order,
      ...(order === "grouped" && { groupSize: 2 }),
    });
    const traced = { kernel: definition.kernelFor("sm_100a") };
    for (const options of schedules.slice(0, 4)) {
      const run = await runKernel(traced, inputs, { ...options, target: small });
      expect(run.findings).toEqual([]);
      expect(run.numbers("out")).toEqual(expected);
    }
    const device = await open("emulator", { target: "sm_100a" });
    const { out } = await device.run(definition, inputs);
    device.dispose();
    expect([...toNumbers(out)]).toEqual(expected);
  });

  test.each([1, 2, 3])("on an emulated GPU of three blocks, seed %i", (seed) => {
    const traced = { kernel: counting(3, 4, { order: "grouped" }).kernelFor("sm_100a") };
    const { before } = input(12);
    const run = emulateKernel(traced, { before }, { target: small, seed });
    expect(run.findings).toEqual([]);
    expect([...toNumbers(run.results["after"] ?? expect.fail())]).toEqual(sums(12));
    expect(taken([...toNumbers(run.results["turns"] ?? expect.fail())])).toBe(9);
  });
});

describe("targets", () => {
  test.each<[TargetName, boolean]>([
    ["sm_80", false],
    ["sm_90a", false],
    ["sm_100a", true],
    ["sm_103a", true],
    ["sm_120a", true],
    ["sm_121a", true],
  ])("on %s blocks take each other's tiles: %s", (name, takes) => {
    const ptx = printPtx(lower(counting(2, 3).kernel, targets[name]).module);
    expect(ptx.includes("clusterlaunchcontrol.try_cancel")).toBe(takes);
    if (hasPtxas) expect(assemble(ptx, name)).toBe("");
  });

  test("a block for each tile does them all where nobody takes any", async () => {
    const { kernel: traced } = counting(1, 6);
    const run = await runKernel({ kernel: traced }, input(6), { target: targets.sm_90a });
    expect(run.findings).toEqual([]);
    expect(run.numbers("after")).toEqual(sums(6));
    expect(run.statistics.blocks).toBe(6);
  });

  test("a placed kernel that takes blocks is refused for a target that cannot", () => {
    const traced = counting(1, 2).kernelFor("sm_100a");
    expect(() => place(traced, targets.sm_90a)).toThrow(/TW\d+.*cluster launch control/s);
  });
});

describe("what is refused", () => {
  const traced =
    (options: object, grid: { readonly [axis: string]: number } = {}) =>
    () =>
      kernel({ name: "k", grid, outputs: { out: tensor(i32, [4]) } }, () => {
        tiles({ i: 4 }, { launchControl: true, ...options }).each(() => undefined);
      });
  test.each<[string, () => unknown, RegExp]>([
    ["another way to deal", traced({ alternate: true }), /TW1110.*launchControl alone/s],
    ["a grid of the kernel's own", traced({}, { worker: 4 }), /TW1110.*without a grid/s],
    ["no truth value", traced({ launchControl: 1 }), /true or false/s],
  ])("%s", (_, make, message) => {
    expect(make).toThrow(message);
  });

  test("a number of tiles that is computed", () => {
    expect(() =>
      kernel({ name: "k", inputs: { n: tensor(i32, [1]) } }, ({ n }) => {
        tiles({ i: n.at(0).loadScalar() }, { launchControl: true }).each(() => undefined);
      }),
    ).toThrow(/TW1110.*computed in the kernel/s);
  });
});
