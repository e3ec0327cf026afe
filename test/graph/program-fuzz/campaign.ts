/** Random programs, seed after seed, judged and counted; of what fails a small text is kept. */
import type { Device } from "../../../src/device/device.ts";
import { evaluate } from "../../../src/graph/evaluate/index.ts";
import type { Tensor } from "../../../src/graph/evaluate/index.ts";
import { compilePlan } from "../../../src/graph/plan/compile.ts";
import { Program } from "../../../src/graph/plan/program.ts";
import { derivativesPass } from "../../../src/graph/passes/derivatives.ts";
import { standardPasses } from "../../../src/graph/passes/pass-order.ts";
import type { GraphPass } from "../../../src/graph/passes/pass.ts";
import { devicePasses } from "../../../src/graph/plan/device-passes.ts";
import { checkPasses } from "../../../src/graph/verify/rewrites.ts";
import { parseGraph } from "../../../src/graph/text/index.ts";
import { verifyGraph } from "../../../src/graph/verify/index.ts";
import { knownProgram } from "../odd/harness.ts";
import type { KnownProgram } from "../odd/harness.ts";
import { differences } from "../odd/judge.ts";
import { shrinkText } from "../text-fuzz/shrink.ts";

export interface ProgramFailure {
  readonly seed: number;
  readonly why: readonly string[];
  readonly text: string;
}

/** What was tried; plain data, so that processes can hand it on. */
export interface ProgramTally {
  programs: number;
  /** How many programs have an op, by its kind. */
  readonly ops: { [kind: string]: number };
  readonly failures: ProgramFailure[];
}

export function emptyProgramTally(): ProgramTally {
  return { programs: 0, ops: {}, failures: [] };
}

export function addProgramTally(sum: ProgramTally, more: ProgramTally): void {
  sum.programs += more.programs;
  for (const [kind, number] of Object.entries(more.ops))
    sum.ops[kind] = (sum.ops[kind] ?? 0) + number;
  sum.failures.push(...more.failures);
}

/** The kinds of ops that a program's text has. */
function kindsIn(text: string): ReadonlySet<string> {
  return new Set(
    [...text.matchAll(/\b((?:stablehlo|chlo|func)\.\w+)"?(?=[ (])/g)].map(([, kind]) => kind ?? ""),
  );
}

/** Elements as bits, but for those of NaN, which has no sign in the evaluator. */
function bitsOf({ element, shape, data }: Tensor): string {
  return `${element} ${shape.join()} ${Array.from(data as ArrayLike<number | bigint>).join()}`;
}

/** Whether the evaluator and a device run a program and give other elements. */
async function differs(text: string, inputs: readonly Tensor[], device: Device): Promise<boolean> {
  try {
    const [module] = parseGraph(text);
    if (module === undefined) return false;
    verifyGraph(module);
    const wanted = evaluate(module, "main", inputs) as readonly Tensor[];
    const program = await Program.load(device, compilePlan(module, "main"));
    try {
      const found = await program.run(inputs);
      return found.some((each, i) => bitsOf(each) !== bitsOf(wanted[i] as Tensor));
    } finally {
      program.dispose();
    }
  } catch {
    return false;
  }
}

/** A program that a device runs otherwise than the evaluator, as small as lines and words can be left out; others stay as they are. */
async function smallest(
  { text, inputs }: KnownProgram,
  devices: readonly Device[],
): Promise<string> {
  for (const device of devices)
    if (await differs(text, inputs, device))
      return shrinkText(text, (smaller) => differs(smaller, inputs, device));
  return text;
}

/** The passes that programs go through on the way to a device. */
const pipeline: readonly GraphPass[] = [
  derivativesPass,
  ...standardPasses,
  ...devicePasses("main", "f32"),
];

/** Judges a program's passes by exact arithmetic. */
function wrongPass(text: string, inputs: readonly Tensor[], seed: number): string | undefined {
  const [module] = parseGraph(text);
  if (module === undefined) return undefined;
  verifyGraph(module);
  const wrong = checkPasses(module, pipeline, { seed, inputs });
  return wrong && `${wrong.pass}: ${wrong.difference}`;
}

/** Judges what passes make of the programs of seeds, by exact arithmetic. */
export async function tryRewrites(
  seeds: Iterable<number>,
  mostSteps?: number,
): Promise<ProgramTally> {
  const tally = emptyProgramTally();
  for (const seed of seeds) {
    const program = knownProgram(seed, mostSteps);
    if (program === undefined) continue;
    const { text, inputs } = program;
    tally.programs += 1;
    for (const kind of kindsIn(text)) tally.ops[kind] = (tally.ops[kind] ?? 0) + 1;
    const why = wrongPass(text, inputs, seed);
    if (why === undefined) continue;
    const [pass] = why.split(":");
    const fails = async (smaller: string): Promise<boolean> => {
      try {
        return wrongPass(smaller, inputs, seed)?.split(":")[0] === pass;
      } catch {
        return false;
      }
    };
    tally.failures.push({ seed, why: [why], text: await shrinkText(text, fails) });
  }
  return tally;
}

/** Judges the programs of seeds on the evaluator and on devices. */
export async function tryPrograms(
  seeds: Iterable<number>,
  devices: readonly Device[],
): Promise<ProgramTally> {
  const tally = emptyProgramTally();
  for (const seed of seeds) {
    const program = knownProgram(seed);
    if (program === undefined) continue;
    tally.programs += 1;
    for (const kind of kindsIn(program.text)) tally.ops[kind] = (tally.ops[kind] ?? 0) + 1;
    const why = await differences(devices, program, seed);
    if (why.length === 0) continue;
    tally.failures.push({ seed, why, text: await smallest(program, devices) });
  }
  return tally;
}
