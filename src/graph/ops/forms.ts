/**
 * Forms of attributes: how the text's attribute becomes the TypeScript value that an op holds, and back.
 * Older files write lists as `dense<…>` tensors, so lists read both.
 *
 *   integers.read(array<i64: 1, 2>)             -> [1, 2]
 *   integers.read(dense<[1, 2]> : tensor<2xi64>) -> [1, 2]
 *   words("comparison_direction", …).read(#stablehlo<comparison_direction LT>) -> "LT"
 */
import {
  arrayAttribute,
  denseAttribute,
  dialectAttribute,
  flagAttribute,
  integerAttribute,
  listAttribute,
  stringAttribute,
  symbolAttribute,
  unitAttribute,
} from "./attribute.ts";
import type { Attribute, AttributeMap } from "./attribute.ts";
import { expandElements, literal } from "./literal.ts";
import type { Literal } from "./literal.ts";
import {
  algorithmFields,
  channelFields,
  dotFields,
  gatherFields,
  raggedDotFields,
  readConvolution,
  readStructure,
  scatterFields,
  writeConvolution,
  writeStructure,
} from "./structures.ts";
import type {
  ChannelHandle,
  ConvolutionNumbers,
  DotAlgorithm,
  DotNumbers,
  GatherNumbers,
  RaggedDotNumbers,
  ScatterNumbers,
  StructureFields,
} from "./structures.ts";
import { readMeshGroups } from "./mesh.ts";
import { sizeOf, tensorType } from "./types.ts";

export interface Form<T> {
  /** What the attribute is, for reports. */
  readonly what: string;
  /** Whether it may be absent, or has a value then; undefined where it has to be there. */
  readonly presence?: "optional" | "default";
  readonly fallback?: T;
  /** What an enumeration has. */
  readonly words?: readonly string[];
  /** Undefined where the attribute is something else. */
  read(attribute: Attribute): T | undefined;
  write(value: T): Attribute;
}

/** A form of an attribute that may be absent. */
export interface OptionalForm<T> extends Form<T> {
  readonly presence: "optional";
}

/** A form of an attribute with a value where it is absent; that value is not printed. */
export interface DefaultForm<T> extends Form<T> {
  readonly presence: "default";
  readonly fallback: T;
}

export function optional<T>(form: Form<T>): OptionalForm<T> {
  return { ...form, presence: "optional" };
}

export function withDefault<T>(form: Form<T>, fallback: T): DefaultForm<T> {
  return { ...form, presence: "default", fallback };
}

/** A whole number that a number of ours is; undefined where it would be another. */
function exact(value: bigint): number | undefined {
  const number = Number(value);
  return Number.isSafeInteger(number) ? number : undefined;
}

function allExact(values: readonly bigint[]): readonly number[] | undefined {
  const numbers = values.map(exact);
  return numbers.every((each) => each !== undefined) ? Object.freeze(numbers) : undefined;
}

function integerOf(type: string): Form<number> {
  return {
    what: `an integer such as \`1 : ${type}\``,
    read: (attribute) => (attribute.kind === "integer" ? exact(attribute.value) : undefined),
    write: (value) => integerAttribute(value, type),
  };
}

export const integer = integerOf("i64");
export const integer32 = integerOf("i32");

export const flag: Form<boolean> = {
  what: "true or false",
  read: (attribute) => (attribute.kind === "flag" ? attribute.value : undefined),
  write: flagAttribute,
};

export const unit: Form<boolean> = {
  what: "nothing after its name",
  read: (attribute) => (attribute.kind === "unit" ? true : undefined),
  write: () => unitAttribute,
};

export const text: Form<string> = {
  what: "a quoted string",
  read: (attribute) => (attribute.kind === "string" ? attribute.value : undefined),
  write: stringAttribute,
};

export const symbol: Form<string> = {
  what: "a name such as @f",
  read: (attribute) => (attribute.kind === "symbol" ? attribute.path.join("::@") : undefined),
  write: symbolAttribute,
};

export const attribute: Form<Attribute> = {
  what: "an attribute",
  read: (value) => value,
  write: (value) => value,
};

export const dictionary: Form<AttributeMap> = {
  what: "a dictionary",
  read: (value) => (value.kind === "dictionary" ? value.entries : undefined),
  write: (entries) => ({ kind: "dictionary", entries }),
};

/** The value of a constant; of a type that is carried as text, the text. */
export const value: Form<Literal | Attribute> = {
  what: "a value such as `dense<1.0> : tensor<2xf32>`",
  read: (found) =>
    found.kind === "dense" ? found.literal : found.kind === "raw" ? found : undefined,
  write: (found) => ("kind" in found ? found : denseAttribute(found)),
};

export const literalForm: Form<Literal> = {
  what: value.what,
  read: (found) => (found.kind === "dense" ? found.literal : undefined),
  write: denseAttribute,
};

/** A finite floating-point number as a decimal, kept exactly as an f64. */
export const real: Form<number> = {
  what: "a number such as `1.0 : f32`",
  read(found) {
    const number = found.kind === "float" && !found.text.includes("x") ? Number(found.text) : NaN;
    return Number.isFinite(number) ? number : undefined;
  },
  write(number) {
    const digits = Math.abs(number)
      .toExponential()
      .replace(/^(\d)e/, "$1.0e");
    const isNegative = number < 0 || Object.is(number, -0);
    return Object.freeze({ kind: "float", text: isNegative ? `-${digits}` : digits, type: "f64" });
  },
};

export function list<T>(item: Form<T>): Form<readonly T[]> {
  return {
    what: `a list of ${item.what}`,
    read(found) {
      if (found.kind !== "list") return undefined;
      const items = found.items.map((each) => item.read(each));
      return items.every((each) => each !== undefined) ? Object.freeze(items) : undefined;
    },
    write: (items) => listAttribute(items.map((each) => item.write(each))),
  };
}

/** A list that one element stands for is written out: a short text could make a long one. */
const longestList = 2 ** 20;

/** The numbers of a list of `rank` axes; undefined where it is none. */
function numbersOf(found: Attribute, rank: number): readonly number[] | undefined {
  if (found.kind !== "dense" || found.literal.type.shape.length !== rank) return undefined;
  return sizeOf(found.literal.type.shape) > longestList ? undefined : allNumbersOf(found.literal);
}

function allNumbersOf(found: Literal): readonly number[] | undefined {
  const data = expandElements(found);
  return data instanceof BigInt64Array || data instanceof BigUint64Array
    ? allExact(Array.from(data))
    : Object.freeze(Array.from(data, Number));
}

function wholeNumbers(items: readonly string[]): readonly number[] | undefined {
  return items.every((item) => /^-?\d+$/.test(item)) ? allExact(items.map(BigInt)) : undefined;
}

export const integers: Form<readonly number[]> = {
  what: "a list of integers such as `array<i64: 1, 2>`",
  read(found) {
    if (found.kind === "array") return wholeNumbers(found.items);
    if (found.kind === "list") return list(integer).read(found);
    return numbersOf(found, 1);
  },
  write: (values) => arrayAttribute("i64", values.map(String)),
};

export const flags: Form<readonly boolean[]> = {
  what: "a list of flags such as `array<i1: true>`",
  read(found) {
    if (found.kind === "array")
      return found.items.every((item) => item === "true" || item === "false")
        ? Object.freeze(found.items.map((item) => item === "true"))
        : undefined;
    if (found.kind !== "dense" || found.literal.type.element !== "i1") return undefined;
    const numbers = numbersOf(found, found.literal.type.shape.length);
    return numbers && Object.freeze(numbers.map((each) => each !== 0));
  },
  write: (values) => arrayAttribute("i1", values.map(String)),
};

/** A matrix of integers: rows of equal length. */
export const rows: Form<readonly (readonly number[])[]> = {
  what: "rows of integers such as `dense<[[0, 1]]> : tensor<1x2xi64>`",
  read(found) {
    const all = numbersOf(found, 2);
    if (all === undefined || found.kind !== "dense") return undefined;
    const [count = 0, width = 0] = found.literal.type.shape;
    return Object.freeze(
      Array.from({ length: count }, (_, row) =>
        Object.freeze(all.slice(row * width, (row + 1) * width)),
      ),
    );
  },
  write(values) {
    const type = tensorType("i64", [values.length, values[0]?.length ?? 0]);
    return denseAttribute(literal(type, BigInt64Array.from(values.flat(), BigInt)));
  },
};

/** Groups of processes: as rows, or as axes of a mesh that the processes vary along. */
export const groups: Form<readonly (readonly number[])[]> = {
  what: rows.what,
  read: (found) =>
    found.kind === "dialect" && found.name === "stablehlo.replica_group_mesh_axes"
      ? readMeshGroups(found.body ?? "")
      : rows.read(found),
  write: (values) => rows.write(values),
};

/** One of the words of an enumeration of StableHLO. */
export function words<const W extends readonly string[]>(
  mnemonic: string,
  allowed: W,
  dialect = "stablehlo",
): Form<W[number]> & { readonly words: W } {
  return {
    words: allowed,
    what: `#${dialect}<${mnemonic} …> with one of ${allowed.join(", ")}`,
    read(found): W[number] | undefined {
      if (found.kind === "string") return allowed.find((word) => word === found.value);
      if (found.kind !== "dialect") return undefined;
      const spelled =
        found.name === dialect
          ? new RegExp(`^${mnemonic} (\\w+)$`).exec(found.body ?? "")?.[1]
          : found.name === `${dialect}.${mnemonic}`
            ? found.body
            : undefined;
      return allowed.find((word) => word === spelled);
    },
    write: (word) => dialectAttribute(dialect, `${mnemonic} ${word}`),
  };
}

function structure<T extends object>(
  mnemonic: string,
  fields: StructureFields,
  dialect = "stablehlo",
): Form<T> {
  const name = `${dialect}.${mnemonic}`;
  return {
    what: `#${name}<…> with the fields ${Object.keys(fields).join(", ")}`,
    read: (found) =>
      found.kind === "dialect" && found.name === name
        ? readStructure<T>(fields, found.body ?? "")
        : undefined,
    write: (fieldsOf) => dialectAttribute(name, writeStructure(fields, fieldsOf)),
  };
}

export const gatherNumbers = structure<GatherNumbers>("gather", gatherFields);
export const scatterNumbers = structure<ScatterNumbers>("scatter", scatterFields);
export const dotNumbers = structure<DotNumbers>("dot", dotFields);
export const raggedDotNumbers = structure<RaggedDotNumbers>("ragged_dot", raggedDotFields, "chlo");
export const channelHandle = structure<ChannelHandle>("channel_handle", channelFields);
export const dotAlgorithm = structure<DotAlgorithm>("dot_algorithm", algorithmFields);

export const convolutionNumbers: Form<ConvolutionNumbers> = {
  what: "#stablehlo.conv<[b, 0, f]x[0, i, o]->[b, 0, f]>",
  read: (found) =>
    found.kind === "dialect" && found.name === "stablehlo.conv"
      ? readConvolution(found.body ?? "")
      : undefined,
  write: (numbers) => dialectAttribute("stablehlo.conv", writeConvolution(numbers)),
};

export const precisions = list(words("precision", ["DEFAULT", "HIGH", "HIGHEST"]));
