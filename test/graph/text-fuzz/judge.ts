/**
 * What may happen to a text: it is refused with a code and the line of the text, at whatever stage, or it goes all the way, and then
 * everybody agrees.
 *
 *   text ─parse─▶ module ─print─▶ text ─parse─▶ the same module, in short and in generic form
 *                   └─verify─▶ passes ─verify─▶ evaluator, before and after passes ─▶ plan ─▶ simulator, for some
 */
import type { Device } from "../../../src/device/device.ts";
import { disagreement, evaluate, tensor } from "../../../src/graph/evaluate/index.ts";
import type { Datum, Tensor } from "../../../src/graph/evaluate/index.ts";
import { elementsOfNumbers } from "../../../src/graph/evaluate/scalars.ts";
import { elements, isWideElement, slotsOf } from "../../../src/graph/ops/elements.ts";
import type { GraphFunction, GraphModule } from "../../../src/graph/ops/node.ts";
import { opsWithin } from "../../../src/graph/ops/traverse.ts";
import { isTensor, sizeOf } from "../../../src/graph/ops/types.ts";
import type { GraphType, TensorType } from "../../../src/graph/ops/types.ts";
import { runPasses } from "../../../src/graph/passes/pass-order.ts";
import { compilePlan } from "../../../src/graph/plan/compile.ts";
import { Program } from "../../../src/graph/plan/program.ts";
import { planText } from "../../../src/graph/plan/text.ts";
import { parseGraph, printGraph } from "../../../src/graph/text/index.ts";
import { verifyGraph } from "../../../src/graph/verify/index.ts";
import { TilewrightError } from "../../../src/support/diagnostics.ts";
import { Random } from "../../../src/support/random.ts";
import { outlineOf } from "./outline.ts";

/** How far a text went; each stage includes those before it. */
export type Stage = "refused" | "parsed" | "verified" | "evaluated" | "compiled" | "simulated";

export interface Verdict {
  readonly stage: Stage;
  /** The code that the text was refused with, where it was. */
  readonly code?: string | undefined;
  /** What must not happen, with the stage where it did. */
  readonly problem?: string | undefined;
}

/** What is refused where it should be: unwinds to the judge. */
class Problem extends Error {}

const file = "fuzzed.mlir";

/** Runs a stage. A refusal needs a code, and a place in the text; anything else that is thrown is a problem. */
function stage<T>(name: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (error instanceof Problem) throw error;
    throw refusalOf(name, error);
  }
}

function refusalOf(name: string, error: unknown): Error {
  if (!(error instanceof TilewrightError)) {
    const text = error instanceof Error ? error.stack : String(error);
    return new Problem(
      `${name} throws without a code: ${text?.split("\n").slice(0, 6).join("\n")}`,
    );
  }
  const place = [error.position, error.generated].find((each) => each?.file === file);
  return place === undefined
    ? new Problem(`${name} refuses without a line of the text: ${error.message}`)
    : error;
}

/** What was printed must be read, and be the same program. */
function requireSame(name: string, module: GraphModule, generic: boolean): void {
  const printed = printGraph(module, { generic });
  let again: GraphModule | undefined;
  try {
    [again] = parseGraph(printed, "printed.mlir");
  } catch (error) {
    throw new Problem(`${name}: what was printed is not read: ${String(error)}\n${printed}`);
  }
  if (again === undefined || printGraph(again, { generic }) !== printed)
    throw new Problem(`${name}: what was printed is printed otherwise when read\n${printed}`);
  if (outlineOf(again) !== outlineOf(module))
    throw new Problem(`${name}: what was printed is read as another program\n${printed}`);
}

/** Elements of the largest value of a program, and of all together, that are run: larger ones take long. */
const mostElements = 2048;
/** Values of this size are refused, so that asking takes no time. */
const refusedElements = 2 ** 34;

function elementsOf(type: GraphType): number {
  if (type.kind === "tuple" || type.kind === "future")
    return type.members.reduce((sum, each) => sum + elementsOf(each), 0);
  return isTensor(type) ? sizeOf(type.shape) : 0;
}

function isRun(module: GraphModule): boolean {
  const sizes = [...module.functions.values()].flatMap(({ body }) =>
    [...body.parameters, ...Array.from(opsWithin(body), ({ results }) => results).flat()].map(
      ({ type }) => elementsOf(type),
    ),
  );
  const middle = sizes.filter((size) => size > mostElements && size < refusedElements);
  return middle.length === 0 && sizes.length < 2000;
}

function inputOf({ element, shape }: TensorType, random: Random): Tensor {
  const { kind } = elements[element];
  const count = sizeOf(shape) * slotsOf(element);
  const numbers = Float64Array.from({ length: count }, () =>
    kind === "bool"
      ? random.below(2)
      : kind === "unsigned"
        ? random.below(4)
        : kind === "signed"
          ? random.below(4) - (elements[element].bits > 2 ? 1 : 2)
          : random.below(64) / 16 - 2,
  );
  if (element === "ui64") return tensor(element, shape, BigUint64Array.from(numbers, BigInt));
  if (isWideElement(element)) return tensor(element, shape, BigInt64Array.from(numbers, BigInt));
  return tensor(element, shape, elementsOfNumbers(element, numbers));
}

/** Random inputs; undefined where a parameter is none that can be made, or too large. */
function inputsOf({ body }: GraphFunction): readonly Tensor[] | undefined {
  const random = new Random(7);
  const types = body.parameters.map(({ type }) => type);
  if (!types.every((type) => isTensor(type) && sizeOf(type.shape) <= mostElements))
    return undefined;
  return (types as readonly TensorType[]).map((type) => inputOf(type, random));
}

const limits = { stepLimit: 4000 };

function evaluated(
  name: string,
  module: GraphModule,
  called: string,
  inputs: readonly Tensor[],
): readonly Datum[] {
  return stage(name, () => evaluate(module, called, inputs, limits));
}

/** The first result that differs, by the rule of programs. */
function difference(
  found: readonly Datum[],
  ours: readonly Datum[],
  reference: readonly Datum[],
): string | undefined {
  for (const [i, each] of ours.entries()) {
    const other = found[i];
    const exact = reference[i];
    if (other === undefined || exact === undefined) return `result ${i} is missing`;
    if (each.kind !== "tensor" || exact.kind !== "tensor") continue;
    const what = disagreement(other, each, exact);
    if (what !== undefined) return `result ${i}: ${what}`;
  }
  return undefined;
}

/** Kinds whose results no two of those who run them need share: by comparators that are no order, and of matrices without a factor. */
const unpredictable = new Set(["stablehlo.rng", "stablehlo.sort", "stablehlo.cholesky"]);

async function simulated(
  device: Device,
  name: string,
  module: GraphModule,
  inputs: readonly Tensor[],
): Promise<readonly Datum[]> {
  try {
    const program = await Program.load(device, compilePlan(module, name));
    try {
      return await program.run(inputs);
    } finally {
      program.dispose();
    }
  } catch (error) {
    throw refusalOf("the simulator", error);
  }
}

class Judge {
  stage: Stage = "refused";
  readonly #device: Device | undefined;

  constructor(device: Device | undefined) {
    this.#device = device;
  }

  async text(text: string): Promise<void> {
    for (const module of stage("the parser", () => parseGraph(text, file))) {
      this.stage = "parsed";
      stage("the printer", () => requireSame("short form", module, false));
      stage("the printer", () => requireSame("generic form", module, true));
      stage("the verifier", () => verifyGraph(module));
      this.stage = "verified";
      const simplified = stage("passes", () => runPasses(module));
      try {
        verifyGraph(simplified);
      } catch (error) {
        throw new Problem(
          `passes make a program that is refused: ${String(error)}\n${printGraph(simplified)}`,
        );
      }
      for (const each of module.functions.values())
        if (each.visibility === "public") await this.#function(each, module, simplified);
    }
  }

  async #function(
    called: GraphFunction,
    module: GraphModule,
    simplified: GraphModule,
  ): Promise<void> {
    const { name } = called;
    const plan = (): string => planText(compilePlan(module, name));
    const inputs = isRun(module) ? inputsOf(called) : undefined;
    if (inputs === undefined) {
      stage("compilePlan", plan);
      this.stage = "compiled";
      return;
    }
    let ours: readonly Datum[];
    try {
      ours = evaluated("the evaluator", module, name, inputs);
    } catch (error) {
      // What the evaluator refuses is compiled all the same.
      if (error instanceof Problem) throw error;
      stage("compilePlan", plan);
      throw error;
    }
    this.stage = "evaluated";
    const isPredictable = [...module.functions.values()].every(({ body }) =>
      Array.from(opsWithin(body)).every(({ kind }) => !unpredictable.has(kind)),
    );
    const reference = isPredictable
      ? stage("the widened evaluator", () =>
          evaluate(module, name, inputs, { ...limits, widened: true }),
        )
      : undefined;
    if (reference !== undefined) {
      const passed = evaluated("the evaluator after passes", simplified, name, inputs);
      this.#require("after passes", difference(passed, ours, reference));
    }
    stage("compilePlan", plan);
    this.stage = "compiled";
    if (this.#device === undefined || reference === undefined) return;
    const found = await simulated(this.#device, name, module, inputs);
    this.stage = "simulated";
    this.#require(
      "on the simulator",
      difference(found, ours.filter(isTensorDatum), reference.filter(isTensorDatum)),
    );
  }

  #require(where: string, what: string | undefined): void {
    if (what !== undefined) throw new Problem(`the results are others ${where}: ${what}`);
  }
}

const isTensorDatum = (datum: Datum): boolean => datum.kind === "tensor";

/** Judges a text; what is accepted is run on `device`, too, where that is given. */
export async function judge(text: string, device?: Device): Promise<Verdict> {
  const judging = new Judge(device);
  try {
    await judging.text(text);
    return { stage: judging.stage };
  } catch (error) {
    if (error instanceof TilewrightError) return { stage: judging.stage, code: error.code };
    const problem =
      error instanceof Problem ? error.message : `the judge: ${String((error as Error).stack)}`;
    return { stage: judging.stage, problem };
  }
}
