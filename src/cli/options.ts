/** Options that several commands have, and how their values are read. */
import { Argument, InvalidArgumentError, Option } from "commander";
import { matmulPrecisions } from "../graph/ops/matmul-precision.ts";
import { deviceNames } from "../runtime/open-options.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import { unknownLocation } from "../support/location.ts";
import { defaultTarget, targets } from "../targets/target.ts";
import type { Target, TargetName } from "../targets/target.ts";
import type { Dimensions } from "./random-inputs.ts";

/** What a kernel can be compiled to. */
export const emitted = ["ir", "placement", "ptx", "cubin"] as const;
export type Emitted = (typeof emitted)[number];

export const cacheActions = ["list", "clear", "path"] as const;
export type CacheAction = (typeof cacheActions)[number];

export function fileArgument(): Argument {
  return new Argument("<file>", "a TypeScript or JavaScript module");
}

export function jsonOption(): Option {
  return new Option("--json", "print one JSON document on standard output");
}

export function kernelOption(description: string): Option {
  return new Option("--kernel <name>", description);
}

export function seedOption(description: string): Option {
  return new Option("--seed <number>", description).argParser(parseCount).default(1);
}

export function matmulPrecisionOption(): Option {
  return new Option(
    "--matmul-precision <name>",
    "how a device multiplies f32 in products of a program that ask for nothing: f32 unless given",
  ).choices(matmulPrecisions);
}

export function dumpOption(): Option {
  return new Option("--dump <folder>", "write IR after every pass, layouts, PTX and machine code");
}

/** Limits of each launch, or of each program, for what may not end. */
export function limitOptions(): readonly [timeLimit: Option, stepLimit: Option] {
  return [
    new Option(
      "--time-limit <ms>",
      "stop a launch or a program after so many milliseconds",
    ).argParser(parseCount),
    new Option("--step-limit <count>", "stop a launch or a program after so many steps").argParser(
      parsePositive,
    ),
  ];
}

/** What `limitOptions` gives. */
export interface LimitOptions {
  readonly timeLimit?: number;
  readonly stepLimit?: number;
}

export function targetOption(): Option {
  return new Option("--target <name>", "the GPU whose limits hold")
    .argParser(parseTarget)
    .default(defaultTarget, defaultTarget.name);
}

export function targetsOption(): Option {
  return new Option("--target <names>", "the GPUs to compile for, with commas between")
    .argParser(parseTargets)
    .default([defaultTarget], defaultTarget.name);
}

/** Timelines are drawn of a few tiles, since nobody could read more. */
export const timelineExtent = 512;

export function dimensionOption(extent = 1000): Option {
  return new Option("--dim <name=extent>", "the extent of a named dimension; may be repeated")
    .argParser(parseDimension)
    .default({}, `${extent} each, rounded up to the promised multiple`);
}

export function parseTarget(text: string): Target {
  const names = Object.keys(targets) as readonly TargetName[];
  const named = names.find((name) => name === text);
  if (named !== undefined) return targets[named];
  throw new InvalidArgumentError(`${whyNot(text)} Allowed choices are ${names.join(", ")}.`);
}

export function parseTargets(text: string): readonly Target[] {
  return [...new Set(text.split(",").map((name) => parseTarget(name.trim())))];
}

/** What a GPU that is no target lacks. */
function whyNot(name: string): string {
  const [, digits, suffix = ""] = /^sm_(\d+)([a-z]?)$/.exec(name) ?? [];
  if (digits === undefined) return "It must be the name of a target.";
  if (Number(digits) < 80) return `${name} has no cp.async, which kernels are made with.`;
  const own = `${name}a`;
  if (suffix === "" && Object.hasOwn(targets, own))
    return `${name} stands for GPUs without ${acceleratedOnly[own] ?? "the instructions"} of ${own}.`;
  return "PTX for sm_80 runs on every later GPU.";
}

/** What only targets that end in "a" have. */
const acceleratedOnly: { readonly [target: string]: string } = {
  sm_90a: "wgmma and setmaxnreg",
  sm_100a: "tcgen05 and setmaxnreg",
  sm_103a: "tcgen05 and setmaxnreg",
  sm_120a: "setmaxnreg",
  sm_121a: "setmaxnreg",
};

/** A whole number that is exact, from `least` up. */
export function parseFrom(least: number): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (/^\d+$/.test(text) && Number.isSafeInteger(value) && value >= least) return value;
    throw new InvalidArgumentError(`It must be a whole number from ${least} up.`);
  };
}

export const parseCount = parseFrom(0);
const parsePositive = parseFrom(1);

/** Extents with x between them. */
export function parseShape(text: string): readonly number[] {
  const extents = text.split("x").map(Number);
  if (/^\d+(x\d+)*$/.test(text) && extents.every((extent) => extent >= 1)) return extents;
  throw new InvalidArgumentError("It must look like 64x16.");
}

/** Extents along x, y and z; 1 where nothing is said. */
export function parseExtents(text: string): readonly [number, number?, number?] {
  const [x, ...others] = text.split(/[,x]/).map(Number);
  if (
    x !== undefined &&
    /^\d+([,x]\d+){0,2}$/.test(text) &&
    [x, ...others].every((each) => each > 0)
  )
    return [x, ...others] as [number, number?, number?];
  throw new InvalidArgumentError("It must look like 128 or 16,8,1.");
}

export function parseVectorBytes(text: string): number {
  const count = Number(text);
  if (["1", "2", "4", "8", "16"].includes(text)) return count;
  throw new InvalidArgumentError("It must be 1, 2, 4, 8 or 16.");
}

export function parseDimension(text: string, before: Dimensions): Dimensions {
  const [, name, extent] = /^([^=]+)=(.*)$/.exec(text) ?? [];
  if (name === undefined || extent === undefined)
    throw new InvalidArgumentError("It must look like n=1000.");
  if (Object.hasOwn(before, name)) throw new InvalidArgumentError(`${name} is given twice.`);
  const count = parseCount(extent);
  if (count >= 2 ** 31) throw new InvalidArgumentError("It must be below 2^31.");
  return { ...before, [name]: count };
}

/** Sizes with commas between them, such as m=4096,n=4096; each adds a case. */
export function parseCase(text: string, before: readonly Dimensions[] = []): readonly Dimensions[] {
  let sizes: Dimensions = {};
  for (const part of text.split(",")) sizes = parseDimension(part.trim(), sizes);
  return [...before, sizes];
}

/** The examples below a command's help. */
export function examples(rows: readonly (readonly [command: string, purpose: string])[]): string {
  const width = Math.max(...rows.map(([command]) => command.length));
  const lines = rows.map(([command, purpose]) => `  ${command.padEnd(width)}  ${purpose}`);
  return ["\nExamples:", ...lines].join("\n");
}

/** The evaluator runs no kernels. */
export function kernelsOnEvaluator(file: string): TilewrightError {
  return new TilewrightError({
    code: "TW5013",
    message: `${file} is no program of StableHLO, which the evaluator runs`,
    location: unknownLocation,
    expected: deviceNames.map((name) => `--device ${name}`).join(" or "),
    found: "--device evaluator",
  });
}
