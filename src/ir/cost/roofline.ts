/**
 * How fast a GPU can be at best, as its maker states it, and the least time that a cost takes there: the time that
 * each resource alone would need, and the longest of them.
 *
 *   8192³ bf16 on an H200    products  1.10e12 / 989e12 = 1.11 ms   ◀ the bound
 *                            gmem      0.40e9  / 4.8e12 = 0.08 ms
 */
import type { Target } from "../../targets/target.ts";
import { gmemBytes, productFormats } from "./cost.ts";
import type { Cost, ProductFormat } from "./cost.ts";

/** What a board does in a second. */
export interface Rates {
  /** The name of the GPU. */
  readonly board: string;
  /** Of matrix products without sparsity, and of FMA for f32. */
  readonly products: { readonly [F in ProductFormat]: number };
  /** Additions and multiplications of f32 outside of products. */
  readonly flops: number;
  /** Exponentials, logarithms and the like in a second. */
  readonly transcendentals: number;
  /** Bytes of global memory in a second. */
  readonly gmemBytes: number;
  /** Bytes of shared memory in a second. */
  readonly smemBytes: number;
  /** Bytes of the cache that all processors share. */
  readonly l2: number;
  /** Of all processors. */
  readonly clock: number;
}

/**
 * What kernels reach of those rates, as parts of them, and what a launch takes besides: measured on an H200, and taken to be so
 * elsewhere.
 */
export const reached = {
  /** 690 TFLOP/s of bf16 under a lasting load, 414 of tf32, 58 of f32 by FMA. */
  products: { f64: 0.85, f32: 0.87, tf32: 0.84, half: 0.7, byte: 0.7 },
  /** 4.2 TB/s. */
  gmemBytes: 0.875,
  /** What the cache of all processors gives, beside memory: 10 TB/s. */
  cacheBytes: 2.1,
  /** Instructions of lanes a clock of a processor: 25 T/s of 132. */
  laneInstructions: 108,
  sharedBytes: 0.8,
  /** Processors that memory takes at least to be busy, each of which reads 32 bytes a clock. */
  bytesOfProcessor: 32,
  /** Atomic updates of all processors in a second. */
  atomics: 1e11,
  /** Seconds from launch to launch of a graph, the first loads of a block included. */
  launch: 2.5e-6,
  firstLoad: 0.8e-6,
};

/** What a clock of all processors comes to: 16 transcendental functions and 128 bytes of shared memory each. */
function ofProcessors(
  processors: number,
  clock: number,
): Pick<Rates, "transcendentals" | "smemBytes" | "clock"> {
  return { clock, transcendentals: 16 * processors * clock, smemBytes: 128 * processors * clock };
}

const hopperRates = {
  products: { f64: 67e12, f32: 67e12, tf32: 494.5e12, half: 989e12, byte: 1979e12 },
  flops: 67e12,
  ...ofProcessors(132, 1.755e9),
  l2: 50e6,
};

const boards: readonly (Rates & { readonly architecture: Target["architecture"] })[] = [
  { board: "NVIDIA H200", architecture: 90, ...hopperRates, gmemBytes: 4.8e12 },
  { board: "NVIDIA H100", architecture: 90, ...hopperRates, gmemBytes: 3.35e12 },
  {
    board: "NVIDIA A100",
    architecture: 80,
    products: { f64: 19.5e12, f32: 19.5e12, tf32: 156e12, half: 312e12, byte: 624e12 },
    flops: 19.5e12,
    ...ofProcessors(108, 1.41e9),
    gmemBytes: 2.04e12,
    l2: 40e6,
  },
  {
    board: "NVIDIA GeForce RTX 3090",
    architecture: 86,
    products: { f64: 0.556e12, f32: 35.6e12, tf32: 35.6e12, half: 142e12, byte: 284e12 },
    flops: 35.6e12,
    ...ofProcessors(82, 1.695e9),
    gmemBytes: 0.936e12,
    l2: 6e6,
  },
  {
    board: "NVIDIA GeForce RTX 4090",
    architecture: 89,
    products: { f64: 1.29e12, f32: 82.6e12, tf32: 82.6e12, half: 330e12, byte: 661e12 },
    flops: 82.6e12,
    ...ofProcessors(128, 2.52e9),
    gmemBytes: 1.008e12,
    l2: 72e6,
  },
  {
    board: "NVIDIA GeForce RTX 5090",
    architecture: 120,
    products: { f64: 1.64e12, f32: 104.8e12, tf32: 104.8e12, half: 419e12, byte: 838e12 },
    flops: 104.8e12,
    ...ofProcessors(170, 2.407e9),
    gmemBytes: 1.792e12,
    l2: 96e6,
  },
  {
    board: "NVIDIA B200",
    architecture: 100,
    products: { f64: 37e12, f32: 75e12, tf32: 1125e12, half: 2250e12, byte: 4500e12 },
    flops: 75e12,
    ...ofProcessors(148, 1.85e9),
    gmemBytes: 8e12,
    l2: 126e6,
  },
  {
    board: "NVIDIA B300",
    architecture: 103,
    products: { f64: 1.2e12, f32: 77e12, tf32: 1125e12, half: 2250e12, byte: 4500e12 },
    flops: 77e12,
    ...ofProcessors(148, 1.92e9),
    gmemBytes: 8e12,
    l2: 126e6,
  },
  {
    board: "NVIDIA GB10",
    architecture: 121,
    products: { f64: 0.48e12, f32: 31e12, tf32: 31e12, half: 125e12, byte: 250e12 },
    flops: 31e12,
    ...ofProcessors(48, 2.5e9),
    gmemBytes: 0.273e12,
    l2: 24e6,
  },
  {
    // By vectors of 128 bits: two fused multiply-adds a clock, an exponential in 1.26 ns.
    board: "one core of a Xeon of 4 GHz",
    architecture: 0,
    products: { f64: 32e9, f32: 64e9, tf32: 64e9, half: 64e9, byte: 64e9 },
    flops: 32e9,
    transcendentals: 0.8e9,
    gmemBytes: 24e9,
    smemBytes: 88e9,
    l2: 1e6,
    clock: 4e9,
  },
];

/** The rates of the board that a device's name mentions, or of the usual board of the target. */
export function ratesOf(target: Target, device = ""): Rates {
  const ofTarget = boards.filter(({ architecture }) => architecture === target.architecture);
  const model = (board: string): string => board.replace("NVIDIA ", "");
  const found = ofTarget.find(({ board }) => device.includes(model(board))) ?? ofTarget[0];
  if (found === undefined) throw new Error(`no board has architecture ${target.architecture}`);
  return found;
}

/** The least time that a launch can take on a GPU, and what bounds it. */
export interface Roofline {
  /** The name of the GPU. */
  readonly board: string;
  /** The least time that the work can take. */
  readonly milliseconds: number;
  /** What takes that long. */
  readonly bound: "arithmetic" | "transcendentals" | "gmem" | "smem";
}

/** A cost, with what memory has to move at least, where that is known: what blocks move may come from the cache. */
export interface LaunchCost extends Cost {
  readonly memoryBytes?: number | undefined;
}

export function roofline(cost: LaunchCost, rates: Rates): Roofline {
  const { smem } = cost.bytes;
  const products = productFormats.reduce((sum, format) => sum + cost.products[format], 0);
  const seconds: readonly (readonly [Roofline["bound"], number])[] = [
    [
      "arithmetic",
      productFormats.reduce(
        (sum, format) => sum + cost.products[format] / rates.products[format],
        (cost.flops - products) / rates.flops,
      ),
    ],
    ["transcendentals", cost.transcendentals / rates.transcendentals],
    ["gmem", (cost.memoryBytes ?? gmemBytes(cost)) / rates.gmemBytes],
    ["smem", (smem.read + smem.written) / rates.smemBytes],
  ];
  const [bound, longest] = seconds.reduce((most, each) => (each[1] > most[1] ? each : most));
  return { board: rates.board, milliseconds: longest * 1e3, bound };
}
