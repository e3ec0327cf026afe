/**
 * A kernel's specification: its types, and the checks that can be made before its body is traced.
 *
 *   { name, grid, cluster, threads, inputs, outputs, inouts, scratch }
 *     -> axes and dimensions of the IR kernel, every name in use once
 */
import type { GridAxis } from "../ir/node.ts";
import { dimensionsOf, sizeText } from "../ir/size.ts";
import type { Dimension, Size } from "../ir/size.ts";
import { lanesPerWarp, mostThreads, warpCounts, warpsPerGroup } from "../targets/target.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import type { Location } from "../support/location.ts";
import { isReadable, isRecord } from "../support/options.ts";
import type { ScratchObject } from "./allocate.ts";
import { describeSpec, isSpec, specNames } from "./arguments.ts";
import type { TensorListSpec, TensorSpec, ScalarSpec, ScratchSpec } from "./arguments.ts";
import type { ByTarget } from "./by-target.ts";
import { NameRegister, requireName } from "./names.ts";
import type { Ref } from "./ref.ts";
import type { Scalar } from "./elementwise.ts";
import type { TensorList } from "./tensor-list.ts";
import { isExtent, isPositiveInteger } from "./sizes.ts";
import { wrongKind } from "./traced.ts";
import { describe } from "./traced.ts";

/** The axes of a grid by name, with the number of blocks along each. */
export interface GridSpec {
  readonly [axis: string]: Size | ByTarget<Size>;
}
/** Axes of a cluster by name, with its number of blocks along each. */
export interface ClusterSpec {
  readonly [axis: string]: number | ByTarget<number>;
}
/** Arrays and scalars by name, as a kernel's `inputs` are declared. */
export interface InputSpecs {
  readonly [name: string]: TensorSpec | TensorListSpec | ScalarSpec;
}
/** Arrays by name, as a kernel's `outputs` and `inouts` are declared. */
export interface TensorSpecs {
  readonly [name: string]: TensorSpec | TensorListSpec;
}
/** Scratch memory, barriers and semaphores by name. */
export interface ScratchSpecs {
  readonly [name: string]: ScratchSpec | ByTarget<ScratchSpec>;
}

/** No names. */
export type Empty = Readonly<Record<never, never>>;

/** What `kernel` is given besides the body. */
export interface KernelSpec<
  Grid extends GridSpec = GridSpec,
  Threads extends readonly string[] = readonly string[],
  Inputs extends InputSpecs = InputSpecs,
  Outputs extends TensorSpecs = TensorSpecs,
  Inouts extends TensorSpecs = TensorSpecs,
  Scratch extends ScratchSpecs = ScratchSpecs,
  Cluster extends ClusterSpec = ClusterSpec,
> {
  /** The kernel's name, in messages, profiles and PTX. */
  readonly name: string;
  /** Number of blocks along each named axis, the last axis fastest; one block without it. */
  readonly grid?: Grid;
  /**
   * Blocks of a cluster along each named axis. An axis of the grid is divided into clusters; any other name is an axis of the
   * cluster alone, along which every place of the grid has so many blocks.
   */
  readonly cluster?: Cluster;
  /** Names of the program threads of a block; one, `main`, without it. */
  readonly threads?: Threads;
  /**
   * Warps of each program thread, which hold its tiles together: 1, 2, 4, 8, 16 or 32; 4, a warpgroup, without it. More for
   * long rows and large tiles, fewer for skinny work.
   */
  readonly warps?: number | ByTarget<number>;
  /**
   * Blocks that a multiprocessor is to hold at once, as in CUDA's `__launch_bounds__`: it bounds the registers of a thread, 65536 being shared by all threads of these blocks.
   * Without it the compiler decides.
   */
  readonly minBlocksPerMultiprocessor?: number | ByTarget<number>;
  /**
   * Whether functions that GPUs approximate in f32 are approximated where a call does not say otherwise, as with CUDA's
   * `--use_fast_math`. The others, and f64, stay accurate.
   */
  readonly approximate?: boolean;
  /** Arguments that the kernel reads. */
  readonly inputs?: Inputs;
  /** Arrays that the kernel makes. */
  readonly outputs?: Outputs;
  /** Arrays that the kernel updates in place. */
  readonly inouts?: Inouts;
  /** Memory, barriers and semaphores for the time of the kernel. */
  readonly scratch?: Scratch;
}

type Argument<S> =
  S extends TensorSpec<infer D>
    ? Ref<D>
    : S extends TensorListSpec<infer D>
      ? TensorList<D>
      : S extends ScalarSpec<infer D>
        ? Scalar<D>
        : never;

/** The body's argument: everything the specification names. */
export type BodyArgument<
  Grid extends GridSpec,
  Threads extends readonly string[],
  Inputs extends InputSpecs,
  Outputs extends TensorSpecs,
  Inouts extends TensorSpecs,
  Scratch extends ScratchSpecs,
  Cluster extends ClusterSpec = Empty,
> = { readonly [A in keyof Grid | keyof Cluster]: Scalar<"i32"> } & {
  readonly [T in Threads[number]]: (body: () => void) => void;
} & { readonly [N in keyof Inputs]: Argument<Inputs[N]> } & {
  readonly [N in keyof Outputs]: Argument<Outputs[N]>;
} & { readonly [N in keyof Inouts]: Argument<Inouts[N]> } & {
  readonly [N in keyof Scratch]: ScratchObject<Scratch[N]>;
};

/** What carries a kernel's signature in its type. */
export interface Signature<
  Inputs extends InputSpecs = InputSpecs,
  Outputs extends TensorSpecs = TensorSpecs,
  Inouts extends TensorSpecs = TensorSpecs,
> {
  readonly inputs: Inputs;
  readonly outputs: Outputs;
  readonly inouts: Inouts;
}

/** What differs by target in a specification is a value here. */
export interface SpecForTarget extends Omit<
  KernelSpec,
  "grid" | "cluster" | "scratch" | "warps" | "minBlocksPerMultiprocessor"
> {
  readonly grid: { readonly [axis: string]: Size };
  readonly cluster: { readonly [axis: string]: number };
  readonly scratch: { readonly [name: string]: ScratchSpec };
  readonly warps?: number;
  readonly minBlocksPerMultiprocessor?: number;
}

/** A specification with everything in place. */
export interface CheckedSpec {
  readonly name: string;
  readonly grid: readonly GridAxis[];
  /** The axes of the cluster that are none of the grid; they stand behind the grid's. */
  readonly clusterAxes: readonly string[];
  readonly threads: readonly string[];
  readonly warps: number;
  readonly resident: number | undefined;
  readonly approximate: boolean;
  /** Whether the specification names threads, so that the body gets a function for each. */
  readonly hasThreads: boolean;
  readonly dimensions: readonly Dimension[];
  readonly inputs: InputSpecs;
  readonly outputs: TensorSpecs;
  readonly inouts: TensorSpecs;
  readonly scratch: { readonly [name: string]: ScratchSpec };
  readonly names: readonly string[];
}

const scratchKinds: readonly ScratchSpec["kind"][] = [
  ...(["memory", "barrier", "cluster barrier", "semaphore", "union"] as const),
];

export const fieldNames: readonly (keyof KernelSpec)[] = [
  "name",
  "grid",
  "cluster",
  "threads",
  "warps",
  "minBlocksPerMultiprocessor",
  "approximate",
  "inputs",
  "outputs",
  "inouts",
  "scratch",
];

export function checkSpec(spec: SpecForTarget, location: Location): CheckedSpec {
  const {
    name,
    threads,
    warps = warpsPerGroup,
    minBlocksPerMultiprocessor: resident,
    approximate = false,
    inputs = {},
    outputs = {},
    inouts = {},
    scratch,
  } = spec;
  requireName("a kernel", name, location);
  const { grid: axes, cluster } = spec;
  const groups = { inputs, outputs, inouts };
  for (const [group, entries] of Object.entries(groups)) requireGroup(group, entries, location);
  const register = new NameRegister();
  const grid = checkGrid(spec, register, location);
  checkWarps(warps, location);
  checkThreads(threads, warps, register, location);
  if (resident !== undefined) checkResident(resident, location);
  if (typeof approximate !== "boolean")
    wrongKind("approximate of a kernel", "true or false", approximate, location);
  checkEntries("an input", inputs, ["array", "arrays", "scalar"], register, location);
  checkEntries("an output", outputs, ["array", "arrays"], register, location);
  checkEntries("an inout", inouts, ["array", "arrays"], register, location);
  checkEntries("scratch", scratch, scratchKinds, register, location);
  const arrays = [inputs, outputs, inouts].flatMap((specs) => Object.values(specs));
  const sizes = [
    ...arrays.flatMap((array) => (array.kind === "scalar" ? [] : arraySizes(array))),
    ...grid.map(({ extent }) => extent),
    ...Object.values(scratch).flatMap(scratchSizes),
  ];
  return {
    name,
    grid,
    clusterAxes: Object.keys(cluster).filter((axis) => !Object.hasOwn(axes, axis)),
    threads: threads ?? ["main"],
    warps,
    resident,
    approximate,
    hasThreads: threads !== undefined,
    dimensions: collectDimensions(sizes, location),
    inputs,
    outputs,
    inouts,
    scratch,
    names: register.names,
  };
}

function checkGrid(
  { grid, cluster }: SpecForTarget,
  register: NameRegister,
  location: Location,
): readonly GridAxis[] {
  for (const [axis, extent] of Object.entries(grid)) {
    register.claim("a grid axis", axis, location);
    if (!isExtent(extent)) {
      throw new TilewrightError({
        code: "TW1023",
        message: `the grid cannot have ${describe(extent)} blocks along ${axis}`,
        location,
        expected: "a positive whole number or a size known at launch",
        found: describe(extent),
      });
    }
  }
  const axes = Object.entries(grid).map(([axis, extent]) => {
    const blocks = Object.hasOwn(cluster, axis) ? cluster[axis] : 1;
    return Object.freeze({
      name: axis,
      extent,
      cluster: clusterOf(axis, blocks, extent, location),
    });
  });
  const own = Object.entries(cluster).filter(([axis]) => !Object.hasOwn(grid, axis));
  for (const [axis] of own) register.claim("a cluster axis", axis, location);
  // Blocks along an axis of the cluster alone are one cluster.
  const alone = own.map(([axis, count]) => {
    const blocks = clusterOf(axis, count, undefined, location);
    return Object.freeze({ name: axis, extent: blocks, cluster: blocks });
  });
  return [...axes, ...alone];
}

/** The blocks of a cluster along an axis, of which the grid has `extent`, if any. */
function clusterOf(
  axis: string,
  count: unknown,
  extent: Size | undefined,
  location: Location,
): number {
  const refuse = (message: string, expected: string, found: string): never => {
    throw new TilewrightError({ code: "TW1024", message, location, expected, found });
  };
  if (!isPositiveInteger(count))
    return refuse(
      `a cluster cannot have ${describe(count)} blocks along ${axis}`,
      "a positive whole number",
      describe(count),
    );
  if (typeof extent === "number" && extent % count !== 0)
    return refuse(
      `clusters of ${count} blocks do not divide the ${extent} blocks along ${axis}`,
      `a divisor of ${extent}`,
      String(count),
    );
  return count;
}

function checkWarps(warps: unknown, location: Location): void {
  if (typeof warps === "number" && warpCounts.includes(warps)) return;
  throw new TilewrightError({
    code: "TW1037",
    message: `a program thread cannot have ${describe(warps)} warps`,
    location,
    expected: `one of ${warpCounts.join(", ")}`,
    found: describe(warps),
  });
}

/** Blocks that a multiprocessor of any target holds at most. */
const mostResident = 32;

function checkResident(resident: unknown, location: Location): void {
  if (isPositiveInteger(resident) && resident <= mostResident) return;
  wrongKind(
    "minBlocksPerMultiprocessor",
    `a whole number from 1 to ${mostResident}`,
    resident,
    location,
  );
}

function checkThreads(
  threads: readonly string[] | undefined,
  warps: number,
  register: NameRegister,
  location: Location,
): void {
  if (threads === undefined) return;
  if (!isList(threads)) throw otherGroup("threads", "a list of names", threads, location);
  const most = mostThreads(warps);
  if (threads.length === 0 || threads.length > most) {
    throw new TilewrightError({
      code: "TW1025",
      message: `a block cannot have ${threads.length} program threads`,
      location,
      expected: `1 to ${most}, each being ${warps * lanesPerWarp} threads`,
      found: String(threads.length),
    });
  }
  for (const thread of threads) register.claim("a program thread", thread, location);
}

function isList(item: unknown): boolean {
  return Array.isArray(item);
}

/** The parts of a specification are objects with a name for each thing. */
export function requireGroup(group: string, entries: unknown, location: Location): void {
  if (isRecord(entries) && isReadable(entries, [])) return;
  const remedy =
    typeof entries === "function"
      ? "give the object itself, not a function that makes it"
      : undefined;
  throw otherGroup(group, "an object with a name for each", entries, location, remedy);
}

function otherGroup(
  group: string,
  expected: string,
  found: unknown,
  location: Location,
  remedy?: string,
): TilewrightError {
  return new TilewrightError({
    code: "TW1034",
    message: `${group} of a kernel cannot be ${describe(found)}`,
    location,
    expected,
    found: describe(found),
    remedy,
  });
}

function checkEntries(
  what: string,
  specs: { readonly [name: string]: unknown },
  kinds: readonly (TensorSpec | TensorListSpec | ScalarSpec | ScratchSpec)["kind"][],
  register: NameRegister,
  location: Location,
): void {
  for (const [name, spec] of Object.entries(specs)) {
    register.claim(what, name, location);
    if (!isSpec(spec, kinds)) {
      throw new TilewrightError({
        code: "TW1031",
        message: `${name} cannot be ${what}`,
        location,
        expected: kinds
          .map((kind) => (kind === "memory" ? "smem(…), gmem(…), tmem(…)" : specNames[kind]))
          .join(", "),
        found: describeSpec(spec),
        ...(what === "an output" && { remedy: "a single result is `tensor(dtype, [1])`" }),
      });
    }
  }
}

function arraySizes(spec: TensorSpec | TensorListSpec): readonly Size[] {
  return spec.kind === "arrays" ? spec.shape : [...spec.shape, ...(spec.strides ?? [])];
}

function scratchSizes(spec: ScratchSpec): readonly Size[] {
  return spec.kind === "memory" || spec.kind === "semaphore" ? spec.shape : [];
}

/** The named dimensions in the order they appear, each with one promise. */
export function collectDimensions(
  sizes: readonly Size[],
  location: Location,
): readonly Dimension[] {
  const found = new Map<string, Dimension>();
  for (const dimension of sizes.flatMap(dimensionsOf)) {
    const known = found.get(dimension.name);
    if (known === undefined) found.set(dimension.name, dimension);
    else if (known.multipleOf !== dimension.multipleOf) {
      throw new TilewrightError({
        code: "TW1028",
        message: `dimension ${sizeText(dimension)} is said to be a multiple of ${known.multipleOf} and of ${dimension.multipleOf}`,
        location,
        expected: `multipleOf: ${known.multipleOf} everywhere`,
        found: `multipleOf: ${dimension.multipleOf}`,
      });
    }
  }
  return [...found.values()];
}
