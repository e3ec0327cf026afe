/** What passes know of, and do across, values behind an optimisation barrier: nothing. */
import { describe, expect, test } from "vitest";
import { f32, i32 } from "../src/formats/dtype.ts";
import { fromNumbers, toNumbers } from "../src/formats/hostarray.ts";
import { constant, kernel, loop, optimizationBarrier, tensor } from "../src/lang/index.ts";
import type { KernelDefinition, Scalar, Tile } from "../src/lang/index.ts";
import { lower } from "../src/lower/stages.ts";
import { printPtx } from "../src/ptx/printer.ts";
import { targets } from "../src/targets/target.ts";
import { runKernel } from "./simulation.ts";
import { emulateKernel } from "./support/emulated-kernel.ts";

const row = tensor(f32, [256]);
const x = fromNumbers(
  f32,
  [256],
  Array.from({ length: 256 }, (_, index) => index / 16 - 8),
);

function rows(body: (x: Tile<"f32">) => Tile<"f32">): KernelDefinition {
  return kernel({ name: "rows", inputs: { x: row }, outputs: { out: row } }, ({ x, out }) => {
    out.store(body(x.load()));
  });
}

function ptxOf({ kernel: body }: KernelDefinition): string {
  return printPtx(lower(body, targets.sm_90a).module);
}

function countOf(definition: KernelDefinition, text: RegExp): number {
  return [...ptxOf(definition).matchAll(text)].length;
}

/** How the same program is compiled with the barrier, and without. */
function both(make: (hide: <T extends Tile | Scalar>(value: T) => T) => KernelDefinition) {
  return { plain: make((value) => value), hidden: make((value) => optimizationBarrier(value)) };
}

describe("values behind an optimisation barrier", () => {
  test("are not merged with equal ones", () => {
    const { plain, hidden } = both((hide) => rows((tile) => tile.exp().add(hide(tile).exp())));
    expect(countOf(hidden, /ex2/g)).toBe(2 * countOf(plain, /ex2/g));
  });

  test("are not folded", () => {
    const { plain, hidden } = both((hide) =>
      kernel({ name: "numbers", outputs: { out: tensor(i32, [1]) } }, ({ out }) => {
        out.at(0).store(hide(constant(i32, 401)).mul(3).add(7));
      }),
    );
    expect(ptxOf(plain)).toContain("1210");
    expect(ptxOf(hidden)).not.toContain("1210");
  });

  test("stay in their loop", () => {
    const inLoop = (hide: <T extends Tile | Scalar>(value: T) => T): KernelDefinition =>
      rows((tile) => loop({ to: 4, carry: tile }, (_, sum) => sum.add(hide(tile).sqrt())));
    const { plain, hidden } = both(inLoop);
    const head = (text: string): string => text.slice(0, text.indexOf("bra"));
    const before = (definition: KernelDefinition): number => {
      const text = ptxOf(definition);
      const label = /^\s*\$?\w+:$/m.exec(text);
      return [...text.slice(0, label?.index ?? 0).matchAll(/sqrt/g)].length;
    };
    expect(head(ptxOf(plain))).not.toBe(head(ptxOf(hidden)));
    expect(before(plain)).toBeGreaterThan(0);
    expect(before(hidden)).toBe(0);
  });

  test("are what they were, in trees too, and go where they are not used", async () => {
    const trees = kernel(
      { name: "trees", inputs: { x: row }, outputs: { out: row, first: tensor(i32, [2]) } },
      ({ x: array, out, first }) => {
        const tile = array.load();
        const {
          both: [left, isLow],
          count,
        } = optimizationBarrier({
          both: [tile, tile.lt(0)],
          count: constant(i32, 5),
        });
        out.store(isLow.select(left, left.mul(2)));
        first.at(0).store(count);
        first.at(1).store(optimizationBarrier(isLow.any()).cast(i32));
        optimizationBarrier(tile.sin());
      },
    );
    expect(ptxOf(trees)).not.toMatch(/sin/);
    const expected = [...toNumbers(x)].map((each) => (each < 0 ? each : 2 * each));
    const run = await runKernel(trees, { x });
    expect(run.numbers("out")).toEqual(expected);
    expect(run.numbers("first")).toEqual([5, 1]);
    const emulated = emulateKernel(trees, { x });
    expect(emulated.findings).toEqual([]);
    for (const [name, wanted] of Object.entries({ out: expected, first: [5, 1] })) {
      const found = emulated.results[name];
      expect(found && [...toNumbers(found)]).toEqual(wanted);
    }
  });
});
