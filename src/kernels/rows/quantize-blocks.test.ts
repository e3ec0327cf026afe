/** `quantizeBlocks` on simulator and emulator, bit for bit what arrays make of the same numbers on the evaluator (`src/arrays/scaled.test.ts` holds those). */
import { describe, expect, test } from "vitest";
import { takesAll } from "../../../test/support/sample.ts";
import { array, astype, maximum, mul, nn } from "tilewright/arrays";
import { bf16, f16, f32 } from "../../formats/dtype.ts";
import type { DType, FloatName } from "../../formats/dtype.ts";
import { fromNumbers, toElements, toNumbers } from "../../formats/hostarray.ts";
import { scaledFormats } from "../../formats/scaled/formats.ts";
import type { ScaledFormat, ScaledFormatName } from "../../formats/scaled/formats.ts";
import type { ScaleRounding } from "../../formats/scaled/scale-rounding.ts";
import { kernel, tensor } from "../../lang/index.ts";
import { open } from "../../runtime/open.ts";
import { Random } from "../../support/random.ts";
import { exactQuotient } from "./block-scale-tiles.ts";
import { quantizeBlocks } from "./quantize-blocks.ts";

const names = Object.keys(scaledFormats) as ScaledFormatName[];

function numbersOf(dtype: DType<FloatName>, shape: readonly number[], seed: number) {
  const random = new Random(seed);
  const count = shape.reduce((all, each) => all * each, 1);
  const values = Array.from({ length: count }, (_, place) => {
    const kind = Math.floor(place / 48) % 6;
    const value = random.normal();
    if (kind === 1) return 0;
    if (kind === 2) return value * 2 ** -130;
    if (kind === 3 && place % 500 === 150) return place % 1000 === 150 ? NaN : Infinity;
    return value * 2 ** (random.below(12) - 6);
  });
  return fromNumbers(dtype, shape, values);
}

interface Case {
  readonly name: ScaledFormatName;
  readonly dtype: DType<FloatName>;
  readonly shape: readonly number[];
  readonly axis?: number;
  readonly scaleRounding?: ScaleRounding;
}

async function check(kind: "simulator" | "emulator", given: Case): Promise<void> {
  const { name, dtype, shape, axis = shape.length - 1, scaleRounding = "roundUp" } = given;
  const format: ScaledFormat = scaledFormats[name];
  const x = numbersOf(dtype, shape, 21);
  const device = await open(kind);
  const made = quantizeBlocks({ x: tensor(dtype, shape), format, axis, scaleRounding });
  const globalScale = fromNumbers(f32, [1], [0.25]);
  const found = (await device.run(
    made as never,
    {
      x,
      ...(format.hasGlobalScale && { globalScale }),
    } as never,
  )) as { readonly out: never; readonly scale: never };
  device.dispose();
  const wanted = nn.quantizeBlocks(array(x), name, {
    axis,
    scaleRounding,
    ...(format.hasGlobalScale && { globalScale: 0.25 }),
  });
  const label = `${kind} ${name} ${dtype.name}[${shape.join()}] axis ${axis}`;
  expect(toNumbers(found.scale), label).toEqual(toNumbers(await wanted.scales.read()));
  // A NaN of f8e5m2 has other bits where an instruction made it.
  const codes = name === "mxfp8e5m2" ? toNumbers : toElements;
  expect(codes(found.out), label).toEqual(codes(await wanted.elements.read()));
}

describe.each(["simulator", "emulator"] as const)("on the %s", (kind) => {
  test.each(takesAll ? names : (["mxfp4", "nvfp4", "mxfp8e4m3", "fp8Block128x128"] as const))(
    "%s",
    async (name) => {
      await check(kind, { name, dtype: bf16, shape: [5, 256] });
    },
  );

  test("rows that blocks do not divide, other axes, other formats of x", async () => {
    await check(kind, { name: "mxfp4", dtype: f32, shape: [3, 77] });
    await check(kind, {
      name: "mxfp8e5m2",
      dtype: f16,
      shape: [2, 70, 6],
      axis: 1,
      scaleRounding: "even",
    });
    if (!takesAll) return;
    await check(kind, { name: "fp8Block128x128", dtype: bf16, shape: [2, 130, 140] });
    await check(kind, { name: "fp8Block128x128", dtype: bf16, shape: [130, 140], axis: 0 });
    await check(kind, { name: "nvfp4", dtype: bf16, shape: [33, 3], axis: 0 });
    await check(kind, { name: "mxfp6e3m2", dtype: bf16, shape: [2, 3, 64], scaleRounding: "ceil" });
    await check(kind, { name: "mxfp6e2m3", dtype: bf16, shape: [96], scaleRounding: "floor" });
  });

  test("what a prologue makes of x and further arrays", async () => {
    const device = await open(kind);
    const [x, scale] = [numbersOf(bf16, [4, 128], 5), numbersOf(f32, [128], 6)];
    const made = quantizeBlocks({
      x: tensor(bf16, [4, 128]),
      format: scaledFormats.mxfp8e4m3,
      inputs: { gain: tensor(f32, [128]) },
      prologue: ({ x: value, gain }) =>
        (value as never as { mul(o: unknown): { maximum(n: number): never } }).mul(gain).maximum(0),
    });
    const found = (await device.run(made, { x, gain: scale } as never)) as {
      readonly out: never;
      readonly scale: never;
    };
    device.dispose();
    const before = maximum(mul(astype(array(x), "f32"), array(scale)), 0);
    const wanted = nn.quantizeBlocks(before, "mxfp8e4m3");
    expect(toNumbers(found.scale)).toEqual(toNumbers(await wanted.scales.read()));
    expect(toElements(found.out)).toEqual(toElements(await wanted.elements.read()));
  });
});

test("what is no such operation is refused", () => {
  const x = tensor(bf16, [4, 64]);
  const format = scaledFormats.mxfp4;
  expect(() => quantizeBlocks({ x, format: bf16 as never })).toThrow("TW9901");
  expect(() => quantizeBlocks({ x, format, scaleRounding: "nearest" as never })).toThrow("TW9904");
  expect(() => quantizeBlocks({ x, format, axis: 2 })).toThrow("TW");
  expect(() => quantizeBlocks({ x, format, inputs: { y: tensor(f32, [4]) } })).toThrow("TW9902");
  const strided = tensor(bf16, [4, 64], { strides: [1, 4] });
  expect(() => quantizeBlocks({ x: strided, format })).toThrow("TW9902");
});

test("quotients of a reciprocal are those of division", async () => {
  const seed = 7;
  const random = new Random(seed);
  const count = 2048;
  const drawn = (bits: number) =>
    fromNumbers(
      f32,
      [count],
      Array.from(
        { length: count },
        () => (1 + random.below(2 ** (bits - 1)) / 2 ** (bits - 1)) * (random.below(2) * 2 - 1),
      ),
    );
  const device = await open("simulator");
  for (const [dividend, divisor, corrected] of [
    [11, 24, "once"],
    [24, 24, "twice"],
  ] as const) {
    const quotients = kernel(
      {
        name: "quotients",
        inputs: { x: tensor(f32, [count]), by: tensor(f32, [count]) },
        outputs: { found: tensor(f32, [count]), wanted: tensor(f32, [count]) },
      },
      ({ x, by, found, wanted }) => {
        const divisors = by.load();
        found.store(exactQuotient(divisors, divisors.reciprocal(), corrected)(x.load()));
        wanted.store(x.load().div(divisors));
      },
    );
    const { found, wanted } = await device.run(quotients, {
      x: drawn(dividend),
      by: drawn(divisor),
    });
    expect(toNumbers(found), `${dividend} by ${divisor} bits, seed ${seed}`).toEqual(
      toNumbers(wanted),
    );
  }
  device.dispose();
});

test("numbers beside global scales of every size", async () => {
  const format = scaledFormats.nvfp4;
  const x = numbersOf(bf16, [8, 64], 9);
  const made = quantizeBlocks({ x: tensor(bf16, [8, 64]), format });
  const device = await open("simulator");
  for (const globalScale of [2 ** -60, -0.3, 1, 2 ** 41, 0, Infinity]) {
    const found = await device.run(made, {
      x: x as never,
      globalScale: fromNumbers(f32, [1], [globalScale]),
    });
    const wanted = nn.quantizeBlocks(array(x), "nvfp4", { globalScale });
    const label = `beside ${globalScale}`;
    expect(toElements(found.scale), label).toEqual(toElements(await wanted.scales.read()));
    expect(toElements(found.out), label).toEqual(toElements(await wanted.elements.read()));
  }
  device.dispose();
});
