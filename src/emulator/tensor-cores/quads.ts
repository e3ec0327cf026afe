/**
 * `mma.sync.aligned.m8n8k4` on f16: four products at once, each by the lanes of two quads, 4q … 4q + 3 and the
 * same 16 lanes further on. With t = lane & 3 and u = 4 for the upper quad, 0 for the lower one:
 *
 * | matrix          | element i of a lane                                                     |
 * |-----------------|-------------------------------------------------------------------------|
 * | A by rows       | row t + u, column i                                                     |
 * | A by columns    | row i + u, column t                                                     |
 * | B by rows       | row t, column i + u                                                     |
 * | B by columns    | row i, column t + u                                                     |
 * | C, D of f16     | row t + u, column i                                                     |
 * | C, D of f32     | row (t & 1) + (i & 2) + u, column (i & 4) + (t & 2) + (i & 1)           |
 *
 * Hopper's tensor cores do not have it: it is made of f32 instructions. With an f32 result, a chain of fused
 * multiply-adds begins at +0, and C is added to it; with an f16 result, pairs of products are added to C in turn.
 */
import {
  bitsOfSingle,
  encodeHalf,
  fuseSingle,
  halfNumbers,
  singleOfBits,
} from "../arithmetic/floats.ts";
import type { Collective, CollectiveInstruction } from "../collective.ts";
import type { RegisterWords } from "./fragments.ts";
import { layoutsOf, productTypes, readRegisters, registersOf, writeRegisters } from "./operands.ts";

const depth = 4;
const side = 8;

type Place = (t: number, u: number, i: number) => readonly [row: number, column: number];

const places = {
  aRow: (t, u, i) => [t + u, i],
  aColumn: (t, u, i) => [i + u, t],
  bRow: (t, u, i) => [t, i + u],
  bColumn: (t, u, i) => [i, t + u],
  halves: (t, u, i) => [t + u, i],
  words: (t, u, i) => [(t & 1) + (i & 2) + u, (i & 4) + (t & 2) + (i & 1)],
} as const satisfies { readonly [name: string]: Place };

/** Calls back for each element that the lanes of one product hold. */
function forElements(
  quad: number,
  count: number,
  place: Place,
  visit: (lane: number, element: number, row: number, column: number) => void,
): void {
  for (const upper of [0, 1])
    for (let t = 0; t < 4; t++)
      for (let element = 0; element < count; element++) {
        const [row, column] = place(t, 4 * upper, element);
        visit(16 * upper + 4 * quad + t, element, row, column);
      }
}

/** A matrix of numbers from registers with two f16 or one f32 each. */
function gather(
  registers: readonly RegisterWords[],
  quad: number,
  columns: number,
  place: Place,
  isHalf: boolean,
): Float32Array {
  const matrix = new Float32Array(side * side);
  const count = registers.length * (isHalf ? 2 : 1);
  forElements(quad, count, place, (lane, element, row, column) => {
    const word = registers[isHalf ? element >> 1 : element]?.[lane] as number;
    const half = (word >>> (16 * (element & 1))) & 0xffff;
    matrix[row * columns + column] = isHalf ? (halfNumbers[half] as number) : singleOfBits(word);
  });
  return matrix;
}

function sumToSingle(a: readonly number[], b: readonly number[], c: number): number {
  let sum = 0;
  for (let k = 0; k < depth; k++) sum = fuseSingle(a[k] as number, b[k] as number, sum);
  return Math.fround(c + sum);
}

function sumToHalf(a: readonly number[], b: readonly number[], c: number): number {
  const pair = (k: number): number =>
    fuseSingle(a[k + 1] as number, b[k + 1] as number, (a[k] as number) * (b[k] as number));
  return Math.fround(Math.fround(c + pair(0)) + pair(2));
}

interface QuadForm {
  readonly a: Place;
  readonly b: Place;
  readonly c: Place;
  readonly d: Place;
  readonly halfC: boolean;
  readonly halfD: boolean;
}

function formOf(modifiers: readonly string[]): QuadForm | undefined {
  const [typeD, typeA, typeB, typeC] = productTypes(modifiers);
  const [layoutA, layoutB] = layoutsOf(modifiers).split(" ");
  if (typeA !== "f16" || typeB !== "f16" || modifiers.includes("satfinite")) return undefined;
  const known = typeD === "f32" ? ["f32", "f16"] : typeD === "f16" ? ["f16"] : [];
  if (typeC === undefined || !known.includes(typeC) || layoutB === undefined) return undefined;
  const [halfC, halfD] = [typeC === "f16", typeD === "f16"];
  return {
    a: layoutA === "row" ? places.aRow : places.aColumn,
    b: layoutB === "row" ? places.bRow : places.bColumn,
    c: halfC ? places.halves : places.words,
    d: halfD ? places.halves : places.words,
    halfC,
    halfD,
  };
}

export function quadProduct(instruction: CollectiveInstruction): Collective | undefined {
  const form = formOf(instruction.modifiers);
  const [d, a, b, c] = instruction.operands.map(registersOf);
  if (d === undefined || a === undefined || b === undefined || c === undefined) return undefined;
  if (form === undefined || a.length !== 2 || b.length !== 2) return undefined;
  if (d.length !== (form.halfD ? 4 : 8) || c.length !== (form.halfC ? 4 : 8)) return undefined;
  return {
    aligned: true,
    run: ({ warp }) => {
      const held = {
        a: readRegisters(a, warp),
        b: readRegisters(b, warp),
        c: readRegisters(c, warp),
      };
      const results = d.map(() => new Int32Array(32));
      for (let quad = 0; quad < 4; quad++) multiplyQuads(form, quad, held, results);
      writeRegisters(d, warp, results);
      return "done";
    },
  };
}

function multiplyQuads(
  form: QuadForm,
  quad: number,
  held: { readonly [M in "a" | "b" | "c"]: readonly RegisterWords[] },
  results: readonly RegisterWords[],
): void {
  const a = gather(held.a, quad, depth, form.a, true);
  const b = gather(held.b, quad, side, form.b, true);
  const c = gather(held.c, quad, side, form.c, form.halfC);
  forElements(quad, side, form.d, (lane, element, row, column) => {
    const own = [...a.subarray(row * depth, (row + 1) * depth)];
    const met = [0, 1, 2, 3].map((k) => b[k * side + column] as number);
    const old = c[row * side + column] as number;
    const words = results[form.halfD ? element >> 1 : element];
    if (words === undefined) return;
    if (form.halfD)
      words[lane] =
        (words[lane] as number) | (encodeHalf(sumToHalf(own, met, old)) << (16 * (element & 1)));
    else words[lane] = bitsOfSingle(sumToSingle(own, met, old));
  });
}
