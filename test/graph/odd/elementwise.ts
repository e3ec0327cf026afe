/** Ops that work element by element, with attributes drawn at random. */
import { size } from "./builder.ts";
import type { Value } from "./builder.ts";
import {
  binaryOf,
  bitsOf,
  codeOf,
  compared,
  converted,
  directions,
  floatNames,
  floatOf,
  floatUnary,
  integerUnary,
  isFloat,
  isSigned,
  ofCode,
  rounded,
  settled,
} from "./scalars.ts";
import type { Scalar } from "./scalars.ts";
import { everyElement, numbers } from "./shared.ts";
import type { Draw } from "./shared.ts";

export const unary: Draw = (b) => {
  const x = b.any([...numbers, "i1"]);
  const table = x.element === "i1" ? {} : isFloat(x.element) ? floatUnary : integerUnary;
  if (x.element === "i1") {
    b.op("not", [x], "", { ...x, data: x.data.map((v) => 1n - (v as bigint)) });
    return;
  }
  const kinds = Object.keys(table).filter(
    (kind) => isFloat(x.element) || isSigned(x.element) || kind !== "sign",
  );
  const kind = b.pick(
    kinds.filter((k) => k !== "abs" || isFloat(x.element) || isSigned(x.element)),
  );
  const f = table[kind];
  if (f === undefined) return;
  b.op(kind, [x], "", { ...x, data: x.data.map((v) => f(v, x.element)) });
};

export const binary: Draw = (b) => {
  const x = b.any(everyElement);
  const y = b.value(x.element, x.shape);
  const [kind, f] = b.pick(Object.entries(binaryOf(x.element)));
  b.op(kind, [x, y], "", {
    ...x,
    data: x.data.map((v, i) => f(v, y.data[i] as Scalar, x.element)),
  });
};

export const compare: Draw = (b) => {
  const x = b.any(everyElement);
  const y = b.value(x.element, x.shape);
  const direction = b.pick(directions);
  const total = isFloat(x.element) && b.chance(2);
  const type = isFloat(x.element)
    ? total
      ? "TOTALORDER"
      : "FLOAT"
    : isSigned(x.element)
      ? "SIGNED"
      : "UNSIGNED";
  b.op(
    "compare",
    [x, y],
    `comparison_direction = #stablehlo<comparison_direction ${direction}>, compare_type = #stablehlo<comparison_type ${type}>`,
    {
      element: "i1",
      shape: x.shape,
      data: x.data.map((v, i) => compared(direction, v, y.data[i] as Scalar, x.element, total)),
    },
  );
};

export const convert: Draw = (b) => {
  const x = b.any(everyElement);
  const element = b.pick(everyElement);
  b.op("convert", [x], "", {
    element,
    shape: x.shape,
    data: x.data.map((v) => converted(v, x.element, element)),
  });
};

export const bitcast: Draw = (b) => {
  const x = b.any(everyElement, ({ element }) => element !== "i1" && bitsOf(element) >= 8);
  // A NaN has one code in the evaluator, and others on devices.
  if (x.data.some((v) => Number.isNaN(v))) return;
  const from = bitsOf(x.element);
  const last = x.shape.at(-1);
  const to = b.pick(
    everyElement.filter(
      (each) =>
        each !== "i1" &&
        bitsOf(each) >= 8 &&
        (bitsOf(each) <= from || last === bitsOf(each) / from),
    ),
  );
  const bits = bitsOf(to);
  const codes = x.data.map((v) => codeOf(x.element, v));
  const isSplit = bits <= from;
  const parts = isSplit ? from / bits : bits / from;
  const shape = isSplit ? [...x.shape, ...(parts === 1 ? [] : [parts])] : x.shape.slice(0, -1);
  const joined = (first: number): bigint =>
    codes
      .slice(first, first + parts)
      .reduce((sum, code, k) => sum | (code << BigInt(k * from)), 0n);
  const data = Array.from({ length: size(shape) }, (_, i) => {
    if (!isSplit) return ofCode(to, joined(i * parts));
    const code = codes[Math.floor(i / parts)] as bigint;
    return ofCode(to, BigInt.asUintN(bits, code >> BigInt((i % parts) * bits)));
  });
  // The sign of a NaN is seen by devices, and not by the evaluator.
  if (data.some((v) => Number.isNaN(v))) return;
  b.op("bitcast_convert", [x], "", { element: to, shape, data });
};

export const select: Draw = (b) => {
  const x = b.any(everyElement);
  const y = b.value(x.element, x.shape);
  const p = b.value("i1", b.chance(3) ? [] : x.shape);
  b.op("select", [p, x, y], "", {
    ...x,
    data: x.data.map((v, i) =>
      p.data[p.shape.length === 0 ? 0 : i] === 1n ? v : (y.data[i] as Scalar),
    ),
  });
};

export const clamp: Draw = (b) => {
  const x = b.any(numbers);
  const low = b.value(x.element, b.chance(2) ? [] : x.shape);
  const high = b.value(x.element, b.chance(2) ? [] : x.shape);
  const { maximum, minimum } = binaryOf(x.element);
  if (maximum === undefined || minimum === undefined) return;
  const of = (value: Value, i: number): Scalar =>
    value.data[value.shape.length === 0 ? 0 : i] as Scalar;
  b.op("clamp", [low, x, high], "", {
    ...x,
    data: x.data.map((v, i) => minimum(maximum(v, of(low, i), x.element), of(high, i), x.element)),
  });
};

export const reducePrecision: Draw = (b) => {
  const x = b.any(floatNames.filter((each) => each !== "f8E4M3FN"));
  const exponent = b.between(2, 11);
  const mantissa = b.between(1, 30);
  const own = floatOf(x.element);
  const data = x.data.map((v) => {
    const value = v as number;
    const fits = Math.min(mantissa, own.mantissa);
    if (!Number.isFinite(value)) return value;
    const bias = 2 ** (Math.min(exponent, own.exponent) - 1) - 1;
    const near = rounded(value, own.exponent, fits);
    // Numbers below the least normal one of the narrower exponent are zeros of their sign.
    if (exponent < own.exponent && Math.abs(near) < 2 ** (1 - bias))
      return value < 0 || Object.is(value, -0) ? -0 : 0;
    if (exponent < own.exponent && Math.abs(near) >= 2 ** (bias + 1))
      return Math.sign(value) * Infinity;
    return settled(x.element, near);
  });
  b.op(
    "reduce_precision",
    [x],
    `exponent_bits = ${exponent} : i32, mantissa_bits = ${mantissa} : i32`,
    { ...x, data },
  );
};
