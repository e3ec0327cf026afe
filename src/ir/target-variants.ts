/** Kernels that differ from target to target: each is traced for the usual target, and again for every other that is asked for. */
import type { Target } from "../targets/target.ts";
import type { Kernel } from "./node.ts";

const makers = new WeakMap<Kernel, (target: Target) => Kernel>();
const made = new WeakMap<Kernel, Map<Target, Kernel>>();

/** Says how the kernel is made for a target. */
export function varyByTarget(kernel: Kernel, make: (target: Target) => Kernel): void {
  makers.set(kernel, make);
}

/** Whether there are others of the kernel for other targets. */
export function variesByTarget(kernel: Kernel): boolean {
  return makers.has(kernel);
}

/** The kernel as it is for a target: itself, for nearly all. */
export function kernelFor(kernel: Kernel, target: Target): Kernel {
  const make = makers.get(kernel);
  if (make === undefined) return kernel;
  const known = made.get(kernel) ?? new Map<Target, Kernel>();
  made.set(kernel, known);
  const variant = known.get(target) ?? make(target);
  known.set(target, variant);
  return variant;
}
