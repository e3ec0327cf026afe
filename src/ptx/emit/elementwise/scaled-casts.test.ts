/** Numbers of 4 bits as f16 and bf16, alone and multiplied by powers of two: every one of them, on the emulator, against float64. */
import { expect, test } from "vitest";
import { bf16, f16, f32, i4, u4 } from "../../../formats/dtype.ts";
import { fromNumbers, toNumbers } from "../../../formats/hostarray.ts";
import { array, kernel } from "../../../lang/index.ts";
import { lower } from "../../../lower/pipeline.ts";
import { open } from "../../../runtime/open.ts";
import { targets } from "../../../targets/target.ts";
import { printPtx } from "../../printer.ts";

const shape = [16, 128] as const;
/** Lanes have words of a row, as weights are read. */
const layout = "(L2 L3 L4 R5 | R0 R1 R2 R3 R4 L0 L1)";

function widened(from: typeof i4 | typeof u4, to: typeof f16 | typeof bf16, factor: number) {
  return kernel(
    {
      name: "widened",
      warps: 1,
      inputs: { x: array(from as typeof i4, shape) },
      outputs: { out: array(f32, shape) },
    },
    ({ x, out }) => {
      const whole = x
        .load()
        .layoutCast(layout)
        .cast(to as typeof bf16);
      out.store((factor === 1 ? whole : whole.mul(factor)).cast(f32));
    },
  );
}

const cases = [i4, u4].flatMap((from) =>
  [f16, bf16].flatMap((to) =>
    [1, 1 / 2, 1 / 4, 2 ** -11, ...(to === bf16 ? [2 ** -120] : []), 3 / 8].map(
      (factor) => [from, to, factor] as const,
    ),
  ),
);

test("every number of 4 bits, with every factor", async () => {
  const device = await open("emulator");
  for (const [from, to, factor] of cases) {
    const least = from === i4 ? -8 : 0;
    const numbers = Float64Array.from(
      { length: 2048 },
      (_, at) => ((at * 7 + (at >> 4)) % 16) + least,
    );
    const x = fromNumbers(from as typeof i4, shape, numbers);
    const { out } = await device.run(widened(from, to, factor), { x });
    expect([...toNumbers(out)], `${from.name} ${to.name} ${factor}`).toEqual(
      [...numbers].map((each) => each * factor),
    );
  }
  device.dispose();
});

/** Shifts of words, products and products with sums in the code of a kernel. */
function counted(to: typeof f16 | typeof bf16, factor: number): readonly number[] {
  const text = printPtx(lower(widened(i4, to, factor).kernel, targets.sm_90a).module);
  return [/mul\.rn\.bf16x2/g, /fma\.rn\.b?f16x2/g, /lop3\.b32/g].map(
    (pattern) => text.match(pattern)?.length ?? 0,
  );
}

test("a factor that is small enough goes along with the conversion", () => {
  expect(counted(bf16, 1 / 4)).toEqual([0, 32, 32]);
  expect(counted(bf16, 1 / 2)).toEqual([32, 0, 32]);
  expect(counted(f16, 1)).toEqual([0, 32, 32]);
});
