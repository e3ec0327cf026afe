/**
 * Attention and its gradients on a device, against the float64 reference. The bounds are in units of the magnitudes that a
 * result is the sum of: powers and the gradients of scores are rounded to the format before they are multiplied, out
 * is rounded before it makes the deltas, and results are rounded, each by half a unit of the format.
 */
import type { Device } from "../../src/device/device.ts";
import { bf16, f32, i32, u32 } from "../../src/formats/dtype.ts";
import { fromNumbers, toNumbers } from "../../src/formats/hostarray.ts";
import { attention, attentionBackward } from "../../src/kernels/index.ts";
import type { AttentionSpec } from "../../src/kernels/attention/problem.ts";
import type { HostArray } from "../../src/formats/hostarray.ts";
import { tensor, dim } from "../../src/lang/index.ts";
import type { Tile } from "../../src/lang/index.ts";
import { masks } from "./attention-masks.ts";
import {
  closeTo,
  dropoutKey,
  expected,
  expectedGradients,
  inputsOf,
  keyId,
  numbersOf,
  queryId,
  smallest,
  withinMagnitudes,
} from "./attention-reference.ts";
import type { AttentionCase } from "./attention-reference.ts";

const bounds = { bf16: 2 ** -7, f16: 2 ** -10, f32: 2 ** -18 };

/**
 * Powers of FP8 are rounded to four bits, and products summed to about fourteen of them. Each of those beneath 2⁻¹⁴ of the largest is off
 * by up to 2⁻¹⁸ of it, however small it is.
 */
const narrowBounds = { relative: 2 ** -4 + 2 ** -7, absolute: 2 ** -18, logarithm: 2 ** -10 };

/** What both passes are told. */
function specOf(one: AttentionCase) {
  const { causal, window, softCap, scale, bias } = one;
  const dtype = (one.dtype ?? bf16) as typeof bf16;
  const sized = [dim("b"), dim("h"), dim("s"), dim("t")].map((size, axis) =>
    bias?.[axis] === true ? size : 1,
  );
  return {
    ...{ q: dtype, k: dtype, v: dtype },
    ...(causal !== undefined && { causal }),
    ...(window !== undefined && { window }),
    ...(softCap !== undefined && { softCap }),
    ...(scale !== undefined && { scale }),
    ...(bias && { bias: tensor(f32, sized) }),
    ...(one.dropout !== undefined && { dropout: one.dropout }),
    ...(one.mask !== undefined && { mask: masks[one.mask].traced }),
    ...(one.scales === true && { scales: true }),
    ...(one.segments === true && { segmentIds: { query: i32, keyValue: i32 } }),
  } satisfies AttentionSpec;
}

function sizesOf({ sizes: [b, s, t, h, kv, d, e] }: AttentionCase) {
  return { b, s, t, h, kv, d, e };
}

/** A score function with a slope that is not 1. */
const curved = {
  score: ({ score }: { readonly score: Tile<"f32"> }) => score.add(score.mul(score).mul(0.125)),
  slope: ({ score }: { readonly score: Tile<"f32"> }) => score.mul(0.25).add(1),
} as const;

function requireKernel({ kernel }: AttentionCase, chosen: string): void {
  if (kernel !== undefined && chosen !== kernel)
    throw new Error(`the ${chosen} kernel, where the ${kernel} one was to be chosen`);
}

function segmentsOf({ segments, sizes: [b, s, t] }: AttentionCase) {
  if (segments !== true) return {};
  const ids = (length: number, idOf: (batch: number, index: number) => number) =>
    fromNumbers(
      i32,
      [b, length],
      Array.from({ length: b * length }, (_, at) => idOf(Math.floor(at / length), at % length)),
    );
  return { querySegmentIds: ids(s, queryId), keyValueSegmentIds: ids(t, keyId) };
}

function keyOf({ dropout }: AttentionCase) {
  return dropout === undefined ? {} : { key: fromNumbers(u32, [2], [...dropoutKey]) };
}

/** The forward pass of a case. */
export function forwardOf(one: AttentionCase) {
  const { dtype = bf16, configuration } = one;
  return attention({
    ...specOf(one),
    ...(dtype.bits === 8 && { out: bf16 }),
    logSumExp: true,
    ...(configuration !== undefined && { configuration }),
    ...(one.sinks === true && { sinks: f32 }),
    ...(one.curved === true && { score: curved.score }),
    ...(one.slopes === true && {
      score: ({ score, row, column, head }) =>
        score.sub(row.sub(column).abs().cast(f32).mul(head.add(1).cast(f32).mul(0.125))),
    }),
  } satisfies Parameters<typeof attention>[0]);
}

export async function checkForward(device: Device, one: AttentionCase): Promise<void> {
  const { dtype = bf16 } = one;
  const given = inputsOf(one);
  const op = forwardOf(one);
  const sizes = sizesOf(one);
  requireKernel(one, op.plan(sizes).configuration.kernel);
  const { q, k, v, bias, sinks } = given;
  const arrays = {
    ...{ q: q.array, k: k.array, v: v.array },
    ...(bias && { bias: bias.array }),
    ...(sinks && { sinks: sinks.array }),
    ...arrivalCountsOf({ q, k, v }),
    ...keyOf(one),
    ...segmentsOf(one),
  };
  const results = await device.run(op, arrays as never, { dimensions: sizes });
  const wanted = expected(one, given);
  const own = boundsOf(dtype, sizes.t);
  withinMagnitudes(toNumbers(results.out), wanted.out, own.relative, own.absolute);
  closeTo(toNumbers(results.logSumExp), wanted.logSumExp, own.logarithm);
}

function boundsOf({ name }: NonNullable<AttentionCase["dtype"]>, t: number) {
  if (name === "f8e4m3fn" || name === "f8e5m2")
    // Values are at most 1, times scales of up to 1.25.
    return { ...narrowBounds, absolute: 1.25 * t * narrowBounds.absolute };
  return { relative: bounds[name], absolute: smallest[name], logarithm: 2 ** -17 };
}

/** The arrays of scales, where there are some. */
function arrivalCountsOf(operands: { readonly [name: string]: object }): object {
  const found = Object.entries(operands).flatMap(([name, operand]) =>
    "scale" in operand ? [[`${name}Scale`, operand.scale]] : [],
  );
  return Object.fromEntries(found) as object;
}

/** The gradients of a case. */
export function gradientsOf(one: AttentionCase) {
  const { gradients: configuration } = one;
  return attentionBackward({
    ...specOf(one),
    ...(configuration !== undefined && { configuration }),
    ...(one.deterministic === true && { deterministic: true }),
    ...(one.curved === true && curved),
    ...(one.sinks === true && { sinks: f32 }),
    ...(one.bias && { dBias: true }),
  } satisfies Parameters<typeof attentionBackward>[0]);
}

/** The gradients of Σ out · dOut, from a forward pass by the reference. */
export async function checkGradients(device: Device, one: AttentionCase): Promise<void> {
  const [b, s, , h, , , e] = one.sizes;
  const dtype = (one.dtype ?? bf16) as typeof bf16;
  const given = inputsOf(one);
  const forward = expected(one, given);
  const dOut = numbersOf(b * s * h * e, 9);
  const op = gradientsOf(one);
  const sizes = sizesOf(one);
  requireKernel(one, op.plan(sizes).configuration.kernel);
  const results = await device.run(
    op,
    {
      ...{ q: given.q.array, k: given.k.array, v: given.v.array },
      out: fromNumbers(dtype, [b, s, h, e], [...forward.out.values]),
      dOut: fromNumbers(dtype, [b, s, h, e], dOut),
      logSumExp: fromNumbers(f32, [b, h, s], [...forward.logSumExp]),
      ...(given.bias && { bias: given.bias.array }),
      ...(given.sinks && { sinks: given.sinks.array }),
      ...keyOf(one),
      ...segmentsOf(one),
    } as never,
    { dimensions: sizes },
  );
  const wanted = expectedGradients(one, given, dOut);
  if (given.sinks) {
    const { dSinks } = results as unknown as { readonly dSinks: HostArray<"f32"> };
    withinMagnitudes(toNumbers(dSinks), wanted.sinks, bounds[dtype.name], smallest.f32);
  }
  if (wanted.bias) {
    const { dBias } = results as unknown as { readonly dBias: HostArray<"f32"> };
    withinMagnitudes(toNumbers(dBias), wanted.bias, bounds[dtype.name], smallest.f32);
  }
  for (const name of ["q", "k", "v"] as const)
    withinMagnitudes(
      toNumbers(results[`d${name}`]),
      wanted[name],
      bounds[dtype.name],
      smallest[dtype.name],
    );
}
