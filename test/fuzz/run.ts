/**
 * Runs a subject in every way there is, all checks on, and says whether they agree: no findings, and the same bits.
 *
 *   traced ─────────────────────────▶ simulator          what the kernel means
 *      └──place, as the subject says──▶ placed ──▶ simulator          the same to it
 *                                         └──emit──▶ PTX ──▶ emulator, and a GPU where there is one
 *                                                     └──assemble──▶ machine code, whose products in flight are followed
 */
import type { Allocation, Backend } from "../../src/device/backend.ts";
import type { DType, HostValue } from "../../src/formats/dtype.ts";
import { elementCount } from "../../src/formats/shape.ts";
import type { Kernel, KernelParameter } from "../../src/ir/node.ts";
import { evaluateSize } from "../../src/ir/size.ts";
import type { DimensionValues, Size } from "../../src/ir/size.ts";
import { walkOps } from "../../src/ir/traverse.ts";
import { place } from "../../src/lower/stages.ts";
import { simplify } from "../../src/lower/simplify.ts";
import { CompiledKernel } from "../../src/ptx/compiled-kernel.ts";
import { emitKernel } from "../../src/ptx/emit/kernel.ts";
import type { Executable } from "../../src/ptx/executable.ts";
import { printPtx } from "../../src/ptx/printer.ts";
import { EmulatorBackend } from "../../src/runtime/emulator-backend.ts";
import { SimulatorBackend } from "../../src/runtime/simulator-backend.ts";
import { TilewrightError } from "../../src/support/diagnostics.ts";
import { Random } from "../../src/support/random.ts";
import { targets } from "../../src/targets/target.ts";
import { disassemble } from "../ptxas.ts";
import { touchedInFlight } from "../support/machine-flights.ts";
import { dataFor, difference, elementsText, scalarFor } from "./data.ts";
import { reachOf } from "./strides.ts";
import type { FuzzTarget, Subject } from "./subjects.ts";
import { farthest } from "./tensor-memory/compute.ts";

/** Runs that take longer say nothing. */
const limits = { timeLimit: 20_000 };

/** What a way to run a subject comes to. */
export type Outcome =
  | { readonly kind: "result"; readonly text: string }
  | { readonly kind: "refused"; readonly code: string; readonly text: string }
  | { readonly kind: "broken"; readonly text: string };

export type Verdict =
  | { readonly kind: "same" }
  /** The placement or a limit has refused it. */
  | { readonly kind: "skipped"; readonly why: string }
  | { readonly kind: "different"; readonly why: string };

/** Ways to try a subject that not every machine has. */
export interface Equipment {
  readonly gpu?: Gpu | undefined;
  /** Whether the machine code of products is read; needs the CUDA toolkit. */
  readonly readsMachineCode?: boolean;
}

/** A GPU that can be opened again, since a kernel that faults takes the device with it. */
export interface Gpu {
  /** Whether it takes code for a target. */
  runs(target: FuzzTarget): boolean;
  backend(): Promise<Backend>;
  /** Gives up the device of now. */
  close(): void;
}

/** What a run of a program on a back end leaves in the arrays that it writes. */
async function results<A extends Allocation, P>(
  backend: Backend<A, P>,
  program: P,
  subject: Subject,
): Promise<string> {
  const { kernel, seed } = subject;
  const random = new Random(seed);
  const dimensions: DimensionValues = new Map(Object.entries(subject.dimensions));
  const arrays = new Map<string, A>();
  const scalars = new Map<string, HostValue>();
  const shapes = new Map<string, { readonly dtype: DType; readonly shape: readonly number[] }>();
  try {
    for (const parameter of kernel.parameters) {
      const { name, role, value } = parameter;
      if (value.type.kind !== "ref") {
        scalars.set(name, scalarFor(parameter, subject, random));
        continue;
      }
      const { dtype } = value.type;
      const shape = memoryOf(parameter, value.type.shape, dimensions);
      const allocation = backend.allocate(dtype, shape);
      arrays.set(name, allocation);
      const count = elementCount(shape);
      const given = subject.data?.[name] ?? dataFor(dtype, count, random);
      if (role !== "output") await backend.upload(given, allocation);
      if (role !== "input") shapes.set(name, { dtype, shape });
    }
    await backend.run({ kernel, program, arrays, scalars, dimensions, limits });
    const lines: string[] = [];
    for (const [name, { dtype, shape }] of shapes) {
      const allocation = arrays.get(name);
      if (allocation === undefined) throw new Error(`no array ${name}`);
      lines.push(`${name}: ${elementsText(await backend.download(dtype, shape, allocation))}`);
    }
    return lines.join("\n");
  } finally {
    for (const allocation of arrays.values()) backend.release(allocation);
  }
}

/** The shape of the memory of an array: of all between its first and last element, where it does not lie row by row. */
export function memoryOf(
  { strides }: KernelParameter,
  extents: readonly Size[],
  dimensions: DimensionValues,
): readonly number[] {
  const [shape, steps] = [extents, strides].map((sizes) =>
    sizes?.map((size) => evaluateSize(size, dimensions)),
  );
  if (shape === undefined) throw new Error("an array has a shape");
  return steps === undefined ? shape : [reachOf(shape, steps)];
}

export async function outcome(work: () => Promise<string>): Promise<Outcome> {
  try {
    return { kind: "result", text: await work() };
  } catch (error) {
    if (error instanceof TilewrightError)
      return { kind: "refused", code: error.code, text: error.message };
    return {
      kind: "broken",
      text: error instanceof Error ? (error.stack ?? error.message) : String(error),
    };
  }
}

/** Codes of what cannot be compiled for a target, or took too long: no disagreement. */
export function isRefusal(code: string): boolean {
  return (
    /^TW6[^2]/.test(code) ||
    code.startsWith("TW7") ||
    code === "TW3022" ||
    /^TW301[4567]$/.test(code)
  );
}

interface Lowered {
  readonly placed: Kernel;
  readonly executable: Executable;
}

/** A subject's kernel placed as the subject says, and its code. */
export function lowered({ kernel, target, placement }: Subject): Lowered {
  const options = placement === undefined ? {} : { seed: placement };
  const { kernel: placed } = place(kernel, targets[target], options);
  return { placed, executable: emitKernel(placed) };
}

function compiledOf(kernel: Kernel, executable: Executable): CompiledKernel {
  const signature = { inputs: {}, outputs: {}, inouts: {} };
  return new CompiledKernel(kernel, signature, executable, printPtx(executable.module));
}

/** Whether a kernel has PTX of the user's own, which has a meaning to simulate until it is placed. */
function hasOwnPtx({ body }: Kernel): boolean {
  let found = false;
  walkOps(body, ({ kind }) => {
    if (kind === "inline_ptx") found = true;
  });
  return found;
}

/** The ways to run a subject besides simulating it as it was traced, in turn. */
export async function* otherWays(
  subject: Subject,
  { gpu, readsMachineCode = false }: Equipment = {},
): AsyncGenerator<readonly [string, Outcome]> {
  const { seed } = subject;
  const target = targets[subject.target];
  let made: Lowered | undefined;
  const failure = await outcome(async () => {
    made = lowered(subject);
    return "";
  });
  if (made === undefined) {
    yield ["the compiler", failure];
    return;
  }
  const { placed, executable } = made;
  if (!hasOwnPtx(placed)) {
    const simulator = new SimulatorBackend({ target, seed, checks: false });
    yield ["the simulator, placed,", await outcome(() => results(simulator, placed, subject))];
  }
  const compiled = compiledOf(subject.kernel, executable);
  const emulator = new EmulatorBackend({ target, seed, threads: 1 });
  const emulated = await outcome(() => results(emulator, emulator.load(compiled).program, subject));
  emulator.dispose();
  yield ["the emulator", emulated];
  const ptx = printPtx(executable.module);
  if (readsMachineCode && ptx.includes("wgmma.mma_async"))
    yield ["the assembler", await outcome(async () => untouched(ptx, subject, emulated))];
  if (gpu?.runs(subject.target) === true)
    yield ["the GPU", await outcome(() => onGpu(gpu, compiled, subject))];
}

/** Results as they are, where machine code leaves registers of products in flight alone. */
function untouched(ptx: string, { target }: Subject, emulated: Outcome): string {
  const [touched] = touchedInFlight(disassemble(ptx, target).code);
  if (touched !== undefined) throw new Error(touched);
  return emulated.text;
}

async function onGpu(gpu: Gpu, compiled: CompiledKernel, subject: Subject): Promise<string> {
  const backend = await gpu.backend();
  try {
    const { program } = backend.load(compiled);
    const text = await results(backend, program, subject);
    backend.forget(program);
    return text;
  } catch (error) {
    gpu.close();
    throw error;
  }
}

/** What the simulator makes of a subject as it was traced, with all checks. */
export function simulated(subject: Subject): Promise<Outcome> {
  const { kernel, schedule, seed } = subject;
  const simulator = new SimulatorBackend({ target: targets[subject.target], schedule, seed });
  return outcome(() => results(simulator, simplify(kernel), subject));
}

/** Whether all ways to run a subject agree. */
export async function judge(subject: Subject, equipment: Equipment = {}): Promise<Verdict> {
  const expected = await simulated(subject);
  if (expected.kind === "refused" && isRefusal(expected.code))
    return { kind: "skipped", why: expected.code };
  if (subject.expected !== undefined) {
    const known = { kind: "result", text: subject.expected } as const;
    const verdict = compare(known, expected, "the simulator");
    if (verdict.kind !== "same") return verdict;
  }
  const far = expected.kind === "result" ? tooFar(subject, expected.text) : undefined;
  if (far !== undefined)
    return { kind: "different", why: `the simulator gives other elements\n${far}` };
  for await (const [name, found] of otherWays(subject, equipment)) {
    if (found.kind === "refused" && isRefusal(found.code))
      return { kind: "skipped", why: found.code };
    const verdict = compare(expected, found, name);
    if (verdict.kind !== "same") return verdict;
  }
  return { kind: "same" };
}

/** What of a result is farther from what was computed than it may be. */
function tooFar({ near = {} }: Subject, text: string): string | undefined {
  for (const line of text.split("\n")) {
    const [name = "", ...elements] = line.split(" ");
    const cells = near[name.slice(0, -1)];
    const found = cells && farthest(cells, Float64Array.from(elements, Number));
    if (found !== undefined) return `${name} ${found}`;
  }
  return undefined;
}

function compare(expected: Outcome, found: Outcome, name: string): Verdict {
  if (expected.kind !== "result")
    return { kind: "different", why: `the simulator: ${expected.text}` };
  if (found.kind !== "result") return { kind: "different", why: `${name}: ${found.text}` };
  if (found.text === expected.text) return { kind: "same" };
  return {
    kind: "different",
    why: `${name} gives other elements\n${difference(expected.text, found.text)}`,
  };
}
