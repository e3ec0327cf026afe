/** Pipelines that single warps open: each with blocks of its own, by one of them, in roles, again and again. */
import { expect, test } from "vitest";
import { runKernel, schedules } from "../../../test/simulation.ts";
import { f32, i32 } from "../../formats/dtype.ts";
import { fromNumbers, toNumbers } from "../../formats/hostarray.ts";
import type { HostArray } from "../../formats/hostarray.ts";
import { open } from "../../runtime/open.ts";
import { TilewrightError } from "../../support/diagnostics.ts";
import { block, kernel, loop, pipeline, switchCase, tensor, warps, when, zeros } from "../index.ts";
import type { KernelDefinition, Scalar } from "../index.ts";

const [rows, columns] = [48, 32];
const numbers = Array.from({ length: rows * columns }, (_, place) => (place % 97) - 40);
const given = { x: fromNumbers(f32, [rows, columns], numbers) };
const arrays = {
  inputs: { x: tensor(f32, [rows, columns]) },
  outputs: { out: tensor(f32, [rows, columns]) },
};

async function results(
  definition: KernelDefinition,
  inputs: { readonly [name: string]: HostArray },
  wanted: readonly number[],
): Promise<void> {
  for (const schedule of schedules) {
    const run = await runKernel(definition, inputs, schedule);
    expect(run.findings).toEqual([]);
    expect(run.numbers("out")).toEqual(wanted);
  }
  for (const target of ["sm_90a", "sm_80"] as const) {
    const device = await open("emulator", { target, onNotes: () => undefined });
    const found: { readonly [name: string]: HostArray } = await device.run(definition, inputs);
    expect(found["out"] && [...toNumbers(found["out"])], target).toEqual(wanted);
    device.dispose();
  }
}

test("one warp of the thread", async () => {
  const one = kernel({ name: "one", ...arrays }, ({ x, out }) => {
    warps((warp) => {
      when(warp.eq(2), () => {
        pipeline(
          {
            grid: { k: rows / 4 },
            inputs: { tile: ({ k }) => x.at(block(k, 4)) },
            outputs: { result: ({ k }) => out.at(block(k, 4)) },
            depth: 3,
          },
          ({ tile, result }) => result.store(tile.load().mul(2)),
        );
      });
    });
  });
  // One warp opens it: three slots, not three for each of four.
  expect(String(one)).toContain("shape = [3, 4, 32]");
  await results(
    one,
    given,
    numbers.map((value) => value * 2),
  );
});

test("each warp with blocks of its own, that they carry something through", async () => {
  const all = kernel(
    { name: "all", inputs: arrays.inputs, outputs: { out: tensor(f32, [4, columns]) } },
    ({ x, out }) => {
      warps((warp) => {
        const sum = pipeline(
          {
            grid: { k: rows / 4 },
            inputs: { row: ({ k }) => x.at(k.mul(4).add(warp)) },
            carry: zeros(f32, [columns]),
          },
          ({ row }, before) => before.add(row.load()),
        );
        out.at(warp).store(sum);
      });
    },
  );
  expect(String(all)).toContain("shape = [4, 2, 32]");
  const sums = Array.from({ length: 4 * columns }, (_, place) => {
    const [warp, column] = [Math.floor(place / columns), place % columns];
    let sum = 0;
    for (let row = warp; row < rows; row += 4) sum += numbers[row * columns + column] ?? 0;
    return sum;
  });
  await results(all, given, sums);
});

test("roles of a warp-specialized thread, beside other threads", async () => {
  const roles = kernel(
    { name: "roles", threads: ["work", "watch"], ...arrays },
    ({ x, out, work, watch }) => {
      const part = (from: number, factor: number): void => {
        pipeline(
          {
            grid: { k: rows / 16 },
            inputs: { tile: ({ k }) => x.at(block(k.add(from), 8)) },
            outputs: { result: ({ k }) => out.at(block(k.add(from), 8)) },
          },
          ({ tile, result }) => result.store(tile.load().mul(factor)),
        );
      };
      work(() => {
        warps((warp) => {
          switchCase(warp, [
            () => part(0, 3),
            () => undefined,
            () => when(warp.eq(2), () => part(rows / 16, 5)),
            () => undefined,
          ]);
        });
      });
      watch(() => undefined);
    },
  );
  await results(
    roles,
    given,
    numbers.map((value, place) => value * (place < (rows / 2) * columns ? 3 : 5)),
  );
});

test("one that is opened again begins as the first time", async () => {
  const steps = [3, 0, 2, 5, 1];
  const again = kernel(
    {
      name: "again",
      inputs: {
        ...arrays.inputs,
        counts: tensor(i32, [steps.length]),
        gain: tensor(f32, [columns]),
      },
      outputs: { out: tensor(f32, [2, steps.length, columns]) },
    },
    ({ x, counts, gain, out }) => {
      warps((warp) => {
        when(warp.lt(2), () => {
          loop(steps.length, (turn) => {
            const sum = pipeline(
              {
                grid: { k: counts.at(turn).loadScalar() },
                inputs: {
                  row: ({ k }) => x.at(k.add(turn.mul(5)).add(warp)),
                  pair: { at: ({ k }) => x.at(k.div(2).add(turn)), depth: 3 },
                  scale: () => gain.at(block(0, columns)),
                },
                carry: zeros(f32, [columns]),
                depth: 2,
              },
              ({ row, pair, scale }, before) =>
                before.add(row.load().mul(scale.load())).add(pair.load()),
            );
            out.at(warp, turn).store(sum);
          });
        });
      });
    },
  );
  const at = (row: number, column: number): number => numbers[row * columns + column] ?? 0;
  const wanted = [0, 1].flatMap((warp) =>
    steps.flatMap((count, turn) =>
      Array.from({ length: columns }, (_, column) => {
        let sum = 0;
        for (let k = 0; k < count; k += 1)
          sum +=
            at(k + turn * 5 + warp, column) * (column % 3) + at(Math.floor(k / 2) + turn, column);
        return sum;
      }),
    ),
  );
  const inputs = {
    ...given,
    counts: fromNumbers(i32, [steps.length], steps),
    gain: fromNumbers(
      f32,
      [columns],
      Array.from({ length: columns }, (_, column) => column % 3),
    ),
  };
  await results(again, inputs, wanted);
});

function refused(make: () => unknown): string {
  try {
    make();
  } catch (error) {
    if (error instanceof TilewrightError) return error.code;
    throw error;
  }
  return "nothing was thrown";
}

test("warps of several threads, and multicasts, are refused", () => {
  const several = () =>
    kernel({ name: "several", threads: ["a", "b"], ...arrays }, ({ x }) => {
      warps(() => {
        pipeline({ grid: { k: 2 }, inputs: { row: ({ k }) => x.at(k) } }, () => undefined);
      });
    });
  const shared = () =>
    kernel({ name: "shared", grid: { i: 2 }, cluster: { i: 2 }, ...arrays }, ({ x }) => {
      warps(() => {
        const row = {
          at: ({ k }: { k: Scalar<"i32"> }) => x.at(k),
          multicast: "i",
        };
        pipeline({ grid: { k: 2 }, inputs: { row } }, () => undefined);
      });
    });
  expect(refused(several)).toBe("TW1106");
  expect(refused(shared)).toBe("TW1106");
});
