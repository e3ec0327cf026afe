/** Lists of arrays: an array picked by a traced index is the array of that number, whichever way it is accessed. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  assert,
  bf16,
  block,
  cdiv,
  constant,
  dim,
  dot,
  f32,
  i32,
  kernel,
  loop,
  open,
  pipeline,
  scalar,
  slice,
  smem,
  storeThrough,
  tensor,
  tensors,
  waitGroup,
  zeros,
} from "tilewright";
import type { DeviceName, KernelDefinition } from "tilewright";
import { fromNumbers, hostArray, toNumbers } from "../formats/hostarray.ts";
import { parseModule } from "../ir/parser/parser.ts";
import { printKernel, printModule } from "../ir/printer.ts";
import { simplify } from "../lower/simplify.ts";
import { place } from "../lower/stages.ts";
import { targets } from "../targets/target.ts";

const n = dim("n");

function numbers(count: number, factor: number): readonly number[] {
  return Array.from({ length: count }, (_, index) => ((index * factor) % 13) - 6);
}

const devices = new Map<DeviceName, Awaited<ReturnType<typeof open>>>();
beforeAll(async () => {
  for (const name of ["simulator", "emulator"] as const) devices.set(name, await open(name));
});
afterAll(() => {
  for (const device of devices.values()) device.dispose();
});

function deviceOf(name: DeviceName): Awaited<ReturnType<typeof open>> {
  const device = devices.get(name);
  if (device === undefined) throw new Error(`${name} is not open`);
  return device;
}

describe.each(["simulator", "emulator"] as const)("on the %s", (name) => {
  test.each([1, 2, 3, 5, 8])("every array of %i is found", async (count) => {
    const pick = kernel(
      {
        name: "pick",
        grid: { g: count },
        inputs: { xs: tensors(count, f32, [n, 24]), which: tensor(i32, [count]) },
        outputs: { out: tensor(f32, [count, 24]) },
      },
      ({ g, xs, which, out }) => {
        const array = xs.at(which.at(g).loadScalar());
        out.at(g).store(array.at(slice(1, 7)).load().sum({ axis: 0 }));
      },
    );
    const order = Array.from({ length: count }, (_, index) => (index * 3 + 1) % count);
    const arrays = Array.from({ length: count }, (_, index) => numbers(5 * 24, index + 2));
    const { out } = await deviceOf(name).run(pick, {
      xs: arrays.map((values) => fromNumbers(f32, [5, 24], values)),
      which: fromNumbers(i32, [count], order),
    });
    // Of rows 1 to 7 there are four.
    const expected = order.flatMap((index) =>
      Array.from({ length: 24 }, (_, column) =>
        [1, 2, 3, 4].reduce((sum, row) => sum + (arrays[index]?.[row * 24 + column] ?? NaN), 0),
      ),
    );
    expect([...toNumbers(out)]).toEqual(expected);
  });

  test("products of groups whose matrices are arrays of their own", async () => {
    const [groups, rows, columns, depth] = [3, 64, 32, 64];
    const grouped = kernel(
      {
        name: "grouped",
        grid: { g: groups, i: cdiv(n, rows) },
        inputs: {
          as: tensors(groups, bf16, [n, depth]),
          bs: tensors(groups, bf16, [depth, columns]),
        },
        outputs: { outs: tensors(groups, f32, [n, columns]) },
      },
      ({ g, i, as, bs, outs }) => {
        const [a, b] = [as.at(g), bs.at(g)];
        const sum = loop({ to: depth / 32, carry: zeros(f32, [rows, columns]) }, (k, total) =>
          dot(a.at(block(i, rows), block(k, 32)).load(), b.at(block(k, 32)).load(), {
            accumulator: total,
          }),
        );
        outs.at(g).at(block(i, rows)).store(sum);
      },
    );
    const height = 100;
    const as = Array.from({ length: groups }, (_, g) => numbers(height * depth, 3 * g + 5));
    const bs = Array.from({ length: groups }, (_, g) => numbers(depth * columns, 7 * g + 2));
    const { outs } = await deviceOf(name).run(grouped, {
      as: as.map((values) => fromNumbers(bf16, [height, depth], values)),
      bs: bs.map((values) => fromNumbers(bf16, [depth, columns], values)),
    });
    expect(outs.length).toBe(groups);
    for (const [g, out] of outs.entries()) {
      const expected = Array.from({ length: height * columns }, (_, at) => {
        const [row, column] = [Math.floor(at / columns), at % columns];
        let sum = 0;
        for (let k = 0; k < depth; k++)
          sum += (as[g]?.[row * depth + k] ?? NaN) * (bs[g]?.[k * columns + column] ?? NaN);
        return sum;
      });
      expect([...toNumbers(out)], `of group ${g}`).toEqual(expected);
    }
  });

  test("a pipeline whose blocks come from an array of a list, and a store through shared memory", async () => {
    const copy = kernel(
      {
        name: "piped",
        grid: { g: 2 },
        inputs: { xs: tensors(2, f32, [256, 64]) },
        outputs: { ys: tensors(2, f32, [256, 64]) },
        scratch: { stage: smem(f32, [1, 64, 64]) },
      },
      ({ g, xs, ys, stage }) => {
        const sum = pipeline(
          {
            grid: { step: 4 },
            inputs: { x: ({ step }) => xs.at(g).at(block(step, 64)) },
            carry: zeros(f32, [64, 64]),
          },
          ({ x }, total) => total.add(x.load()),
        );
        loop(4, (step) => {
          storeThrough(stage, sum, ys.at(g.xor(1)), [step.mul(64), 0]);
        });
        waitGroup();
      },
    );
    const arrays = [numbers(256 * 64, 5), numbers(256 * 64, 3)];
    const { ys } = await deviceOf(name).run(copy, {
      xs: arrays.map((values) => fromNumbers(f32, [256, 64], values)),
    });
    for (const [g, y] of ys.entries()) {
      const source = arrays[1 - g] ?? [];
      const expected = Array.from({ length: 256 * 64 }, (_, at) =>
        [0, 1, 2, 3].reduce((sum, part) => sum + (source[(at % 4096) + part * 4096] ?? NaN), 0),
      );
      expect([...toNumbers(y)]).toEqual(expected);
    }
  });
});

const changed = (asserts: boolean): KernelDefinition =>
  kernel(
    {
      name: "changed",
      inputs: { at: scalar(i32) },
      inouts: { xs: tensors(3, f32, [32, 32]) },
      outputs: { out: tensor(f32, [32, 32]) },
    },
    ({ at, xs, out }) => {
      if (asserts) assert(at.lt(3), "there is such an array");
      // Lanes read what other lanes have written, of an array that is known by its number alone.
      xs.at(at).store(xs.at(at).load().transpose().add(1));
      out.store(xs.at(1).load().transpose());
    },
  );

describe.each(["simulator", "emulator"] as const)("on the %s", (name) => {
  const xs = [0, 1, 2].map((factor) => fromNumbers(f32, [32, 32], numbers(1024, factor + 2)));

  test("what is stored by one name is loaded by another", async () => {
    const results = await deviceOf(name).run(changed(false), { at: 1, xs });
    const [before = []] = xs.slice(1).map((array) => [...toNumbers(array)]);
    expect([...toNumbers(results["out"] ?? hostArray(f32, [0]))]).toEqual(
      before.map((value) => value + 1),
    );
  });

  test("an index that is not there is told, after a failed assertion as that", async () => {
    const code = async (asserts: boolean): Promise<unknown> => {
      const device = await open(name, { onFindings: () => undefined });
      try {
        await device.run(changed(asserts), { at: 3, xs });
        return "none";
      } catch (error) {
        return (error as { readonly code?: string }).code;
      } finally {
        device.dispose();
      }
    };
    expect(await code(false)).toBe(name === "simulator" ? "TW3005" : "TW8016");
    expect(await code(true)).toBe("TW3012");
  });
});

test("its arrays are parameters, of which a number known now names one", () => {
  const { kernel: made } = kernel(
    {
      name: "named",
      inputs: { xs: tensors(3, f32, [4]) },
      outputs: { out: tensor(f32, [4]) },
    },
    ({ xs, out }) => {
      expect(xs.length).toBe(3);
      const sums = [...xs].map((x) => x.load());
      out.store(sums.reduce((sum, next) => sum.add(next)).add(xs.at(constant(i32, 2)).load()));
    },
  );
  expect(made.parameters.map(({ name }) => name)).toEqual(["xs[0]", "xs[1]", "xs[2]", "out"]);
  const text = printModule({ kernels: [made] });
  expect(printModule(parseModule(text))).toBe(text);
  expect(printModule({ kernels: [simplify(made)] })).not.toContain("select_ref");
});

test.each([
  [2, "tensor"],
  [9, "cp.async"],
])("of %i arrays blocks are copied by %s", (count, by) => {
  const { kernel: made } = kernel(
    {
      name: "copied",
      grid: { g: count },
      inputs: { xs: tensors(count, f32, [128, 64]) },
      outputs: { out: tensor(f32, [count, 64, 64]) },
    },
    ({ g, xs, out }) => {
      const total = pipeline(
        {
          grid: { step: 2 },
          inputs: { x: ({ step }) => xs.at(g).at(block(step, 64)) },
          carry: zeros(f32, [64, 64]),
        },
        ({ x }, sum) => sum.add(x.load()),
      );
      out.at(g).store(total);
    },
  );
  expect(printKernel(place(made, targets.sm_90a).kernel)).toContain(`by = "${by}"`);
});
