/**
 * What the rules for elementwise ops make of one step and of two, in every format: the elements are those of the steps as they were written. The
 * simulator runs kernels behind these rules as compiled code does, so that a rule that is wrong shows on neither.
 */
import { expect, test } from "vitest";
import { runKernel } from "../../../test/simulation.ts";
import { takesAll } from "../../../test/support/sample.ts";
import {
  acceptsBinary,
  acceptsCompare,
  acceptsUnary,
  binaryFunctions,
  comparePredicates,
  functionNatures,
  unaryFunctions,
} from "../../formats/arithmetic/functions.ts";
import { conversionChoices } from "../../formats/conversion-rules.ts";
import { bool, dtypes, isWide } from "../../formats/dtype.ts";
import type { DType } from "../../formats/dtype.ts";
import { fromNumbers, hostArray, toElements } from "../../formats/hostarray.ts";
import type { HostArray } from "../../formats/hostarray.ts";
import { readElement } from "../../formats/values.ts";
import type { Kernel } from "../../ir/node.ts";
import type { Literal } from "../../ir/schema.ts";
import { tensor, full, kernel } from "../../lang/index.ts";
import type { Ref, Tile } from "../../lang/index.ts";
import { deadCode } from "../dead-code.ts";
import { canonicalize } from "./index.ts";

interface Step {
  readonly name: string;
  readonly to: DType;
  readonly write: (source: Tile) => Tile;
}

/** Calls a method by the name of its function in the IR. */
function called(tile: Tile, fn: string, ...others: readonly Tile[]): Tile {
  const names: { readonly [fn: string]: string } = { min: "minimum", max: "maximum" };
  const name = names[fn] ?? fn.replace(/_(.)/, (_, letter: string) => letter.toUpperCase());
  const method: unknown = Reflect.get(tile, name);
  if (typeof method !== "function") throw new Error(`tiles have no ${name}`);
  return method.apply(tile, others) as Tile;
}

const allFormats: readonly DType[] = Object.values(dtypes);

/** Numbers that rules look for. */
function literals(dtype: DType): readonly Literal[] {
  if (dtype.kind === "bool") return [true, false];
  if (dtype.kind === "float") return [0, -0, 1, -1, NaN];
  const ones = dtype.kind === "signed" ? -1n : (1n << BigInt(dtype.bits)) - 1n;
  return [0n, 1n, ones].map((each) => (isWide(dtype) ? each : Number(each)));
}

/** A function of the value and a constant, in both orders. */
function withConstants(dtype: DType, fn: string, to: DType): readonly Step[] {
  return literals(dtype).flatMap((value) => {
    const constant = (like: Tile): Tile => full(dtype, like.shape, value as never) as Tile;
    return [
      { name: `${fn} ${value}`, to, write: (tile) => called(tile, fn, constant(tile)) },
      { name: `${value} ${fn}`, to, write: (tile) => called(constant(tile), fn, tile) },
    ];
  });
}

function castSteps(from: DType, to: DType): readonly Step[] {
  const { overflows, roundings } = conversionChoices(from, to);
  const choices = [
    {},
    ...overflows.map((overflow) => ({ overflow })),
    ...roundings.map((rounding) => ({ rounding })),
  ];
  return choices.map((choice) => ({
    name: `cast to ${to.name} ${JSON.stringify(choice)}`,
    to,
    write: (tile) => tile.cast(to, choice),
  }));
}

/** Pairs of steps of which the second takes what the first gives. */
function pairs(first: readonly Step[], second: (step: Step) => readonly Step[]): readonly Step[][] {
  return first.flatMap((step) => second(step).map((next) => [step, next]));
}

/** One step, or two of a kind that rules look at together. */
function chainsFrom(dtype: DType): readonly (readonly Step[])[] {
  const unary = unaryFunctions
    .filter((fn) => functionNatures[fn] !== "transcendental" && acceptsUnary(fn, dtype))
    .map((fn): Step => ({ name: fn, to: dtype, write: (tile) => called(tile, fn) }));
  const binary = binaryFunctions
    .filter((fn) => acceptsBinary(fn, dtype))
    .map((fn) => withConstants(dtype, fn, dtype));
  const compared = comparePredicates
    .filter((predicate) => acceptsCompare(predicate, dtype))
    .flatMap((predicate) => withConstants(dtype, predicate, bool));
  const negated = ["add", "sub"].map((fn): Step => ({
    name: fn,
    to: dtype,
    write: (tile) => called(tile, fn, tile.neg()),
  }));
  const casts = allFormats.flatMap((to) => castSteps(dtype, to).slice(0, 3));
  const opposite: Step = { name: "not", to: bool, write: (tile) => called(tile, "not") };
  return [
    ...(acceptsUnary("neg", dtype) ? negated : []).map((step) => [step]),
    ...pairs(unary, () => unary),
    ...binary.flatMap((steps) => {
      const last = steps.filter((_, at) => at % 2 === 0);
      return [...steps.map((step) => [step]), ...pairs(last, () => last)];
    }),
    ...pairs(compared, () => [opposite]),
    ...pairs(casts, ({ to }) => [
      ...castSteps(to, dtype),
      ...["f32", "f8e5m2", "i8", "u64"].flatMap(
        (last) => castSteps(to, dtypes[last as "f32"])[0] ?? [],
      ),
    ]),
  ];
}

const whole = [0, 1, 2, 3, 7, 127, 128, 255, 256, 65_535, 2 ** 31, 2 ** 32 - 1, 2 ** 63];
const broken = [0.5, 1.5, 2.5, 448, 465, 61_440, 65_520, 2 ** -24, 1e-40, 3e38, 1e300, Infinity];

/** Edges of formats; all bits of those that have few, since conversions saturate. */
function elementsOf(dtype: DType): HostArray {
  if (dtype.bits === 4)
    return hostArray(
      dtype,
      [16],
      Uint8Array.from({ length: 8 }, (_, at) => 0x22 * at + 0x10),
    );
  if (dtype.bits === 8 && dtype.kind === "float")
    return hostArray(
      dtype,
      [86],
      Uint8Array.from({ length: 86 }, (_, at) => (at === 0 ? 0xfc : 3 * at)),
    );
  const own = dtype.kind === "float" ? [...whole, ...broken, NaN] : whole;
  const both = dtype.kind === "unsigned" ? own : own.flatMap((each) => [each, -each]);
  return fromNumbers(dtype, [both.length], both);
}

/** A kernel whose outputs have a row for each chain that ends in their format. */
function kernelOf({ dtype, shape }: HostArray, chains: readonly (readonly Step[])[]): Kernel {
  const [count = 0] = shape;
  const ends = chains.map((steps) => steps.at(-1)?.to ?? dtype);
  const rows = new Map<DType, number>();
  const places = ends.map((to) => {
    const row = rows.get(to) ?? 0;
    rows.set(to, row + 1);
    return row;
  });
  const outputs = Object.fromEntries(
    [...rows].map(([to, height]) => [to.name, tensor(to, [height, count])]),
  );
  const spec = { name: "steps", inputs: { x: tensor(dtype, [count]) }, outputs };
  const made = kernel(spec, (given) => {
    const arrays = given as { readonly [name: string]: Ref };
    const tile = arrays["x"]?.load() ?? expect.fail();
    chains.forEach((steps, at) => {
      const value = steps.reduce((before, { write }) => write(before), tile);
      arrays[value.dtype.name]?.at(places[at] ?? 0).store(value);
    });
  });
  return made.kernel;
}

function texts(array: HostArray): readonly string[] {
  const lanes = toElements(array);
  return Array.from({ length: lanes.length }, (_, at) => {
    const value = readElement(array.dtype, lanes, at);
    return Object.is(value, -0) ? "-0" : String(value);
  });
}

/** A format of each kind; the others are tried where everything is. */
const tried = takesAll
  ? allFormats
  : ["f16", "f8e5m2", "i8", "u32"].map((name) => dtypes[name as "f32"] as DType);

test.each(tried)("steps from $name", async (dtype) => {
  const x = elementsOf(dtype);
  const [count = 0] = x.shape;
  const chains = chainsFrom(dtype);
  const written = kernelOf(x, chains);
  const changed = deadCode(canonicalize(written));
  expect(changed).not.toBe(written);
  const before = await runKernel({ kernel: written }, { x }, { checks: false });
  const after = await runKernel({ kernel: changed }, { x }, { checks: false });
  const wrong = Object.entries(before.results).flatMap(([name, result]) => {
    const [wanted, given] = [texts(result), texts(after.results[name] ?? expect.fail())];
    return chains
      .filter((steps) => steps.at(-1)?.to.name === name)
      .flatMap((steps, row) => {
        const own = wanted.slice(row * count, (row + 1) * count);
        const at = own.findIndex((text, place) => text !== given[row * count + place]);
        if (at < 0) return [];
        const said = steps.map((step) => step.name).join(", ");
        return [`${said}: ${own[at]} became ${given[row * count + at]}`];
      });
  });
  expect(wrong).toEqual([]);
});
