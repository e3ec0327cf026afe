/**
 * Conversions in vectors against those of `src/formats`, bit for bit: codes of formats of up to 16 bits, and of wider ones numbers
 * around every limit of a narrower format. `TILEWRIGHT_CASES=all npx vitest run src/cpu/convert` takes every code, and every pair of
 * formats with every option; without it every pair as usual, one in 8 of those with options, and one in 9 codes of 16 bits.
 */
import { expect, test } from "vitest";
import { runModule } from "../../../test/support/vector-function.ts";
import { takesAll } from "../../../test/support/sample.ts";
import { conversionChoices } from "../../formats/conversion-rules.ts";
import { convertElements } from "../../formats/convert.ts";
import { allocateElements, dtypeNames, dtypes, isFloat, isWide } from "../../formats/dtype.ts";
import type { DType, Elements } from "../../formats/dtype.ts";
import { floatFormats } from "../../formats/floats.ts";
import type { ConversionOptions } from "../../formats/floats.ts";
import { Random } from "../../support/random.ts";
import { i32, load, ModuleBuilder, read } from "../loops/builder.ts";
import { emitModule } from "../loops/emit.ts";
import { convertParts } from "./index.ts";

/** Numbers around the limits and midpoints of all formats, and of every exponent. */
function corners(random: Random): readonly number[] {
  const limits = Object.values(floatFormats).flatMap(({ maxFinite, minPositive, mantissaBits }) =>
    [maxFinite, minPositive].flatMap((limit) =>
      [0.25, 0.4999, 0.5, 0.5001, 0.75, 1, 1.25, 1.5, 1.75, 2.5].flatMap((factor) => [
        limit * factor,
        limit * (1 + factor * 2 ** -mantissaBits),
      ]),
    ),
  );
  const whole = [4, 7, 8, 15, 16, 24, 31, 32, 53, 63, 64].flatMap((bits) =>
    [-1, -0.5, 0, 0.5, 1].map((change) => 2 ** bits + change),
  );
  const small = [0, 0.1, 0.25, 0.5, 0.75, 1, 1.5, 2.5, 3.5];
  const scattered = Array.from(
    { length: 400 },
    () => random.normal() * 2 ** (random.normal() * 40),
  );
  const exponents = Array.from({ length: 300 }, (_, index) => {
    const mantissa = 1 + random.below(2 ** 12) / 2 ** 11;
    return mantissa * 2 ** (index - 150);
  });
  const all = [...limits, ...whole, ...small, ...scattered, ...exponents];
  return [...all.flatMap((value) => [value, -value]), Infinity, -Infinity, NaN];
}

function wholeCorners(random: Random): readonly bigint[] {
  const limits = [0, 3, 4, 7, 8, 11, 15, 16, 24, 25, 31, 32, 53, 54, 55, 62, 63].flatMap((bits) =>
    [-3n, -1n, 0n, 1n, 2n, 3n].map((change) => 2n ** BigInt(bits) + change),
  );
  const long = Array.from({ length: 300 }, () => {
    const value = (BigInt(random.bits() >>> 0) << 32n) | BigInt(random.bits() >>> 0);
    return value >> BigInt(random.below(64));
  });
  const ties = [54, 56, 60, 62].flatMap((bits) =>
    [53, 24, 11, 8].flatMap((kept) => {
      const unit = 2n ** BigInt(Math.max(bits - kept, 0));
      return [-1n, 0n, 1n].map((change) => 2n ** BigInt(bits) + 3n * unit + unit / 2n + change);
    }),
  );
  return [...limits, ...long, ...ties].flatMap((value) => [value, -value]);
}

/** Elements of a format: all there are of up to 16 bits. */
function elementsOf(dtype: DType, random: Random): Elements {
  if (dtype.kind === "bool") return Uint8Array.of(0, 1, 1, 0);
  if (dtype.bits <= 16) {
    const step = dtype.bits === 16 && !takesAll ? 9 : 1;
    const every = allocateElements(dtype, Math.floor(2 ** dtype.bits / step));
    const isSigned = dtype.kind === "signed";
    const up = 32 - dtype.bits;
    for (let index = 0; index < every.length; index++) {
      const code = index * step;
      every[index] = isSigned ? (code << up) >> up : code;
    }
    return every;
  }
  if (isWide(dtype)) {
    const wide = wholeCorners(random);
    return dtype.name === "i64" ? BigInt64Array.from(wide) : BigUint64Array.from(wide);
  }
  if (!isFloat(dtype)) {
    const narrow = wholeCorners(random).map((value) => Number(BigInt.asIntN(32, value)));
    return dtype.name === "i32" ? Int32Array.from(narrow) : Uint32Array.from(narrow);
  }
  const values = Float64Array.from(corners(random));
  if (dtype.name === "f64") return values;
  const target = allocateElements(dtype, values.length);
  convertElements(dtypes.f64, dtype, values, target);
  return target;
}

const isDouble = (dtype: DType): boolean => dtype.bits === 64;

/** The bytes of lanes that hold the elements. */
function lanesOf(dtype: DType, elements: Elements): Uint8Array {
  const padded = Math.ceil(elements.length / 4) * 4;
  if (isDouble(dtype) || dtype.name === "f32" || dtype.name === "tf32") {
    const bytes = new Uint8Array((padded * dtype.bits) / 8);
    bytes.set(new Uint8Array(elements.buffer, elements.byteOffset, elements.byteLength));
    return bytes;
  }
  const words = new Int32Array(padded);
  elements.forEach((value, index) => (words[index] = Number(value)));
  if (dtype.kind === "bool") words.forEach((value, index) => (words[index] = -value));
  return new Uint8Array(words.buffer);
}

function converted(
  from: DType,
  to: DType,
  elements: Elements,
  options: ConversionOptions,
): Uint8Array {
  const fromBytes = isDouble(from) ? 32 : 16;
  const toBytes = isDouble(to) ? 32 : 16;
  const module = new ModuleBuilder({ memory: { minimum: 1, maximum: 65536, shared: false } });
  module.define(
    "convert",
    ["i32", "i32", "i32"],
    [],
    (builder, begin, end, results) => {
      const target = builder.variable(results, "target");
      builder.countedLoop(begin, end, fromBytes, (at) => {
        const parts = Array.from({ length: fromBytes / 16 }, (_, part) =>
          builder.keep(load("v128.load", at, 16 * part)),
        );
        convertParts({ builder, relaxed: false }, from, to, parts, options).forEach((part, index) =>
          builder.store("v128.store", read(target), part, 16 * index),
        );
        builder.set(target, i32.add(read(target), i32.of(toBytes)));
      });
    },
    { exported: true },
  );
  const source = lanesOf(from, elements);
  const resultBytes = (source.length / fromBytes) * toBytes;
  const memory = runModule(emitModule(module.finish()), source, resultBytes, (exports) =>
    exports["convert"]?.(0, source.length, source.length),
  );
  return memory.slice(source.length, source.length + resultBytes);
}

interface Conversion {
  readonly from: DType;
  readonly to: DType;
  readonly options: ConversionOptions;
}

const conversions = dtypeNames.flatMap((fromName) =>
  dtypeNames.flatMap((toName): Conversion[] => {
    const [from, to] = [dtypes[fromName], dtypes[toName]];
    const { roundings, overflows } = conversionChoices(from, to);
    return [undefined, ...roundings].flatMap((rounding) =>
      [undefined, ...overflows].map((overflow) => ({ from, to, options: { rounding, overflow } })),
    );
  }),
);
const isPlain = ({ options }: Conversion): boolean =>
  options.rounding === undefined && options.overflow === undefined;
const taken = conversions.filter((each, index) => takesAll || isPlain(each) || index % 8 === 3);

function words(bytes: Uint8Array): Uint32Array {
  return new Uint32Array(bytes.buffer, bytes.byteOffset, bytes.byteLength / 4);
}

function firstDifference(got: Uint32Array, wanted: Uint32Array): number | undefined {
  for (let index = 0; index < wanted.length; index++)
    if (got[index] !== wanted[index]) return index;
  return undefined;
}

test.each(dtypeNames)("from %s", (fromName) => {
  const seed = 49;
  const from = dtypes[fromName];
  const elements = elementsOf(from, new Random(seed));
  for (const { to, options } of taken.filter((each) => each.from === from)) {
    const expected = allocateElements(to, elements.length);
    convertElements(from, to, elements, expected, options);
    const got = converted(from, to, elements, options);
    const wanted = lanesOf(to, expected);
    const wrong = firstDifference(words(got), words(wanted));
    if (wrong === undefined) continue;
    const element = Math.floor(wrong / (isDouble(to) ? 2 : 1));
    if (element >= elements.length) continue;
    expect.fail(
      `${elements[element]} of ${fromName} as ${to.name} ${JSON.stringify(options)} is ${words(got)[wrong]}, not ${words(wanted)[wrong]}; seed ${seed}`,
    );
  }
});
