/**
 * What an operand of a form may be, in a few letters.
 *
 *   | pattern    | stands for                                                         |
 *   |------------|--------------------------------------------------------------------|
 *   | d32        | a register that takes 32 bits; dp a predicate                      |
 *   | b32        | a register of 32 bits or a constant; u32 not one of floats         |
 *   | r16        | a register that is not of floats, and no constant                  |
 *   | p          | a predicate, `!p` or a constant                                    |
 *   | i, i0..15  | a constant, of a range                                             |
 *   | columns    | 32, 64 … 512 or a register; columns32 a multiple of 32             |
 *   | {d32*2N}   | a vector of twice as many as xN says; {d32_*8} with sinks          |
 *   | {b32*1}+   | the same, or its only element without braces                       |
 *   | [t]        | an address in tensor memory; [s] any other                         |
 *   | [map*5]    | a tensor map with 5 coordinates; [map*D] with as many as Nd says   |
 *   | …?         | may be left out                                                    |
 */
import type { Operand, PtxType } from "../module.ts";

export interface OperandPattern {
  readonly optional: boolean;
  /** As errors say it, for the number of `xN` and of dimensions. */
  expected(counts: Counts): string;
  fits(operand: Operand, counts: Counts): boolean;
}

export interface Counts {
  /** Of `xN`. */
  readonly count: number;
  /** Of `Nd`. */
  readonly dimensions: number;
}

/** Bits of a register; 1 of a predicate. */
function widthOf(type: PtxType): number {
  if (type === "pred") return 1;
  if (type === "f16x2" || type === "bf16x2") return 32;
  return Number(/\d+$/.exec(type)?.[0]);
}

function isFloat(type: PtxType): boolean {
  return /^b?f\d/.test(type);
}

type ElementKind = "d" | "b" | "u" | "r" | "p";

interface Element {
  readonly kind: ElementKind;
  readonly width: number;
  readonly sink: boolean;
}

function readElement(text: string): Element {
  if (text === "p") return { kind: "p", width: 1, sink: false };
  const match = /^([dbur])(p|\d+)(_)?$/.exec(text);
  if (match === null) throw new Error(`pattern of an operand: ${text}`);
  const width = match[2] === "p" ? 1 : Number(match[2]);
  return { kind: match[1] as ElementKind, width, sink: match[3] !== undefined };
}

function elementFits({ kind, width, sink }: Element, operand: Operand): boolean {
  switch (operand.kind) {
    case "register": {
      if (operand.vector !== undefined || widthOf(operand.type) !== width) return false;
      return kind === "d" || kind === "b" || !isFloat(operand.type);
    }
    case "element":
      return widthOf(operand.register.type) === width;
    case "not":
      return kind === "p";
    case "integer":
      return kind === "b" || kind === "u" || kind === "p";
    case "symbol":
      return (kind === "b" || kind === "u") && width >= 32;
    case "float":
      return kind === "b" && operand.width === width;
    case "discard":
      return sink;
    case "address":
    case "list":
    case "negated":
    case "pair":
    case "vector":
      return false;
  }
}

function elementText({ kind, width }: Element): string {
  const what = width === 1 ? "predicate" : `register of ${width} bits`;
  const text = kind === "u" || kind === "r" ? `${what}, not of floats` : what;
  return kind === "b" || kind === "u" || kind === "p" ? `${text}, or a constant` : text;
}

/** A number, or a multiple of what xN or Nd says. */
function readLength(text: string): (counts: Counts) => number {
  const match = /^(\d*)([ND]?)$/.exec(text);
  if (match === null) throw new Error(`length of a vector: ${text}`);
  const factor = match[1] === "" ? 1 : Number(match[1]);
  return ({ count, dimensions }) =>
    factor * (match[2] === "N" ? count : match[2] === "D" ? dimensions : 1);
}

type Meaning = Pick<OperandPattern, "expected" | "fits">;

function vectorPattern(element: Element, length: string, bare: boolean): Meaning {
  const lengthOf = readLength(length);
  return {
    expected: (counts) => {
      const many = lengthOf(counts);
      return `a vector of ${many}, each a ${elementText(element)}`;
    },
    fits: (operand, counts) => {
      const elements = operand.kind === "vector" ? operand.elements : bare ? [operand] : [];
      if (elements.length !== lengthOf(counts)) return false;
      return elements.every((each) => elementFits(element, each));
    },
  };
}

function mapPattern(length: string): Meaning {
  const lengthOf = readLength(length);
  return {
    expected: (counts) => `a tensor map with ${lengthOf(counts)} coordinates, [map, {…}]`,
    fits: (operand, counts) =>
      operand.kind === "address" &&
      operand.coordinates?.length === lengthOf(counts) &&
      operand.coordinates.every((each) => elementFits({ kind: "b", width: 32, sink: false }, each)),
  };
}

function constantPattern(least: number, most: number): Meaning {
  const range = least === -Infinity ? "" : ` from ${least} to ${most}`;
  return {
    expected: () => `a constant${range}`,
    fits: (operand) =>
      operand.kind === "integer" && Number(operand.value) >= least && Number(operand.value) <= most,
  };
}

const wordSource: Element = { kind: "u", width: 32, sink: false };

const named: { readonly [text: string]: Meaning } = {
  "[t]": {
    expected: () => "an address in tensor memory, [%r] of 32 bits",
    fits: (operand) =>
      operand.kind === "address" &&
      operand.coordinates === undefined &&
      operand.base.kind === "register" &&
      widthOf(operand.base.type) === 32 &&
      !isFloat(operand.base.type),
  },
  "[s]": {
    expected: () => "an address in memory, [%r]",
    fits: (operand) => operand.kind === "address" && operand.coordinates === undefined,
  },
  i: constantPattern(-Infinity, Infinity),
  columns: {
    expected: () => "32, 64, 128, 256 or 512 columns, or a register of 32 bits",
    fits: (operand) =>
      elementFits(wordSource, operand) &&
      (operand.kind !== "integer" || [32, 64, 128, 256, 512].includes(Number(operand.value))),
  },
  columns32: {
    expected: () => "a multiple of 32 columns, or a register of 32 bits",
    fits: (operand) =>
      elementFits(wordSource, operand) &&
      (operand.kind !== "integer" || Number(operand.value) % 32 === 0),
  },
};

function meaning(text: string): Meaning {
  const known = named[text];
  if (known !== undefined) return known;
  const range = /^i(-?\d+)\.\.(\d+)$/.exec(text);
  if (range !== null) return constantPattern(Number(range[1]), Number(range[2]));
  const map = /^\[map\*(\w+)\]$/.exec(text);
  if (map !== null) return mapPattern(map[1] ?? "");
  const vector = /^\{(\w+)\*(\w+)\}(\+)?$/.exec(text);
  if (vector !== null)
    return vectorPattern(readElement(vector[1] ?? ""), vector[2] ?? "", vector[3] !== undefined);
  const element = readElement(text);
  return {
    expected: () => `a ${elementText(element)}`,
    fits: (operand) => elementFits(element, operand),
  };
}

export function operandPattern(text: string): OperandPattern {
  const optional = text.endsWith("?");
  return { ...meaning(optional ? text.slice(0, -1) : text), optional };
}

/** Where operands stop fitting: which one, and what should stand there; undefined for what is too much. */
export interface Misfit {
  readonly operand: number;
  readonly expected: OperandPattern | undefined;
}

/** Whether operands fit; those that may be left out are tried both ways. Gives how far it came where they do not. */
export function misfit(
  patterns: readonly OperandPattern[],
  operands: readonly Operand[],
  counts: Counts,
): Misfit | undefined {
  let furthest: Misfit = { operand: -1, expected: undefined };
  const fits = (pattern: number, operand: number): boolean => {
    const next = patterns[pattern];
    if (operand > furthest.operand) furthest = { operand, expected: next };
    if (next === undefined) return operand === operands.length;
    const given = operands[operand];
    if (given !== undefined && next.fits(given, counts) && fits(pattern + 1, operand + 1))
      return true;
    return next.optional && fits(pattern + 1, operand);
  };
  return fits(0, 0) ? undefined : furthest;
}
