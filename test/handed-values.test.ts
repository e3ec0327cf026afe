/**
 * Tiles that one op needs in several places at once, on the emulator against the simulator: yields that
 * hand one tile to two carries, and sorts whose keys and payloads are of different widths.
 */
import { describe, expect, test } from "vitest";
import {
  tensor,
  constant,
  f16,
  f32,
  f64,
  full,
  i32,
  i64,
  iota,
  kernel,
  loop,
  switchCase,
  u8,
  when,
  whileLoop,
} from "tilewright";
import type { KernelDefinition, Ref, Tile } from "tilewright";
import { fromNumbers, toNumbers } from "../src/formats/hostarray.ts";
import type { HostArray } from "../src/formats/hostarray.ts";
import { runKernel } from "./simulation.ts";
import { emulateKernel } from "./support/emulated-kernel.ts";

/** Whole numbers, each input's in an order of its own. */
function inputsOf({ kernel: { parameters } }: KernelDefinition): { [name: string]: HostArray } {
  const inputs: { [name: string]: HostArray } = {};
  parameters.forEach(({ name, role, value: { type } }, position) => {
    if (role !== "input" || type.kind !== "ref") return;
    const shape = type.shape.map(Number);
    const count = shape.reduce((product, extent) => product * extent, 1);
    const numbers = Array.from({ length: count }, (_, index) => (index * (7 + position)) % 101);
    inputs[name] = fromNumbers(type.dtype, shape, numbers);
  });
  return inputs;
}

async function expectAgreement(definition: KernelDefinition): Promise<void> {
  const inputs = inputsOf(definition);
  const simulated = await runKernel(definition, inputs);
  const { results, findings } = emulateKernel(definition, inputs);
  expect(findings.map(({ message }) => message)).toEqual([]);
  for (const [name, expected] of Object.entries(simulated.results)) {
    const result = results[name];
    expect(result && [...toNumbers(result)], name).toEqual([...toNumbers(expected)]);
  }
}

const square = [32, 32] as const;
const spec = {
  inputs: { x: tensor(f32, square), y: tensor(f32, square) },
  outputs: { a: tensor(f32, square), b: tensor(f32, square) },
};
interface Windows {
  readonly x: Ref<"f32">;
  readonly y: Ref<"f32">;
  readonly a: Ref<"f32">;
  readonly b: Ref<"f32">;
}

/** Stores that make a tile lie along rows, or along columns. */
function alongRows(tile: Tile<"f32">, { a }: Windows): void {
  for (const each of [tile.mul(2), tile.sub(1), tile.abs(), tile]) a.store(each);
}

function alongColumns(tile: Tile<"f32">, { b }: Windows): void {
  for (const each of [tile.mul(2), tile.sub(1), tile.abs(), tile]) b.transpose().store(each);
}

/** Kernels in which one tile becomes two results, one along rows and one along columns. */
const handing: { readonly [name: string]: (windows: Windows) => void } = {
  "a loop that begins with one tile twice": (windows) => {
    const tile = windows.x.load();
    const [p, q] = loop({ to: 3, carry: [tile, tile] }, (_, [rows, columns]) => {
      alongColumns(columns, windows);
      alongRows(rows, windows);
      return [rows.add(windows.x.load()), columns.add(windows.y.transpose().load())];
    });
    alongRows(p, windows);
    alongColumns(q, windows);
  },
  "a loop": (windows) => {
    const carry = [windows.x.load(), windows.y.transpose().load()];
    const [p, q] = loop({ to: 3, carry }, (_, [rows, columns]) => {
      if (rows === undefined || columns === undefined) throw new Error("two carries");
      alongColumns(columns, windows);
      const next = rows.add(windows.x.load());
      alongRows(next, windows);
      return [next, next];
    });
    if (p !== undefined && q !== undefined) {
      alongRows(p, windows);
      alongColumns(q, windows);
    }
  },
  "a while": (windows) => {
    const start = [constant(i32, 0), windows.x.load(), windows.y.transpose().load()] as const;
    const [, p, q] = whileLoop(
      start,
      ([count]) => count.lt(3),
      ([count, rows, columns]) => {
        alongColumns(columns, windows);
        const next = rows.add(windows.x.load());
        alongRows(next, windows);
        return [count.add(1), next, next] as const;
      },
    );
    alongRows(p, windows);
    alongColumns(q, windows);
  },
  "a choice": (windows) => {
    const [tile, other] = [windows.x.load(), windows.y.transpose().load()];
    const [p, q] = when(
      tile.sum().gt(0),
      () => [tile, tile] as const,
      () => [tile, other] as const,
    );
    alongRows(p, windows);
    alongColumns(q, windows);
  },
  "a switch": (windows) => {
    const [tile, other] = [windows.x.load(), windows.y.transpose().load()];
    const [p, q] = switchCase(tile.sum().cast(i32), [
      () => [tile, other] as const,
      () => [tile, tile] as const,
    ]);
    alongRows(p, windows);
    alongColumns(q, windows);
  },
};

describe("one tile handed on as two", () => {
  test.each(Object.entries(handing))("by %s", async (_, body) => {
    await expectAgreement(kernel({ name: "handing", ...spec }, body));
  });

  test("to carries whose layouts were stated", async () => {
    const [rows, columns] = ["(W0 W1 | L0 L1 L2 L3 L4)", "(L0 L1 L2 L3 L4 | W0 W1)"];
    const shape = [32, 32] as const;
    const definition = kernel(
      {
        name: "stated",
        inputs: { x: tensor(f32, shape) },
        outputs: { a: tensor(f32, shape), b: tensor(f32, shape) },
      },
      ({ x, a, b }) => {
        const tile = x.load();
        const carry = { p: tile.layoutCast(rows), q: tile.add(1).layoutCast(columns) };
        const ends = loop({ to: 3, carry }, (_, { p, q }) => {
          b.store(q.layoutCast(columns).mul(2).layoutCast(columns));
          const next = p.layoutCast(rows).add(1).layoutCast(rows);
          return { p: next, q: next };
        });
        a.store(ends.p.layoutCast(rows));
        b.store(ends.q.layoutCast(columns));
      },
    );
    await expectAgreement(definition);
  });

  // A carry that begins as one number may have one register where the other has many.
  test.each([
    { dtype: i64, shape: [7, 5] },
    { dtype: f32, shape: [64] },
  ])("to a carry of one number and one of $shape elements", async ({ dtype, shape }) => {
    const inputs = { x: tensor(dtype, shape) };
    for (const way of ["both", "swapped", "one"]) {
      const definition = kernel(
        { name: "numbers", inputs, outputs: { o: tensor(dtype, shape) } },
        ({ x, o }) => {
          const carry = { p: full(dtype, shape, 3), q: x.load() };
          const { q: end } = loop({ to: 4, carry }, (index, { p, q }) => {
            const next = p.add(index.cast(dtype));
            if (way === "both") return { p: next, q: next };
            return way === "swapped" ? { p: q, q: p } : { p, q: next };
          });
          o.store(end);
        },
      );
      await expectAgreement(definition);
    }
  });
});

describe("sorts whose payload is needed in two layouts", () => {
  test.each([
    { keys: u8, payload: i32, shape: [128, 4], axis: 0 },
    { keys: u8, payload: f64, shape: [16, 8], axis: 0 },
    { keys: f16, payload: i64, shape: [64, 4], axis: 0 },
    { keys: i64, payload: u8, shape: [64, 4], axis: 1 },
  ])("$keys.name with $payload.name, $shape along axis $axis", async (options) => {
    const { keys, payload, shape, axis } = options;
    const definition = kernel(
      {
        name: "order",
        inputs: { keys: tensor(keys, shape), payload: tensor(payload, shape) },
        outputs: { moved: tensor(payload, shape), again: tensor(payload, shape.toReversed()) },
      },
      (windows) => {
        const [, moved] = windows.keys.load().sortWith([windows.payload.load()], { axis });
        windows.moved.store(moved);
        windows.again.store(moved.transpose());
      },
    );
    await expectAgreement(definition);
  });

  test("u8 with the order of its elements, which is sorted again", async () => {
    const shape = [128, 4] as const;
    const definition = kernel(
      {
        name: "order",
        inputs: { keys: tensor(u8, shape) },
        outputs: { order: tensor(i32, shape), other: tensor(i32, [4, 128]) },
      },
      ({ keys, order, other }) => {
        const [, moved] = keys.load().sortWith([iota(i32, shape, { axis: 0 })], { axis: 0 });
        order.store(moved);
        other.store(moved.sort({ axis: 0 }).transpose());
      },
    );
    await expectAgreement(definition);
  });
});
