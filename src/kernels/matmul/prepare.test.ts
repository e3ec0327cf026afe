/** How operands are brought into a form that products read. */
import { expect, test } from "vitest";
import { f32 } from "../../formats/dtype.ts";
import { fromNumbers, toNumbers } from "../../formats/hostarray.ts";
import { array, dim } from "../../lang/index.ts";
import { lower } from "../../lower/pipeline.ts";
import { printPtx } from "../../ptx/printer.ts";
import { open } from "../../runtime/open.ts";
import { targets } from "../../targets/target.ts";
import type { MatmulConfiguration } from "./configuration.ts";
import { matmul } from "./matmul.ts";

const [m, n, k] = [dim("m"), dim("n"), dim("k")];

test.each(["tf32", "bf16x3"] as const)(
  "operands of %s are prepared in one launch, by wide accesses alone",
  (precision) => {
    const a = array(f32, [m, k], { strides: [1, m] });
    const op = matmul({ a, b: f32, precision });
    const [prepare, ...others] = op.kernels({ m: 4096, n: 4096, k: 4096 });
    expect(others).toHaveLength(1);
    if (prepare === undefined) throw new Error("nothing is prepared");
    const text = printPtx(lower(prepare.kernel, targets.sm_90a).module);
    const moves = text.match(/(?:ld|st)\.global\S*/g) ?? [];
    expect(moves.length).toBeGreaterThan(0);
    expect(moves.filter((move) => !/\.v[24]\.b32$/.test(move))).toEqual([]);
  },
);

test("f32 as tf32 is rounded by the copy engine, and turned only where both operands lie across k", () => {
  const sizes = { m: 4096, n: 4096, k: 4096 };
  const [rows, columns] = [
    array(f32, [m, k], { strides: [1, m] }),
    array(f32, [k, n], { strides: [1, k] }),
  ];
  const planOf = (
    a: typeof rows | typeof f32,
    b: typeof columns | typeof f32,
    precision: "tf32" | "tf32x3" = "tf32",
  ) => matmul({ a, b, precision }).plan(sizes);
  expect(planOf(f32, columns).notes).toEqual([]);
  expect(planOf(rows, columns).notes).toEqual([]);
  expect(planOf(f32, f32).notes).toEqual([]);
  expect(planOf(f32, f32).configuration).toMatchObject({ turned: true });
  expect(planOf(rows, f32).notes).toEqual([expect.stringContaining("is turned")]);
  expect(planOf(f32, columns, "tf32x3").notes).toHaveLength(2);
});

test.each(["tf32x3", "bf16x3", "bf16x6", "bf16x9"] as const)(
  "infinite products of f32 as %s have their sign, whatever the smaller parts have",
  async (precision) => {
    const device = await open("simulator", { onNotes: () => undefined });
    const firstOf8 = (first: number) => [first, 0, 0, 0, 0, 0, 0, 0];
    const a = fromNumbers(
      f32,
      [3, 8],
      [...firstOf8(Infinity), ...firstOf8(3e38), ...firstOf8(-Infinity)],
    );
    // Of these, the second part is negative.
    const b = fromNumbers(f32, [8, 8], [0.1, 1e30, ...Array.from({ length: 62 }, () => 0)]);
    const configuration: MatmulConfiguration = {
      kernel: "persistent",
      multipliers: 1,
      columns: 64,
      stages: 3,
      schedule: "tiles",
      turned: false,
      cluster: 1,
    };
    const op = matmul({ a: f32, b: f32, precision, configuration });
    const { out } = await device.run(op, { a, b });
    const found = [0, 1, 2].map((row) => [...toNumbers(out).slice(row * 8, row * 8 + 2)]);
    expect(found[0]).toEqual([Infinity, Infinity]);
    expect(found[1]?.[1]).toBe(Infinity);
    expect(found[2]).toEqual([-Infinity, -Infinity]);
    device.dispose();
  },
);
