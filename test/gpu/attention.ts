/** Attention and its gradients with everything that they can be told, against float64; offsets, masks and dropout among them. */
import type { Device } from "../../src/device/device.ts";
import { f8e4m3fn, f8e5m2 } from "../../src/formats/dtype.ts";
import type {
  AttentionConfiguration,
  AttentionSchedule,
} from "../../src/kernels/attention/configuration.ts";
import type { Check } from "./check.ts";
import { checkForward, checkGradients } from "../support/attention-checks.ts";
import { masks } from "../support/attention-masks.ts";
import type { MaskName } from "../support/attention-masks.ts";
import type { AttentionCase } from "../support/attention-reference.ts";
import { checkPacked } from "../support/packed-attention.ts";
import type { PackedCase } from "../support/packed-attention.ts";
import { checkRecorded } from "../support/recorded-attention.ts";

const [small, large] = [
  [2, 150, 300, 4, 2, 64, 64],
  [1, 300, 260, 2, 1, 128, 128],
] as const;

/** Three blocks share the tiles. */
function dealt(schedule: AttentionSchedule): AttentionConfiguration {
  return { kernel: "warp-specialized", consumers: 2, columns: 64, stages: 2, workers: 3, schedule };
}

/** What both passes take; a score function is one with a slope. */
const both: readonly AttentionCase[] = [
  ...(Object.keys(masks) as MaskName[]).map((mask) => ({
    ...{ name: `mask, ${mask}`, mask, sizes: small },
  })),
  { name: "mask in order", mask: "lists of documents", sizes: large, deterministic: true },
  { name: "mask in a window", mask: "prefix", sizes: large, window: { left: 90, right: 40 } },
  { name: "sinks", sinks: true, sizes: small, causal: true },
  { name: "sinks and a cap", sinks: true, softCap: 1.5, sizes: large },
  { name: "score and slope", curved: true, sizes: small },
  { name: "dropout", dropout: 0.2, sizes: small, causal: true },
  { name: "dropout in order", dropout: 0.5, sizes: large, deterministic: true },
  { name: "bias of heads", bias: [false, true, true, true], sizes: small },
  { name: "bias of columns", bias: [true, false, false, true], sizes: large, causal: true },
];

const narrow = { dtype: f8e4m3fn, scales: true } as const;

const forward: readonly AttentionCase[] = [
  { name: "FP8", sizes: small, ...narrow },
  { name: "FP8, causal", sizes: large, ...narrow, causal: true },
  {
    name: "FP8, wide, in a window",
    sizes: [1, 90, 200, 2, 2, 256, 256],
    ...narrow,
    window: { left: 40 },
  },
  { name: "FP8 of two bits, plain", sizes: [1, 90, 70, 2, 2, 40, 24], dtype: f8e5m2 },
  {
    name: "paired",
    sizes: [2, 400, 400, 3, 1, 64, 64],
    causal: true,
    configuration: dealt("paired"),
  },
  {
    name: "longest-first",
    sizes: [2, 400, 400, 3, 1, 64, 64],
    causal: true,
    configuration: dealt("longest-first"),
  },
  { name: "slopes by head", slopes: true, causal: true, sizes: large },
];

const lengths = [
  [70, 90],
  [0, 40],
  [200, 33],
  [5, 0],
  [129, 257],
] as const;

const packed: { readonly [name: string]: PackedCase } = {
  whole: { lengths, rest: [2, 3], heads: [4, 2, 64, 64] },
  causal: { lengths, rest: [0, 0], heads: [2, 2, 128, 128], causal: true },
  "in order": { lengths, rest: [0, 1], heads: [2, 1, 64, 64], causal: true, deterministic: true },
  "in a window": { lengths, rest: [1, 0], heads: [2, 1, 128, 64], window: { left: 50 } },
};

/** Both passes of each as one CUDA graph. */
const recorded: readonly AttentionCase[] = [
  { name: "lists, in order", mask: "lists of documents", sizes: small, deterministic: true },
  { name: "causal, groups of heads", causal: true, sizes: small },
  {
    name: "plain",
    sizes: [1, 90, 70, 2, 1, 20, 12],
    gradients: { kernel: "plain", rows: 32, columns: 32 },
  },
];

export const attentionChecks: readonly Check[] = [
  ...[...both, ...forward].map((one) => ({
    name: `attention, ${one.name}`,
    run: (device: Device) => checkForward(device, one),
  })),
  ...both.map((one) => ({
    name: `attention gradients, ${one.name}`,
    run: (device: Device) => checkGradients(device, one),
  })),
  ...Object.entries(packed).map(([name, one]) => ({
    name: `attention with offsets, ${name}`,
    run: (device: Device) => checkPacked(device, one),
  })),
  ...recorded.map((one) => ({
    name: `attention and its gradients as one graph, ${one.name}`,
    run: (device: Device) => checkRecorded(device, { ...one, sinks: true, dropout: 0.25 }),
  })),
];
