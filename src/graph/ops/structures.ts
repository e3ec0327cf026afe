/**
 * Attributes with fields: the dimension numbers of gathers, scatters, products and convolutions, and the
 * like. Their text is a list of fields in any order; an absent list is empty.
 *
 *   #stablehlo.gather<offset_dims = [2], start_index_map = [0], index_vector_dim = 2>
 *   #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>
 */

export interface GatherNumbers {
  readonly offset_dims: readonly number[];
  readonly collapsed_slice_dims: readonly number[];
  readonly operand_batching_dims: readonly number[];
  readonly start_indices_batching_dims: readonly number[];
  readonly start_index_map: readonly number[];
  readonly index_vector_dim: number;
}

export interface ScatterNumbers {
  readonly update_window_dims: readonly number[];
  readonly inserted_window_dims: readonly number[];
  readonly input_batching_dims: readonly number[];
  readonly scatter_indices_batching_dims: readonly number[];
  readonly scatter_dims_to_operand_dims: readonly number[];
  readonly index_vector_dim: number;
}

export interface DotNumbers {
  readonly lhs_batching_dimensions: readonly number[];
  readonly rhs_batching_dimensions: readonly number[];
  readonly lhs_contracting_dimensions: readonly number[];
  readonly rhs_contracting_dimensions: readonly number[];
}

export interface RaggedDotNumbers extends DotNumbers {
  readonly lhs_ragged_dimensions: readonly number[];
  readonly rhs_group_dimensions: readonly number[];
}

export interface ConvolutionNumbers {
  readonly input_batch_dimension: number;
  readonly input_feature_dimension: number;
  readonly input_spatial_dimensions: readonly number[];
  readonly kernel_input_feature_dimension: number;
  readonly kernel_output_feature_dimension: number;
  readonly kernel_spatial_dimensions: readonly number[];
  readonly output_batch_dimension: number;
  readonly output_feature_dimension: number;
  readonly output_spatial_dimensions: readonly number[];
}

export interface ChannelHandle {
  readonly handle: number;
  readonly type: number;
}

/** Which arithmetic a product uses; the types are names such as `tf32`. */
export interface DotAlgorithm {
  readonly lhs_precision_type: string;
  readonly rhs_precision_type: string;
  readonly accumulation_type: string;
  readonly lhs_component_count: number;
  readonly rhs_component_count: number;
  readonly num_primitive_operations: number;
  readonly allow_imprecise_accumulation: boolean;
}

/** How a field's text becomes its value and back; `absent` is the value of a field that is not there. */
interface FieldForm {
  readonly absent: unknown;
  read(text: string): unknown;
  write(value: unknown): string;
}

/** A whole number, which has one zero. */
export function wholeNumber(text: string): number {
  return Number(text) + 0;
}

const numbersField: FieldForm = {
  absent: Object.freeze([]),
  read(text) {
    if (!/^\[[-\d,\s]*\]$/.test(text)) return undefined;
    const items = text.slice(1, -1).trim();
    const numbers = items === "" ? [] : items.split(",").map(wholeNumber);
    return numbers.every(Number.isSafeInteger) ? Object.freeze(numbers) : undefined;
  },
  write: (value) => `[${(value as readonly number[]).join(", ")}]`,
};
const numberField: FieldForm = {
  absent: 0,
  read: (text) => {
    const number = /^-?\d+$/.test(text) ? wholeNumber(text) : NaN;
    return Number.isSafeInteger(number) ? number : undefined;
  },
  write: String,
};
const wordField: FieldForm = { absent: undefined, read: (text) => text, write: String };
const flagField: FieldForm = {
  absent: false,
  read: (text) => (text === "true" ? true : text === "false" ? false : undefined),
  write: String,
};

/** The fields of a structure in the order in which they are printed. */
export interface StructureFields {
  readonly [name: string]: FieldForm;
}

export const gatherFields: StructureFields = {
  offset_dims: numbersField,
  collapsed_slice_dims: numbersField,
  operand_batching_dims: numbersField,
  start_indices_batching_dims: numbersField,
  start_index_map: numbersField,
  index_vector_dim: numberField,
};
export const scatterFields: StructureFields = {
  update_window_dims: numbersField,
  inserted_window_dims: numbersField,
  input_batching_dims: numbersField,
  scatter_indices_batching_dims: numbersField,
  scatter_dims_to_operand_dims: numbersField,
  index_vector_dim: numberField,
};
export const dotFields: StructureFields = {
  lhs_batching_dimensions: numbersField,
  rhs_batching_dimensions: numbersField,
  lhs_contracting_dimensions: numbersField,
  rhs_contracting_dimensions: numbersField,
};
export const raggedDotFields: StructureFields = {
  ...dotFields,
  lhs_ragged_dimensions: numbersField,
  rhs_group_dimensions: numbersField,
};
export const channelFields: StructureFields = { handle: numberField, type: numberField };
export const algorithmFields: StructureFields = {
  lhs_precision_type: wordField,
  rhs_precision_type: wordField,
  accumulation_type: wordField,
  lhs_component_count: numberField,
  rhs_component_count: numberField,
  num_primitive_operations: numberField,
  allow_imprecise_accumulation: flagField,
};
const convolutionFields: StructureFields = {
  input_batch_dimension: numberField,
  input_feature_dimension: numberField,
  input_spatial_dimensions: numbersField,
  kernel_input_feature_dimension: numberField,
  kernel_output_feature_dimension: numberField,
  kernel_spatial_dimensions: numbersField,
  output_batch_dimension: numberField,
  output_feature_dimension: numberField,
  output_spatial_dimensions: numbersField,
};

/** The pieces of `text` between commas that no bracket encloses. */
function splitTopLevel(text: string): readonly string[] {
  const pieces: string[] = [];
  let depth = 0;
  let piece = "";
  for (const character of text) {
    if ("[<({".includes(character)) depth++;
    else if ("]>)}".includes(character)) depth--;
    if (character === "," && depth === 0) {
      pieces.push(piece.trim());
      piece = "";
    } else piece += character;
  }
  if (piece.trim() !== "") pieces.push(piece.trim());
  return pieces;
}

/** The structure that a text spells, or undefined where it does not. */
export function readStructure<T>(fields: StructureFields, body: string): T | undefined {
  const found: { [name: string]: unknown } = {};
  for (const piece of splitTopLevel(body)) {
    const equals = piece.indexOf("=");
    const name = piece.slice(0, equals).trim();
    const form = Object.hasOwn(fields, name) ? fields[name] : undefined;
    if (equals < 0 || form === undefined || Object.hasOwn(found, name)) return undefined;
    const value = form.read(piece.slice(equals + 1).trim());
    if (value === undefined) return undefined;
    found[name] = value;
  }
  for (const [name, { absent }] of Object.entries(fields)) {
    if (Object.hasOwn(found, name)) continue;
    if (absent === undefined) return undefined;
    found[name] = absent;
  }
  return Object.freeze(found) as T;
}

/** The fields of a structure as text, without those that are as if absent. */
export function writeStructure(fields: StructureFields, value: object): string {
  return Object.entries(value)
    .map(([name, field]: [string, unknown]) => ({ name, field, form: fields[name] }))
    .filter(({ form, field }) => form !== undefined && form.write(field) !== textOfAbsent(form))
    .map(({ name, field, form }) => `${name} = ${form?.write(field) ?? ""}`)
    .join(", ");
}

function textOfAbsent(form: FieldForm): string | undefined {
  // A number is printed even where it is 0, as StableHLO does.
  return Array.isArray(form.absent) ? form.write(form.absent) : undefined;
}

type Side = "input" | "kernel" | "output";
const letters: { readonly [S in Side]: readonly (readonly [string, keyof ConvolutionNumbers])[] } =
  {
    input: [
      ["b", "input_batch_dimension"],
      ["f", "input_feature_dimension"],
    ],
    kernel: [
      ["i", "kernel_input_feature_dimension"],
      ["o", "kernel_output_feature_dimension"],
    ],
    output: [
      ["b", "output_batch_dimension"],
      ["f", "output_feature_dimension"],
    ],
  };
const spatialFields = {
  input: "input_spatial_dimensions",
  kernel: "kernel_spatial_dimensions",
  output: "output_spatial_dimensions",
} as const;

function readSide(side: Side, text: string): { readonly [name: string]: unknown } | undefined {
  const names = text.split(",").map((name) => name.trim());
  const found: { [name: string]: unknown } = {};
  for (const [letter, field] of letters[side]) {
    const position = names.indexOf(letter);
    if (position < 0) return undefined;
    found[field] = position;
  }
  const spatial = names
    .map((name, position) => ({ name, position }))
    .filter(({ name }) => /^\d+$/.test(name))
    .sort((left, right) => Number(left.name) - Number(right.name));
  if (spatial.some(({ name }, order) => Number(name) !== order)) return undefined;
  const known = spatial.length + letters[side].length;
  if (known + names.filter((name) => name === "?").length !== names.length) return undefined;
  found[spatialFields[side]] = Object.freeze(spatial.map(({ position }) => position));
  return found;
}

/** `[b, 0, f]x[0, i, o]->[b, 0, f]`, or `raw` and the fields. */
export function readConvolution(body: string): ConvolutionNumbers | undefined {
  const raw = /^raw\b(.*)$/s.exec(body.trim())?.[1];
  if (raw !== undefined) return readStructure<ConvolutionNumbers>(convolutionFields, raw);
  const sides = /^\[([^\]]*)\]\s*x\s*\[([^\]]*)\]\s*->\s*\[([^\]]*)\]$/.exec(body.trim());
  if (sides === null) return undefined;
  const input = readSide("input", sides[1] ?? "");
  const kernel = readSide("kernel", sides[2] ?? "");
  const output = readSide("output", sides[3] ?? "");
  if (input === undefined || kernel === undefined || output === undefined) return undefined;
  return Object.freeze({ ...input, ...kernel, ...output }) as unknown as ConvolutionNumbers;
}

function writeSide(side: Side, numbers: ConvolutionNumbers): string | undefined {
  const names: string[] = [];
  for (const [letter, field] of letters[side]) names[numbers[field] as number] = letter;
  for (const [order, position] of numbers[spatialFields[side]].entries())
    names[position] = String(order);
  const rank = letters[side].length + numbers[spatialFields[side]].length;
  const complete = names.length === rank && Array.from(names).every((name) => name !== undefined);
  return complete ? `[${names.join(", ")}]` : undefined;
}

/** The short text; the raw one where dimensions are missing or named twice. */
export function writeConvolution(numbers: ConvolutionNumbers): string {
  const input = writeSide("input", numbers);
  const kernel = writeSide("kernel", numbers);
  const output = writeSide("output", numbers);
  if (input === undefined || kernel === undefined || output === undefined)
    return `raw ${writeStructure(convolutionFields, numbers)}`;
  return `${input}x${kernel}->${output}`;
}
