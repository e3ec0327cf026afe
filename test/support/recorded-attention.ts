/**
 * Both passes of attention as one recording, on a GPU a CUDA graph: launched twice, each time on other numbers in the same arrays, so that
 * nothing of a launch may have been decided when it was recorded, or be left over from the one before.
 */
import type { Device } from "../../src/device/device.ts";
import type { DeviceArray } from "../../src/device/device-array.ts";
import { bf16, f32, u32 } from "../../src/formats/dtype.ts";
import { fromNumbers, toNumbers } from "../../src/formats/hostarray.ts";
import { forwardOf, gradientsOf } from "./attention-checks.ts";
import {
  closeTo,
  dropoutKey,
  expected,
  expectedGradients,
  inputsOf,
  numbersOf,
  smallest,
  withinMagnitudes,
} from "./attention-reference.ts";
import type { AttentionCase } from "./attention-reference.ts";

/** Twice that of one pass: the gradients are of what the forward pass has rounded. */
const bound = 2 ** -6;

type Given = ReturnType<typeof inputsOf>;

/** The same numbers with other signs, or as they are. */
function turned(given: Given, sign: number): Given {
  const operand = ({ shape, values }: Given["q"]) => {
    const own = values.map((value) => sign * value);
    return { shape, values: own, array: fromNumbers(bf16, shape, own) };
  };
  return { ...given, q: operand(given.q), v: operand(given.v) };
}

/** Checks a case of bf16 with sinks and dropout. */
export async function checkRecorded(device: Device, one: AttentionCase): Promise<void> {
  const [b, s, t, h, kv, d, e] = one.sizes;
  const dimensions = { b, s, t, h, kv, d, e };
  const given = inputsOf(one);
  if (given.sinks === undefined) throw new Error("a case with sinks is recorded");
  const dOut = numbersOf(b * s * h * e, 9);
  const arrays = {
    ...{ q: await device.upload(given.q.array), k: await device.upload(given.k.array) },
    ...{ v: await device.upload(given.v.array), sinks: await device.upload(given.sinks.array) },
    key: await device.upload(fromNumbers(u32, [2], [...dropoutKey])),
  };
  const made = {
    ...{ out: device.allocate(bf16, [b, s, h, e]), logSumExp: device.allocate(f32, [b, h, s]) },
  };
  const upstream = await device.upload(fromNumbers(bf16, [b, s, h, e], dOut));
  const gradients = {
    ...{ dq: device.allocate(bf16, [b, s, h, d]), dk: device.allocate(bf16, [b, t, kv, d]) },
    ...{ dv: device.allocate(bf16, [b, t, kv, e]), dSinks: device.allocate(f32, [h]) },
  };
  const forward = device.bind(forwardOf(one), { ...arrays, ...made } as never, { dimensions });
  const backward = device.bind(
    gradientsOf(one),
    { ...arrays, ...made, dOut: upstream, ...gradients } as never,
    { dimensions },
  );
  const both = device.record([forward, backward]);
  const read = async (array: DeviceArray) => toNumbers(await device.download(array));
  for (const sign of [1, -1]) {
    const own = turned(given, sign);
    await device.write(arrays.q, own.q.array);
    await device.write(arrays.v, own.v.array);
    both.launch();
    const wanted = expected(one, own);
    withinMagnitudes(await read(made.out), wanted.out, bound, smallest.bf16);
    closeTo(await read(made.logSumExp), wanted.logSumExp, 2 ** -17);
    const slopes = expectedGradients(one, own, dOut);
    for (const name of ["q", "k", "v"] as const)
      withinMagnitudes(await read(gradients[`d${name}`]), slopes[name], bound, smallest.bf16);
    withinMagnitudes(await read(gradients.dSinks), slopes.sinks, bound, smallest.bf16);
  }
  for (const each of [both, forward, backward, upstream]) each.dispose();
  for (const each of Object.values({ ...arrays, ...made, ...gradients })) each.dispose();
}
