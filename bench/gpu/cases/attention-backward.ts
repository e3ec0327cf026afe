/** The gradients of attention: `tilewright/kernels` beside cuDNN and FlashAttention, through PyTorch. */
import { bf16, f32, toNumbers } from "tilewright";
import type { Device, DeviceArray } from "tilewright";
import { attention, attentionBackward } from "tilewright/kernels";
import type { BenchCase, PreparedCase } from "../case.ts";
import { randomArray } from "../random.ts";
import { pairs, peerTask, taskText } from "./attention.ts";
import type { AttentionTask } from "./attention.ts";

/** With `deterministic`, ours alone repeats bit for bit. */
export function attentionBackwardCase(task: AttentionTask, deterministic: boolean): BenchCase {
  const { batch, length, heads, shared, head } = task;
  return {
    name: `attention gradients ${taskText(task)}${deterministic ? " deterministic" : ""}`,
    task: peerTask("attention_backward", task),
    unit: "TFLOP/s",
    // Five products where the forward pass has two.
    work: 2.5 * 4 * batch * heads * head * pairs(task),
    setBytes: 2 * batch * length * head * 4 * (heads + shared),
    prepare: (device, sets) => prepared(device, task, deterministic, sets),
  };
}

type Arrays = {
  readonly [N in "q" | "k" | "v" | "out" | "dOut" | "dq" | "dk" | "dv"]: DeviceArray<"bf16">;
} & { readonly logSumExp: DeviceArray<"f32"> };

function prepared(
  device: Device,
  task: AttentionTask,
  deterministic: boolean,
  sets: number,
): PreparedCase {
  const { batch, length, heads, shared, head, causal, back } = task;
  const spec = {
    ...{ q: bf16, k: bf16, v: bf16, causal },
    ...(back > 0 && { window: { left: back } }),
  };
  const [forward, op] = [
    attention({ ...spec, logSumExp: true } as const),
    attentionBackward({ ...spec, deterministic }),
  ];
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

type Element = (row: number, own: number, i: number) => number;
type Lines = { readonly [N in Exclude<keyof Arrays, "logSumExp">]: Element } & {
  readonly logarithm: (own: number, row: number) => number;
};

/** The last batch of all arrays. */
async function linesOf(device: Device, arrays: Arrays, task: AttentionTask): Promise<Lines> {
  const { batch, length, heads, head } = task;
  const part = async (array: DeviceArray<"bf16">): Promise<Element> => {
    const width = (array.shape[2] ?? 0) * head;
    const flat = array.reshape([batch * length, width]);
    const last = flat.slice((batch - 1) * length, batch * length);
    const numbers = toNumbers(await device.download(last));
    return (row, own, i) => numbers[row * width + own * head + i] ?? NaN;
  };
  const { logSumExp, ...others } = arrays;
  const flat = logSumExp.reshape([batch * heads, length]);
  const last = flat.slice((batch - 1) * heads, batch * heads);
  const logarithms = toNumbers(await device.download(last));
  const parts: { [name: string]: Element } = {};
  for (const [name, array] of Object.entries(others)) parts[name] = await part(array);
  return {
    ...(parts as Omit<Lines, "logarithm">),
    logarithm: (own, row) => logarithms[own * length + row] ?? NaN,
  };
}

/** The weight of a row and a column that it sees, and the gradient of their score. */
function pairOf(
  { q, k, v, out, dOut, logarithm }: Lines,
  { heads, shared, head, causal, back }: AttentionTask,
  [row, column, own]: readonly [number, number, number],
): { readonly weight: number; readonly change: number } {
  const isSeen = (!causal || column <= row) && (back === 0 || column >= row - back);
  if (!isSeen) return { weight: 0, change: 0 };
  const other = Math.floor(own / (heads / shared));
  let [score, change, delta] = [0, 0, 0];
  for (let i = 0; i < head; i += 1) {
    score += q(row, own, i) * k(column, other, i);
    change += dOut(row, own, i) * v(column, other, i);
    delta += dOut(row, own, i) * out(row, own, i);
  }
  const scale = 1 / Math.sqrt(head);
  const weight = Math.exp(score * scale - logarithm(own, row));
  return { weight, change: scale * weight * (change - delta) };
}

/** Some rows of dq, and some of dk and dv, against float64, by the logarithms of the forward pass. */
async function checkLines(device: Device, arrays: Arrays, task: AttentionTask): Promise<void> {
  const lines = await linesOf(device, arrays, task);
  const { length, heads, shared } = task;
  const group = heads / shared;
  const places = [0, length >> 1, length - 1];
  const all = Array.from({ length }, (_, index) => index);
  for (const row of places)
    for (const own of [0, heads - 1]) {
      const other = Math.floor(own / group);
      const terms = all.map((column) => ({
        factor: pairOf(lines, task, [row, column, own]).change,
        element: (i: number) => lines.k(column, other, i),
      }));
      checkSums(`dq[${row}, ${own}]`, task, (i) => lines.dq(row, own, i), terms);
    }
  const last = shared - 1;
  for (const column of places) {
    const pairs = Array.from({ length: group }, (_, index) => last * group + index).flatMap((own) =>
      all.map((row) => ({ row, own, ...pairOf(lines, task, [row, column, own]) })),
    );
    const ofKeys = pairs.map(({ row, own, change }) => ({
      factor: change,
      element: (i: number) => lines.q(row, own, i),
    }));
    const ofValues = pairs.map(({ row, own, weight }) => ({
      factor: weight,
      element: (i: number) => lines.dOut(row, own, i),
    }));
    checkSums(`dk[${column}]`, task, (i) => lines.dk(column, last, i), ofKeys);
    checkSums(`dv[${column}]`, task, (i) => lines.dv(column, last, i), ofValues);
  }
}

/** Factors are rounded to bf16, and numbers are normally distributed. */
function checkSums(
  name: string,
  { head }: AttentionTask,
  found: (i: number) => number,
  terms: readonly { readonly factor: number; readonly element: (i: number) => number }[],
): void {
  const magnitude = terms.reduce((sum, { factor }) => sum + Math.abs(factor), 0);
  for (let i = 0; i < head; i += 1) {
    const value = terms.reduce((sum, { factor, element }) => sum + factor * element(i), 0);
    if (!(Math.abs(found(i) - value) <= 2 ** -6 * magnitude + 2 ** -10))
      throw new Error(`${name} has ${found(i)} at ${i}, not ${value}`);
  }
}
