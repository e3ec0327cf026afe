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
 *   | bytes16    | a multiple of 16 or a register; registers8 of 8, from 24 to 256    |
 *   | ids:02:01  | {byte, thread} of a scale: registers, or one of these digits each  |
 *   | {d32*2N}   | a vector of twice as many as xN says; {d32_*8} with sinks          |
 *   | {b32*1}+   | the same, or its only element without braces                       |
 *   | [t]        | an address in tensor memory; [s] any other                         |
 *   | [map*5]    | a tensor map with 5 coordinates; [map*D] with as many as Nd says   |
 *   | {u16*E}    | two fewer than Nd says                                             |
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

function isAddressType(type: PtxType): boolean {
  return !isFloat(type) && [32, 64].includes(widthOf(type));
}

const elementKinds = ["d", "b", "u", "r", "p"] as const;
type ElementKind = (typeof elementKinds)[number];

interface Element {
  readonly kind: ElementKind;
  readonly width: number;
  readonly sink: boolean;
}

function readElement(text: string): Element {
  if (text === "p") return { kind: "p", width: 1, sink: false };
  const match = /^([dbur])(p|\d+)(_)?$/.exec(text);
  const kind = elementKinds.find((each) => each === match?.[1]);
  if (match === null || kind === undefined) throw new Error(`pattern of an operand: ${text}`);
  const width = match[2] === "p" ? 1 : Number(match[2]);
  return { kind, width, sink: match[3] !== undefined };
}

/** Kinds that constants will do for. */
const constantKinds: ReadonlySet<ElementKind> = new Set(["b", "u", "p"]);

function constantFits({ kind, width }: Element, operand: Operand): boolean {
  if (!constantKinds.has(kind)) return false;
  if (operand.kind === "float") return kind === "b" && operand.width === width;
  return operand.kind === "integer" || (operand.kind === "symbol" && width >= 32);
}

function elementFits(element: Element, operand: Operand): boolean {
  const { kind, width, sink } = element;
  if (operand.kind === "register") {
    if (operand.vector !== undefined || widthOf(operand.type) !== width) return false;
    return kind === "d" || kind === "b" || !isFloat(operand.type);
  }
  if (operand.kind === "element") return widthOf(operand.register.type) === width;
  if (operand.kind === "not") return kind === "p";
  return operand.kind === "discard" ? sink : constantFits(element, operand);
}

function elementText({ kind, width }: Element): string {
  const what = width === 1 ? "predicate" : `register of ${width} bits`;
  const text = kind === "u" || kind === "r" ? `${what}, not of floats` : what;
  return kind === "b" || kind === "u" || kind === "p" ? `${text}, or a constant` : text;
}

/** A number, or a multiple of what xN or Nd says. */
function readLength(text: string): (counts: Counts) => number {
  const match = /^(\d*)([NDE]?)$/.exec(text);
  if (match === null) throw new Error(`length of a vector: ${text}`);
  const factor = match[1] === "" ? 1 : Number(match[1]);
  return ({ count, dimensions }) => {
    if (match[2] === "N") return factor * count;
    if (match[2] === "") return factor;
    return factor * (match[2] === "D" ? dimensions : dimensions - 2);
  };
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
      (operand.base.kind !== "register" || isAddressType(operand.base.type)) &&
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

/** A constant that passes a test, or a register. */
function multiplePattern(expected: string, isFine: (value: number) => boolean): Meaning {
  return {
    expected: () => `${expected}, or a register of 32 bits`,
    fits: (operand) =>
      elementFits(wordSource, operand) &&
      (operand.kind !== "integer" || isFine(Number(operand.value))),
  };
}

function idPattern(choices: readonly string[]): Meaning {
  return {
    expected: () =>
      `{byte, thread}, registers of 16 bits or constants: ${choices
        .map((digits) => [...digits].join(", "))
        .join(" and ")}`,
    fits: (operand) =>
      operand.kind === "vector" &&
      operand.elements.length === choices.length &&
      operand.elements.every(
        (each, place) =>
          elementFits({ kind: "u", width: 16, sink: false }, each) &&
          (each.kind !== "integer" || (choices[place] ?? "").includes(String(each.value))),
      ),
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
    fits: (operand) =>
      operand.kind === "address" &&
      operand.coordinates === undefined &&
      (operand.base.kind !== "register" || isAddressType(operand.base.type)),
  },
  i: constantPattern(-Infinity, Infinity),
  columns: multiplePattern("32, 64, 128, 256 or 512 columns", (value) =>
    [32, 64, 128, 256, 512].includes(value),
  ),
  columns32: multiplePattern("a multiple of 32 columns", (value) => value % 32 === 0),
  bytes16: multiplePattern("a multiple of 16 bytes", (value) => value % 16 === 0),
  registers8: {
    expected: () => "a multiple of 8 registers, from 24 to 256",
    fits: (operand) => {
      const count = operand.kind === "integer" ? Number(operand.value) : 0;
      return count >= 24 && count <= 256 && count % 8 === 0;
    },
  },
};

function meaning(text: string): Meaning {
  const known = named[text];
  if (known !== undefined) return known;
  const range = /^i(-?\d+)\.\.(\d+)$/.exec(text);
  if (range !== null) return constantPattern(Number(range[1]), Number(range[2]));
  const map = /^\[map\*(\w+)\]$/.exec(text);
  if (map !== null) return mapPattern(map[1] ?? "");
  const ids = /^ids:(\d+):(\d+)$/.exec(text);
  if (ids !== null) return idPattern(ids.slice(1));
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
  patterns: readonly OperandPattern[] | undefined,
  operands: readonly Operand[],
  counts: Counts,
): Misfit | undefined {
  if (patterns === undefined) return undefined;
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
