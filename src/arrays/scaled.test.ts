/**
 * Quantisation by blocks against a second definition in exact numbers: scales by their definition as powers of two, elements by searching the numbers
 * of the format (`test/number-reference.ts`). Evaluator, simulator and emulator give the same bits.
 */
import { afterEach, describe, expect, test } from "vitest";
import { finiteNumbers, referenceDecode, referenceEncode } from "../../test/number-reference.ts";
import type { ListedName } from "../../test/number-reference.ts";
import { takesAll } from "../../test/support/sample.ts";
import { f32, f64, fromNumbers, toElements } from "tilewright";
import {
  array,
  astype,
  grad,
  jit,
  mul,
  nn,
  random,
  reshape,
  sum,
  transpose,
  useDevice,
} from "tilewright/arrays";
import type { NDArray } from "tilewright/arrays";
import { blockExtents, scaledFormats } from "../formats/scaled/formats.ts";
import type { ScaledFormat, ScaledFormatName } from "../formats/scaled/formats.ts";
import { scaleIndices, scalePlaces, scaleShape } from "../formats/scaled/layout.ts";
import { open } from "../runtime/open.ts";
import { Random } from "../support/random.ts";

const names = Object.keys(scaledFormats) as ScaledFormatName[];
const single = Math.fround;

afterEach(() => useDevice());

/** The exponent of the largest power of two up to a positive number. */
function exponentOf(value: number): number {
  let exponent = Math.floor(Math.log2(value));
  while (2 ** exponent > value) exponent -= 1;
  while (2 ** (exponent + 1) <= value) exponent += 1;
  return exponent;
}

type Rule = "roundUp" | "floor" | "ceil" | "even";

/** The scale of a block by its definition. */
function scaleOf(record: ScaledFormat, largest: number, rule: Rule): number {
  const name = record.scale.name;
  if (name === "f32") return single(largest / record.largest);
  if (name === "f8e4m3fn") {
    const found = single(largest / record.largest);
    return referenceDecode(name, referenceEncode(name, Math.min(found, 448)));
  }
  if (!Number.isFinite(largest)) return NaN;
  if (largest === 0) return 2 ** -127;
  const emax = exponentOf(record.largest);
  const within = (exponent: number): number => 2 ** Math.min(127, Math.max(-127, exponent));
  const own = exponentOf(largest);
  if (rule === "roundUp") {
    const wanted = single(largest / record.largest);
    if (wanted === 0) return 2 ** -127;
    const exponent = exponentOf(wanted);
    return within(2 ** exponent < wanted ? exponent + 1 : exponent);
  }
  if (rule === "floor") return within(own - emax);
  if (rule === "ceil") return within((2 ** own < largest ? own + 1 : own) - emax);
  // With as many digits as elements have, half up, then floor.
  const digits = finiteNumbers(record.element.name).filter(
    (value) => value >= 1 && value < 2,
  ).length;
  const rounded = Math.floor((largest / 2 ** own) * digits + 0.5) / digits;
  return within(own + (rounded >= 2 ? 1 : 0) - emax);
}

interface Quantised {
  readonly elements: number[];
  readonly scales: number[];
}

/** What quantising numbers of f32 gives: codes of elements, numbers of scales. */
function reference(
  record: ScaledFormat,
  values: readonly number[],
  shape: readonly number[],
  axis: number,
  rule: Rule,
  globalScale: number,
): Quantised {
  const indices = scaleIndices(record, shape, axis);
  const count = scaleShape(record, shape, axis).reduce((product, each) => product * each, 1);
  const own = values.map((value) => (record.hasGlobalScale ? single(value / globalScale) : value));
  const largest = new Array<number>(count).fill(0);
  own.forEach((value, place) => {
    const index = indices[place] ?? 0;
    largest[index] = Math.max(largest[index] ?? 0, Math.abs(value));
  });
  const scales = largest.map((each) => scaleOf(record, each, rule));
  const { name } = record.element;
  const elements = own.map((value, place) => {
    const scale = scales[indices[place] ?? 0] ?? NaN;
    const scaled = scale === 0 ? 0 : single(value / scale);
    const { largest: most } = record;
    return referenceEncode(name as ListedName, Math.max(-most, Math.min(most, scaled)));
  });
  return { elements, scales };
}

/** Numbers of every size: ordinary ones, and blocks of zeros, of denormal numbers, of the largest ones, of powers of two and beside them. */
function numbersOf(count: number, seed: number): Float32Array {
  const random = new Random(seed);
  return Float32Array.from({ length: count }, (_, place) => {
    const kind = Math.floor(place / 64) % 8;
    const value = random.normal();
    if (kind === 1) return 0;
    if (kind === 2) return value * 2 ** -146;
    if (kind === 3) return value * 2 ** 125.5;
    if (kind === 4) return 2 ** (random.below(40) - 20) * (1 + (random.below(3) - 1) * 2 ** -23);
    if (kind === 5) return value * 2 ** -126;
    if (kind === 6) return Math.round(value * 4) / 8;
    return value * 2 ** (random.below(12) - 6);
  });
}

async function codesOf(x: NDArray): Promise<number[]> {
  return Array.from(toElements(await x.read()), Number);
}

async function scalesOf(x: NDArray): Promise<number[]> {
  const { data } = await astype(x, "f64").read();
  return Array.from(data, Number);
}

const wholes = (shape: readonly number[]): number => shape.reduce((all, each) => all * each, 1);

/** On every device in turn; by default only on the evaluator where others of its kind run on all. */
async function onDevices(
  body: (kind: string) => Promise<void>,
  always: boolean = true,
): Promise<void> {
  await useDevice("evaluator");
  await body("evaluator");
  if (!always && !takesAll) return;
  for (const kind of ["simulator", "emulator"] as const) {
    const device = await open(kind);
    await useDevice(device);
    await body(kind);
    await useDevice();
    device.dispose();
  }
}

test("f64 is rounded to f32 first, and quantised by the same kernel", async () => {
  const numbers = Float64Array.from({ length: 192 }, (_, i) => Math.sin(i) * 7 + i * 1e-12);
  const device = await open("simulator", { onNotes: () => undefined });
  try {
    await useDevice(device);
    const [wide, narrow] = [fromNumbers(f64, [3, 64], numbers), fromNumbers(f32, [3, 64], numbers)];
    const [a, b] = [wide, narrow].map((x) => nn.quantizeBlocks(array(x), "mxfp4"));
    if (a === undefined || b === undefined) throw new Error("two arrays");
    expect(await codesOf(a.elements)).toEqual(await codesOf(b.elements));
    expect(await scalesOf(a.scales)).toEqual(await scalesOf(b.scales));
    expect(device.compilations.map(({ kernel }) => kernel)).toContain("quantize_mxfp4");
  } finally {
    await useDevice();
    device.dispose();
  }
});

describe.each(names)("%s", (name) => {
  const record: ScaledFormat = scaledFormats[name];

  test("is what its definition says, bit for bit (60)", async () => {
    const shape = [3, 512];
    const x = numbersOf(wholes(shape), 11);
    const globalScale = record.hasGlobalScale ? single(0.01) : 1;
    const wanted = reference(record, Array.from(x), shape, 1, "roundUp", globalScale);
    await onDevices(async (kind) => {
      const quantised = nn.quantizeBlocks(array(fromNumbers(f32, shape, x)), name, {
        ...(record.hasGlobalScale && { globalScale }),
      });
      expect(await scalesOf(quantised.scales), kind).toEqual(wanted.scales);
      expect(await codesOf(quantised.elements), kind).toEqual(wanted.elements);
    }, ["mxfp4", "mxfp6e2m3", "fp8Block128x128"].includes(name));
  });

  test("any axis, and sizes that blocks do not divide", async () => {
    for (const [shape, axis] of [
      [[5, 70], 1],
      [[150, 3], 0],
      [[2, 37, 5], 1],
      [[130, 140], 1],
      [[33], 0],
    ] as const) {
      const x = numbersOf(wholes(shape), 12);
      const wanted = reference(record, Array.from(x), shape, axis, "roundUp", 0.5);
      const quantised = nn.quantizeBlocks(array(fromNumbers(f32, shape, x)), name, {
        axis,
        ...(record.hasGlobalScale && { globalScale: 0.5 }),
      });
      expect(await scalesOf(quantised.scales), shape.join()).toEqual(wanted.scales);
      expect(await codesOf(quantised.elements), shape.join()).toEqual(wanted.elements);
      const indices = scaleIndices(record, shape, axis);
      const back = await nn.dequantizeBlocks(quantised, "f64").read();
      const factor = record.hasGlobalScale ? 0.5 : 1;
      expect(Array.from(back.data)).toEqual(
        wanted.elements.map((code, place) => {
          const scale = wanted.scales[indices[place] ?? 0] ?? NaN;
          return referenceDecode(record.element.name, code) * scale * factor;
        }),
      );
    }
  });

  test("NaN and infinities make their block NaN, or are cut beside a given global scale (62)", async () => {
    const width = record.block[1];
    const rows = record.block[0] === 1 ? 3 : 3 * 128;
    const x = new Float32Array(rows * width).fill(1);
    const third = (rows / 3) * width;
    x[5] = NaN;
    x[third + 2] = -Infinity;
    x.fill(0, 2 * third);
    const quantised = nn.quantizeBlocks(array(fromNumbers(f32, [rows, width], x)), name, {
      ...(record.hasGlobalScale && { globalScale: 1 }),
    });
    const back = Array.from((await nn.dequantizeBlocks(quantised).read()).data);
    expect(back.slice(0, third).every(Number.isNaN)).toBe(true);
    if (record.hasGlobalScale) expect(back[third + 2]).toBe(-448 * 6);
    else expect(back.slice(third, 2 * third).every(Number.isNaN)).toBe(true);
    expect(back.slice(2 * third).every((value) => value === 0)).toBe(true);
  });
});

describe("scales that are powers of two", () => {
  /** JAX's rule on the bits of largest / 448. */
  function upOfBits(value: number): number {
    const bits = new Uint32Array(Float32Array.of(value).buffer)[0] ?? 0;
    const [exponent, mantissa] = [bits >>> 23, bits & 0x7fffff];
    const isUp = mantissa > 0 && exponent !== 254 && !(exponent === 0 && mantissa <= 0x400000);
    return exponent + (isUp ? 1 : 0);
  }

  test("of 0, subnormal numbers, powers of two, their neighbours, infinity and NaN (61)", async () => {
    const numbers = [0, 2 ** -149, 2 ** -128, 2 ** -127, 2 ** -127 + 2 ** -149, 2 ** -126, 1];
    numbers.push(
      1 + 2 ** -23,
      1 - 2 ** -24,
      448,
      single(448.0001),
      3.4028234663852886e38,
      2 ** 127,
    );
    const x = new Float32Array(numbers.length * 32);
    numbers.forEach((value, block) => (x[block * 32 + (block % 32)] = -value));
    const given = array(fromNumbers(f32, [numbers.length, 32], x));
    await onDevices(async (kind) => {
      const up = nn.quantizeBlocks(given, "mxfp8e4m3");
      expect(await codesOf(up.scales), kind).toEqual(
        numbers.map((value) => upOfBits(single(value / 448))),
      );
      const down = nn.quantizeBlocks(given, "mxfp8e4m3", { scaleRounding: "floor" });
      expect(await codesOf(down.scales), kind).toEqual(
        numbers.map((value) =>
          value === 0 ? 0 : Math.max(0, Math.max(-127, exponentOf(value)) + 127 - 8),
        ),
      );
    });
    const special = array(fromNumbers(f32, [2, 32], [...Array<number>(63).fill(Infinity), NaN]));
    for (const scaleRounding of ["roundUp", "floor", "ceil", "even"] as const)
      expect(await codesOf(nn.quantizeBlocks(special, "mxfp4", { scaleRounding }).scales)).toEqual([
        255, 255,
      ]);
  });

  test.each(["floor", "ceil", "even"] as const)("%s", async (scaleRounding) => {
    const shape = [4, 512];
    const x = numbersOf(wholes(shape), 13);
    for (const name of ["mxfp8e4m3", "mxfp8e5m2", "mxfp6e2m3", "mxfp6e3m2", "mxfp4"] as const) {
      const wanted = reference(scaledFormats[name], Array.from(x), shape, 1, scaleRounding, 1);
      await onDevices(
        async (kind) => {
          const quantised = nn.quantizeBlocks(array(fromNumbers(f32, shape, x)), name, {
            scaleRounding,
          });
          expect(await scalesOf(quantised.scales), kind).toEqual(wanted.scales);
          expect(await codesOf(quantised.elements), kind).toEqual(wanted.elements);
        },
        scaleRounding === "even" && name === "mxfp8e4m3",
      );
    }
  });
});

describe("scales of whole arrays", () => {
  test("follow from the largest number, and are 1 of zeros", async () => {
    const x = array([[1, -3, 2, 0.5]]);
    const { globalScale } = nn.quantizeBlocks(x, "nvfp4");
    expect(await globalScale?.values()).toBe(single(3 / (448 * 6)));
    const zeros = nn.quantizeBlocks(mul(x, 0), "nvfp4");
    expect(await zeros.globalScale?.values()).toBe(1);
    expect(await nn.dequantizeBlocks(zeros).values()).toEqual([[0, 0, 0, 0]]);
  });

  test("of recorded ranges are used as they are, and so are scales of blocks", async () => {
    const x = array(fromNumbers(f32, [2, 64], numbersOf(128, 5)));
    const first = nn.quantizeBlocks(x, "mxfp8e4m3");
    const again = nn.quantizeBlocks(mul(x, 8), "mxfp8e4m3", { scales: first.scales });
    expect(await codesOf(again.scales)).toEqual(await codesOf(first.scales));
    const [small, large] = [await codesOf(first.elements), await codesOf(again.elements)];
    const wanted = small.map((code) =>
      referenceEncode(
        "f8e4m3fn",
        Math.max(-448, Math.min(448, 8 * referenceDecode("f8e4m3fn", code))),
      ),
    );
    // Subnormal elements have lost digits that eight times as much has.
    const isNormal = small.map((code) => (code & 0x78) !== 0);
    expect(large.filter((_, place) => isNormal[place])).toEqual(
      wanted.filter((_, place) => isNormal[place]),
    );
    expect(() => nn.quantizeBlocks(x, "mxfp8e4m3", { scales: array([[1, 2]]) })).toThrow("TW9325");
  });
});

describe("rounding by chance", () => {
  test.each(["mxfp8e4m3", "mxfp4", "mxfp6e3m2"] as const)("%s", async (name) => {
    const record: ScaledFormat = scaledFormats[name];
    const grid = finiteNumbers(record.element.name);
    const count = 512;
    const value = 1.3;
    const x = new Float32Array(32 * count).fill(value);
    for (let block = 0; block < count; block += 1) x[32 * block] = record.largest;
    const drawn: number[][] = [];
    await onDevices(async () => {
      const quantised = nn.quantizeBlocks(array(fromNumbers(f32, [count / 8, 256], x)), name, {
        key: random.key(7),
      });
      drawn.push(await codesOf(quantised.elements));
    }, name === "mxfp4");
    for (const others of drawn) expect(others).toEqual(drawn[0]);
    const codes = (drawn[0] ?? []).filter((_, place) => place % 32 !== 0);
    const below = grid.findLastIndex((each) => each <= value);
    expect(new Set(codes)).toEqual(new Set([below, below + 1]));
    const [low = 0, high = 0] = grid.slice(below, below + 2);
    const share = codes.filter((code) => code > below).length / codes.length;
    // Four standard deviations.
    const probability = (value - low) / (high - low);
    expect(Math.abs(share - probability)).toBeLessThan(
      4 * Math.sqrt((probability * (1 - probability)) / codes.length),
    );
  });

  test("keeps what the format has, zeros and signs", async () => {
    const x = [448, -(2 ** -9), 0, -0, 1.125, -1.125, 7 * 2 ** -9, 2 ** -6];
    const quantised = nn.quantizeBlocks(array([x]), "mxfp8e4m3", { key: random.key(1) });
    expect(await nn.dequantizeBlocks(quantised).values()).toEqual([x]);
  });
});

describe("layouts of scales", () => {
  test("go into each other and mean the same (51, 56)", async () => {
    const shape = [2, 130, 288];
    const x = array(fromNumbers(f32, shape, numbersOf(wholes(shape), 3)));
    const plain = nn.quantizeBlocks(x, "nvfp4", { globalScale: 1 });
    const codes = await codesOf(plain.scales);
    const wanted = await codesOf(nn.dequantizeBlocks(plain));
    for (const layout of ["padded", "tiled"] as const) {
      const made = nn.quantizeBlocks(x, "nvfp4", { globalScale: 1, layout });
      expect(made.scales.shape).toEqual(scaleShape(scaledFormats.nvfp4, shape, 2, layout));
      const laid = await codesOf(made.scales);
      const places = scalePlaces(scaledFormats.nvfp4, shape, 2, layout);
      expect(Array.from(places, (place) => laid[place])).toEqual(codes);
      expect(await codesOf(nn.withScaleLayout(made, "plain").scales)).toEqual(codes);
      expect(await codesOf(nn.dequantizeBlocks(made))).toEqual(wanted);
    }
    const squares = nn.quantizeBlocks(array([[1]]), "fp8Block128x128");
    expect(() => nn.withScaleLayout(squares, "tiled")).toThrow("TW9325");
  });

  test("a tile whose rows were mixed up means other numbers", async () => {
    const x = array(fromNumbers(f32, [128, 128], numbersOf(128 * 128, 4)));
    const tiled = nn.quantizeBlocks(x, "mxfp8e4m3", { layout: "tiled" });
    const wrong = {
      ...tiled,
      scales: reshape(transpose(tiled.scales, [0, 1, 3, 2, 4]), [1, 1, 32, 4, 4]),
    };
    expect(await codesOf(nn.dequantizeBlocks(wrong))).not.toEqual(
      await codesOf(nn.dequantizeBlocks(tiled)),
    );
  });
});

describe("derivatives", () => {
  test("go straight through", async () => {
    const x = array(
      fromNumbers(
        f32,
        [2, 64],
        numbersOf(128, 8).map((value) => Math.min(9, Math.max(-9, value))),
      ),
    );
    const loss = (w: NDArray<"f32">) => sum(mul(nn.fakeQuantize(w, "mxfp4"), 3));
    expect(new Set(await codesOf(jit(grad(loss))(x)))).toEqual(new Set([3]));
    const kept = await nn.dequantizeBlocks(nn.quantizeBlocks(x, "mxfp4")).read();
    expect((await nn.fakeQuantize(x, "mxfp4").read()).data).toEqual(kept.data);
    const constant = (w: NDArray<"f32">) => sum(nn.dequantizeBlocks(nn.quantizeBlocks(w, "mxfp4")));
    expect(new Set(await codesOf(grad(constant)(x)))).toEqual(new Set([0]));
  });

  test("arrays in formats with scales go through compiled functions", async () => {
    const quantise = jit((w: NDArray<"f32">) => nn.quantizeBlocks(w, "mxfp8e4m3"));
    const x = array(fromNumbers(f32, [4, 64], numbersOf(256, 9)));
    const made = quantise(x);
    expect(blockExtents(scaledFormats[made.format], 2, made.axis)).toEqual([1, 32]);
    const back = jit((w: nn.ScaledArray<"mxfp8e4m3">) => nn.dequantizeBlocks(w));
    expect(await codesOf(back(made))).toEqual(await codesOf(nn.dequantizeBlocks(made)));
  });
});
