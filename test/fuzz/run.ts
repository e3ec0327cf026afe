/**
 * Runs a subject on the simulator and on the emulator, all checks on, and says whether they agree: no findings, and
 * the same bits. On a GPU it runs as well where one is given.
 */
import type { Allocation, Backend } from "../../src/device/backend.ts";
import { isWide } from "../../src/formats/dtype.ts";
import type { DType, HostValue } from "../../src/formats/dtype.ts";
import { fromNumbers, hostArray, toNumbers } from "../../src/formats/hostarray.ts";
import { elementCount } from "../../src/formats/shape.ts";
import type { HostArray } from "../../src/formats/hostarray.ts";
import type { KernelParameter } from "../../src/ir/node.ts";
import { printKernel } from "../../src/ir/printer.ts";
import { evaluateSize } from "../../src/ir/size.ts";
import type { DimensionValues } from "../../src/ir/size.ts";
import { EmulatorBackend } from "../../src/runtime/emulator-backend.ts";
import { SimulatorBackend } from "../../src/runtime/simulator-backend.ts";
import { TilewrightError } from "../../src/support/diagnostics.ts";
import { Random } from "../../src/support/random.ts";
import { targets } from "../../src/targets/target.ts";
import type { Subject } from "./subjects.ts";

/** Runs that take longer say nothing. */
const limits = { timeLimit: 20_000 };

type Outcome =
  | { readonly kind: "result"; readonly text: string }
  | { readonly kind: "refused"; readonly code: string; readonly text: string }
  | { readonly kind: "broken"; readonly text: string };

export type Verdict =
  | { readonly kind: "same" }
  /** The placement or a limit has refused it. */
  | { readonly kind: "skipped"; readonly why: string }
  | { readonly kind: "different"; readonly why: string };

function dataFor(dtype: DType, count: number, random: Random): HostArray {
  const special = [0, 1, -1, 3, 7, 100];
  const integer = dtype.kind !== "float";
  const draw = (): number => {
    const value = random.below(4) === 0 ? random.pick(special) : random.normal() * 10;
    return integer ? Math.round(value) : value;
  };
  const numbers = Array.from({ length: count }, draw);
  if (dtype.kind === "bool")
    return fromNumbers(
      dtype,
      [count],
      numbers.map((x) => (x > 0 ? 1 : 0)),
    );
  if (dtype.kind === "float") return fromNumbers(dtype, [count], numbers);
  const [least, most] = dtype.kind === "signed" ? [-7, 7] : [0, 15];
  const small = numbers.map((x) => Math.min(most, Math.max(least, x)));
  return isWide(dtype)
    ? hostArray(dtype, [count], BigInt64Array.from(small, (x) => BigInt(x)) as never)
    : fromNumbers(dtype, [count], small);
}

function scalarFor({ value }: KernelParameter, random: Random): HostValue {
  if (value.type.kind !== "scalar") throw new Error("no scalar");
  const { dtype } = value.type;
  return dtype.kind === "float" ? Math.fround(random.normal()) : random.below(5) - 1;
}

/** Elements as text, -0 and NaN apart from everything else. */
function elementsText(array: HostArray): string {
  const { data } = array;
  if (data instanceof BigInt64Array || data instanceof BigUint64Array)
    return [...data].map(String).join(" ");
  return [...toNumbers(array)].map((x) => (Object.is(x, -0) ? "-0" : `${x}`)).join(" ");
}

async function results<A extends Allocation, P>(
  backend: Backend<A, P>,
  { kernel, dimensions: given, seed }: Subject,
): Promise<string> {
  const random = new Random(seed);
  const dimensions: DimensionValues = new Map(Object.entries(given));
  const { program } = backend.compile(kernel, printKernel(kernel));
  const arrays = new Map<string, A>();
  const scalars = new Map<string, HostValue>();
  const shapes = new Map<string, { readonly dtype: DType; readonly shape: readonly number[] }>();
  for (const parameter of kernel.parameters) {
    const { name, role, value } = parameter;
    if (value.type.kind !== "ref") {
      scalars.set(name, scalarFor(parameter, random));
      continue;
    }
    const { dtype } = value.type;
    const shape = value.type.shape.map((size) => evaluateSize(size, dimensions));
    const allocation = backend.allocate(dtype, shape);
    const count = elementCount(shape);
    if (role !== "output") await backend.upload(dataFor(dtype, count, random), allocation);
    arrays.set(name, allocation);
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
}

async function outcomeOn<A extends Allocation, P>(
  backend: Backend<A, P>,
  subject: Subject,
): Promise<Outcome> {
  try {
    return { kind: "result", text: await results(backend, subject) };
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
function isRefusal(code: string): boolean {
  return (
    code.startsWith("TW6") ||
    code.startsWith("TW7") ||
    code === "TW3022" ||
    /^TW301[4567]$/.test(code)
  );
}

/** Whether all ways to run a subject agree. */
export async function judge(subject: Subject, gpu?: Backend): Promise<Verdict> {
  const target = targets[subject.target];
  const { schedule, seed } = subject;
  const simulator = new SimulatorBackend({ target, schedule, seed });
  const emulator = new EmulatorBackend({ target, seed, threads: 1 });
  const expected = await outcomeOn(simulator, subject);
  if (expected.kind === "refused" && isRefusal(expected.code))
    return { kind: "skipped", why: expected.code };
  const found = await outcomeOn(emulator, subject);
  emulator.dispose();
  if (found.kind === "refused" && isRefusal(found.code))
    return { kind: "skipped", why: found.code };
  const verdict = compare(expected, found, "the emulator");
  if (gpu === undefined || verdict.kind !== "same") return verdict;
  const onGpu = await outcomeOn(gpu, subject);
  if (onGpu.kind === "refused" && isRefusal(onGpu.code))
    return { kind: "skipped", why: onGpu.code };
  return compare(expected, onGpu, "the GPU");
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

/** The first elements that differ, array by array. */
function difference(expected: string, found: string): string {
  const lines = found.split("\n");
  return expected
    .split("\n")
    .flatMap((line, at) => {
      const [wanted, given] = [line.split(" "), (lines[at] ?? "").split(" ")];
      const wrong = wanted.flatMap((text, place) => (text === given[place] ? [] : [place]));
      const [first] = wrong;
      if (first === undefined) return [];
      const counts = `${wrong.length} of ${wanted.length - 1}`;
      return [
        `${wanted[0] ?? ""} ${counts} differ, first element ${first - 1}: ${wanted[first]} became ${given[first]}`,
      ];
    })
    .join("\n");
}
