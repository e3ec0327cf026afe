/**
 * Whether a program is the same after a rewrite as before: both are evaluated over whole numbers modulo 2^32 (`evaluate/modular.ts`), where
 * what is algebraically equal is equal to the bit, and the order of sums makes no difference.
 *
 *   checkRewrite(before, after)         undefined, or the first element that differs
 *   checkPasses(module, passes)         the same of every pass in turn, with its name
 *
 * Random numbers of 32 bits are given for floats, so that a wrong rewrite that changes results is found by chance of one in billions short;
 * a rewrite that is wrong for some indices, predicates or sizes alone needs programs and inputs that have those.
 */
import { Random } from "../../support/random.ts";
import { evaluateIn, isTensorDatum, modularArithmetic, tensor } from "../evaluate/index.ts";
import type { Datum, Tensor } from "../evaluate/index.ts";
import {
  allocateTensorData,
  elements,
  isComplexElement,
  isFloatElement,
  isTensor,
  sizeOf,
  typeText,
} from "../ops/index.ts";
import type { GraphModule, GraphValue, TensorType } from "../ops/index.ts";
import type { GraphPass } from "../passes/pass.ts";
import { structureText } from "../passes/structure.ts";
import { verifyGraph } from "./index.ts";
import { isInexact } from "./inexact-rules.ts";

export interface RewriteOptions {
  /** The function that is evaluated; `main` unless given. */
  readonly name?: string;
  /** Where the random numbers begin. */
  readonly seed?: number;
  /** Values of the parameters, those of whole numbers at least, where drawn ones would not do: floats are drawn all the same. */
  readonly inputs?: readonly Tensor[];
}

/** A pass that changes results, and how. */
export interface WrongPass {
  readonly pass: string;
  readonly difference: string;
}

/** Indices and counts are small in most programs; what is out of bounds is drawn as well. */
function drawnWhole(type: TensorType, random: Random): Tensor {
  const { element, shape } = type;
  const data = allocateTensorData(element, sizeOf(shape));
  const isBool = elements[element].kind === "bool";
  const least = elements[element].kind === "signed" ? -2 : 0;
  for (let i = 0; i < data.length; i++) {
    const number = isBool ? random.below(2) : least + random.below(random.below(4) === 0 ? 40 : 7);
    data[i] = (
      data instanceof BigInt64Array || data instanceof BigUint64Array ? BigInt(number) : number
    ) as never;
  }
  return tensor(element, shape, data);
}

/** Elements of floats in the modular arithmetic: any whole number; parts of complex ones are small. */
function drawnInput(type: TensorType, random: Random): Tensor {
  const { element, shape } = type;
  const length = sizeOf(shape);
  if (isFloatElement(element))
    return tensor(
      "i32",
      shape,
      Int32Array.from({ length }, () => random.bits() | 0),
    );
  if (isComplexElement(element))
    return tensor(
      "complex<f64>",
      shape,
      Float64Array.from({ length: 2 * length }, () => random.below(17) - 8),
    );
  return drawnWhole(type, random);
}

/** Pairs as devices take complex numbers: whole numbers with an axis more. */
function asPairs({ shape, data }: Tensor): Tensor {
  return tensor("i32", [...shape, 2], Int32Array.from(data as Float64Array));
}

function typesOf(values: readonly GraphValue[]): readonly TensorType[] {
  return values.map(({ type }) => {
    if (isTensor(type)) return type;
    throw new Error(`rewrites are checked of programs of tensors, not ${typeText(type)}`);
  });
}

function parametersOf(module: GraphModule, name: string): readonly TensorType[] {
  const found = module.functions.get(name);
  if (found === undefined) throw new Error(`the module has no function @${name}`);
  return typesOf(found.body.parameters);
}

/** The inputs of a program. */
function inputsOf(
  module: GraphModule,
  { name = "main", seed = 1, inputs = [] }: RewriteOptions,
): readonly Tensor[] {
  const random = new Random(seed);
  return parametersOf(module, name).map((type, i) => {
    const given = inputs[i];
    const isWhole = !isFloatElement(type.element) && !isComplexElement(type.element);
    return given !== undefined && isWhole ? given : drawnInput(type, random);
  });
}

/** Results over whole numbers modulo 2^32; complex numbers, whether or not they have become pairs, as pairs. */
function resultsOf(
  module: GraphModule,
  name: string,
  inputs: readonly Tensor[],
): readonly Tensor[] {
  const given = parametersOf(module, name).map((type, i) => {
    const input = inputs[i] as Tensor;
    const isSplit = isComplexElement(input.element) && !isComplexElement(type.element);
    return isSplit ? asPairs(input) : input;
  });
  const results: readonly Datum[] = evaluateIn(modularArithmetic, module, name, given);
  return results
    .filter(isTensorDatum)
    .map((each) => (isComplexElement(each.element) ? asPairs(each) : each));
}

function differenceOf(before: readonly Tensor[], after: readonly Tensor[]): string | undefined {
  if (before.length !== after.length)
    return `there are ${after.length} results, not ${before.length}`;
  for (const [i, wanted] of before.entries()) {
    const found = after[i] as Tensor;
    const [type, wantedType] = [found, wanted].map(({ element, shape }) =>
      typeText({ kind: "tensor", element, shape }),
    );
    if (type !== wantedType) return `result ${i} is ${type}, not ${wantedType}`;
    for (let at = 0; at < wanted.data.length; at++)
      if (found.data[at] !== wanted.data[at])
        return `result ${i}, element ${at}: ${found.data[at]}, not ${wanted.data[at]}`;
  }
  return undefined;
}

/** The first element that a rewrite of a program changes; undefined where it changes none. */
export function checkRewrite(
  before: GraphModule,
  after: GraphModule,
  options: RewriteOptions = {},
): string | undefined {
  const { name = "main" } = options;
  const inputs = inputsOf(before, options);
  return differenceOf(resultsOf(before, name, inputs), resultsOf(after, name, inputs));
}

/** The results of what a pass has made, or what is wrong with it. */
function verifiedResults(
  module: GraphModule,
  name: string,
  inputs: readonly Tensor[],
): readonly Tensor[] | string {
  try {
    verifyGraph(module);
    return resultsOf(module, name, inputs);
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

/** What the functions of a module compute, as text. */
function structureOf({ functions }: GraphModule): string {
  return Array.from(
    functions.values(),
    ({ name, body }) => `${name} ${structureText(body)}`,
  ).join();
}

/** The first of several passes that changes what a program computes; those whose inexact rules apply are not judged by it. */
export function checkPasses(
  module: GraphModule,
  passes: readonly GraphPass[],
  options: RewriteOptions = {},
): WrongPass | undefined {
  const { name = "main" } = options;
  const inputs = inputsOf(module, options);
  let before = module;
  let structure = structureOf(module);
  let wanted = resultsOf(module, name, inputs);
  for (const pass of passes) {
    let inexact = false;
    const after = pass.run(before, (rule) => {
      inexact ||= isInexact(pass.name, rule);
    });
    const next = structureOf(after);
    if (next === structure) continue;
    const found = verifiedResults(after, name, inputs);
    if (typeof found === "string") return { pass: pass.name, difference: found };
    const difference = inexact ? undefined : differenceOf(wanted, found);
    if (difference !== undefined) return { pass: pass.name, difference };
    before = after;
    structure = next;
    wanted = found;
  }
  return undefined;
}
