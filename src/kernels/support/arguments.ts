/** Validation of the arguments of library functions: formats or arrays, axes, options; everything else is refused. */
import { dtypes } from "../../formats/dtype.ts";
import type { DType, DTypeName } from "../../formats/dtype.ts";
import { sameSize, shapeText } from "../../ir/size.ts";
import type { Size } from "../../ir/size.ts";
import { tensor } from "../../lang/index.ts";
import type { TensorSpec } from "../../lang/index.ts";
import { TilewrightError } from "../../support/diagnostics.ts";
import type { Location } from "../../support/location.ts";
import {
  isReadable,
  isRecord,
  optionText,
  refuseOldValue,
  requireKnownOptions,
} from "../../support/options.ts";

/** A format, for an array of the function's own dimensions by rows; or an array with sizes and strides of its own. */
export type GivenArray<D extends DTypeName = DTypeName> = DType<D> | TensorSpec<D>;

/** The format of what was given. */
export type FormatOf<G> = G extends GivenArray<infer D> ? D : never;

export function refused(
  code: "TW9901" | "TW9902" | "TW9904" | "TW9905",
  message: string,
  expected: string,
  found: string,
  location: Location,
): TilewrightError {
  return new TilewrightError({ code, message, expected, found, location });
}

/** What a field must be, where it is given at all. Arrays and axes are looked at with the shapes that they belong to. */
const fieldKinds = {
  array: ["an array or its format", (value) => isFormat(value) || isArray(value)],
  operand: [
    "an array, its format, or weights",
    (value) =>
      isFormat(value) ||
      isArray(value) ||
      isOfKind(value, "quantized") ||
      isOfKind(value, "sparse24"),
  ],
  format: ["a dtype, such as f32", (value) => isFormat(value)],
  scaledFormat: [
    'the name of a format with scales, such as "mxfp4", or bf16',
    (value) => typeof value === "string" || isFormat(value),
  ],
  flag: ["true or false", (value) => typeof value === "boolean"],
  element: ["a number", (value) => ["number", "bigint", "boolean"].includes(typeof value)],
  number: ["a number", (value) => typeof value === "number"],
  size: [
    "a number, or a size known at launch",
    (value) => typeof value === "number" || (typeof value === "object" && value !== null),
  ],
  axes: ["a list of axes", (value) => Array.isArray(value)],
  axisOrAxes: [
    "an axis, or a list of axes",
    (value) => typeof value === "number" || Array.isArray(value),
  ],
  each: [
    "a number, or a list of one for each axis",
    (value) => typeof value === "number" || Array.isArray(value),
  ],
  choice: ["one of the names that it knows", (value) => typeof value === "string"],
  function: ["a function", (value) => typeof value === "function"],
  named: ["an object of arrays by name", (value) => isRecord(value) && isReadable(value, [])],
  settings: ["an object of settings by name", (value) => isRecord(value) && isReadable(value, [])],
} satisfies {
  readonly [kind: string]: readonly [expected: string, holds: (value: unknown) => boolean];
};

/** The fields of what a function of the library takes, by what each of them is. */
export interface Fields {
  readonly [field: string]: keyof typeof fieldKinds;
}

/** Refuses anything but an object whose fields are known and of their kinds. */
export function requireFields(of: string, spec: unknown, fields: Fields, location: Location): void {
  const [first = "x"] = Object.keys(fields);
  if (isFormat(spec) || isArray(spec))
    throw new TilewrightError({
      code: "TW1033",
      message: `the options of ${of} are not an object with names`,
      location,
      expected: `{ ${Object.keys(fields).join(", ")} }`,
      found: isFormat(spec) ? optionText(spec) : "an array",
      remedy: `write ${of}({ ${first}: … })`,
    });
  requireKnownOptions(of, spec, Object.keys(fields), "TW1033", location);
  for (const [field, value] of Object.entries(spec as object) as [string, unknown][]) {
    const [expected, holds] = fieldKinds[fields[field] ?? "array"];
    if (value === undefined || holds(value)) continue;
    throw new TilewrightError({
      // Of arrays it is the same mistake as one of another shape.
      code: ["array", "named", "operand"].includes(fields[field] ?? "") ? "TW9902" : "TW1008",
      message: `${field} of ${of} must be ${expected}`,
      location,
      expected,
      found: optionText(value),
      remedy: `give ${expected}, or leave ${field} out`,
    });
  }
}

/** Refuses settings that a configuration has not: misspelt, they would be left as they are chosen without a word. */
export function requireSettings<C extends object>(
  of: string,
  configuration: C,
  known: readonly (keyof C & string)[],
  location: Location,
): void {
  requireKnownOptions(`the configuration of ${of}`, configuration, known, "TW9904", location);
}

/** Refuses a configuration of a kernel that has another name now. */
export function refuseOldKernel(of: string, configuration: unknown, location: Location): void {
  if (!isRecord(configuration) || !isReadable(configuration, ["kernel"])) return;
  const what = `the configuration of ${of}`;
  refuseOldValue(what, "kernel", configuration["kernel"], "TW9904", location);
}

export function isFormat(value: unknown): value is DType {
  return Object.values(dtypes).includes(value as DType);
}

function isArray(value: unknown): value is TensorSpec {
  return isOfKind(value, "array");
}

function isOfKind(value: unknown, kind: string): boolean {
  if (typeof value !== "object" || value === null || !isReadable(value, ["kind"])) return false;
  return "kind" in value && value.kind === kind;
}

/** The array that was given, or one of the usual shape where that was only a format. */
export function givenArray(
  name: string,
  of: string,
  given: unknown,
  usual: readonly Size[],
  location: Location,
): TensorSpec {
  if (isArray(given)) return given;
  if (isFormat(given)) return tensor(given, usual);
  throw refused(
    "TW9902",
    `${name} of ${of} is no array`,
    "a dtype, or tensor(dtype, shape)",
    optionText(given),
    location,
  );
}

/** The array that was given; a format alone has no shape. */
export function requiredArray(
  name: string,
  of: string,
  given: unknown,
  location: Location,
): TensorSpec {
  if (isArray(given)) return given;
  throw refused(
    "TW9902",
    `${name} of ${of} is no array`,
    "tensor(dtype, shape)",
    optionText(given),
    location,
  );
}

/** Refuses an array of another shape. */
export function requireShape(
  name: string,
  of: string,
  { shape }: TensorSpec,
  expected: readonly Size[],
  location: Location,
): void {
  const same =
    shape.length === expected.length &&
    shape.every((size, axis) => sameSize(size, expected[axis] ?? -1));
  if (same) return;
  throw refused(
    "TW9902",
    `${name} of ${of} has another shape`,
    shapeText(expected),
    shapeText(shape),
    location,
  );
}

/** An axis from the front, of one that may count from the end. */
export function givenAxis(of: string, axis: unknown, rank: number, location: Location): number {
  const whole = typeof axis === "number" && Number.isInteger(axis);
  if (whole && axis >= -rank && axis < rank) return axis < 0 ? axis + rank : axis;
  throw refused(
    "TW9902",
    `${of} has no such axis`,
    rank === 0 ? "an array with an axis" : `an axis from ${-rank} to ${rank - 1}`,
    optionText(axis),
    location,
  );
}

/** Axes from the front, each named once; all of them by default. */
export function givenAxes(
  of: string,
  axes: number | readonly unknown[] | undefined,
  rank: number,
  location: Location,
): readonly number[] {
  const list = typeof axes === "number" ? [axes] : axes;
  const found = (list ?? Array.from({ length: rank }, (_, axis) => axis)).map((axis) =>
    givenAxis(of, axis, rank, location),
  );
  if (new Set(found).size === found.length) return found;
  throw refused("TW9902", `${of} names an axis twice`, "each once", optionText(axes), location);
}

/** Refuses numbers that are no floats, or too narrow to be computed with. */
export function requireFloat(
  name: string,
  of: string,
  { dtype }: TensorSpec,
  location: Location,
): void {
  if (dtype.kind === "float" && dtype.bits >= 16 && dtype !== dtypes.tf32) return;
  throw refused(
    "TW9901",
    `${name} of ${of} has a format that it does not compute with`,
    "f16, bf16, f32 or f64",
    dtype.name,
    location,
  );
}

/** Refuses formats whose numbers have no order that a GPU compares by. */
export function requireComparable(
  name: string,
  of: string,
  { dtype }: TensorSpec,
  location: Location,
): void {
  if (dtype.kind !== "bool" && (dtype.kind !== "float" || dtype.bits >= 16)) return;
  throw refused(
    "TW9901",
    `${of} does not compare ${name}`,
    "integers, or floats of 16 bits or more",
    dtype.name,
    location,
  );
}

/** Refuses arrays that do not lie by rows. */
export function requireRows(
  name: string,
  of: string,
  { strides }: TensorSpec,
  location: Location,
): void {
  if (strides === undefined) return;
  throw refused(
    "TW9902",
    `${name} of ${of} lies by strides`,
    "an array by rows; copy({ x }) makes one",
    shapeText(strides),
    location,
  );
}
