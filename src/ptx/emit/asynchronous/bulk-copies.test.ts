/** Linear bulk copies: where they are chosen, that they copy what tensor copies would, and what they combine. */
import { afterAll, expect, test } from "vitest";
import { dtypes, f16, f32, f64, u4 } from "../../../formats/dtype.ts";
import type { DType, DTypeName } from "../../../formats/dtype.ts";
import { fromNumbers, toNumbers } from "../../../formats/hostarray.ts";
import type { HostArray } from "../../../formats/hostarray.ts";
import {
  barrier,
  block,
  cdiv,
  commitGroup,
  copyAsync,
  dim,
  kernel,
  smem,
  tensor,
  waitGroup,
} from "../../../lang/index.ts";
import type { CopyOptions, KernelDefinition } from "../../../lang/index.ts";
import { lower } from "../../../lower/stages.ts";
import { open } from "../../../runtime/open.ts";
import { defaultTarget } from "../../../targets/target.ts";
import { assembleNow, combineModules, hasPtxas } from "../../../../test/ptxas.ts";
import type { PtxModule } from "../../module.ts";
import { printPtx } from "../../printer.ts";

const devices = [open("simulator"), open("emulator", { onNotes: () => undefined })];

afterAll(async () => {
  for (const device of devices) (await device).dispose();
});

interface Form {
  readonly rows: Parameters<typeof cdiv>[0];
  readonly width: number;
  readonly window: readonly [number, number];
  readonly reduction?: CopyOptions["reduction"];
}

/** Blocks of rows come in, and go out to where they came from in another array. */
function carried<D extends DTypeName>(
  dtype: DType<D>,
  { rows, width, window, reduction }: Form,
): KernelDefinition {
  return kernel(
    {
      name: "carried",
      grid: { i: cdiv(rows, window[0]) },
      inputs: { x: tensor(dtype, [rows, width]) },
      inouts: { out: tensor(dtype, [rows, width]) },
      scratch: { buffer: smem(dtype, window), landed: barrier() },
    },
    ({ i, x, out, buffer, landed }) => {
      const here = [block(i, window[0]), block(0, window[1])] as const;
      copyAsync(x.at(...here), buffer, { barrier: landed });
      landed.wait();
      copyAsync(buffer, out.at(...here), { ...(reduction && { reduction }) });
      commitGroup();
      waitGroup();
    },
  );
}

const emitted: (readonly [string, PtxModule])[] = [];

function copiesOf(definition: KernelDefinition): readonly string[] {
  const { module } = lower(definition.kernel, defaultTarget);
  emitted.push([`kernel_${emitted.length}`, module]);
  const text = printPtx(module);
  return text
    .split("\n")
    .flatMap((line) => /cp\.(?:reduce\.)?async\.bulk\S* \[.*/.exec(line) ?? []);
}

async function resultsOf(
  definition: KernelDefinition,
  inputs: { readonly [name: string]: HostArray },
): Promise<readonly (readonly number[])[]> {
  return Promise.all(
    devices.map(async (opened) => {
      const results = await (await opened).run(definition, inputs);
      return results["out"] === undefined ? [] : [...toNumbers(results["out"])];
    }),
  );
}

const whole = { rows: dim("n", { multipleOf: 8 }), width: 512, window: [8, 512] } as const;

test.each<readonly [string, DType, Form, readonly [number, "bulk" | "tensor"]]>([
  ["rows that follow on", f32, whole, [1, "bulk"]],
  ["rows that are not known to end there", f32, { ...whole, rows: dim("n") }, [16, "tensor"]],
  ["a box of TMA", f32, { rows: 16, width: 128, window: [8, 128] }, [1, "tensor"]],
  ["long rows with gaps", f16, { rows: 16, width: 1024, window: [8, 480] }, [8, "bulk"]],
  ["rows that no tensor map describes", f16, { rows: 16, width: 12, window: [8, 12] }, [1, "bulk"]],
  ["halves of bytes", u4, { rows: 16, width: 1024, window: [4, 1024] }, [1, "bulk"]],
])("%s", async (_, dtype, form, [pieces, kind]) => {
  const definition = carried(dtype, form);
  const copies = copiesOf(definition);
  expect(copies.filter((copy) => copy.includes("shared::cluster.global"))).toHaveLength(pieces);
  expect(copies.filter((copy) => copy.includes("global.shared::cta"))).toHaveLength(pieces);
  expect(copies.filter((copy) => copy.includes("tensor"))).toHaveLength(
    kind === "tensor" ? 2 * pieces : 0,
  );
  const shape = [16, form.width];
  const numbers = Array.from({ length: 16 * form.width }, (_each, place) => (place * 7) % 13);
  const expected = numbers.map((number, place) =>
    place % form.width < form.window[1] ? number : 1,
  );
  const inputs = {
    x: fromNumbers(dtype, shape, numbers),
    out: fromNumbers(
      dtype,
      shape,
      numbers.map(() => 1),
    ),
  };
  for (const found of await resultsOf(definition, inputs)) expect(found).toEqual(expected);
});

const { bf16, i32, i64, u32, u64 } = dtypes;
const integers = [i32, u32, i64, u64];
type Combine = (old: number, operand: number) => number;
const reductions: {
  readonly [R in NonNullable<CopyOptions["reduction"]>]: readonly [readonly DType[], Combine];
} = {
  add: [[...integers, f16, bf16, f32, f64], (old, operand) => old + operand],
  min: [[...integers, f16, bf16], Math.min],
  max: [[...integers, f16, bf16], Math.max],
  inc: [[u32], (old, operand) => (old >= operand ? 0 : old + 1)],
  dec: [[u32], (old, operand) => (old === 0 || old > operand ? operand : old - 1)],
  and: [integers, (old, operand) => old & operand],
  or: [integers, (old, operand) => old | operand],
  xor: [integers, (old, operand) => old ^ operand],
};

test.each(Object.entries(reductions))(
  "%s by runs and by boxes",
  async (name, [formats, combine]) => {
    const reduction = name as keyof typeof reductions;
    for (const dtype of formats)
      for (const width of [256, 512]) {
        const definition = carried(dtype, { rows: 2, width, window: [1, width], reduction });
        const isBulk = width > 256 || dtype === f64;
        expect(
          copiesOf(definition).some((copy) => /cp\.reduce\.async\.bulk\.tensor/.test(copy)),
        ).toBe(!isBulk);
        const [x, out] = [37, 29].map((by) =>
          Array.from({ length: 2 * width }, (_, place) => (place * by) % 101),
        );
        const expected = (out ?? []).map((old, place) => combine(old, x?.[place] ?? NaN));
        const inputs = {
          x: fromNumbers(dtype, [2, width], x ?? []),
          out: fromNumbers(dtype, [2, width], out ?? []),
        };
        for (const found of await resultsOf(definition, inputs))
          expect(found, `${dtype.name} ${width}`).toEqual(expected);
      }
  },
);

test.skipIf(!hasPtxas)("ptxas (skipped where it is absent) takes them all", () => {
  expect(emitted.length).toBeGreaterThan(60);
  expect(assembleNow(combineModules(emitted), "sm_90a")).not.toMatch(/error|fatal|warning/);
});
