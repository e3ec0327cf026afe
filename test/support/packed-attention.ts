/** Sequences of different lengths one behind the other on a device, against float64 for each of them alone. */
import type { Device } from "../../src/device/device.ts";
import { bf16, i32 } from "../../src/formats/dtype.ts";
import { fromNumbers, toNumbers } from "../../src/formats/hostarray.ts";
import type {
  AttentionConfiguration,
  GradientConfiguration,
} from "../../src/kernels/attention/configuration.ts";
import { attention, attentionBackward } from "../../src/kernels/index.ts";
import {
  closeTo,
  expected,
  expectedGradients,
  numbersOf,
  smallest,
  withinMagnitudes,
} from "./attention-reference.ts";
import type { AttentionCase } from "./attention-reference.ts";

export interface PackedCase {
  /** Rows and columns of each sequence, and of what lies behind the last. */
  readonly lengths: readonly (readonly [s: number, t: number])[];
  readonly rest: readonly [s: number, t: number];
  readonly heads: readonly [h: number, kv: number, d: number, e: number];
  readonly causal?: boolean;
  readonly window?: { readonly left: number };
  readonly deterministic?: boolean;
  readonly configuration?: AttentionConfiguration;
  readonly gradients?: GradientConfiguration;
}

const bound = 2 ** -7;
const offsets = { q: i32, k: i32 } as const;

/** Where each sequence begins, and where the last ends. */
function startsOf(lengths: readonly number[]): readonly number[] {
  return lengths.reduce((starts, length) => [...starts, (starts.at(-1) ?? 0) + length], [0]);
}

function numbersFor({ lengths, rest, heads: [h, kv, d, e] }: PackedCase) {
  const starts = { q: startsOf(lengths.map(([s]) => s)), k: startsOf(lengths.map(([, t]) => t)) };
  const s = (starts.q.at(-1) ?? 0) + rest[0];
  const t = (starts.k.at(-1) ?? 0) + rest[1];
  // What lies behind the last sequence is no number, and must not be seen by it.
  const drawn = (length: number, behind: number, heads: number, size: number, seed: number) => {
    const shape = [1, length, heads, size];
    const used = (length - behind) * heads * size;
    const values = numbersOf(length * heads * size, seed).map((value, index) =>
      index < used ? value : NaN,
    );
    return { shape, values, array: fromNumbers(bf16, shape, [...values]) };
  };
  return {
    starts,
    sizes: { s, t },
    q: drawn(s, rest[0], h, d, 1),
    k: drawn(t, rest[1], kv, d, 2),
    v: drawn(t, rest[1], kv, e, 3),
    dOut: drawn(s, rest[0], h, e, 4),
  };
}

/** One sequence as a case of its own, and its part of the numbers. */
function sequenceOf(one: PackedCase, numbers: ReturnType<typeof numbersFor>, index: number) {
  const [h, kv, d, e] = one.heads;
  const [s = 0, t = 0] = one.lengths[index] ?? [];
  const [top = 0, left = 0] = [numbers.starts.q[index], numbers.starts.k[index]];
  const part = (name: "q" | "k" | "v" | "dOut", from: number, count: number, width: number) => {
    const values = numbers[name].values.slice(from * width, (from + count) * width);
    const shape = [1, count, ...numbers[name].shape.slice(2)];
    return { shape, values, array: fromNumbers(bf16, shape, [...values]) };
  };
  const alone: AttentionCase = {
    name: `sequence ${index}`,
    sizes: [1, s, t, h, kv, d, e],
    ...(one.causal !== undefined && { causal: one.causal }),
    ...(one.window !== undefined && { window: one.window }),
  };
  const given = {
    ...{
      q: part("q", top, s, h * d),
      k: part("k", left, t, kv * d),
      v: part("v", left, t, kv * e),
    },
    ...{ bias: undefined, sinks: undefined },
  };
  return { alone, given, top, left, dOut: part("dOut", top, s, h * e).values };
}

/** Runs both passes and compares sequence by sequence; what lies behind the last gives 0. */
export async function checkPacked(device: Device, one: PackedCase): Promise<void> {
  const { causal, window, deterministic, configuration, gradients } = one;
  const told = {
    ...{ q: bf16, k: bf16, v: bf16, offsets },
    ...(causal !== undefined && { causal }),
    ...(window !== undefined && { window }),
  };
  const forward = attention({
    ...told,
    logSumExp: true,
    ...(configuration !== undefined && { configuration }),
  });
  const backward = attentionBackward({
    ...told,
    ...(deterministic !== undefined && { deterministic }),
    ...(gradients !== undefined && { configuration: gradients }),
  });
  const numbers = numbersFor(one);
  const { s, t } = numbers.sizes;
  const [h, kv, d, e] = one.heads;
  const list = (values: readonly number[]) => fromNumbers(i32, [values.length], [...values]);
  const arrays = {
    ...{ q: numbers.q.array, k: numbers.k.array, v: numbers.v.array },
    ...{ qOffsets: list(numbers.starts.q), kOffsets: list(numbers.starts.k) },
  };
  const { out, logSumExp } = await device.run(forward, arrays);
  const found = await device.run(backward, { ...arrays, out, logSumExp, dOut: numbers.dOut.array });
  const [outs, logarithms] = [toNumbers(out), toNumbers(logSumExp)];
  const slices = { q: toNumbers(found.dq), k: toNumbers(found.dk), v: toNumbers(found.dv) };
  for (const [index, [rows, columns]] of one.lengths.entries()) {
    const { alone, given, top, left, dOut } = sequenceOf(one, numbers, index);
    const wanted = expected(alone, given);
    const part = outs.slice(top * h * e, (top + rows) * h * e);
    withinMagnitudes(part, wanted.out, bound, smallest.bf16);
    for (let head = 0; head < h; head += 1)
      closeTo(
        logarithms.slice(head * s + top, head * s + top + rows),
        [...wanted.logSumExp.slice(head * rows, (head + 1) * rows)],
        2 ** -17,
      );
    const sums = expectedGradients(alone, given, dOut);
    const parts = {
      q: slices.q.slice(top * h * d, (top + rows) * h * d),
      k: slices.k.slice(left * kv * d, (left + columns) * kv * d),
      v: slices.v.slice(left * kv * e, (left + columns) * kv * e),
    };
    for (const name of ["q", "k", "v"] as const)
      withinMagnitudes(parts[name], sums[name], 2 * bound, smallest.bf16);
  }
  const [rows, columns] = one.rest;
  const behind = {
    out: outs.slice((s - rows) * h * e),
    dq: slices.q.slice((s - rows) * h * d),
    dk: slices.k.slice((t - columns) * kv * d),
    dv: slices.v.slice((t - columns) * kv * e),
  };
  for (const [name, values] of Object.entries(behind))
    if (!values.every((value) => value === 0))
      throw new Error(`${name} is not 0 behind the last sequence`);
}
