/**
 * Binding: matching a launch's arguments to a kernel's parameters. Named dimensions take their values
 * from the shapes of the arrays that are given, from the launch's `dimensions`, or from the device; everything else is
 * then a number and must agree.
 *
 *   parameters x: [n], w: [n, m]      arguments x: f32[100], w: f32[100, 8]
 *     n = 100 (from x), w's first extent agrees, m = 8 (from w)
 */
import { rowMajorStrides } from "../formats/shape.ts";
import { requireDeclared, requireLegal } from "../ir/dimension-values.ts";
import type { DType, HostValue } from "../formats/dtype.ts";
import type { KernelInterface, KernelParameter } from "../ir/node.ts";
import {
  dimensionsOf,
  evaluateSize,
  processors,
  solveSize,
  shapeText,
  sizeText,
} from "../ir/size.ts";
import type { Size } from "../ir/size.ts";
import type { RefType } from "../ir/types.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import type { Target } from "../targets/target.ts";

/** What an array argument must say about itself. */
export interface ArrayDescription {
  readonly dtype: DType;
  readonly shape: readonly number[];
  /** Of a view that was cut from rows or transposed, in elements. */
  readonly viewStrides?: readonly number[] | undefined;
}

export type Argument = ArrayDescription | HostValue;

/** A kernel's array parameter. */
export interface ArrayParameter extends KernelParameter {
  readonly type: RefType;
}

export function arrayParameters(kernel: KernelInterface): readonly ArrayParameter[] {
  return kernel.parameters.flatMap((parameter) => {
    const { type } = parameter.value;
    return type.kind === "ref" ? [{ ...parameter, type }] : [];
  });
}

/** The dimensions of a launch, from explicit values, from the arrays' shapes, and from the device. */
export function bindDimensions(
  kernel: KernelInterface,
  arrays: ReadonlyMap<string, ArrayDescription>,
  explicit: { readonly [name: string]: number },
  target: Pick<Target, "processors">,
): ReadonlyMap<string, number> {
  const values = new Map<string, number>();
  const sources = new Map<string, string>();
  const loose = new Map<string, Pick<GivenSize, "value" | "source">>();
  // An extent of 7 where 2 n are declared: told as such where nothing else says what n is.
  const misfits = new Map<string, () => TilewrightError>();
  for (const [name, value] of Object.entries(explicit)) {
    requireDeclared(kernel, name);
    bind(kernel, values, sources, name, value, "the launch's dimensions");
  }
  for (const parameter of arrayParameters(kernel)) {
    const array = arrays.get(parameter.name);
    if (array === undefined) continue;
    for (const { size, value, source, isLoose } of sizesOf(kernel, parameter, array)) {
      const solved = solveSize(size, value);
      if (solved === undefined) continue;
      const { name } = solved.dimension;
      if (!Number.isInteger(solved.value)) {
        misfits.set(name, () => shapeMismatch(kernel, parameter, array));
        continue;
      }
      // An extent such as n + 1 says what n is where no array has just n elements.
      if (!isLoose && solved.dimension === size) bind(kernel, values, sources, name, value, source);
      else if (!loose.has(name)) loose.set(name, { value: solved.value, source });
    }
  }
  for (const [name, { value, source }] of loose)
    if (!values.has(name)) bind(kernel, values, sources, name, value, source);
  const { name: ofDevice } = processors;
  if (!values.has(ofDevice) && kernel.dimensions.some(({ name }) => name === ofDevice))
    bind(kernel, values, sources, ofDevice, target.processors, "the device");
  for (const { name } of kernel.dimensions)
    if (!values.has(name)) throw misfits.get(name)?.() ?? unboundDimension(kernel, name);
  return values;
}

/** A size of a parameter's declaration, and what an argument gives for it. */
interface GivenSize {
  readonly size: Size;
  readonly value: number;
  readonly source: string;
  /**
   * Whether it only counts where nothing else says more: the stride of an axis that has no second element, and shape
   * and strides of what is no view and a parameter with strides of its own is given.
   */
  readonly isLoose: boolean;
}

/**
 * What an array says of its parameter's sizes. A parameter with strides takes any array that is large enough, which
 * says something of them only where it has as many axes; where nothing else gives strides values, it is taken as it lies.
 * A view has strides of its own, and is always taken as it lies.
 */
function sizesOf(
  kernel: KernelInterface,
  parameter: ArrayParameter,
  array: ArrayDescription,
): readonly GivenSize[] {
  const { name, type, strides } = parameter;
  const isHeld = strides !== undefined && array.viewStrides === undefined;
  if (isHeld && array.shape.length !== type.shape.length) return [];
  requireRank(kernel, parameter, array);
  const given = (
    sizes: readonly Size[],
    values: readonly number[],
    what: string,
    isLoose: (axis: number) => boolean,
  ): readonly GivenSize[] =>
    sizes.map((size, axis) => ({
      size,
      value: values[axis] ?? 0,
      source: `${what} ${axis} of ${name}`,
      isLoose: isLoose(axis),
    }));
  const extents = given(type.shape, array.shape, "axis", () => isHeld);
  const lies = array.viewStrides ?? rowMajorStrides(array.shape);
  if (strides === undefined || (isHeld && !liesSo(array.shape, lies, strides))) return extents;
  const isLoose = (axis: number): boolean => isHeld || (array.shape[axis] ?? 0) <= 1;
  return [...extents, ...given(strides, lies, "the stride of axis", isLoose)];
}

/** Whether an array may lie by the strides that a parameter is declared with, as far as they are numbers. */
function liesSo(
  shape: readonly number[],
  lies: readonly number[],
  declared: readonly Size[],
): boolean {
  return declared.every(
    (stride, axis) =>
      typeof stride !== "number" || stride === lies[axis] || (shape[axis] ?? 0) <= 1,
  );
}

function bind(
  kernel: KernelInterface,
  values: Map<string, number>,
  sources: Map<string, string>,
  name: string,
  value: number,
  source: string,
): void {
  const bound = values.get(name);
  if (bound === undefined) {
    requireLegal(kernel, name, value, source);
    values.set(name, value);
    sources.set(name, source);
  } else if (bound !== value) {
    throw new TilewrightError({
      code: "TW4005",
      message: `dimension ${name} of kernel ${kernel.name} has two values`,
      expected: `${bound}, from ${sources.get(name) ?? ""}`,
      found: `${value}, from ${source}`,
    });
  }
}

function unboundDimension(kernel: KernelInterface, name: string): TilewrightError {
  const strided = kernel.parameters.find(
    ({ value: { type }, strides }) =>
      strides !== undefined &&
      type.kind === "ref" &&
      type.shape.some((size) => dimensionsOf(size).some((each) => each.name === name)),
  );
  return new TilewrightError({
    code: "TW4008",
    message: `nothing gives dimension ${name} of kernel ${kernel.name} a value`,
    expected: `an input whose shape names ${name}, or { dimensions: { ${name}: … } }`,
    found:
      strided === undefined
        ? "neither"
        : `${strided.name}, which lies by strides: the array that is given for it has another number of axes, so that its shape says nothing of ${name}`,
  });
}

function requireRank(
  kernel: KernelInterface,
  parameter: ArrayParameter,
  array: ArrayDescription,
): void {
  if (array.shape.length === parameter.type.shape.length) return;
  throw shapeMismatch(kernel, parameter, array);
}

function shapeMismatch(
  kernel: KernelInterface,
  parameter: ArrayParameter,
  array: ArrayDescription,
): TilewrightError {
  return new TilewrightError({
    code: "TW4004",
    message: `argument ${parameter.name} of kernel ${kernel.name} has another shape`,
    expected: shapeText(parameter.type.shape),
    found: shapeText(array.shape),
    notes: [{ message: "the kernel is declared here", location: kernel.location }],
  });
}

/** Checks one array argument once all dimensions are known. */
export function checkArray(
  kernel: KernelInterface,
  parameter: ArrayParameter,
  array: ArrayDescription,
  dimensions: ReadonlyMap<string, number>,
): void {
  if (array.dtype !== parameter.type.dtype)
    throw new TilewrightError({
      code: "TW4003",
      message: `argument ${parameter.name} of kernel ${kernel.name} has another number format`,
      expected: parameter.type.dtype.name,
      found: array.dtype.name,
      notes: [{ message: "the kernel is declared here", location: kernel.location }],
    });
  const { viewStrides } = array;
  if (parameter.strides !== undefined && viewStrides === undefined)
    return checkSpan(kernel, parameter, array, dimensions);
  requireRank(kernel, parameter, array);
  if (viewStrides !== undefined) checkStrides(kernel, parameter, array, viewStrides, dimensions);
  const shape = evaluateShape(parameter.type.shape, dimensions);
  if (!shape.every((extent, axis) => extent === array.shape[axis]))
    throw shapeMismatch(kernel, parameter, array);
}

/** A view with strides lies as the kernel's declaration says; along an axis of one element strides say nothing. */
function checkStrides(
  kernel: KernelInterface,
  parameter: ArrayParameter,
  { shape }: ArrayDescription,
  strides: readonly number[],
  dimensions: ReadonlyMap<string, number>,
): void {
  const declared =
    parameter.strides === undefined
      ? rowMajorStrides(shape)
      : evaluateShape(parameter.strides, dimensions);
  const agrees = shape.every((extent, axis) => extent <= 1 || strides[axis] === declared[axis]);
  if (agrees || shape.includes(0)) return;
  throw new TilewrightError({
    code: "TW4029",
    message: `argument ${parameter.name} of kernel ${kernel.name} is a view whose elements lie otherwise`,
    expected: `strides of ${shapeText(parameter.strides ?? declared)}`,
    found: `strides of [${strides.join(", ")}]`,
    remedy:
      parameter.strides === undefined
        ? `declare tensor(…, { strides: [${strides.join(", ")}] }) with numbers or dim(…), or copy the view into an array of its own`
        : undefined,
    notes: [{ message: "the kernel is declared here", location: kernel.location }],
  });
}

function evaluateShape(
  shape: readonly Size[],
  dimensions: ReadonlyMap<string, number>,
): readonly number[] {
  return shape.map((size) => evaluateSize(size, dimensions));
}

/** An array with strides takes any array that holds every element the strides reach. */
function checkSpan(
  kernel: KernelInterface,
  parameter: ArrayParameter,
  array: ArrayDescription,
  dimensions: ReadonlyMap<string, number>,
): void {
  const span = spanElements(parameter, dimensions);
  const held = array.shape.reduce((count, extent) => count * extent, 1);
  if (held >= span) return;
  throw new TilewrightError({
    code: "TW4004",
    message: `argument ${parameter.name} of kernel ${kernel.name} is smaller than its strides reach`,
    expected: `at least ${span} elements`,
    found: `${held} elements`,
  });
}

/** Elements from the first to the last that a parameter reaches, both included. */
function spanElements(parameter: ArrayParameter, dimensions: ReadonlyMap<string, number>): number {
  const shape = evaluateShape(parameter.type.shape, dimensions);
  if (parameter.strides === undefined) return shape.reduce((count, extent) => count * extent, 1);
  if (shape.includes(0)) return 0;
  const strides = evaluateShape(parameter.strides, dimensions);
  return shape.reduce((reach, extent, axis) => reach + (extent - 1) * (strides[axis] ?? 0), 1);
}

/** The shape an output is allocated with. */
export function outputShape(
  parameter: ArrayParameter,
  dimensions: ReadonlyMap<string, number>,
): readonly number[] {
  return parameter.strides === undefined
    ? evaluateShape(parameter.type.shape, dimensions)
    : [spanElements(parameter, dimensions)];
}

/** Checks that the grid of this launch exists and is covered by whole clusters. */
export function checkGrid(kernel: KernelInterface, dimensions: ReadonlyMap<string, number>): void {
  for (const { name, extent, cluster } of kernel.grid) {
    const blocks = evaluateSize(extent, dimensions);
    if (blocks % cluster === 0) continue;
    throw new TilewrightError({
      code: "TW4009",
      message: `axis ${name} of kernel ${kernel.name} has ${blocks} blocks, which are no whole number of clusters`,
      expected: `a multiple of ${cluster}`,
      found: dimensionsOf(extent).length === 0 ? String(blocks) : `${sizeText(extent)} = ${blocks}`,
      notes: [{ message: "the kernel is declared here", location: kernel.location }],
    });
  }
}
