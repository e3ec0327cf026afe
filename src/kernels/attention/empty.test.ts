/** Attention to no columns, and rows that belong to no sequence: what there is nothing of has no part in logarithms and gradients. */
import { describe, expect, test } from "vitest";
import { tensor, bf16, dim, f32, fromNumbers, i32, open, toNumbers } from "../../index.ts";
import { attention } from "./attention.ts";
import { attentionBackward } from "./backward.ts";

/** Head sizes of the warp-specialized kernels and of the plain ones. */
const heads = [16, 5];

function filled(rows: number, head: number, good = rows) {
  const numbers = Array.from({ length: rows * head }, (_, place) =>
    place < good * head ? ((place * 5) % 7) / 8 - 0.25 : NaN,
  );
  return fromNumbers(bf16, [1, rows, 1, head], numbers);
}

describe.each(["simulator", "emulator"] as const)("on the %s", (name) => {
  test.each(heads)("no columns, heads of %i", async (head) => {
    const device = await open(name, { onNotes: () => undefined });
    const given = { q: filled(3, head), k: filled(0, head), v: filled(0, head) };
    const operands = { q: bf16, k: bf16, v: bf16 } as const;
    const alone = await device.run(attention({ ...operands, logSumExp: true }), given);
    expect([...toNumbers(alone.logSumExp)]).toEqual([-Infinity, -Infinity, -Infinity]);
    expect(toNumbers(alone.out).every((value) => value === 0)).toBe(true);
    const sinks = fromNumbers(f32, [1], [0.5]);
    const op = attention({ ...operands, sinks: f32, logSumExp: true });
    const { out, logSumExp } = await device.run(op, { ...given, sinks });
    expect([...toNumbers(logSumExp)]).toEqual([0.5, 0.5, 0.5]);
    expect(toNumbers(out).every((value) => value === 0)).toBe(true);
    device.dispose();
  });
});

test("values without elements have no logarithms and no gradients, which no kernel would write", async () => {
  const device = await open("simulator", { onNotes: () => undefined });
  const operands = { q: bf16, k: bf16, v: bf16 } as const;
  const given = { q: filled(3, 8), k: filled(4, 8), v: filled(4, 0) };
  const { out } = await device.run(attention(operands), given);
  expect(out.shape).toEqual([1, 3, 1, 0]);
  const sizes = { b: 1, s: 3, t: 4, h: 1, kv: 1, d: 8, e: 0 };
  for (const plan of [
    () => attention({ ...operands, logSumExp: true }).plan(sizes),
    () => attentionBackward(operands).plan(sizes),
  ])
    expect(plan).toThrow("e from 1 to 256");
  device.dispose();
});

test.each(heads)("rows of nobody that are no numbers, heads of %i", async (head) => {
  const device = await open("simulator", { onNotes: () => undefined });
  const operands = {
    ...{ q: bf16, k: bf16, v: bf16, sinks: f32 },
    offsets: { q: i32, k: i32 },
  } as const;
  /** The gradients of sinks with `length` rows, of which nine belong to sequences. */
  const gradient = async (length: number): Promise<readonly number[]> => {
    const part = filled(length, head, 9);
    const offsets = fromNumbers(i32, [3], [0, 4, 9]);
    const given = {
      ...{ q: part, k: part, v: part, qOffsets: offsets, kOffsets: offsets },
      sinks: fromNumbers(f32, [1], [0.5]),
    };
    const forward = await device.run(attention({ ...operands, logSumExp: true }), given);
    const backward = attentionBackward(operands);
    const { dSinks } = await device.run(backward, { ...given, ...forward, dOut: part });
    return [...toNumbers(dSinks)];
  };
  const expected = await gradient(9);
  expect(expected.every((value) => Number.isFinite(value) && value !== 0)).toBe(true);
  // Another number of rows may be divided, and so rounded, in another way.
  for (const [place, value] of (await gradient(12)).entries())
    expect(Math.abs(value - (expected[place] ?? NaN))).toBeLessThan(1e-6);
  device.dispose();
});

test.each([
  [3, 0, 1],
  [0, 3, 1],
  [2, 3, 0],
])(
  "the gradient of a bias of %i rows, %i columns, %i heads is written",
  async (rows, columns, heads) => {
    const device = await open("simulator", { onNotes: () => undefined });
    const op = attentionBackward({
      ...{ q: bf16, k: bf16, v: bf16, dBias: true },
      bias: tensor(f32, columns === 0 ? [1, 1, dim("s"), 1] : [1, 1, 1, dim("t")]),
    });
    const [q, k] = [
      [1, rows, heads, 16],
      [1, columns, heads, 16],
    ];
    const shape = columns === 0 ? [1, 1, rows, 1] : [1, 1, 1, columns];
    const dBias = device.allocate(f32, shape);
    await device.fill(dBias, 7);
    const given = {
      ...{ q: device.allocate(bf16, q), k: device.allocate(bf16, k), v: device.allocate(bf16, k) },
      ...{ out: device.allocate(bf16, q), dOut: device.allocate(bf16, q) },
      ...{ logSumExp: device.allocate(f32, [1, heads, rows]), bias: device.allocate(f32, shape) },
    };
    for (const each of Object.values(given))
      if (!each.shape.includes(0)) await device.fill(each, 0);
    const results = { dq: device.allocate(bf16, q), dk: device.allocate(bf16, k) };
    const launch = device.bind(op, { ...given, ...results, dv: device.allocate(bf16, k), dBias });
    launch.launch();
    expect([...toNumbers(await device.download(dBias))]).toEqual([0, 0, 0]);
    launch.dispose();
    device.dispose();
  },
);

describe.each(["simulator", "emulator"] as const)("on the %s", (name) => {
  test.each(heads)(
    "a bias that takes a whole row far away leaves nothing, heads of %i",
    async (head) => {
      const device = await open(name, { onNotes: () => undefined });
      const bias = tensor(f32, [1, 1, dim("s"), dim("t")]);
      const operands = { q: bf16, k: bf16, v: bf16, bias } as const;
      const part = filled(2, head);
      for (const far of [-3e7, -1e10, -1e38, -3.4e38]) {
        const given = {
          ...{ q: part, k: part, v: part },
          bias: fromNumbers(f32, [1, 1, 2, 2], [far, far, far, 0]),
        };
        const results = await device.run(attention({ ...operands, logSumExp: true }), given);
        const wanted = [...new Float64Array(head), ...toNumbers(part).slice(head)];
        expect([...toNumbers(results.out)], String(far)).toEqual(wanted);
        expect(toNumbers(results.logSumExp)[0]).toBe(-Infinity);
        if (name === "emulator") continue;
        const found = await device.run(attentionBackward(operands), {
          ...given,
          ...results,
          dOut: part,
        });
        expect([...toNumbers(found.dv)], String(far)).toEqual(wanted);
      }
      device.dispose();
    },
  );
});
