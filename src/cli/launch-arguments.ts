/**
 * What each `--arg` of `tilewright emulate` says; `launch-values.ts` makes values of it.
 *
 *   1024                        a number, by the parameter's type
 *   f32:0.5                     a number of a format, for bits such as .b32
 *   null                        a pointer to nothing
 *   f32[1024]                   an array whose contents are undefined: an output
 *   f32[64,64]:random           an array of seeded random numbers; also :zeros
 *   f32[1024]:values.bin        an array from a file, as it lies in memory
 *   map:64x8,swizzle=128:bf16[64,256]:random      a tensor map of an array, its box innermost first
 *   bytes:settings.bin          a structure by value, from a file
 *   name=…                      any of them with a name for reports
 */
import { InvalidArgumentError } from "commander";
import type { TensorMapSettings } from "../emulator/api/index.ts";
import { dtypes } from "../formats/dtype.ts";
import type { DType } from "../formats/dtype.ts";

export interface ArrayArgument {
  readonly kind: "array";
  readonly dtype: DType;
  readonly shape: readonly number[];
  /** Undefined where the contents are. */
  readonly contents: "random" | "zeros" | { readonly path: string } | undefined;
  /** Of an array that is handed over as a tensor map. */
  readonly map: TensorMapSettings | undefined;
}

type Argument =
  | ArrayArgument
  | { readonly kind: "scalar"; readonly dtype: DType | undefined; readonly value: number | bigint }
  | { readonly kind: "null" }
  | { readonly kind: "bytes"; readonly path: string };

export type LaunchArgument = Argument & { readonly name: string | undefined };

const numeral = /^[+-]?(?:\d+\.?\d*(?:e[+-]?\d+)?|\.\d+(?:e[+-]?\d+)?|0x[\da-f]+|inf|nan)$/i;

export function parseArgument(
  text: string,
  before: readonly LaunchArgument[] = [],
): readonly LaunchArgument[] {
  const [, name, rest = text] = /^([A-Za-z_]\w*)=(.+)$/.exec(text) ?? [];
  const parsed = parseValue(rest);
  if (parsed !== undefined) return [...before, { ...parsed, name }];
  throw new InvalidArgumentError(
    'It must look like 1024, f32:0.5, null, "f32[1024]" (an output), "f32[1024]:random", ' +
      '"f32[1024]:zeros", "f32[1024]:values.bin", "map:64x8,swizzle=128:bf16[64,256]:random" or ' +
      "bytes:values.bin.",
  );
}

function parseValue(text: string): Argument | undefined {
  if (text === "null") return { kind: "null" };
  if (numeral.test(text)) return { kind: "scalar", dtype: undefined, value: numberOf(text) };
  const [, path] = /^bytes:(.+)$/.exec(text) ?? [];
  if (path !== undefined) return { kind: "bytes", path };
  const [, format = "", number = ""] = /^(\w+):(.+)$/.exec(text) ?? [];
  const dtype = dtypeNamed(format);
  if (dtype !== undefined)
    return numeral.test(number) ? { kind: "scalar", dtype, value: numberOf(number) } : undefined;
  const [, box, options = "", mapped] = /^map:(\d+(?:x\d+)*)((?:,\w+=\w+)*):(.+)$/.exec(text) ?? [];
  if (box === undefined || mapped === undefined) return parseArray(text, undefined);
  const map = parseMap(box, options);
  return map === undefined ? undefined : parseArray(mapped, map);
}

function parseArray(text: string, map: TensorMapSettings | undefined): ArrayArgument | undefined {
  const [, format = "", extents = "", contents] =
    /^(\w+)\[(\d+(?:[,x]\d+)*)\](?::(.+))?$/.exec(text) ?? [];
  const dtype = dtypeNamed(format);
  if (dtype === undefined) return undefined;
  const shape = extents.split(/[,x]/).map(Number);
  const isWord = contents === undefined || contents === "random" || contents === "zeros";
  return { kind: "array", dtype, shape, contents: isWord ? contents : { path: contents }, map };
}

function parseMap(box: string, options: string): TensorMapSettings | undefined {
  const given = new Map(
    options
      .split(",")
      .slice(1)
      .map((option) => option.split("=") as [string, string]),
  );
  const swizzle = ([0, 32, 64, 128] as const).find(
    (width) => String(width) === (given.get("swizzle") ?? "0"),
  );
  const fill = (["zero", "nan"] as const).find((name) => name === (given.get("fill") ?? "zero"));
  const known = [...given.keys()].every((name) => name === "swizzle" || name === "fill");
  if (swizzle === undefined || fill === undefined || !known) return undefined;
  return { box: box.split("x").map(Number), swizzle, fill };
}

function dtypeNamed(name: string): DType | undefined {
  return Object.values(dtypes).find((dtype) => dtype.name === name);
}

function numberOf(text: string): number | bigint {
  if (/^[+-]?(?:\d+|0x[\da-f]+)$/i.test(text)) {
    const digits = BigInt(text.replace(/^[+-]/, ""));
    return text.startsWith("-") ? -digits : digits;
  }
  const [, sign = "", word = ""] = /^([+-]?)(.*)$/.exec(text.toLowerCase()) ?? [];
  const magnitude = word === "inf" ? Infinity : Number(word);
  return sign === "-" ? -magnitude : magnitude;
}
