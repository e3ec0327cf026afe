/**
 * `npm run bench -- --part cpu`: programs on the CPU device beside jax-js's WebAssembly back end, and single operations beside numpy-ts, in one
 * process; NumPy in one of its own where there is Python. First calls, which compile, are told apart.
 *
 *   ms           1 thread  2 threads  jax-js  NumPy  ratio  first  jax-js first
 *   matmul 512       6.90       3.60    11.3  0.900   1.64   9.00          31.0
 *   times as fast as jax-js, one thread: worst …, best …, geometric mean of 16 …
 */
import { cpus } from "node:os";
import process from "node:process";
import { open } from "tilewright";
import type { Device } from "tilewright";
import { useDevice } from "tilewright/arrays";
import { againstJax } from "./against-jax.ts";
import { againstNumpyTs } from "./against-numpy-ts.ts";
import { tableOf } from "./turns.ts";
import type { CpuResult } from "./turns.ts";

export interface CpuSettings {
  readonly rounds: number;
  /** A part of the names of the programs to measure; all unless given. */
  readonly only: string | undefined;
}

export interface CpuResults {
  readonly processor: string;
  readonly node: string;
  readonly programs: readonly CpuResult[];
  readonly operations: readonly CpuResult[];
}

export async function benchCpu({ rounds, only }: CpuSettings): Promise<CpuResults> {
  const devices = new Map<string, Device>();
  for (const threads of [1, 2])
    devices.set(`${threads} thread${threads === 1 ? "" : "s"}`, await open("cpu", { threads }));
  const processor = cpus()[0]?.model.trim() ?? "unknown processor";
  console.log(`${processor}, Node ${process.versions.node}`);
  try {
    const programs = await againstJax(devices, rounds, only);
    if (programs.length > 0) for (const line of tableOf(programs, "jax-js")) console.log(line);
    const operations = await againstNumpyTs(devices, rounds, only);
    if (operations.length > 0)
      for (const line of tableOf(operations, "numpy-ts")) console.log(line);
    return { processor, node: process.versions.node, programs, operations };
  } finally {
    await useDevice();
    for (const device of devices.values()) device.dispose();
  }
}
