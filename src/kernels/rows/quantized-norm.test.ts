/** Norms whose results are stored in formats with scales: bit for bit what `quantizeBlocks` makes of the norm's own result, in one launch. */
import { describe, expect, test } from "vitest";
import { takesAll } from "../../../test/support/sample.ts";
import { codeOf, expectClose } from "../../../test/support/library-checks.ts";
import { bf16, f16, f32, u8 } from "../../formats/dtype.ts";
import type { DType, FloatName } from "../../formats/dtype.ts";
import { fromNumbers, toElements, toNumbers } from "../../formats/hostarray.ts";
import type { HostArray } from "../../formats/hostarray.ts";
import { scaledFormats } from "../../formats/scaled/formats.ts";
import type { ScaledFormat, ScaledFormatName } from "../../formats/scaled/formats.ts";
import type { ScaleRounding } from "../../formats/scaled/scale-rounding.ts";
import { tensor } from "../../lang/index.ts";
import { open } from "../../runtime/open.ts";
import { Random } from "../../support/random.ts";
import { targets } from "../../targets/target.ts";
import { layerNorm, rmsNorm } from "./norm.ts";
import { quantizeBlocks } from "./quantize-blocks.ts";

interface Case {
  readonly norm: "layerNorm" | "rmsNorm";
  readonly format: ScaledFormatName;
  readonly shape: readonly number[];
  readonly x?: DType<FloatName>;
  readonly out?: DType<FloatName>;
  readonly residual?: boolean;
  readonly scaleRounding?: ScaleRounding;
  readonly stored?: DType<"u8">;
}

type Arrays = { readonly [name: string]: HostArray };

/** Whole numbers, whose sums and squares every schedule adds up exactly. */
function wholeNumbers(dtype: DType<FloatName>, shape: readonly number[], random: Random) {
  const count = shape.reduce((all, each) => all * each, 1);
  return fromNumbers(
    dtype,
    shape,
    Array.from({ length: count }, () => random.below(17) - 8),
  );
}

async function check(kind: "simulator" | "emulator", given: Case): Promise<void> {
  const { norm, format: name, shape, x: dtype = bf16, out = dtype } = given;
  const format: ScaledFormat = scaledFormats[name];
  const seed = 31;
  const random = new Random(seed);
  const columns = shape.slice(-1);
  const isLayer = norm === "layerNorm";
  const spec = {
    x: tensor(dtype, shape),
    scale: tensor(f32, columns),
    out,
    ...(given.residual === true && { residual: tensor(dtype, shape) }),
    ...(isLayer && { bias: tensor(f32, columns) }),
    statistics: true,
  };
  const arrays: Arrays = {
    x: wholeNumbers(dtype, shape, random),
    scale: wholeNumbers(f32, columns, random),
    ...(given.residual === true && { residual: wholeNumbers(dtype, shape, random) }),
    ...(isLayer && { bias: wholeNumbers(f32, columns, random) }),
  };
  const globalScale: Arrays = format.hasGlobalScale
    ? { globalScale: fromNumbers(f32, [1], [0.0625]) }
    : {};
  const of = (asked: object): unknown =>
    isLayer ? layerNorm(asked as never) : rmsNorm(asked as never);
  const { scaleRounding = "roundUp" } = given;
  const stored = given.stored !== undefined && { out: given.stored };
  const quantize = { format, scaleRounding, ...stored };
  const device = await open(kind);
  const run = async (operation: unknown, inputs: Arrays): Promise<Arrays> =>
    (await device.run(operation as never, inputs as never)) as unknown as Arrays;
  const { out: wide, ...others } = await run(of(spec), arrays);
  const blocks = quantizeBlocks({ x: tensor(out, shape), format, scaleRounding, ...stored });
  const wanted = await run(blocks, { x: wide as HostArray, ...globalScale });
  const found = await run(of({ ...spec, quantize }), { ...arrays, ...globalScale });
  device.dispose();
  const label = `${kind} ${norm} ${name} ${dtype.name}[${shape.join()}], seed ${seed}`;
  const codes = (array: HostArray | undefined) => array && toElements(array);
  expect(codes(found["outScale"]), label).toEqual(codes(wanted["scale"]));
  expect(codes(found["out"]), label).toEqual(codes(wanted["out"]));
  expect(new Set(toNumbers(found["out"] as HostArray)).size, label).toBeGreaterThan(4);
  // Of rows that several blocks hold, statistics depend on the schedule in their last bits.
  for (const [each, array] of Object.entries(others))
    expectClose(found[each] as HostArray, [...toNumbers(array)], { relative: 4 });
}

describe.each(["simulator", "emulator"] as const)("on the %s", (kind) => {
  test("several rows a block, and rows that blocks do not divide", async () => {
    await check(kind, { norm: "rmsNorm", format: "mxfp8e4m3", shape: [6, 256] });
    await check(kind, { norm: "layerNorm", format: "nvfp4", shape: [2, 3, 40] });
    await check(kind, { norm: "layerNorm", format: "fp8Block1x128", shape: [3, 200], out: f32 });
    await check(kind, { norm: "rmsNorm", format: "mxfp4", shape: [2, 77], x: f32, stored: u8 });
  });
  test("a row a block, with a residual", async () => {
    await check(kind, {
      ...{ norm: "rmsNorm", format: "fp8Block1x128", shape: [2, 2048], residual: true },
      ...{ x: f16, scaleRounding: "even" },
    });
  });
  test.runIf(takesAll)("clusters, and rows that are looped over", async () => {
    for (const format of Object.keys(scaledFormats) as ScaledFormatName[])
      if (scaledFormats[format].block[0] === 1)
        for (const norm of ["layerNorm", "rmsNorm"] as const)
          await check(kind, { norm, format, shape: [3, 1280], scaleRounding: "floor" });
    await check(kind, { norm: "layerNorm", format: "mxfp4", shape: [1, 33_000] });
    await check(kind, { norm: "rmsNorm", format: "nvfp4", shape: [2, 300_032] });
  });
});

test.each([
  [8192, 4096],
  [65536, 1280],
  [65536, 1200],
  [4, 65_536],
  [1, 300_000],
])("%s rows of %s columns are one launch", (m, n) => {
  for (const format of [scaledFormats.mxfp8e4m3, scaledFormats.nvfp4]) {
    const made = rmsNorm({ x: bf16, scale: bf16, quantize: { format } });
    const { launches, configuration } = made.plan({ m, n }, targets.sm_90a);
    expect(launches.length).toBe(1);
    expect(("columns" in configuration ? configuration.columns : 0) % format.block[1]).toBe(0);
  }
});

test("what cannot be quantised is refused", () => {
  const made = (quantize: object) => () => rmsNorm({ x: bf16, quantize: quantize as never });
  expect(codeOf(made({ format: scaledFormats.fp8Block128x128 }))).toBe("TW9901");
  expect(codeOf(made({ format: bf16 }))).toBe("TW9901");
  expect(codeOf(made({ format: scaledFormats.mxfp4, out: f32 }))).toBe("TW9901");
  expect(codeOf(made({ format: scaledFormats.mxfp4, scaleRounding: "nearest" }))).toBe("TW9904");
});
