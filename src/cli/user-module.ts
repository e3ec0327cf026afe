/**
 * A file named on the command line, as what can be done with it.
 *
 *   export async function main(device) { … }    main: called with a device
 *   export const axpy = kernel(…)               kernels: run on random inputs, or compiled
 *   export const product = matmul(…)            operations: run on random inputs, or tuned, where there is something to choose
 *   neither                                     a script: its top-level code has run
 */
import { resolve } from "node:path";
import type { Device } from "../device/device.ts";
import { isOperation } from "../device/operation.ts";
import type { Operation } from "../device/operation.ts";
import { isKernelDefinition } from "../lang/index.ts";
import type { KernelDefinition } from "../lang/index.ts";
import { fieldsOf } from "../support/checked-call.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import { unknownLocation } from "../support/location.ts";
import { optionText } from "../support/options.ts";
import { requireFile } from "./files.ts";
import { importFile } from "./typescript-loader.ts";

/** A kernel and the name it is exported under, which tells variants of one kernel apart. */
export interface ExportedKernel {
  readonly name: string;
  readonly definition: KernelDefinition;
}

/** What can be run on random inputs, under the name it is exported under. */
export interface Launchable {
  readonly name: string;
  readonly definition: KernelDefinition | Operation;
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
  /** Everything that it exports. */
  readonly exports: { readonly [name: string]: unknown };
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
    exports: { ...exports },
  };
}

/** The exported kernels, or those of the given name; it may be an export's or a kernel's. */
export function selectKernels(
  module: UserModule,
  name: string | undefined,
): readonly ExportedKernel[] {
  const { path, kernels, operations, exports } = module;
  if (kernels.length === 0)
    throw new TilewrightError({
      code: "TW5001",
      message: `${path} exports no kernel`,
      location: unknownLocation,
      expected: "export const axpy = kernel(…)",
      found: exportsText(exports),
      remedy:
        operations.length > 0
          ? `export the kernels of ${operations.map((each) => each.name).join(", ")}: operation.kernels(sizes) lists them`
          : undefined,
    });
  return selected(path, "kernel", kernels, name);
}

/** The exported kernels and operations, or those of the given name: what can be run on random inputs. */
export function selectLaunchables(
  { path, kernels, operations, exports }: UserModule,
  name: string | undefined,
): readonly Launchable[] {
  const all: readonly Launchable[] = [
    ...kernels,
    ...operations.map((each) => ({ name: each.name, definition: each.operation })),
  ];
  if (all.length > 0) return selected(path, "kernel or operation", all, name);
  throw new TilewrightError({
    code: "TW5001",
    message: `${path} exports no kernel and no operation`,
    location: unknownLocation,
    expected: "export const axpy = kernel(…), or export async function main(device) { … }",
    found: exportsText(exports),
  });
}

function selected<T extends Launchable>(
  path: string,
  what: string,
  all: readonly T[],
  name: string | undefined,
): readonly T[] {
  if (name === undefined) return all;
  const exported = all.filter((each) => each.name === name);
  const found =
    exported.length > 0 ? exported : all.filter((each) => each.definition.name === name);
  if (found.length > 0) return found;
  throw new TilewrightError({
    code: "TW5005",
    message: `${path} exports no ${what} ${name}`,
    location: unknownLocation,
    expected: all.map((each) => each.name).join(", "),
    found: name,
  });
}

/** What a file that exports nothing to run, and has printed nothing, is refused with. */
export function nothingDone({ path, exports }: UserModule): TilewrightError {
  const called = Object.keys(exports).find((name) => typeof exports[name] === "function");
  return new TilewrightError({
    code: "TW5017",
    message: `${path} does nothing that could be seen: it exports nothing that runs, and printed nothing`,
    location: unknownLocation,
    expected: "an exported main(device), a kernel, an operation, or a script that prints",
    found: exportsText(exports),
    remedy: `export async function main(device) { … } that ${called === undefined ? "uses them" : `calls ${called}`} and prints what it gives`,
  });
}

/** The exports, each with what it is. */
function exportsText(exports: { readonly [name: string]: unknown }): string {
  const texts = Object.entries(exports).map(([name, value]) => `${name} (${kindText(value)})`);
  return texts.join(", ") || "no exports";
}

function kindText(value: unknown): string {
  if (isOperation(value)) return "an operation";
  if (typeof value === "function")
    return "compilations" in value ? "a function of arrays, compiled by jit" : "a function";
  // Arrays of `tilewright/arrays` are known by what they have, so that nobody has to load all of that here.
  const { dtype, shape } = fieldsOf(value, ["dtype", "shape"]);
  if (typeof dtype === "string" && Array.isArray(shape))
    return `an array ${dtype}[${shape.join(", ")}]`;
  return optionText(value);
}
