/**
 * Random arrays from a key, and dropout. Element i of an array by rows follows from the key and i alone:
 *
 *   random.uniform({ out: tensor(f32, [m, n]) })                       inputs { key: u32[2] }, outputs { out }
 *   random.uniform({ out: tensor(f32, [m, n]), generator: "rbg" })     inputs { key: u32[4] }
 */
import { dtypes } from "../../formats/dtype.ts";
import type { DType, DTypeName, FloatName } from "../../formats/dtype.ts";
import { roundToFloat } from "../../formats/rounding.ts";
import { operation } from "../../device/operation.ts";
import type { Operation } from "../../device/operation.ts";
import { tensor, cdiv, dim, elementRun, kernel, slice } from "../../lang/index.ts";
import type {
  TensorSpec,
  ElementRun,
  Empty,
  KernelDefinition,
  RandomKey,
  Ref,
  Scalar,
  Tile,
} from "../../lang/index.ts";
import { captureLocation } from "../../support/location.ts";
import type { Location } from "../../support/location.ts";
import { optionText } from "../../support/options.ts";
import { givenArray, refused, requireFields, requireFloat } from "../support/arguments.ts";
import type { GivenArray } from "../support/arguments.ts";
import { computeFormat, computed } from "../support/numbers.ts";
import { alignedDimension, alignment, laidOut } from "../support/sizes.ts";
import { categorical, permutation } from "./sampling.ts";
import { givenGenerator, keyIn, keyOf } from "./keys.ts";
import type { GeneratorSpec, KeyGenerator, KeySpec } from "./keys.ts";
import { elementsPerBlock } from "./elements-per-block.ts";

/** The operation that the functions of `random` make. */
export type RandomOperation<Out extends DTypeName> = Operation<
  KeySpec,
  { readonly out: TensorSpec<Out> },
  Empty,
  DrawConfiguration
>;

/** Elements that a block draws. */
export interface DrawConfiguration {
  /** Elements of a block. */
  readonly span: number;
}

interface OutSpec<Out extends DTypeName> extends GeneratorSpec {
  /** A format is an array of n elements; sizes are given with the launch. */
  readonly out: GivenArray<Out>;
}

/** Makes elements of the result from a key and their numbers, and from elements of x where there is one. */
type Draw = (key: RandomKey, elements: ElementRun, x: Tile | undefined) => Tile;

/** What is drawn: into which array, by what, from which other array. */
interface Drawing {
  readonly out: TensorSpec;
  readonly generator: KeyGenerator;
  readonly x?: TensorSpec;
  /** Elements that a thread draws at most, 16 by default: more where arithmetic is the bound, fewer where it waits for loads. */
  readonly perThread?: number;
}

/** 32 random bits an element. */
function bits(spec: Partial<OutSpec<"u32">> = {}): RandomOperation<"u32"> {
  const location = captureLocation();
  const generator = drawnBy("random.bits", spec, { out: "array" }, location);
  const out = drawnArray("random.bits", spec.out ?? dtypes.u32, [dtypes.u32], location);
  return drawing("random_bits", { out, generator }, (key, elements) => key.bits(elements)) as never;
}

const floats = [dtypes.f32, dtypes.f64, dtypes.bf16, dtypes.f16];

/** What `random.uniform` is made for. */
export interface UniformSpec<Out extends FloatName> extends OutSpec<Out> {
  /** 0 by default. */
  readonly low?: number;
  /** 1 by default. */
  readonly high?: number;
}

/** The greatest draw of f32 whose result stays below `high`; undefined where rounding never reaches it. */
function greatestDraw({ name }: DType, low: number, high: number): number | undefined {
  const format = name === "f64" ? "f32" : (name as FloatName);
  const span = Math.fround(Math.fround(high) - Math.fround(low));
  const drawn = Math.fround(Math.fround((1 - 2 ** -23) * span) + Math.fround(low));
  if (roundToFloat(format, drawn, {}) < high) return undefined;
  const below = high - Math.max(Math.abs(high) * 2 ** -52, 2 ** -1074);
  return roundToFloat(format, below, { rounding: "down" });
}

/** Numbers from `low` up to and without `high`; drawn in f32, and rounded to other formats. */
function uniform<Out extends FloatName>(spec: UniformSpec<Out>): RandomOperation<Out> {
  const location = captureLocation();
  const generator = drawnBy(
    "random.uniform",
    spec,
    { out: "array", low: "number", high: "number" },
    location,
  );
  const { low = 0, high = 1 } = spec;
  if (!(low < high) || !Number.isFinite(Math.fround(Math.fround(high) - Math.fround(low))))
    throw refused(
      "TW9904",
      "random.uniform has no numbers to draw from",
      "low below high, and not further apart than numbers of f32 reach",
      `${optionText(low)} and ${optionText(high)}`,
      location,
    );
  const out = drawnArray("random.uniform", spec.out, floats, location);
  for (const end of [low, high])
    if (!Number.isFinite(roundToFloat(out.dtype.name as FloatName, end, {})))
      throw refused(
        "TW9904",
        "random.uniform would draw numbers that its format does not have",
        `low and high within the numbers of ${out.dtype.name}`,
        `${low} and ${high}`,
        location,
      );
  const most = greatestDraw(out.dtype, low, high);
  const draw: Draw = (key, elements) => {
    const drawn = key.uniform(elements, { low, high });
    return (most === undefined ? drawn : drawn.minimum(most)).cast(out.dtype);
  };
  return drawing("random_uniform", { out, generator }, draw) as never;
}

/** Numbers of the standard normal distribution; drawn in f32, and rounded to other formats. */
function normal<Out extends FloatName>(spec: OutSpec<Out>): RandomOperation<Out> {
  const location = captureLocation();
  const generator = drawnBy("random.normal", spec, { out: "array" }, location);
  const out = drawnArray("random.normal", spec.out, floats, location);
  const draw: Draw = (key, elements) => key.normal(elements).cast(out.dtype);
  const perThread = generator === "rbg" ? 32 : 16;
  return drawing("random_normal", { out, generator, perThread }, draw) as never;
}

/** What `random.bernoulli` is made for. */
export interface BernoulliSpec extends Partial<OutSpec<"bool">> {
  /** The probability of true, from 0 to 1. */
  readonly probability: number;
}

/** True with a probability. */
function bernoulli(spec: BernoulliSpec): RandomOperation<"bool"> {
  const location = captureLocation();
  const generator = drawnBy(
    "random.bernoulli",
    spec,
    { out: "array", probability: "number" },
    location,
  );
  const probability = requireProbability("random.bernoulli", spec.probability, location);
  const out = drawnArray("random.bernoulli", spec.out ?? dtypes.bool, [dtypes.bool], location);
  const draw: Draw = (key, elements) => key.bernoulli(probability, elements);
  return drawing("random_bernoulli", { out, generator }, draw) as never;
}

/** Arrays of random numbers, equal to what JAX gives for the same key; normal ones of `rbg` are its bits transformed in another way. */
export const random = Object.freeze({
  /** Random bits, as an array of u32. */
  bits,
  /** Numbers of f32 from `low` up to and without `high`, from 0 to 1 by default, all equally likely. */
  uniform,
  /** Numbers of f32 of the standard normal distribution. */
  normal,
  /** Bools, each true with a probability. */
  bernoulli,
  /** The numbers 0, 1, …, count - 1 in random order. */
  permutation,
  /** Indices along the last axis, each drawn with the probabilities softmax(logits). */
  categorical,
});

/** What `dropout` is made for. */
export interface DropoutSpec<X extends FloatName> extends GeneratorSpec {
  /** A format is an array of n elements. */
  readonly x: GivenArray<X>;
  /** The part of elements that become 0; the others are divided by what is left. */
  readonly rate: number;
}

/** The operation that `dropout` makes. */
export type DropoutOperation<X extends DTypeName> = Operation<
  KeySpec & { readonly x: TensorSpec<X> },
  { readonly out: TensorSpec<X> },
  Empty,
  DrawConfiguration
>;

/** Elements dropped at random. With the same key, its gradient is itself. */
export function dropout<X extends FloatName>(spec: DropoutSpec<X>): DropoutOperation<X> {
  const location = captureLocation();
  const generator = drawnBy("dropout", spec, { x: "array", rate: "number" }, location);
  const rate = requireProbability("dropout", spec.rate, location);
  const x = drawnArray("dropout", spec.x, floats, location);
  requireFloat("x", "dropout", x, location);
  const left = 1 - rate;
  const compute = computeFormat(x.dtype);
  const draw: Draw = (key, elements, tile) => {
    if (tile === undefined) throw new Error("dropout has elements");
    const kept = key.bernoulli(left, elements);
    const scaled = computed(tile, compute).mul(left === 0 ? 0 : 1 / left);
    return kept.select(scaled, 0).cast(x.dtype);
  };
  // Memory-bound: a thread that loads 16 bytes once waits for nothing else.
  const perThread = generator === "rbg" ? Math.max(4, 128 / x.dtype.bits) : 16;
  return drawing(
    "dropout",
    { out: tensor(x.dtype, x.shape), generator, x, perThread },
    draw,
  ) as never;
}

/** What draws; every field of the specification is a known one. */
function drawnBy(
  of: string,
  spec: GeneratorSpec,
  fields: Parameters<typeof requireFields>[2],
  location: Location,
): KeyGenerator {
  requireFields(of, spec, { ...fields, generator: "choice" }, location);
  return givenGenerator(of, spec, location);
}

function requireProbability(of: string, given: unknown, location: Location): number {
  if (typeof given === "number" && given >= 0 && given <= 1) return given;
  throw refused(
    "TW9904",
    `${of} takes no such probability`,
    "a number from 0 to 1",
    optionText(given),
    location,
  );
}

/** A contiguous array, so that the number of an element is its offset. */
function drawnArray(
  of: string,
  given: unknown,
  formats: readonly DType[],
  location: Location,
): TensorSpec {
  const found = givenArray("the array", of, given, [dim("n")], location);
  if (!formats.includes(found.dtype))
    throw refused(
      "TW9901",
      `${of} has another format`,
      formats.map(({ name }) => name).join(", "),
      found.dtype.name,
      location,
    );
  if (found.strides !== undefined)
    throw refused(
      "TW9902",
      `the array of ${of} lies by strides`,
      "an array by rows",
      "strides",
      location,
    );
  return found;
}

function drawing(name: string, given: Drawing, draw: Draw): Operation {
  const { out, generator, x, perThread = 16 } = given;
  const kernels = new Map<string, KernelDefinition>();
  return operation({
    name,
    inputs: { key: keyOf(generator), ...(x && { x }) },
    outputs: { out },
    plan: (dimensions, target) => {
      const count = laidOut(out, dimensions).shape.reduce((all, extent) => all * extent, 1);
      const span = elementsPerBlock(count, target.processors, perThread);
      const flat = (argument: string) => ({ argument, shape: [count] });
      if (count === 0) return { configuration: { span }, source: "heuristic", launches: [] };
      return {
        configuration: { span },
        source: "heuristic",
        launches: () => {
          const text = JSON.stringify([span, alignment(count)]);
          const known = kernels.get(text) ?? drawKernel(name, given, count, span, draw);
          kernels.set(text, known);
          const arrays = { key: { argument: "key" }, out: flat("out"), ...(x && { x: flat("x") }) };
          return [{ kernel: known, arguments: arrays }];
        },
      };
    },
  }) as unknown as Operation;
}

function drawKernel(
  name: string,
  { out, generator, x: given }: Drawing,
  size: number,
  span: number,
  draw: Draw,
): KernelDefinition {
  const count = alignedDimension("count", size);
  return kernel(
    {
      name,
      grid: { i: cdiv(count, span) },
      inputs: {
        key: keyOf(generator),
        ...(given && { x: tensor(given.dtype, [count]) }),
      },
      outputs: { out: tensor(out.dtype, [count]) },
    },
    (argument) => {
      const named = argument as unknown as { readonly [name: string]: unknown };
      const i = named["i"] as Scalar<"i32">;
      const here = slice(i.mul(span), span);
      const key = keyIn(named["key"] as Ref<"u32">, generator);
      const x = given === undefined ? undefined : (named["x"] as Ref).at(here).load();
      (named["out"] as Ref).at(here).store(draw(key, elementRun(i, [span]), x));
    },
  ) as unknown as KernelDefinition;
}
