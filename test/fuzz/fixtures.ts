/**
 * Failures that were found, as files: how to run it, then the kernel.
 *
 *   {"target":"sm_90a","schedule":"random","seed":17,"dimensions":{"n":9},"placement":5}
 *   kernel @carries …
 */
import { dtypes } from "../../src/formats/dtype.ts";
import type { DTypeName } from "../../src/formats/dtype.ts";
import { fromNumbers } from "../../src/formats/hostarray.ts";
import type { HostArray } from "../../src/formats/hostarray.ts";
import { parseModule } from "../../src/ir/parser/parser.ts";
import { printKernel } from "../../src/ir/printer.ts";
import { elementsText } from "./data.ts";
import type { Subject } from "./subjects.ts";

/** Numbers that JSON has not, as text. */
function writtenNumber(value: unknown): unknown {
  if (typeof value === "bigint") return `${value}n`;
  if (typeof value !== "number" || (Number.isFinite(value) && !Object.is(value, -0))) return value;
  return `#${Object.is(value, -0) ? "-0" : value}`;
}

function readNumber(value: unknown): unknown {
  if (typeof value !== "string") return value;
  if (/^-?\d+n$/.test(value)) return BigInt(value.slice(0, -1));
  return value.startsWith("#") ? Number(value.slice(1)) : value;
}

/** An array by its format, its shape and its elements as text. */
type WrittenArray = readonly [DTypeName, readonly number[], string];

interface Header extends Omit<Subject, "kernel" | "data"> {
  readonly data?: { readonly [name: string]: WrittenArray };
}

function writtenArray([name, array]: readonly [string, HostArray]): readonly [
  string,
  WrittenArray,
] {
  return [name, [array.dtype.name, array.shape, elementsText(array)]];
}

function readArray([name, [dtype, shape, text]]: readonly [string, WrittenArray]): readonly [
  string,
  HostArray,
] {
  const items = text === "" ? [] : text.split(" ");
  const isWide = dtype === "i64" || dtype === "u64";
  const values = items.map((item) => (isWide ? BigInt(item) : Number(item)));
  return [name, fromNumbers(dtypes[dtype], shape, values)];
}

export function fixtureText(subject: Subject): string {
  const { kernel, target, schedule, seed, dimensions, scalars, data, placement } = subject;
  const written = data && Object.fromEntries(Object.entries(data).map(writtenArray));
  const header = { target, schedule, seed, dimensions, scalars, data: written, placement };
  const text = JSON.stringify(header, (_, value: unknown) => writtenNumber(value));
  return `${text}\n${printKernel(kernel)}\n`;
}

export function fixtureOf(text: string): Subject {
  const end = text.indexOf("\n");
  const header = JSON.parse(text.slice(0, end), (_, value: unknown) => readNumber(value)) as Header;
  const [kernel] = parseModule(text.slice(end + 1)).kernels;
  if (kernel === undefined) throw new Error("the fixture has no kernel");
  const { data, ...others } = header;
  const read = data && Object.fromEntries(Object.entries(data).map(readArray));
  return { ...others, data: read, kernel };
}
