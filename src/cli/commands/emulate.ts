/**
 * `tilewright emulate`: runs an entry of a PTX file, whoever compiled it, and prints what the checks find,
 * what was executed, and what the kernel wrote. Without a launch it lists the entries.
 *
 *   $ tilewright emulate axpy.ptx --grid 4 --block 256 --arg "x=f32[1000]:random" --arg "out=f32[1000]" --arg 1000
 *   axpy on sm_90a, 4 blocks of 256 lanes, seed 1: no findings
 *   20400 lane instructions, 640 warp instructions, 12 ms
 *
 *   out f32[1000]
 *   [0.98, -1.2, 0.1, …, 2.1, 0.4, -0.7]
 */
import { join } from "node:path";
import { Emulator, TilewrightError } from "../../emulator/api/index.ts";
import type {
  EmulatedModule,
  EmulationCounters,
  Entry,
  EntryParameter,
  LaunchSettings,
} from "../../emulator/api/index.ts";
import { formatArray, toElements } from "../../formats/hostarray.ts";
import type { HostArray } from "../../formats/hostarray.ts";
import { readElement } from "../../formats/values.ts";
import { unknownLocation } from "../../support/location.ts";
import { Random } from "../../support/random.ts";
import type { Target } from "../../targets/target.ts";
import { makeFolder, readFile, writeFile } from "../files.ts";
import type { LaunchArgument } from "../launch-arguments.ts";
import { prepareArguments } from "../launch-values.ts";
import type { LaunchArray } from "../launch-values.ts";
import { formatTable, formatTime } from "../output.ts";
import type { Output } from "../output.ts";

type Triple = readonly [x: number, y?: number, z?: number];

export interface EmulateSettings {
  readonly file: string;
  readonly entry: string | undefined;
  readonly grid: Triple | undefined;
  readonly block: Triple | undefined;
  readonly cluster: number | undefined;
  readonly shared: number;
  readonly arguments: readonly LaunchArgument[];
  readonly seed: number;
  readonly checks: boolean;
  readonly target: Target | undefined;
  readonly timeLimit?: number;
  readonly stepLimit?: number;
  /** How many elements of each array to print, from the first; a summary where undefined. */
  readonly print: number | undefined;
  /** The folder for what the kernel wrote. */
  readonly out: string | undefined;
}

export function emulateCommand(settings: EmulateSettings, output: Output): number {
  const { file, grid, block, arguments: given } = settings;
  const emulator = new Emulator();
  const module = emulator.load(readText(file), file);
  const isLaunch = grid !== undefined || block !== undefined || given.length > 0;
  return isLaunch
    ? launchEntry(emulator, module, settings, output)
    : listEntries(module, settings, output);
}

function readText(path: string): string {
  return new TextDecoder().decode(readFile(path, "a file of PTX"));
}

/* ---- what there is ---- */

function listEntries(
  module: EmulatedModule,
  { file, entry: name }: EmulateSettings,
  output: Output,
): number {
  const entries = name === undefined ? module.entries : [module.entry(name)];
  output.line(`${file}: PTX ${module.version} for ${module.target}`);
  for (const entry of entries) {
    output.line();
    output.line(output.bold(entry.name));
    for (const text of requirements(entry)) output.line(`  ${text}`);
    const rows = entry.parameters.map((parameter) => [
      `  ${parameter.name}`,
      typeText(parameter),
      `${parameter.bytes}`,
      exampleOf(parameter),
    ]);
    if (rows.length > 0)
      for (const line of formatTable([["  parameter", "type", "bytes", "for example"], ...rows]))
        output.line(line);
    output.line(`  run it: ${launchExample(file, entry)}`);
  }
  if (entries.length === 0) output.line("it has no entry to launch");
  output.document({ file, version: module.version, target: module.target, entries });
  return 0;
}

function requirements(entry: Entry): readonly string[] {
  const { requiredThreads, maxThreads, requiredCluster } = entry;
  return [
    ...(requiredThreads === undefined ? [] : [`blocks of ${requiredThreads.join(" × ")} threads`]),
    ...(maxThreads === undefined ? [] : [`blocks of at most ${maxThreads.join(" × ")} threads`]),
    ...(requiredCluster === undefined ? [] : [`clusters of ${requiredCluster} blocks`]),
  ];
}

function typeText({ type, count, vector }: EntryParameter): string {
  const array = count === undefined ? "" : `[${count}]`;
  return `${vector === undefined ? "" : `.v${vector} `}.${type}${array}`;
}

function exampleOf({ type, count, vector, bytes }: EntryParameter): string {
  if (count !== undefined || vector !== undefined)
    return bytes === 128 ? "map:64x8,swizzle=128:bf16[64,256]:random" : "bytes:values.bin";
  if (bytes === 8 && !type.startsWith("f")) return "f32[1024]:random";
  return type.startsWith("f") || type.startsWith("bf") ? "0.5" : "1024";
}

function launchExample(file: string, entry: Entry): string {
  const block = entry.requiredThreads?.join(",") ?? "128";
  const cluster = entry.requiredCluster ?? 1;
  const given = entry.parameters.map((parameter) => {
    const example = exampleOf(parameter);
    // Brackets mean something to some shells.
    return example.includes("[") ? ` --arg "${example}"` : ` --arg ${example}`;
  });
  return `tilewright emulate ${file} --entry ${entry.name} --grid ${cluster} --block ${block}${given.join("")}`;
}

/* ---- a launch ---- */

interface Outcome {
  readonly findings: readonly TilewrightError[];
  /** What lanes printed, lines of it in one piece. */
  readonly printed: string;
  /** Undefined where the kernel did not reach its end. */
  readonly counters: EmulationCounters | undefined;
  readonly milliseconds: number;
}

function launchEntry(
  emulator: Emulator,
  module: EmulatedModule,
  settings: EmulateSettings,
  output: Output,
): number {
  const { file, seed, checks } = settings;
  const entry = module.entry(settings.entry);
  const names = entry.parameters.map(({ name }) => name);
  const random = new Random(seed);
  const { values, arrays } = prepareArguments(emulator, settings.arguments, names, random);
  const launch = launchOf(entry, settings);
  const { timeLimit, stepLimit } = settings;
  const limits = {
    ...(timeLimit !== undefined && { timeLimit }),
    ...(stepLimit !== undefined && { stepLimit }),
  };
  const outcome = run(() => emulator.launch(module, { ...launch, ...limits, parameters: values }));
  const written = arrays
    .map((array) => ({ ...array, after: emulator.download(array.array) }))
    .filter(({ before, after }) => before === undefined || differs(before, after));
  const { findings, printed, counters } = outcome;
  if (printed !== "") output.line(printed);
  for (const finding of findings) output.line(`${finding.message}\n`);
  const found = findings.length === 0 ? "no findings" : `findings: ${findings.length}`;
  output.line(`${shapeText(entry, module, launch, settings)}: ${found}`);
  output.line(countersText(outcome));
  const outputs = written.map((each) => outputOf(emulator, each, settings));
  for (const { text } of outputs) output.line(`\n${text}`);
  if (settings.out !== undefined) writeOutputs(settings.out, written, output);
  output.document({
    file,
    entry: entry.name,
    seed,
    checks,
    clean: findings.length === 0,
    findings,
    printed,
    counters: counters ?? null,
    outputs: outputs.map(({ document }) => document),
  });
  return findings.length === 0 ? 0 : 1;
}

function launchOf(entry: Entry, settings: EmulateSettings): LaunchSettings {
  const { grid, cluster, shared, seed, checks, target } = settings;
  const [x, y = 1, z = 1] = settings.block ?? entry.requiredThreads ?? [];
  if (x === undefined)
    throw new TilewrightError({
      code: "TW8003",
      message: `${entry.name} does not say how many threads its blocks have`,
      location: unknownLocation,
      expected: "--block with the threads of a block",
      found: "neither --block nor .reqntid",
      remedy: "add --block 128, or as many threads as the kernel was written for",
    });
  return {
    entry: entry.name,
    blocks: grid ?? [cluster ?? entry.requiredCluster ?? 1],
    threads: [x, y, z],
    ...(cluster !== undefined && { cluster }),
    sharedBytes: shared,
    seed,
    checks,
    ...(target !== undefined && { target }),
  };
}

/** The first code that is about the kernel; those before are about the launch, or the file. */
const firstFinding = "TW8010";

function run(launch: () => ReturnType<Emulator["launch"]>): Outcome {
  const start = performance.now();
  try {
    const { findings, printed, counters } = launch();
    const milliseconds = performance.now() - start;
    return { findings, printed: printed.join(""), counters, milliseconds };
  } catch (error) {
    if (!(error instanceof TilewrightError) || error.code < firstFinding) throw error;
    const milliseconds = performance.now() - start;
    return { findings: [error], printed: "", counters: undefined, milliseconds };
  }
}

function shapeText(
  { name }: Entry,
  module: EmulatedModule,
  { blocks, threads: lanes }: LaunchSettings,
  { seed, target }: EmulateSettings,
): string {
  const extents = (value: LaunchSettings["blocks"]): string =>
    (typeof value === "number" ? [value] : value.slice(0, 1 + lastAbove(value))).join(" × ");
  const grid = extents(blocks);
  const many = grid === "1" ? "1 block" : `${grid} blocks`;
  return `${name} on ${target?.name ?? module.target}, ${many} of ${extents(lanes)} threads, seed ${seed}`;
}

/** The last axis that has more than one. */
function lastAbove(values: Triple): number {
  return Math.max(
    0,
    values.findLastIndex((value) => (value ?? 1) > 1),
  );
}

function countersText({ counters, milliseconds }: Outcome): string {
  if (counters === undefined) return `stopped after ${formatTime(milliseconds)}`;
  const { laneInstructions, warpInstructions } = counters;
  return `${laneInstructions} thread instructions, ${warpInstructions} warp instructions, ${formatTime(milliseconds)}`;
}

function differs(left: HostArray, right: HostArray): boolean {
  const bytes = ({ data }: HostArray): Uint8Array =>
    new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  const other = bytes(right);
  return bytes(left).some((byte, index) => byte !== other[index]);
}

interface Written extends LaunchArray {
  readonly after: HostArray;
}

const documentElements = 16;

function outputOf(
  emulator: Emulator,
  { name, array, after }: Written,
  { print }: EmulateSettings,
): { readonly text: string; readonly document: unknown } {
  const unwritten = emulator.unwrittenBytes(array);
  const { dtype, shape } = after;
  const missing =
    unwritten === 0 ? "" : `\n${unwritten} of its ${array.bytes} bytes nothing has written`;
  const shown =
    print === undefined
      ? formatArray(after)
      : `${dtype.name}[${shape.join(", ")}]\n${firstElements(after, print).join(", ")}`;
  return {
    text: `${name} ${shown}${missing}`,
    document: {
      name,
      dtype: dtype.name,
      shape,
      unwrittenBytes: unwritten,
      first: firstElements(after, print ?? documentElements),
    },
  };
}

function firstElements(array: HostArray, count: number): readonly unknown[] {
  const lanes = toElements(array);
  const length = Math.min(count, lanes.length);
  return Array.from({ length }, (_, index) => readElement(array.dtype, lanes, index));
}

function writeOutputs(folder: string, written: readonly Written[], output: Output): void {
  makeFolder(folder);
  for (const { name, after } of written) {
    const path = join(folder, `${name.replaceAll(/[^\w.-]/g, "_")}.bin`);
    const { data } = after;
    writeFile(path, new Uint8Array(data.buffer, data.byteOffset, data.byteLength));
    output.line(`wrote ${path}`);
  }
}
