import { expectTypeOf, test } from "vitest";
import { bf16, f32, i32, u64 } from "../formats/dtype.ts";
import type { GivenArray, HostArray, NestedList } from "../formats/hostarray.ts";
import { tensor, kernel, scalar } from "../lang/index.ts";
import type { KernelDefinition } from "../lang/index.ts";
import type { CompiledKernel, kernelFromCompiled } from "../ptx/compiled-kernel.ts";
import type { DeviceArray } from "./device-array.ts";
import type { DeviceArguments, HostResults, RunArguments } from "./types.ts";

const definition = kernel(
  {
    name: "typed",
    inputs: { x: tensor(f32, [4]), alpha: scalar(f32), seed: scalar(u64) },
    outputs: { out: tensor(bf16, [4]) },
    inouts: { state: tensor(i32, [4]) },
  },
  () => undefined,
);

type Definition = typeof definition;

test("run takes inputs and in-out arrays, on the host or on the device", () => {
  type Arguments = RunArguments<Definition>;
  expectTypeOf<keyof Arguments>().toEqualTypeOf<"x" | "alpha" | "seed" | "state">();
  expectTypeOf<Arguments["x"]>().toEqualTypeOf<
    GivenArray<"f32"> | NestedList | DeviceArray<"f32">
  >();
  expectTypeOf<Arguments["alpha"]>().toEqualTypeOf<number>();
  expectTypeOf<Arguments["seed"]>().toEqualTypeOf<bigint>();
  expectTypeOf<Arguments["state"]>().toEqualTypeOf<
    GivenArray<"i32"> | NestedList | DeviceArray<"i32">
  >();
});

test("run gives outputs and in-out arrays on the host", () => {
  type Results = HostResults<Definition>;
  expectTypeOf<keyof Results>().toEqualTypeOf<"out" | "state">();
  expectTypeOf<Results["out"]>().toEqualTypeOf<HostArray<"bf16">>();
});

test("launch takes every argument, arrays on the device", () => {
  type Arguments = DeviceArguments<Definition>;
  expectTypeOf<keyof Arguments>().toEqualTypeOf<"x" | "alpha" | "seed" | "state" | "out">();
  expectTypeOf<Arguments["out"]>().toEqualTypeOf<DeviceArray<"bf16">>();
});

test("a kernel of any signature takes arrays and scalars by any name", () => {
  const args: { readonly [name: string]: number | HostArray } = { alpha: 1 };
  expectTypeOf(args).toExtend<RunArguments<KernelDefinition>>();
});

test("a compiled kernel has the types of the kernel that it is said to be", () => {
  type Compiled = ReturnType<typeof kernelFromCompiled<Definition>>;
  expectTypeOf<RunArguments<Compiled>>().toEqualTypeOf<RunArguments<Definition>>();
  expectTypeOf<HostResults<Compiled>>().toEqualTypeOf<HostResults<Definition>>();
  const args: { readonly [name: string]: number | HostArray } = { alpha: 1 };
  expectTypeOf(args).toExtend<RunArguments<CompiledKernel>>();
});
