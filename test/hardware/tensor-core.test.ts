/**
 * The model of the tensor cores against results measured on an H200: 102,400 dot products of each form of
 * instruction, compared by a digest a kind (see dot-vectors.ts), so that a difference names its kind.
 * The first 8,192 are checked unless all cases are asked for.
 */
import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import {
  decodeTensorOperand,
  multiplyAccumulate,
} from "../../src/formats/arithmetic/tensor-core.ts";
import type {
  TensorCoreAccumulator,
  TensorCoreFormat,
  TensorCoreUnit,
} from "../../src/formats/arithmetic/tensor-core.ts";
import { takesAll } from "../support/sample.ts";
import { probeCount, probeDot, probeFormats, probeKinds } from "./dot-vectors.ts";

const measured = JSON.parse(
  readFileSync(new URL("h200-tensor-cores.json", import.meta.url), "utf8"),
) as {
  readonly digests: { readonly [form: string]: { readonly first: string; readonly all: string } };
};
const count = takesAll ? probeCount : 8192;

interface Form {
  readonly unit: TensorCoreUnit;
  readonly a: TensorCoreFormat;
  readonly b: TensorCoreFormat;
  readonly accumulator: TensorCoreAccumulator;
  /** Bytes of k that the instruction takes. */
  readonly bytes: number;
}

function form(
  unit: TensorCoreUnit,
  a: TensorCoreFormat,
  b: TensorCoreFormat = a,
  accumulator: TensorCoreAccumulator = "f32",
  bytes = 32,
): Form {
  return { unit, a, b, accumulator, bytes };
}

const e4m3 = "f8e4m3fn";
const e5m2 = "f8e5m2";

const forms: { readonly [name: string]: Form } = {
  "mma.f16.k16": form("warp", "f16"),
  "mma.f16.k8": form("warp", "f16", "f16", "f32", 16),
  "mma.f16.f16.k16": form("warp", "f16", "f16", "f16"),
  "mma.f16.f16.k8": form("warp", "f16", "f16", "f16", 16),
  "mma.bf16.k16": form("warp", "bf16"),
  "mma.bf16.k8": form("warp", "bf16", "bf16", "f32", 16),
  "mma.tf32.k8": form("warp", "tf32"),
  "mma.tf32.k4": form("warp", "tf32", "tf32", "f32", 16),
  "mma.e4m3.e4m3": form("warp", e4m3),
  "mma.e4m3.e5m2": form("warp", e4m3, e5m2),
  "mma.e5m2.e4m3": form("warp", e5m2, e4m3),
  "mma.e5m2.e5m2": form("warp", e5m2),
  "mma.e4m3.k16": form("warp", e4m3, e4m3, "f32", 16),
  "mma.e4m3.f16": form("warp", e4m3, e4m3, "f16"),
  "mma.e5m2.f16": form("warp", e5m2, e5m2, "f16"),
  "wgmma.f16": form("warpgroup", "f16"),
  "wgmma.f16.f16": form("warpgroup", "f16", "f16", "f16"),
  "wgmma.bf16": form("warpgroup", "bf16"),
  "wgmma.tf32": form("warpgroup", "tf32"),
  "wgmma.e4m3.e4m3": form("warpgroup", e4m3),
  "wgmma.e4m3.e5m2": form("warpgroup", e4m3, e5m2),
  "wgmma.e5m2.e4m3": form("warpgroup", e5m2, e4m3),
  "wgmma.e5m2.e5m2": form("warpgroup", e5m2),
  "wgmma.e4m3.f16": form("warpgroup", e4m3, e4m3, "f16"),
  "wgmma.e5m2.f16": form("warpgroup", e5m2, e5m2, "f16"),
};

function digests({ unit, a, b, accumulator, bytes }: Form): string {
  const found = new Uint32Array(probeKinds).fill(0x811c9dc5);
  const c = new Uint32Array(1);
  for (let index = 0; index < count; index++) {
    const dot = probeDot(index, probeFormats[a], probeFormats[b], probeFormats[accumulator]);
    c[0] = dot.c;
    const left = decodeTensorOperand(a, dot.a.subarray(0, bytes), 1);
    const right = decodeTensorOperand(b, dot.b.subarray(0, bytes), 1);
    multiplyAccumulate(unit, accumulator, left, right, c);
    const kind = index % probeKinds;
    found[kind] = Math.imul((found[kind] ?? 0) ^ (c[0] ?? 0), 0x01000193);
  }
  return [...found].map((word) => word.toString(16).padStart(8, "0")).join(" ");
}

describe("every form of instruction gives what an H200 gives", () => {
  test("every form measured has a model", () => {
    expect(Object.keys(forms).sort()).toEqual(Object.keys(measured.digests).sort());
  });

  test.for(Object.entries(forms))("%s", ([name, shape]) => {
    expect(digests(shape)).toBe(measured.digests[name]?.[takesAll ? "all" : "first"]);
  });
});
