/**
 * Every scale with every element of the formats with scales, 65,536 pairs of MXFP8: what they stand for, by `nn.dequantizeBlocks` in f32 and bf16, and by
 * `scaledMatmul` with the unit matrix. References are made of the bits of the codes here. Of scales in f32 there are 256, of every kind.
 *
 *   node dist/cli/main.js run test/gpu/scaled-pairs.ts                     on the GPU
 *   node dist/cli/main.js run test/gpu/scaled-pairs.ts -- emulator         or the simulator, or the evaluator, which has no kernels and no products of them
 */
import process from "node:process";
import { bf16, f32, fromElements, fromNumbers, open, scaledHostArray, toNumbers } from "tilewright";
import { scaledFormats } from "../../src/formats/scaled/formats.ts";
import type { DType, DeviceName, ScaledFormat } from "tilewright";
import { nn, useDevice } from "tilewright/arrays";
import { scaledMatmul } from "tilewright/kernels";

/** Bits of exponent and mantissa, the bias, and codes of the magnitude from which on there are no numbers. */
const coded: {
  readonly [name: string]: readonly [exponent: number, mantissa: number, bias: number, end: number];
} = {
  f8e4m3fn: [4, 3, 7, 0x7f],
  f8e5m2: [5, 2, 15, 0x7c],
  f6e2m3fn: [2, 3, 1, 0x20],
  f6e3m2fn: [3, 2, 3, 0x20],
  f4e2m1fn: [2, 1, 1, 0x8],
};

function decoded(name: string, code: number): number {
  if (name === "f8e8m0fnu") return code === 255 ? NaN : 2 ** (code - 127);
  const [exponent, mantissa, bias, end] = coded[name] ?? [0, 0, 0, 0];
  const width = exponent + mantissa;
  const magnitude = code % 2 ** width;
  const sign = code >= 2 ** width ? -1 : 1;
  if (magnitude >= end) return name === "f8e5m2" && magnitude === end ? sign * Infinity : NaN;
  const [power, fraction] = [Math.floor(magnitude / 2 ** mantissa), magnitude % 2 ** mantissa];
  const whole = power === 0 ? 0 : 2 ** mantissa;
  return sign * (whole + fraction) * 2 ** (Math.max(power, 1) - bias - mantissa);
}

/** f32 to bf16, to nearest even. */
function inBf16(number: number): number {
  const words = new Uint32Array(Float32Array.of(number).buffer);
  const [word = 0] = words;
  if (Number.isNaN(number)) return NaN;
  words[0] = word + 0x7fff + ((word >>> 16) & 1);
  words[0] &= 0xffff0000;
  return new Float32Array(words.buffer)[0] ?? NaN;
}

/** 256 scales of f32: powers of two from one end to the other, what is no number, and bits of every kind. */
function wideScale(place: number): number {
  const special = [0, -0, Infinity, NaN, 2 ** -149, 2 ** -127, 1, 448];
  if (place < special.length) return special[place] ?? 0;
  return Math.fround(2 ** (place - 136) * (1 + ((place * 2654435761) % 2 ** 23) / 2 ** 23));
}

const rows = 256;
const columns = 256;

interface Pairs {
  /** The element and the scale of each place. */
  readonly codes: Uint8Array;
  readonly scaleOf: (row: number, column: number) => number;
  readonly scales: Uint8Array | Float32Array;
  readonly counts: readonly number[];
}

function pairsOf({ block: [across, along], element, scale }: ScaledFormat, tame: boolean): Pairs {
  const bits = element.name.startsWith("f4") ? 4 : element.name.startsWith("f6") ? 6 : 8;
  const counts = [rows / across, columns / along];
  const place = (row: number, column: number): number =>
    across === 1 ? row : Math.floor(row / across) * 2 + Math.floor(column / along) + 60;
  const numberOf = (row: number, column: number): number =>
    scale === f32 ? wideScale(place(row, column)) : decoded(scale.name, row);
  const [down = 1, wide = 1] = counts;
  const listed = Array.from({ length: down * wide }, (_, i) => {
    const [row, column] = [Math.floor(i / wide) * across, (i % wide) * along];
    return scale === f32 ? numberOf(row, column) : row;
  });
  const isTame = (row: number, column: number, code: number): boolean =>
    Math.abs(decoded(element.name, code) * numberOf(row, column)) < 2 ** 127;
  const codes = Uint8Array.from({ length: rows * columns }, (_, i) => {
    const [row, column] = [Math.floor(i / columns), i % columns];
    const code = column % 2 ** bits;
    return !tame || isTame(row, column, code) ? code : 0;
  });
  return {
    codes,
    scaleOf: numberOf,
    scales: scale === f32 ? Float32Array.from(listed) : Uint8Array.from(listed),
    counts,
  };
}

/** The scales of a product's operand: those that are no number become 1. */
function tamed({ scales, scaleOf, ...others }: Pairs, { scale }: ScaledFormat): Pairs {
  const one = scale.name === "f8e8m0fnu" ? 127 : scale === f32 ? 1 : 0x38;
  const isNumber = (value: number): boolean =>
    Number.isFinite(scale === f32 ? value : decoded(scale.name, value));
  const tame = scales.map((value: number) => (isNumber(value) ? value : one));
  return {
    ...others,
    scales: tame,
    scaleOf: (row, column) => {
      const number = scaleOf(row, column);
      return Number.isFinite(number) ? number : 1;
    },
  };
}

function wrongOf(
  found: Float64Array,
  wanted: (row: number, column: number) => number,
  at: (row: number, column: number) => number,
): string {
  let [wrong, first] = [0, ""];
  for (let row = 0; row < rows; row++)
    for (let column = 0; column < columns; column++) {
      const [own, right] = [found[at(row, column)] ?? NaN, wanted(row, column)];
      if (Object.is(own + 0, right + 0)) continue;
      if (wrong === 0) first = `, row ${row}, column ${column}: ${own}, not ${right}`;
      wrong += 1;
    }
  if (wrong > 0) process.exitCode = 1;
  return `${wrong} wrong${first}`;
}

function hostArrayOf(format: ScaledFormat, { codes, scales, counts }: Pairs) {
  const elements = fromElements(format.element as DType<"f8e4m3fn">, [rows, columns], codes);
  const own = fromElements(format.scale as DType<"f8e4m3fn">, counts, scales as Uint8Array);
  return { elements, scales: own, host: scaledHostArray(format, elements, own) };
}

const [name = "gpu"] = process.argv.slice(2).filter((each) => each !== "--");
const device = name === "evaluator" ? undefined : await open(name as DeviceName);
if (device !== undefined) await useDevice(device);
for (const format of Object.values<ScaledFormat>(scaledFormats)) {
  const pairs = pairsOf(format, false);
  const exact = ({ codes, scaleOf }: Pairs, row: number, column: number): number =>
    decoded(format.element.name, codes[row * columns + column] ?? 0) * scaleOf(row, column);
  const byRows = (row: number, column: number): number => row * columns + column;
  const scaled = nn.scaledArray(hostArrayOf(format, pairs).host);
  const inF32 = toNumbers(await nn.dequantizeBlocks(scaled, "f32").read());
  const inHalf = toNumbers(await nn.dequantizeBlocks(scaled, "bf16").read());
  const single = (row: number, column: number) => Math.fround(exact(pairs, row, column));
  const said = [
    `f32 ${wrongOf(inF32, single, byRows)}`,
    `bf16 ${wrongOf(inHalf, (row, column) => inBf16(single(row, column)), byRows)}`,
  ];
  if (device !== undefined) {
    const tame = tamed(pairsOf(format, true), format);
    const { elements, scales } = hostArrayOf(format, tame);
    const unit = Float64Array.from({ length: columns ** 2 }, (_, i) =>
      i % (columns + 1) === 0 ? 1 : 0,
    );
    const operation = scaledMatmul({ a: bf16, b: format.name, out: f32 });
    const { out } = await device.run(operation, {
      ...{ a: fromNumbers(bf16, [columns, columns], unit), b: elements, bScale: scales },
    } as never);
    const wanted = (row: number, column: number) => inBf16(Math.fround(exact(tame, row, column)));
    said.push(`product ${wrongOf(toNumbers(out), wanted, (row, column) => column * rows + row)}`);
  }
  console.log(`${format.name.padEnd(16)}${said.join("   ")}`);
}
await useDevice();
device?.dispose();
