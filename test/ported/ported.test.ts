/** The kernels on simulator and emulator, against references in float64. */
import { afterAll, describe, expect, test } from "vitest";
import { bf16, f32, fromNumbers, i32, open, toNumbers } from "tilewright";
import type { HostArray, KernelDefinition } from "tilewright";
import { Random } from "../../src/support/random.ts";
import {
  best,
  bins,
  counts,
  embedding,
  greatest,
  grouped,
  head,
  page,
  paged,
  positives,
  queries,
  scatterAdd,
} from "./kernels.ts";

const devices = await Promise.all([open("simulator"), open("emulator")]);
afterAll(() => {
  for (const device of devices) device.dispose();
});

const draw = <T>(count: number, value: (index: number) => T): readonly T[] =>
  Array.from({ length: count }, (_, index) => value(index));
const numbers = (array: HostArray): readonly number[] => [...toNumbers(array)];

type Inputs = { readonly [name: string]: HostArray | number };

async function runs(definition: KernelDefinition, inputs: Inputs) {
  return Promise.all(
    devices.map(async (device) => {
      const results: { readonly [name: string]: HostArray } = await device.run(definition, inputs);
      return results;
    }),
  );
}

async function expectExact(
  definition: KernelDefinition,
  inputs: Inputs,
  expected: { readonly [name: string]: readonly number[] },
): Promise<void> {
  for (const results of await runs(definition, inputs))
    for (const [name, wanted] of Object.entries(expected)) {
      const found = results[name];
      expect(found && numbers(found), name).toEqual(wanted);
    }
}

describe("ported kernels", () => {
  const random = new Random(11);
  const whole = (count: number) => draw(count, () => random.below(9) - 4);

  test("embedding and its gradient", async () => {
    const [count, rows, width] = [37, 19, 131];
    const ids = draw(count, () => random.below(rows));
    const [table, grad] = [whole(rows * width), whole(count * width)];
    const given = {
      ids: fromNumbers(i32, [count], ids),
      table: fromNumbers(f32, [rows, width], table),
      grad: fromNumbers(f32, [count, width], grad),
    };
    const taken = ids.flatMap((row) => table.slice(row * width, (row + 1) * width));
    await expectExact(embedding, { ids: given.ids, table: given.table }, { out: taken });
    const sums = [...table];
    ids.forEach((row, index) => {
      for (let column = 0; column < width; column += 1)
        sums[row * width + column] =
          (sums[row * width + column] ?? 0) + (grad[index * width + column] ?? 0);
    });
    await expectExact(scatterAdd, given, { table: sums });
  });

  test("histogram and masked store", async () => {
    const values = draw(1001, () => random.below(bins));
    const total = draw(bins, (bin) => values.filter((each) => each === bin).length);
    await expectExact(
      counts,
      {
        x: fromNumbers(i32, [values.length], values),
        total: fromNumbers(
          i32,
          [bins],
          draw(bins, () => 0),
        ),
      },
      { total },
    );
    const [x, before] = [whole(300), whole(300)];
    await expectExact(
      positives,
      { x: fromNumbers(f32, [300], x), out: fromNumbers(f32, [300], before) },
      { out: x.map((each, index) => (each > 0 ? each : (before[index] ?? 0))) },
    );
  });

  test("products of ragged groups", async () => {
    const [depth, width] = [40, 68];
    const sizes = [35, 0, 3, 66];
    const offsets = sizes.reduce<readonly number[]>(
      (ends, size) => [...ends, (ends.at(-1) ?? 0) + size],
      [0],
    );
    const count = offsets.at(-1) ?? 0;
    const [x, weights] = [whole(count * depth), whole(sizes.length * depth * width)];
    const expected = sizes.flatMap((size, group) =>
      draw(size, (index) => (offsets[group] ?? 0) + index).flatMap((row) =>
        draw(width, (column) => {
          let sum = 0;
          for (let each = 0; each < depth; each += 1)
            sum +=
              (x[row * depth + each] ?? 0) *
              (weights[(group * depth + each) * width + column] ?? 0);
          return sum;
        }),
      ),
    );
    const inputs = {
      x: fromNumbers(bf16, [count, depth], x),
      weights: fromNumbers(bf16, [sizes.length, depth, width], weights),
      offsets: fromNumbers(i32, [sizes.length + 1], offsets),
    };
    await expectExact(grouped, inputs, { out: expected });
  });

  test("the greatest of long rows", async () => {
    const [rows, length] = [2, 500];
    const x = draw(rows * length, () => random.below(400));
    const order = draw(rows, (row) =>
      draw(length, (column) => column)
        .toSorted((a, b) => (x[row * length + b] ?? 0) - (x[row * length + a] ?? 0) || a - b)
        .slice(0, best),
    );
    await expectExact(
      greatest,
      { x: fromNumbers(f32, [rows, length], x) },
      {
        places: order.flat(),
        values: order.flatMap((own, row) => own.map((column) => x[row * length + column] ?? 0)),
      },
    );
  });

  test("attention to pages", async () => {
    const [batch, heads, pages, most] = [2, 2, 14, 6];
    const lengths = [5, 51];
    const normal = (shape: readonly number[]) =>
      fromNumbers(
        bf16,
        shape,
        draw(
          shape.reduce((product, extent) => product * extent, 1),
          () => random.normal(),
        ),
      );
    const inputs = {
      q: normal([batch, heads, queries, head]),
      keys: normal([pages, page, heads, head]),
      values: normal([pages, page, heads, head]),
      table: fromNumbers(
        i32,
        [batch, most],
        draw(batch * most, (index) => (index * 5 + 3) % pages),
      ),
      lengths: fromNumbers(i32, [batch], lengths),
      scale: 1 / 8,
    };
    const [q, keys, values, table] = [inputs.q, inputs.keys, inputs.values, inputs.table].map(
      numbers,
    );
    if (q === undefined || keys === undefined || values === undefined || table === undefined)
      throw new Error("four arrays");
    const expected = draw(batch * heads * queries * head, (index) => {
      const [column, row] = [index % head, Math.floor(index / head)];
      const [h, b] = [Math.floor(row / queries) % heads, Math.floor(row / queries / heads)];
      const at = (token: number): number =>
        (((table[b * most + Math.floor(token / page)] ?? 0) * page + (token % page)) * heads + h) *
        head;
      const scores = draw(lengths[b] ?? 0, (token) => {
        let sum = 0;
        for (let each = 0; each < head; each += 1)
          sum += (q[row * head + each] ?? 0) * (keys[at(token) + each] ?? 0);
        return sum / 8;
      });
      const top = Math.max(...scores);
      const weights = scores.map((score) => Math.exp(score - top));
      const total = weights.reduce((sum, weight) => sum + weight, 0);
      const terms = weights.map(
        (weight, token) => (weight / total) * (values[at(token) + column] ?? 0),
      );
      return {
        value: terms.reduce((sum, term) => sum + term, 0),
        // Weights are rounded to bf16, by half a unit in the last of 7 bits behind the first; the rest is f32.
        bound: terms.reduce((sum, term) => sum + Math.abs(term), 0) * (2 ** -8 + 2 ** -16),
      };
    });
    for (const { out } of await runs(paged, inputs))
      numbers(out ?? inputs.q).forEach((found, index) => {
        const { value, bound } = expected[index] ?? { value: NaN, bound: 0 };
        expect(Math.abs(found - value), `element ${index}`).toBeLessThanOrEqual(bound);
      });
  });
});
