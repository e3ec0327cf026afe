/** The gradients of attention: `tilewright/kernels` beside cuDNN and FlashAttention, through PyTorch. */
import { bf16, f32, toNumbers } from "tilewright";
import type { Device, DeviceArray } from "tilewright";
import { attention, attentionBackward } from "tilewright/kernels";
import type { BenchCase, PreparedCase } from "../case.ts";
import { randomArray } from "../random.ts";
import { pairs, taskText } from "./attention.ts";
import type { AttentionTask } from "./attention.ts";

export function attentionBackwardCase(task: AttentionTask): BenchCase {
  const { batch, length, heads, shared, head, causal } = task;
  return {
    name: `attention gradients ${taskText(task)}`,
    task: { op: "attention_backward", ...task, causal: causal ? 1 : 0 },
    unit: "TFLOP/s",
    // Five products where the forward pass has two.
    work: 2.5 * 4 * batch * heads * head * pairs(task),
    setBytes: 2 * batch * length * head * 4 * (heads + shared),
    prepare: (device, sets) => prepared(device, task, sets),
  };
}

type Arrays = {
  readonly [N in "q" | "k" | "v" | "out" | "dOut" | "dq" | "dk" | "dv"]: DeviceArray<"bf16">;
} & { readonly logSumExp: DeviceArray<"f32"> };

function prepared(device: Device, task: AttentionTask, sets: number): PreparedCase {
  const { batch, length, heads, shared, head, causal, back } = task;
  const spec = {
    ...{ q: bf16, k: bf16, v: bf16, causal },
    ...(back > 0 && { window: { left: back } }),
  };
  const [forward, op] = [attention({ ...spec, logSumExp: true } as const), attentionBackward(spec)];
  const [own, other] = [
    [batch, length, heads, head],
    [batch, length, shared, head],
  ];
  const made = Array.from({ length: sets }, (_, seed): Arrays => {
    const q = randomArray(device, bf16, own, seed);
    const k = randomArray(device, bf16, other, seed + 40);
    const v = randomArray(device, bf16, other, seed + 80);
    const dOut = randomArray(device, bf16, own, seed + 120);
    const out = device.allocate(bf16, own);
    const logSumExp = device.allocate(f32, [batch, heads, length]);
    device.launch(forward, { q, k, v, out, logSumExp });
    return {
      ...{ q, k, v, out, dOut, logSumExp, dq: device.allocate(bf16, own) },
      ...{ dk: device.allocate(bf16, other), dv: device.allocate(bf16, other) },
    };
  });
  const [first] = made;
  if (first === undefined) throw new RangeError("a case has one set at least");
  const bound = (set: number) => device.bind(op, made[set % sets] ?? first);
  return {
    ours: bound,
    check: async () => {
      const once = bound(0);
      once.launch();
      await device.synchronize();
      once.dispose();
      await checkLines(device, first, task);
    },
    dispose: () => {
      for (const set of made) for (const each of Object.values(set)) each.dispose();
    },
  };
}

/** Some rows of dq, and some of dk and dv, in the last batch against float64, by the logarithms of the forward pass. */
async function checkLines(device: Device, arrays: Arrays, task: AttentionTask): Promise<void> {
  const { batch, length, heads, shared, head, causal, back } = task;
  const part = async (array: DeviceArray<"bf16">) => {
    const width = (array.shape[2] ?? 0) * head;
    const flat = array.reshape([batch * length, width]);
    const numbers = toNumbers(
      await device.download(flat.slice((batch - 1) * length, batch * length)),
    );
    return (row: number, own: number, i: number) => numbers[row * width + own * head + i] ?? NaN;
  };
  const [q, k, v, out] = [
    await part(arrays.q),
    await part(arrays.k),
    await part(arrays.v),
    await part(arrays.out),
  ];
  const [dOut, dq, dk, dv] = [
    await part(arrays.dOut),
    await part(arrays.dq),
    await part(arrays.dk),
    await part(arrays.dv),
  ];
  const logarithms = toNumbers(
    await device.download(
      arrays.logSumExp.reshape([batch * heads, length]).slice((batch - 1) * heads, batch * heads),
    ),
  );
  const product = (left: (i: number) => number, right: (i: number) => number): number => {
    let sum = 0;
    for (let i = 0; i < head; i += 1) sum += left(i) * right(i);
    return sum;
  };
  const group = heads / shared;
  const scale = 1 / Math.sqrt(head);
  /** The weight of a pair, and the gradient of its score. */
  const pair = (row: number, column: number, own: number) => {
    const isSeen = (!causal || column <= row) && (back === 0 || column >= row - back);
    if (!isSeen) return { weight: 0, change: 0 };
    const other = Math.floor(own / group);
    const upstream = (i: number) => dOut(row, own, i);
    const score =
      scale *
      product(
        (i) => q(row, own, i),
        (i) => k(column, other, i),
      );
    const weight = Math.exp(score - (logarithms[own * length + row] ?? NaN));
    const change = product(upstream, (i) => v(column, other, i));
    const delta = product(upstream, (i) => out(row, own, i));
    return { weight, change: scale * weight * (change - delta) };
  };
  const close = (name: string, got: number, value: number, magnitude: number): void => {
    if (!(Math.abs(got - value) <= 2 ** -6 * magnitude + 2 ** -10))
      throw new Error(`${name} is ${got}, not ${value}`);
  };
  for (const row of [0, length >> 1, length - 1])
    for (const own of [0, heads - 1]) {
      const sums = new Float64Array(head);
      let magnitude = 0;
      for (let column = 0; column < length; column += 1) {
        const { change } = pair(row, column, own);
        magnitude += Math.abs(change);
        for (let i = 0; i < head; i += 1)
          sums[i] = (sums[i] ?? NaN) + change * k(column, Math.floor(own / group), i);
      }
      sums.forEach((value, i) => {
        close(`dq[${row}, ${own}, ${i}]`, dq(row, own, i), value, magnitude);
      });
    }
  for (const column of [0, length >> 1, length - 1]) {
    const other = shared - 1;
    const [ofKeys, ofValues] = [new Float64Array(head), new Float64Array(head)];
    let [inKeys, inValues] = [0, 0];
    for (let own = other * group; own < heads; own += 1)
      for (let row = 0; row < length; row += 1) {
        const { weight, change } = pair(row, column, own);
        inKeys += Math.abs(change);
        inValues += weight;
        for (let i = 0; i < head; i += 1) {
          ofKeys[i] = (ofKeys[i] ?? NaN) + change * q(row, own, i);
          ofValues[i] = (ofValues[i] ?? NaN) + weight * dOut(row, own, i);
        }
      }
    for (let i = 0; i < head; i += 1) {
      close(`dk[${column}, ${i}]`, dk(column, other, i), ofKeys[i] ?? NaN, inKeys);
      close(`dv[${column}, ${i}]`, dv(column, other, i), ofValues[i] ?? NaN, inValues);
    }
  }
}
