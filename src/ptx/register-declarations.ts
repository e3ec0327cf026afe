/**
 * Which block declares which register: the innermost one that holds all its uses, so that a register
 * used by two inner blocks is one register and one used by a single inner block stays in it.
 *
 *   {                                     %r0: used here, declared here
 *     add.s32 %r0, …;
 *     { mov.b32 %r1, %r0; … %p0 … }       %r1 and this %p0: declared in this block
 *     { … %r2 … %p0 … }                   %r2 too
 *     { … %r2 … }                         … so it is declared in the outer block
 *   }
 */
import type { Operand, Register, Statement } from "./module.ts";

interface Place {
  readonly body: readonly Statement[];
  readonly depth: number;
  readonly around: Place | undefined;
}

/** The registers that each block declares, in the order of their first use; outer blocks first. */
export type Homes = ReadonlyMap<readonly Statement[], readonly Register[]>;

export function registerHomes(body: readonly Statement[]): Homes {
  const places = new Map<Register, Place>();
  visitBlock({ body, depth: 0, around: undefined }, places);
  const homes = new Map<readonly Statement[], Register[]>();
  places.forEach((place, register) => {
    const declared = homes.get(place.body);
    if (declared === undefined) homes.set(place.body, [register]);
    else declared.push(register);
  });
  return homes;
}

function visitBlock(place: Place, places: Map<Register, Place>): void {
  const see = (register: Register): void => {
    const known = places.get(register);
    if (known === place) return;
    places.set(register, known === undefined ? place : commonPlace(known, place));
  };
  const { body } = place;
  for (let index = 0; index < body.length; index += 1) {
    const statement = body[index] as Statement;
    if (statement.kind === "block")
      visitBlock({ body: statement.body, depth: place.depth + 1, around: place }, places);
    if (statement.kind !== "instruction") continue;
    if (statement.guard !== undefined) see(statement.guard.register);
    visitOperands(statement.operands, see);
  }
}

function commonPlace(left: Place, right: Place): Place {
  let [one, other] = [left, right];
  while (one !== other) {
    const deeper = one.depth >= other.depth ? one : other;
    const around = deeper.around;
    if (around === undefined) throw new Error("a register used in two functions");
    if (deeper === one) one = around;
    else other = around;
  }
  return one;
}

export function visitRegisters(operand: Operand, visit: (register: Register) => void): void {
  switch (operand.kind) {
    case "register":
      visit(operand);
      return;
    case "address":
      visitRegisters(operand.base, visit);
      if (operand.coordinates !== undefined) visitOperands(operand.coordinates, visit);
      return;
    case "vector":
    case "list":
      visitOperands(operand.elements, visit);
      return;
    case "pair":
      visitRegisters(operand.first, visit);
      visitRegisters(operand.second, visit);
      return;
    case "not":
    case "negated":
      visitRegisters(operand.operand, visit);
      return;
    case "element":
      visit(operand.register);
      return;
    case "integer":
    case "float":
    case "symbol":
    case "discard":
      return;
  }
}

/** Those of several operands, from a place on; most are registers themselves, products alone have hundreds. */
export function visitOperands(
  operands: readonly Operand[],
  visit: (register: Register) => void,
  from = 0,
): void {
  for (let place = from; place < operands.length; place += 1) {
    const operand = operands[place] as Operand;
    if (operand.kind === "register") visit(operand);
    else visitRegisters(operand, visit);
  }
}

/**
 * The declarations of a block's registers: `.reg .b32 %r<12>`. Names `%r0` to `%r11` in any order are
 * a range. The outermost block hides nothing around it, so there a range may also declare unused ones.
 */
export function registerDeclarations(
  registers: readonly Register[],
  outermost: boolean,
): readonly string[] {
  const groups = new Map<string, Group>();
  for (const { name, type, vector } of registers) {
    const end = numberStart(name);
    const prefix = name.slice(0, end);
    const start = `.reg ${vector === undefined ? "" : `.v${vector} `}.${type}`;
    const key = `${start} ${end === name.length ? "" : prefix}`;
    let group = groups.get(key);
    if (group === undefined) {
      group = { start, prefix, numbers: new Set(), names: [] };
      groups.set(key, group);
    }
    group.names.push(name);
    if (end < name.length) group.numbers.add(Number(name.slice(end)));
  }
  const types = new Map<string, number>();
  for (const { prefix } of groups.values()) types.set(prefix, (types.get(prefix) ?? 0) + 1);
  return [...groups.values()].map((group) => {
    const alone = outermost && types.get(group.prefix) === 1;
    return `${group.start} ${namesText(group, alone)};`;
  });
}

/** Where the number begins that a name ends with: up to nine digits, without zeros in front. Its length where there is none. */
function numberStart(name: string): number {
  let start = name.length;
  while (name.length - start < 9 && isDigit(name.charCodeAt(start - 1))) start -= 1;
  while (start < name.length - 1 && name.charCodeAt(start) === zero) start += 1;
  return start;
}

const zero = 48;

function isDigit(code: number): boolean {
  return code >= zero && code < zero + 10;
}

interface Group {
  readonly start: string;
  readonly prefix: string;
  readonly numbers: Set<number>;
  readonly names: string[];
}

function namesText({ prefix, numbers, names }: Group, mayAdd: boolean): string {
  let count = 0;
  for (const number of numbers) count = Math.max(count, number + 1);
  const dense = count === numbers.size || (mayAdd && count <= 2 * numbers.size + 2);
  return dense && count > 0 ? `${prefix}<${count}>` : names.join(", ");
}
