/**
 * Attention to a paged cache: one token of each sequence, pages in no order. The figure is the bytes of the cache that sequences
 * have, over time; the peer of bf16 is the kernel for it that comes with Pallas.
 */
import { bf16, f8e4m3fn, fromNumbers, i32, toNumbers } from "tilewright";
import type { Device, DeviceArray } from "tilewright";
import { pagedAttention } from "tilewright/kernels";
import type { BenchCase, PreparedCase } from "../case.ts";
import { randomArray } from "../random.ts";

const formats = { bf16, f8e4m3fn } as const;
type Format = keyof typeof formats;

export interface PagedTask {
  /** Of keys and values; the rest is bf16. */
  readonly format: Format;
  readonly sequences: number;
  readonly length: number;
  /** Whether lengths go from nearly nothing up to `length` instead of being equal. */
  readonly ragged: boolean;
  readonly heads: number;
  readonly shared: number;
  readonly head: number;
  /** Tokens of a page. */
  readonly size: number;
}

/** Tokens of each sequence. */
export function lengthsOf({ sequences, length, ragged }: PagedTask): readonly number[] {
  return Array.from({ length: sequences }, (_, sequence) =>
    ragged ? Math.ceil((length * (sequence + 1)) / sequences) : length,
  );
}

function bytesOf(task: PagedTask): number {
  const tokens = lengthsOf(task).reduce((sum, length) => sum + length, 0);
  return tokens * task.shared * task.head * 2 * (formats[task.format].bits / 8);
}

export function pagedCase(task: PagedTask): BenchCase {
  const { format, sequences, length, ragged, heads, shared, head, size } = task;
  const op = format === "bf16" ? "paged_attention" : "paged_attention_fp8";
  const lengths = ragged ? `up to ${length}` : `of ${length}`;
  return {
    name: `paged ${format} ${sequences} sequences ${lengths}, pages of ${size}, ${heads} for ${shared} heads of ${head}`,
    task: { op, ...task, ragged: ragged ? 1 : 0 },
    unit: "TB/s",
    work: bytesOf(task),
    setBytes: bytesOf(task),
    prepare: (device, sets) => prepared(device, task, sets),
  };
}

interface PagedSet {
  readonly q: DeviceArray<"bf16">;
  readonly k: DeviceArray<Format>;
  readonly v: DeviceArray<Format>;
  readonly out: DeviceArray<"bf16">;
}

/** Pages of all sequences by a step that visits each once: neighbours of a sequence lie far apart. */
function tableOf(task: PagedTask, most: number): readonly number[] {
  const pages = task.sequences * most;
  let step = Math.floor(pages * 0.618);
  const common = (a: number, b: number): number => (b === 0 ? a : common(b, a % b));
  while (common(step, pages) !== 1) step += 1;
  return Array.from({ length: pages }, (_, place) => (place * step) % pages);
}

async function prepared(device: Device, task: PagedTask, sets: number): Promise<PreparedCase> {
  const { sequences, length, heads, shared, head, size } = task;
  const most = Math.ceil(length / size);
  const kept = formats[task.format];
  const op = pagedAttention({ q: bf16, pages: { k: kept, v: kept } });
  const lists = {
    table: await device.upload(fromNumbers(i32, [sequences, most], [...tableOf(task, most)])),
    lengths: await device.upload(fromNumbers(i32, [sequences], [...lengthsOf(task)])),
  };
  const cache = [sequences * most, size, shared, head];
  const made = Array.from({ length: sets }, (_, seed): PagedSet => ({
    q: randomArray(device, bf16, [sequences, 1, heads, head], seed),
    k: randomArray<Format>(device, kept, cache, seed + 40),
    v: randomArray<Format>(device, kept, cache, seed + 80),
    out: device.allocate(bf16, [sequences, 1, heads, head]),
  }));
  const [first] = made;
  if (first === undefined) throw new RangeError("a case has one set at least");
  const bound = (set: number) => device.bind(op, { ...(made[set % sets] ?? first), ...lists });
  return {
    ours: bound,
    check: async () => {
      const once = bound(0);
      once.launch();
      await device.synchronize();
      once.dispose();
      await checkHeads(device, first, task, most);
    },
    dispose: () => {
      for (const each of Object.values(lists)) each.dispose();
      for (const { q, k, v, out } of made) for (const each of [q, k, v, out]) each.dispose();
    },
  };
}

/** The first and the last head of the first and the last sequence, against float64. */
async function checkHeads(device: Device, set: PagedSet, task: PagedTask, most: number) {
  const { sequences, heads, shared, head, size } = task;
  const [table, lengths] = [tableOf(task, most), lengthsOf(task)];
  for (const sequence of new Set([0, sequences - 1])) {
    const pages = table.slice(sequence * most, (sequence + 1) * most);
    const tokens = async (array: DeviceArray<Format>) => {
      const read: Float64Array[] = [];
      for (const page of pages)
        read.push(toNumbers(await device.download(array.slice(page, page + 1))));
      return (token: number, own: number, i: number): number =>
        read[Math.floor(token / size)]?.[((token % size) * shared + own) * head + i] ?? NaN;
    };
    const [keyOf, valueOf] = [await tokens(set.k), await tokens(set.v)];
    const row = async (array: DeviceArray<"bf16">) =>
      toNumbers(await device.download(array.slice(sequence, sequence + 1)));
    const [query, found] = [await row(set.q), await row(set.out)];
    for (const own of new Set([0, heads - 1])) {
      const other = Math.floor(own / (heads / shared));
      const scores = Array.from({ length: lengths[sequence] ?? 0 }, (_, token) => {
        let sum = 0;
        for (let i = 0; i < head; i += 1)
          sum += (query[own * head + i] ?? NaN) * keyOf(token, other, i);
        return sum / Math.sqrt(head);
      });
      const high = scores.reduce((best, score) => Math.max(best, score), -Infinity);
      const powers = scores.map((score) => Math.exp(score - high));
      const sum = powers.reduce((total, power) => total + power, 0);
      for (let i = 0; i < head; i += 1) {
        const wanted =
          powers.reduce((total, power, token) => total + power * valueOf(token, other, i), 0) / sum;
        const got = found[own * head + i] ?? NaN;
        // Powers and results are rounded to bf16; values are normally distributed, and weights sum to 1.
        if (!(Math.abs(got - wanted) <= 2 ** -6))
          throw new Error(`out[${sequence}, ${own}, ${i}] is ${got}, not ${wanted}`);
      }
    }
  }
}
