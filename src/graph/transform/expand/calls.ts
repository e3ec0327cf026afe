/**
 * Calls of what lies outside a program that mean ops which programs have: functions under the names that exported programs use, and
 * what JAX calls on a CPU where other platforms get an op.
 *
 * | target                        | means                                                              |
 * |-------------------------------|--------------------------------------------------------------------|
 * | `mhlo.acos` … `mhlo.topk`     | `chlo.acos` … `chlo.top_k`                                         |
 * | `ApproxTopK`                  | a sort by the comparator it names, of which the first are kept     |
 * | `lapack_spotrf_ffi` and kin   | `cholesky`, and 0 for each matrix that has a factor                |
 * | `lapack_strsm_ffi` and kin    | `triangular_solve`                                                 |
 * | `__op$block_scaled_dot`, `__op$quantize`, `__op$dequantize` | ops on blocks (`block-scaled.ts`)    |
 * | `tilewright.scaled_matmul`    | products of operands with scales, which passes for devices make     |
 */
import type { Attribute } from "../../ops/attribute.ts";
import { isFloatElement } from "../../ops/elements.ts";
import type { GraphValue } from "../../ops/node.ts";
import { copyRegion } from "../../ops/rebuild.ts";
import { tensorType } from "../../ops/types.ts";
import {
  binary,
  broadcastInDim,
  compare,
  convert,
  iota,
  select,
  splatOf,
  sum,
  typeOfValue,
} from "../arithmetic.ts";

import {
  blockScaledDot,
  dequantize,
  quantize,
  scaledProductMeaning,
  scaledProductTarget,
} from "./block-scaled.ts";
import type { Call, CallMeaning } from "./call-meaning.ts";

const functions = [
  "acos",
  "acosh",
  "asin",
  "asinh",
  "atan",
  "atanh",
  "cosh",
  "erf",
  "sinh",
  "tan",
] as const;

function chloFunction(name: (typeof functions)[number]): CallMeaning {
  return ({ operands }, builder) => {
    const [operand] = operands.inputs;
    return operand && builder.add(`chlo.${name}`, { operand }, {});
  };
}

/** The largest elements, as many as the result has. */
const largest: CallMeaning = ({ operands, results }, builder) => {
  const [operand] = operands.inputs;
  const types = results.map(typeOfValue);
  const k = types[0]?.shape.at(-1) ?? 0;
  const found = operand && builder.add("chlo.top_k", { operand }, { k });
  return found?.map((value, i) => convert(builder, value, types[i]?.element ?? "i32"));
};

/** An entry of the settings of a call. */
function setting({ extra, attributes }: Call, name: string): Attribute | undefined {
  const settings = extra.get("mhlo.backend_config") ?? attributes.backend_config;
  return settings?.kind === "dictionary" ? settings.entries.get(name) : undefined;
}

function integerSetting(op: Call, name: string): number | undefined {
  const found = setting(op, name);
  return found?.kind === "integer" ? Number(found.value) : undefined;
}

/** The letter that LAPACK takes for a choice. */
function letter(op: Call, name: string): string {
  return String.fromCodePoint(integerSetting(op, name) ?? 0);
}

/** Half of the operands are sorted, along an axis, by a function of the module; the others only say what lies outside of them. */
const approximateTopK: CallMeaning = (op, builder, module) => {
  const inputs = op.operands.inputs.slice(0, op.results.length);
  const [name] = op.attributes.called_computations;
  const dimension = integerSetting(op, "reduction_dim");
  const comparator = name === undefined ? undefined : module.functions.get(name)?.body;
  if (comparator === undefined || dimension === undefined) return undefined;
  const sorted = builder.add(
    "stablehlo.sort",
    { inputs },
    { dimension, is_stable: true },
    { regions: { comparator: copyRegion(comparator, new Map()) } },
  );
  return sorted.map((operand, i) => {
    const { shape } = typeOfValue(op.results[i] as GraphValue);
    return builder.one(
      "stablehlo.slice",
      { operand },
      {
        start_indices: shape.map(() => 0),
        limit_indices: shape,
        strides: shape.map(() => 1),
      },
    );
  });
};

/** The factor in its triangle, the operand in the other one; 1 instead of 0 for a matrix that has no factor. */
const potrf: CallMeaning = (op, builder) => {
  const [a] = op.operands.inputs;
  const info = op.results[1];
  if (a === undefined || info === undefined) return undefined;
  const lower = letter(op, "uplo") === "L";
  const { shape, element } = typeOfValue(a);
  const factor = builder.one("stablehlo.cholesky", { a }, { lower });
  const places = tensorType("i32", shape);
  const [row, column] = [-2, -1].map((axis) => iota(builder, places, shape.length + axis));
  if (row === undefined || column === undefined) return undefined;
  const isOwn = compare(builder, lower ? "GE" : "LE", row, column);
  const magnitude = isFloatElement(element)
    ? factor
    : builder.one("stablehlo.real", { operand: factor }, {});
  // A matrix without a factor has NaN on the diagonal.
  const isWrong = compare(builder, "NE", magnitude, magnitude);
  const isDiagonal = compare(builder, "EQ", row, column);
  const wrong = convert(builder, binary(builder, "stablehlo.and", isWrong, isDiagonal), "i32");
  const axes = [shape.length - 2, shape.length - 1];
  const count = sum(builder, wrong, axes);
  const one = broadcastInDim(
    builder,
    splatOf(builder, tensorType("i32", []), 1),
    shape.slice(0, -2),
    [],
  );
  return [
    select(builder, isOwn, factor, a),
    convert(builder, binary(builder, "stablehlo.minimum", count, one), typeOfValue(info).element),
  ];
};

const transposes = { N: "NO_TRANSPOSE", T: "TRANSPOSE", C: "ADJOINT" } as const;

const trsm: CallMeaning = (op, builder) => {
  const [a, b] = op.operands.inputs;
  const mode = letter(op, "trans_x");
  if (a === undefined || b === undefined || !(mode === "N" || mode === "T" || mode === "C"))
    return undefined;
  const attributes = {
    left_side: letter(op, "side") === "L",
    lower: letter(op, "uplo") === "L",
    unit_diagonal: letter(op, "diag") === "U",
    transpose_a: transposes[mode],
  } as const;
  return [builder.one("stablehlo.triangular_solve", { a, b }, attributes)];
};

/** One entry a letter that names the element. */
function lapack(name: string, meaning: CallMeaning): readonly (readonly [string, CallMeaning])[] {
  return ["s", "d", "c", "z"].map((element) => [`lapack_${element}${name}_ffi`, meaning]);
}

const meanings: ReadonlyMap<string, CallMeaning> = new Map<string, CallMeaning>([
  ...functions.map((name) => [`mhlo.${name}`, chloFunction(name)] as const),
  ["mhlo.topk", largest],
  ["ApproxTopK", approximateTopK],
  ["__op$block_scaled_dot", blockScaledDot],
  ["__op$dequantize", dequantize],
  ["__op$quantize", quantize],
  [scaledProductTarget, scaledProductMeaning],
  ...lapack("potrf", potrf),
  ...lapack("trsm", trsm),
]);

/** What the target of a call means, where that is other ops. */
export function callMeaningOf(target: string): CallMeaning | undefined {
  return meanings.get(target);
}

/** The targets that mean other ops. */
export const callTargets: readonly string[] = [...meanings.keys()];
