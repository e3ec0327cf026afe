/** Kernels whose register layouts contradict each other. */
import {
  accumulator,
  tensor,
  bf16,
  concatenate,
  dot,
  f32,
  i32,
  iota,
  kernel,
  smem,
  warps,
  wgmma,
  zeros,
} from "tilewright";
import type { KernelDefinition, Ref, Tile } from "tilewright";
import { contradictions } from "./contradiction.ts";

const rows = "(W0 W1 | R0 R1 L0 L1 L2 L3 L4)";
const strided = "flat(L0 L1 L2 L3 L4 W0 W1)";
const oneRow = "(L0 L1 L2 L3 L4 W0 W1)";
const oneNumber = "splat";

interface Things {
  readonly x: Ref<"f32">;
  readonly out: Ref<"f32">;
  readonly sums: Ref<"f32">;
  readonly list: Ref<"i32">;
  readonly a: Ref<"bf16">;
  readonly b: Ref<"bf16">;
  /** The contents of x, 64 by 128. */
  readonly tile: Tile<"f32">;
}

function program(body: (things: Things) => void): KernelDefinition {
  return kernel(
    {
      name: "program",
      grid: { i: 4 },
      inputs: { x: tensor(f32, [64, 128]) },
      outputs: {
        out: tensor(f32, [64, 128]),
        sums: tensor(f32, [64]),
        list: tensor(i32, [64, 128]),
      },
      scratch: { a: smem(bf16, [64, 64]), b: smem(bf16, [64, 128]) },
    },
    ({ x, out, sums, list, a, b }) => {
      body({ x, out, sums, list, a, b, tile: x.load() });
    },
  );
}

export const registerContradictions = contradictions(import.meta.url, [
  {
    name: "accumulator pinned strided",
    remedy: "remove this layoutCast",
    make: (fixed) =>
      program(({ a, b, out }) => {
        const begun = accumulator(f32, [64, 128]); // <- accumulator pinned strided, one
        const sum = wgmma(begun, a, b).wait();
        out.store(fixed ? sum : sum.layoutCast(strided)); // <- accumulator pinned strided, other
      }),
  },
  {
    name: "product pinned strided",
    remedy: "remove this layoutCast",
    make: (fixed) =>
      program(({ a, b, out }) => {
        const sum = dot(a.load(), b.load()); // <- product pinned strided, one
        out.store(fixed ? sum : sum.layoutCast(strided)); // <- product pinned strided, other
      }),
  },
  {
    name: "product of registers pinned",
    remedy: "remove this layoutCast",
    make: (fixed) =>
      program(({ x, a, out }) => {
        const right = x.load().cast(bf16);
        const sum = dot(a.load(), right); // <- product of registers pinned, one
        const pinned = fixed ? sum : sum.layoutCast(rows); // <- product of registers pinned, other
        out.store(pinned);
      }),
  },
  {
    name: "exact product pinned to one number",
    remedy: "remove this layoutCast",
    make: (fixed) =>
      program(({ tile, out }) => {
        const left = tile.slice([0, 0], [64, 64]);
        const sum = dot(left, tile, { precision: "ieee" }); // <- exact product pinned to one number, one
        out.store(fixed ? sum : sum.layoutCast(oneNumber)); // <- exact product pinned to one number, other
      }),
  },
  {
    name: "sums of one number",
    remedy: "remove this layoutCast",
    make: (fixed) =>
      program(({ tile, sums }) => {
        const sum = tile.sum({ axis: 1 }); // <- sums of one number, one
        sums.store(fixed ? sum : sum.layoutCast(oneNumber)); // <- sums of one number, other
      }),
  },
  {
    name: "positions of one number",
    remedy: "remove this layoutCast",
    make: (fixed) =>
      program(({ tile, list }) => {
        const positions = tile.argmax({ axis: 0 }); // <- positions of one number, one
        list.at(0).store(fixed ? positions : positions.layoutCast(oneNumber)); // <- positions of one number, other
      }),
  },
  {
    name: "load as one number",
    remedy: "remove this layoutCast",
    make: (fixed) =>
      program(({ x, out }) => {
        const tile = x.load(); // <- load as one number, one
        out.store(fixed ? tile : tile.layoutCast(oneNumber)); // <- load as one number, other
      }),
  },
  {
    name: "counting as one number",
    remedy: "remove this layoutCast",
    make: (fixed) =>
      program(({ list }) => {
        const counting = iota(i32, [64, 128], { axis: 1 }); // <- counting as one number, one
        list.store(fixed ? counting : counting.layoutCast(oneNumber)); // <- counting as one number, other
      }),
  },
  {
    name: "joined tiles as one number",
    remedy: "remove this layoutCast",
    make: (fixed) =>
      program(({ out }) => {
        const halves = [zeros(f32, [32, 128]), zeros(f32, [32, 128]).add(1)];
        const joined = concatenate(halves, { axis: 0 }); // <- joined tiles as one number, one
        out.store(fixed ? joined : joined.layoutCast(oneNumber)); // <- joined tiles as one number, other
      }),
  },
  {
    name: "old elements as one number",
    remedy: "remove this layoutCast",
    make: (fixed) =>
      program(({ tile, out }) => {
        const old = out.atomicAdd(tile); // <- old elements as one number, one
        out.store(fixed ? old : old.layoutCast(oneNumber)); // <- old elements as one number, other
      }),
  },
  {
    name: "a warp alone has no warps",
    remedy: "remove this layoutCast",
    make: (fixed) =>
      program(({ x, out }) => {
        warps((warp) => {
          const row = x.at(warp).load(); // <- a warp alone has no warps, one
          out.at(warp).store(fixed ? row : row.layoutCast(oneRow)); // <- a warp alone has no warps, other
        });
      }),
  },
]);
