/** Attention: `tilewright/kernels` beside cuDNN and FlashAttention, through PyTorch. */
import { bf16, f8e4m3fn, toNumbers } from "tilewright";
import type { BoundLaunch, Device, DeviceArray } from "tilewright";
import { attention } from "tilewright/kernels";
import type { BenchCase, PreparedCase } from "../case.ts";
import { randomArray } from "../random.ts";

export interface AttentionTask {
  readonly batch: number;
  readonly length: number;
  readonly heads: number;
  readonly shared: number;
  readonly head: number;
  /** Whether rows see columns up to their own number alone. */
  readonly causal: boolean;
  /** How far back a row sees; 0 for all of them. */
  readonly back: number;
  /** Whether a mask function says what is causal. */
  readonly asMask?: boolean;
  /** Whether operands are FP8, of which results are bf16. */
  readonly isNarrow?: boolean;
}

/** Pairs of a row and a column that it sees, in one head. */
export function pairs({ length, causal, back }: AttentionTask): number {
  if (back > 0) return length * (back + 1);
  return causal ? length ** 2 / 2 : length ** 2;
}

/** The sizes and what is seen, in words. */
export function taskText({
  batch,
  length,
  heads,
  shared,
  head,
  causal,
  back,
  asMask,
  isNarrow,
}: AttentionTask): string {
  const groups = heads === shared ? "" : ` for ${shared}`;
  const seen =
    back > 0 ? ` window ${back}` : causal ? ` causal${asMask === true ? " by a mask" : ""}` : "";
  return `${isNarrow === true ? "f8e4m3fn" : "bf16"} ${batch}x${length}, ${heads}${groups} heads of ${head}${seen}`;
}

/** What peers are told, to whom a mask is no matter. */
export function peerTask(op: string, { causal, asMask: _, isNarrow, ...task }: AttentionTask) {
  return { op: isNarrow === true ? `${op}_fp8` : op, ...task, causal: causal ? 1 : 0 };
}

export function attentionCase(task: AttentionTask): BenchCase {
  const { batch, length, heads, shared, head } = task;
  return {
    name: `attention ${taskText(task)}`,
    task: peerTask("attention", task),
    unit: "TFLOP/s",
    work: 4 * batch * heads * head * pairs(task),
    setBytes: (task.isNarrow === true ? 1.5 : 2) * batch * length * head * 2 * (heads + shared),
    prepare: (device, sets) => {
      const { causal, back, asMask } = task;
      const dtype = formatOf(task);
      const op = attention({
        ...{ q: dtype, k: dtype, v: dtype, out: bf16, causal: causal && asMask !== true },
        ...(asMask === true && { mask: ({ row, column }) => row.ge(column) }),
        ...(back > 0 && { window: { left: back } }),
      });
      return preparedAttention(device, task, sets, (arrays) => device.bind(op, arrays));
    },
  };
}

/** The format of the operands, as one that arrays of either are typed by. */
function formatOf({ isNarrow }: AttentionTask): typeof bf16 {
  return (isNarrow === true ? f8e4m3fn : bf16) as typeof bf16;
}

export type AttentionArrays = { readonly [N in "q" | "k" | "v" | "out"]: DeviceArray<"bf16"> };

/** Attention of arrays of [batch, length, heads, head], as `bind` has it computed. */
export function preparedAttention(
  device: Device,
  task: AttentionTask,
  sets: number,
  bind: (arrays: AttentionArrays) => BoundLaunch,
): PreparedCase {
  const { batch, length, heads, shared, head } = task;
  const dtype = formatOf(task);
  const made = Array.from({ length: sets }, (_, seed) => ({
    q: randomArray(device, dtype, [batch, length, heads, head], seed),
    k: randomArray(device, dtype, [batch, length, shared, head], seed + 40),
    v: randomArray(device, dtype, [batch, length, shared, head], seed + 80),
    out: device.allocate(bf16, [batch, length, heads, head]),
  }));
  const [first] = made;
  if (first === undefined) throw new RangeError("a case has one set at least");
  const bound = (set: number) => bind(made[set % sets] ?? first);
  return {
    ours: bound,
    check: async () => {
      const once = bound(0);
      once.launch();
      await device.synchronize();
      once.dispose();
      await checkRows(device, first, task);
    },
    dispose: () => {
      for (const set of made) for (const each of Object.values(set)) each.dispose();
    },
  };
}

/** Some rows of the first and the last head, against float64. */
async function checkRows(
  device: Device,
  { q, k, v, out }: AttentionArrays,
  { batch, length, heads, shared, head, causal, back, isNarrow }: AttentionTask,
): Promise<void> {
  const start = (batch - 1) * length;
  const part = async (array: DeviceArray<"bf16">, from: number, count: number) =>
    toNumbers(
      await device.download(
        array
          .reshape([batch * length, (array.shape[2] ?? 0) * head])
          .slice(start + from, start + from + count),
      ),
    );
  const [keys, values] = [await part(k, 0, length), await part(v, 0, length)];
  for (const row of [0, 1, length >> 1, length - 1])
    for (const own of [0, heads - 1]) {
      const [query, found] = [await part(q, row, 1), await part(out, row, 1)];
      const other = Math.floor(own / (heads / shared));
      const expected = rowOf(
        (column, i) => keys[(column * shared + other) * head + i] ?? NaN,
        (column, i) => values[(column * shared + other) * head + i] ?? NaN,
        (i) => query[own * head + i] ?? NaN,
        back > 0 ? Math.max(0, row - back) : 0,
        causal ? row + 1 : length,
        head,
      );
      for (const [i, value] of expected.entries()) {
        const got = found[own * head + i] ?? NaN;
        // Powers and results are rounded to the format; values are normally distributed, and weights sum to 1.
        if (!(Math.abs(got - value) <= 2 ** (isNarrow === true ? -3 : -6)))
          throw new Error(`out[${row}, ${own}, ${i}] is ${got}, not ${value}`);
      }
    }
}

function rowOf(
  key: (column: number, i: number) => number,
  value: (column: number, i: number) => number,
  query: (i: number) => number,
  from: number,
  to: number,
  head: number,
): readonly number[] {
  const scores: number[] = [];
  for (let column = from; column < to; column += 1) {
    let sum = 0;
    for (let i = 0; i < head; i += 1) sum += query(i) * key(column, i);
    scores.push(sum / Math.sqrt(head));
  }
  const largest = scores.reduce((a, b) => Math.max(a, b), -Infinity);
  const powers = scores.map((score) => Math.exp(score - largest));
  const total = powers.reduce((a, b) => a + b, 0);
  return Array.from(
    { length: head },
    (_, i) => powers.reduce((sum, power, index) => sum + power * value(from + index, i), 0) / total,
  );
}
