/**
 * Which array an address came from. An access that was meant for one array and lands in another reads or
 * writes memory that is there, so that nothing else notices. Addresses are followed back through the
 * registers of the entry to the parameters that they began as:
 *
 *   ld.param.u64   %d0, [x];                    x
 *   cvta.to.global.u64 %d1, %d0;                x
 *   mad.wide.s32   %d2, %r4, 4, %d1;            x      products are offsets
 *   add.s64        %d3, %d2, %d9;               x      where %d9 is an offset
 *   ld.global.u64  %d5, [%d3];                  unknown: what memory holds may be an address
 *   add.s64        %d6, %d1, %d0y;              x or y: the launch may know which of them is an address
 *
 * A register has the sources of all that is written to it, wherever that stands. What is not followed
 * (addresses that were loaded, put together from halves, of variables, from calls) is unknown and is not
 * checked, so that no right program is reported.
 */
import type { Instruction, Operand, PtxFunction, Register } from "../../ptx/module.ts";
import type { FlatInstruction } from "./flatten.ts";

/** Parameters by their number, as bits; 0 for an offset. */
type Sources = number;
const unknown: Sources = -1;
const mostParameters = 30;

export interface Provenance {
  /** Sources that accesses have: the bytes of the entry's parameters at which they begin. */
  readonly sources: readonly (readonly number[])[];
  /** Of each access that is checked, the number of its sources. */
  readonly accesses: ReadonlyMap<Instruction, number>;
}

/** Where in the operands of an access its global address stands. */
const addressOperands: { readonly [root: string]: number } = {
  ld: 1,
  ldu: 1,
  st: 0,
  atom: 1,
  red: 0,
  cp: 1,
};

/** What these give has the sources of their operands: sums, moves, choices, masks. */
const following: ReadonlySet<string> = new Set([
  "mov",
  "cvta",
  "cvt",
  "add",
  "sub",
  "selp",
  "min",
  "max",
  "and",
  "or",
  "xor",
  "not",
]);

/** What these give is an offset, whatever goes in. */
const offsets: ReadonlySet<string> = new Set(["mul", "shl", "shr", "div", "rem", "neg", "abs"]);

class Follower {
  readonly #parameters: ReadonlyMap<string, number>;
  /** Bytes of the parameters that are loaded as 64 bits; their position is their bit. */
  readonly loaded: number[] = [];
  readonly #known = new Map<Register, Sources>();
  changed = false;

  constructor(parameters: ReadonlyMap<string, number>) {
    this.#parameters = parameters;
  }

  of(operand: Operand | undefined): Sources {
    if (operand?.kind === "integer") return 0;
    if (operand?.kind !== "register") return unknown;
    return isWide(operand.type) ? (this.#known.get(operand) ?? 0) : 0;
  }

  follow({ opcode, operands }: Instruction): void {
    const [root = "", ...modifiers] = opcode.split(".");
    const [target, ...given] = operands;
    if (root === "ld" && modifiers.includes("param")) this.#load(target, given[0]);
    else if (offsets.has(root)) this.#write(target, 0);
    else if (root === "mad") this.#write(target, this.of(given[2]));
    else if (root === "cvta" && !modifiers.includes("global")) this.#write(target, unknown);
    else if (following.has(root))
      this.#write(target, given.map((operand) => this.of(operand)).reduce(joined, 0));
    else this.#write(target, unknown);
  }

  #load(target: Operand | undefined, place: Operand | undefined): void {
    const start =
      place?.kind === "address" && place.base.kind === "symbol"
        ? this.#parameters.get(place.base.name)
        : undefined;
    if (start === undefined || place?.kind !== "address") {
      this.#write(target, unknown);
      return;
    }
    const elements = target?.kind === "vector" ? target.elements : [target];
    const symbol = place.base.kind === "symbol" ? place.base.offset : 0;
    elements.forEach((element, index) => {
      this.#write(element, this.#parameter(start + symbol + place.offset + 8 * index));
    });
  }

  #parameter(byte: number): Sources {
    const known = this.loaded.indexOf(byte);
    const position = known < 0 ? this.loaded.push(byte) - 1 : known;
    return position < mostParameters ? 1 << position : unknown;
  }

  #write(target: Operand | undefined, sources: Sources): void {
    if (target?.kind === "vector") {
      for (const element of target.elements) this.#write(element, unknown);
      return;
    }
    if (target?.kind !== "register" || !isWide(target.type)) return;
    const before = this.#known.get(target) ?? 0;
    const after = joined(before, sources);
    if (after === before && this.#known.has(target)) return;
    this.#known.set(target, after);
    this.changed = true;
  }
}

function joined(left: Sources, right: Sources): Sources {
  return left === unknown || right === unknown ? unknown : left | right;
}

function isWide(type: string): boolean {
  return type.endsWith("64");
}

/** The sources of the accesses of an entry, whose parameters begin at these bytes. */
export function provenanceOf(
  { parameters }: PtxFunction,
  instructions: readonly FlatInstruction[],
  parameterOffsets: readonly number[],
): Provenance {
  const starts = parameters.map(({ name }, index) => [name, parameterOffsets[index] ?? 0] as const);
  const follower = new Follower(new Map(starts));
  do {
    follower.changed = false;
    for (const { instruction } of instructions) follower.follow(instruction);
  } while (follower.changed);
  const accesses = new Map<Instruction, number>();
  const numbers: Sources[] = [];
  for (const { instruction } of instructions) {
    const address = addressOf(instruction);
    const sources = address === undefined ? 0 : follower.of(address);
    if (sources === 0 || sources === unknown) continue;
    const known = numbers.indexOf(sources);
    accesses.set(instruction, known < 0 ? numbers.push(sources) - 1 : known);
  }
  const bytesOf = (bits: Sources): readonly number[] =>
    follower.loaded.filter((_, bit) => ((bits >> bit) & 1) === 1);
  return { sources: numbers.map(bytesOf), accesses };
}

/** The register with the global or generic address of an access. */
function addressOf({ opcode, operands }: Instruction): Operand | undefined {
  const [root = "", ...modifiers] = opcode.split(".");
  const position = addressOperands[root];
  const elsewhere = ["param", "local", "const", "bulk"].some((each) => modifiers.includes(each));
  if (position === undefined || elsewhere) return undefined;
  const operand = operands[position];
  return operand?.kind === "address" ? operand.base : undefined;
}
