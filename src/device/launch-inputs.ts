/** What a planned launch gives its kernel, as plans say it and as files keep it. */
import type { DType, HostValue } from "../formats/dtype.ts";

/**
 * An argument of the operation or an array of its scratch, as it is, under another shape, or flat: all that it spans
 * from its first element to its last, for a kernel with strides of its own; or the value of a scalar.
 */
export type PlannedArgument =
  | { readonly argument: string; readonly shape?: readonly number[] | undefined }
  | { readonly argument: string; readonly flat: true }
  | { readonly scalar: HostValue };

/** Memory that launches of a plan hand to later ones, by name. */
export interface ScratchArrays {
  readonly [name: string]: ScratchArray;
}

/** An array that an operation needs while it runs. */
export interface ScratchArray {
  /** The format of the elements. */
  readonly dtype: DType;
  /** The extents of the axes. */
  readonly shape: readonly number[];
}

export interface LaunchInputs {
  /** What each parameter of the kernel is given. */
  readonly arguments: { readonly [parameter: string]: PlannedArgument };
  /** Dimensions of the kernel that no argument's shape gives. */
  readonly dimensions?: { readonly [name: string]: number } | undefined;
}

/** Whether they are the same when they come back from JSON, which has but numbers that end. */
export function isKeepable({ arguments: given }: LaunchInputs): boolean {
  return Object.values(given).every(
    (argument) => !("scalar" in argument) || isPlain(argument.scalar),
  );
}

function isPlain(value: unknown): boolean {
  const isNumber = typeof value === "number" && Number.isFinite(value) && !Object.is(value, -0);
  return isNumber || typeof value === "boolean";
}

/** Whether data from a file is what a launch gives. */
export function isLaunchInputs(value: unknown): value is LaunchInputs {
  if (!isFields(value)) return false;
  const { arguments: given, dimensions } = value;
  const sized = dimensions === undefined || (isFields(dimensions) && isSizes(dimensions));
  return sized && isFields(given) && Object.values(given).every(isArgument);
}

function isArgument(value: unknown): boolean {
  if (!isFields(value)) return false;
  const { argument, shape, flat, scalar } = value;
  if (argument === undefined) return isPlain(scalar);
  if (typeof argument !== "string") return false;
  return flat === undefined
    ? shape === undefined || (Array.isArray(shape) && isSizes(shape))
    : flat === true && shape === undefined;
}

/** Whether data from a file is a list or a record of sizes. */
export function isSizes(values: object): boolean {
  return Object.values(values).every((size) => Number.isSafeInteger(size) && Number(size) >= 0);
}

/** Whether data from a file has names. */
export function isFields(value: unknown): value is { readonly [name: string]: unknown } {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
