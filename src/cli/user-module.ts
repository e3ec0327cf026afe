/**
 * A file named on the command line, as what can be done with it.
 *
 *   export async function main(device) { … }    main: called with a device
 *   export const axpy = kernel(…)               kernels: run on random inputs, or compiled
 *   export const product = matmul(…)            operations: tuned, where there is something to choose
 *   neither                                     a script: its top-level code has run
 */
import { resolve } from "node:path";
import type { Device } from "../device/device.ts";
import { isOperation } from "../device/operation.ts";
import type { Operation } from "../device/operation.ts";
import { isKernelDefinition } from "../lang/index.ts";
import type { KernelDefinition } from "../lang/index.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import { unknownLocation } from "../support/location.ts";
import { requireFile } from "./files.ts";
import { importFile } from "./typescript-loader.ts";

/** A kernel and the name it is exported under, which tells variants of one kernel apart. */
export interface ExportedKernel {
  readonly name: string;
  readonly definition: KernelDefinition;
}

/** An operation and the name it is exported under. */
export interface ExportedOperation {
  readonly name: string;
  readonly operation: Operation;
}

export interface UserModule {
  readonly path: string;
  readonly main: ((device: Device) => unknown) | undefined;
  readonly kernels: readonly ExportedKernel[];
  readonly operations: readonly ExportedOperation[];
  /** The names of everything that it exports. */
  readonly names: readonly string[];
}

/** Imports the file; its code finds the program's arguments in `process.argv`, as under `node`. */
export async function loadUserModule(
  path: string,
  programArguments: readonly string[] = [],
): Promise<UserModule> {
  requireModuleFile(path);
  process.argv = [process.execPath, resolve(path), ...programArguments];
  return describeModule(path, await importFile(path));
}

function requireModuleFile(path: string): void {
  requireFile(path, "a TypeScript or JavaScript file");
  if (!/\.(?:[mc]?js|m?ts)$/.test(path))
    throw new TilewrightError({
      code: "TW5004",
      message: `${path} is neither TypeScript nor JavaScript`,
      location: unknownLocation,
      expected: "a name that ends in .ts, .mts, .js, .mjs or .cjs",
      found: path,
    });
}

export function describeModule(
  path: string,
  exports: { readonly [name: string]: unknown },
): UserModule {
  const { main } = exports;
  const kernels = Object.entries(exports).flatMap(([name, value]) =>
    isKernelDefinition(value) ? [{ name, definition: value }] : [],
  );
  return {
    path,
    main: typeof main === "function" ? (main as (device: Device) => unknown) : undefined,
    kernels: kernels.filter(
      ({ definition }, index) =>
        kernels.findIndex((other) => other.definition === definition) === index,
    ),
    operations: Object.entries(exports).flatMap(([name, value]) =>
      isOperation(value) ? [{ name, operation: value }] : [],
    ),
    names: Object.keys(exports),
  };
}

/** The exported kernels, or those of the given name; it may be an export's or a kernel's. */
export function selectKernels(
  { path, kernels, operations, names }: UserModule,
  name: string | undefined,
): readonly ExportedKernel[] {
  if (kernels.length === 0)
    throw new TilewrightError({
      code: "TW5001",
      message: `${path} exports no kernel`,
      location: unknownLocation,
      expected: "export const axpy = kernel(…)",
      found: names.join(", ") || "no exports",
      remedy:
        operations.length > 0
          ? `export the kernels of ${operations.map((each) => each.name).join(", ")}: operation.kernels(sizes) lists them`
          : undefined,
    });
  if (name === undefined) return kernels;
  const exported = kernels.filter((kernel) => kernel.name === name);
  const selected =
    exported.length > 0 ? exported : kernels.filter((kernel) => kernel.definition.name === name);
  if (selected.length > 0) return selected;
  throw new TilewrightError({
    code: "TW5005",
    message: `${path} exports no kernel ${name}`,
    location: unknownLocation,
    expected: kernels.map((kernel) => kernel.name).join(", "),
    found: name,
  });
}
