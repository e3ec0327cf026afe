/** The gradients of attention against central differences of the float64 reference. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  closeTo,
  expected,
  inputsOf,
  numbersOf,
} from "../../../test/support/attention-reference.ts";
import type { AttentionCase } from "../../../test/support/attention-reference.ts";
import { codeOf } from "../../../test/support/library-checks.ts";
import type { Device } from "../../device/device.ts";
import { bf16, f32 } from "../../formats/dtype.ts";
import { fromNumbers, toNumbers } from "../../formats/hostarray.ts";
import { array, dim } from "../../lang/index.ts";
import { open } from "../../runtime/open.ts";
import { attentionBackward } from "./backward.ts";

const cases: readonly AttentionCase[] = [
  { name: "whole", sizes: [1, 3, 5, 1, 1, 4, 3], dtype: f32 },
  { name: "causal, groups of heads", sizes: [2, 5, 5, 4, 2, 3, 4], dtype: f32, causal: true },
  {
    name: "a window over tiles",
    sizes: [1, 40, 38, 1, 1, 2, 2],
    dtype: f32,
    window: { left: 6, right: 3 },
  },
  { name: "rows that see nothing", sizes: [1, 6, 2, 1, 1, 3, 3], dtype: f32, masked: true },
  {
    name: "capped and biased",
    sizes: [1, 4, 6, 2, 1, 3, 5],
    dtype: f32,
    softCap: 0.7,
    scale: 0.9,
    bias: [false, true, false, true],
  },
  { name: "bf16, causal", sizes: [1, 9, 9, 2, 1, 8, 8], causal: true },
];

/** Σ out · dOut as a function of one element of q, k or v. */
function differences(one: AttentionCase, dOut: readonly number[], name: "q" | "k" | "v"): number[] {
  const given = inputsOf(one);
  const step = 1e-5;
  const loss = (values: readonly number[]): number => {
    const { out } = expected(one, { ...given, [name]: { ...given[name], values } });
    return out.reduce((sum, value, index) => sum + value * (dOut[index] ?? NaN), 0);
  };
  return given[name].values.map((value, index) => {
    const moved = (by: number) => given[name].values.with(index, value + by);
    return (loss(moved(step)) - loss(moved(-step))) / (2 * step);
  });
}

async function check(device: Device, one: AttentionCase): Promise<void> {
  const [b, s, t, h, kv, d, e] = one.sizes;
  const { dtype = bf16, causal, window, softCap, scale } = one;
  const given = inputsOf(one);
  const forward = expected(one, given);
  const dOut = numbersOf(b * s * h * e, 9);
  const sized = [dim("b"), dim("h"), dim("s"), dim("t")].map((size, axis) =>
    one.bias?.[axis] === true ? size : 1,
  );
  const op = attentionBackward({
    ...{ q: dtype, k: dtype, v: dtype },
    ...(causal !== undefined && { causal }),
    ...(window !== undefined && { window }),
    ...(softCap !== undefined && { softCap }),
    ...(scale !== undefined && { scale }),
    ...(given.bias && { bias: array(f32, sized) }),
    ...(one.masked === true && {
      mask: ({ row, column }) => row.rem(3).eq(column.rem(3)),
    }),
  } satisfies Parameters<typeof attentionBackward>[0]);
  const results = await device.run(
    op,
    {
      ...{ q: given.q.array, k: given.k.array, v: given.v.array },
      out: fromNumbers(dtype, [b, s, h, e], forward.out),
      dOut: fromNumbers(dtype, [b, s, h, e], dOut),
      logSumExp: fromNumbers(f32, [b, h, s], [...forward.logSumExp]),
      ...(given.bias && { bias: given.bias.array }),
    } as never,
    { dimensions: { b, s, t, h, kv, d, e } },
  );
  const bound = dtype === f32 ? 2 ** -15 : 2 ** -5;
  for (const name of ["q", "k", "v"] as const)
    closeTo(toNumbers(results[`d${name}`]), differences(one, dOut, name), bound);
}

describe.each(["simulator", "emulator"] as const)("on the %s", (kind) => {
  let device: Device;
  beforeAll(async () => {
    device = await open(kind);
  });
  afterAll(() => {
    device.dispose();
  });
  // The emulator takes seconds for each of them, and two have all of the kernels' instructions.
  const chosen = cases.filter(({ dtype, masked }) => dtype !== f32 || masked === true);
  test.each(kind === "simulator" ? cases : chosen)("$name", (one) => check(device, one));
});

test("scores of one's own have no gradient here, and are refused", () => {
  const given = { q: bf16, k: bf16, v: bf16 };
  expect(codeOf(() => attentionBackward({ ...given, score: () => 0 } as never))).toBe("TW1033");
});
