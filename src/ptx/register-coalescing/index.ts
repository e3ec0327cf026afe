/**
 * Register coalescing: registers that a move connects become one where they can, and the move is dropped. Loop-carried values, accumulators
 * that start from a tile, and left factors of products then stay in their registers.
 *
 *   mov %c, %zero;                          mov %c, 0;
 *   $loop:                                  $loop:
 *     mov %a, %c;        accumulator          wgmma {%c}, …;
 *     wgmma {%a}, …;                          …
 *     …                                       mul %c, %c, %s;
 *     mul %n, %a, %s;                         @%p bra $loop;
 *     mov %c, %n;        next iteration
 *     @%p bra $loop;
 *
 * Two registers interfere if one is written while the other is live; a move of one into the other is no such write. A product in flight owns
 * its registers until the wait that ends it. Moves of innermost loops are tried first.
 */
import type { Operand, Register, Statement } from "../module.ts";
import { visitOperands } from "../register-declarations.ts";
import { effectsOf } from "./effects.ts";
import type { Effects } from "./effects.ts";
import { productsInFlight } from "./in-flight.ts";
import type { ProductsInFlight } from "./in-flight.ts";
import { blocksOf, loopDepths } from "./flow.ts";
import { isLiveAfter, liveRangesOf, merged } from "./live-ranges.ts";
import type { LiveRange } from "./live-ranges.ts";

interface Move {
  readonly at: number;
  readonly to: Register;
  readonly from: Register;
}

/** The same statements with fewer registers and moves. */
export function coalesceRegisters(statements: readonly Statement[]): readonly Statement[] {
  const moves = movesOf(statements);
  const blocks = moves.length === 0 ? undefined : blocksOf(statements);
  if (blocks === undefined) return statements;
  const registers = [...new Set(moves.flatMap(({ to, from }) => [to, from]))];
  const numbers = new Map(registers.map((register, number) => [register, number]));
  const effects = effectsOf(statements, numbers);
  const inFlight = productsInFlight(statements, blocks, effects);
  if (inFlight === undefined) return statements;
  const holding = withHeldRegisters(effects, inFlight);
  const classes = new Classes(
    inFlight,
    liveRangesOf(blocks, holding, registers.length),
    movedFrom(moves, numbers),
  );
  const depths = loopDepths(blocks, statements.length);
  const inner = moves.toSorted((one, other) => (depths[other.at] ?? 0) - (depths[one.at] ?? 0));
  for (const { to, from } of inner) classes.join(numbers.get(to) ?? 0, numbers.get(from) ?? 0);
  const names = new Map<Register, Register>();
  registers.forEach((register, number) => {
    const name = registers[classes.of(number)];
    if (name !== undefined && name !== register) names.set(register, name);
  });
  return names.size === 0 ? statements : renamed(statements, names);
}

const moveOpcodes: ReadonlySet<string> = new Set(["mov.pred", "mov.b16", "mov.b32", "mov.b64"]);

function movesOf(statements: readonly Statement[]): readonly Move[] {
  const moves: Move[] = [];
  statements.forEach((statement, at) => {
    if (statement.kind !== "instruction" || statement.guard !== undefined) return;
    if (!moveOpcodes.has(statement.opcode)) return;
    const [to, from] = statement.operands;
    if (to?.kind === "register" && from?.kind === "register" && to.type === from.type)
      moves.push({ at, to, from });
  });
  return moves;
}

/** A wait reads the registers of the products that it ends, as far as lives are concerned. */
function withHeldRegisters(
  effects: readonly (Effects | undefined)[],
  { ended, registers }: ProductsInFlight,
): readonly (Effects | undefined)[] {
  const holding = effects.slice();
  for (const [at, over] of ended) {
    const own = effects[at];
    if (own === undefined) continue;
    const held = [...over].flatMap((product) => registers.get(product) ?? []);
    holding[at] = { reads: [...own.reads, ...held], writes: own.writes };
  }
  return holding;
}

function movedFrom(
  moves: readonly Move[],
  numbers: ReadonlyMap<Register, number>,
): ReadonlyMap<number, number> {
  return new Map(moves.map(({ at, from }) => [at, numbers.get(from) ?? 0]));
}

/** Registers that have become one, by the number of one of them. */
class Classes {
  readonly #parents: number[];
  readonly #ranges: LiveRange[];
  /** Products that hold each, and those that run while it is touched. */
  readonly #holders: Set<number>[];
  readonly #touched: Set<number>[];
  /** What each move moves. */
  readonly #moved: ReadonlyMap<number, number>;

  constructor(
    { registers, touched }: ProductsInFlight,
    ranges: readonly LiveRange[],
    moved: ReadonlyMap<number, number>,
  ) {
    this.#touched = ranges.map((_, register) => new Set(touched.get(register)));
    this.#holders = ranges.map(() => new Set());
    for (const [product, held] of registers)
      for (const register of held) this.#holders[register]?.add(product);
    this.#parents = [...ranges.keys()];
    this.#ranges = [...ranges];
    this.#moved = moved;
  }

  of(register: number): number {
    let found = register;
    for (;;) {
      const parent = this.#parents[found];
      if (parent === undefined || parent === found) return found;
      found = parent;
    }
  }

  join(left: number, right: number): void {
    const [one, other] = [this.of(left), this.of(right)];
    const [first, second] = [this.#ranges[one], this.#ranges[other]];
    if (one === other || first === undefined || second === undefined) return;
    if (this.#disturbs(first, second, other) || this.#disturbs(second, first, one)) return;
    if (this.#touches(one, other) || this.#touches(other, one)) return;
    this.#parents[other] = one;
    for (const product of this.#holders[other] ?? []) this.#holders[one]?.add(product);
    for (const product of this.#touched[other] ?? []) this.#touched[one]?.add(product);
    this.#ranges[one] = merged(first, second);
  }

  /** Whether one is read or written while a product holds the other. */
  #touches(one: number, other: number): boolean {
    const holders = this.#holders[other];
    return [...(this.#touched[one] ?? [])].some((product) => holders?.has(product));
  }

  /** Whether a write of one destroys what the other, of that number, holds. */
  #disturbs({ writes }: LiveRange, holder: LiveRange, number: number): boolean {
    return writes.some((at) => {
      const moved = this.#moved.get(at);
      if (moved !== undefined && this.of(moved) === number) return false;
      return isLiveAfter(holder, at);
    });
  }
}

function renamed(
  statements: readonly Statement[],
  names: ReadonlyMap<Register, Register>,
): readonly Statement[] {
  const nameOf = (register: Register): Register => names.get(register) ?? register;
  let changed = false;
  const see = (register: Register): void => {
    changed ||= names.has(register);
  };
  const after: Statement[] = [];
  statements.forEach((statement) => {
    if (statement.kind !== "instruction") return after.push(statement);
    const { guard, operands } = statement;
    changed = false;
    visitOperands(operands, see);
    const other = guard && nameOf(guard.register);
    const sameGuard = other === undefined || other === guard?.register;
    if (!changed && sameGuard) return after.push(statement);
    const own = changed ? operands.map((operand) => renamedOperand(operand, nameOf)) : operands;
    const [to, from] = own;
    if (statement.opcode.startsWith("mov.") && to === from) return;
    const { kind, opcode, position, comment, line } = statement;
    const otherGuard = guard && other && { register: other, negated: guard.negated };
    // With the names in the order in which `Code` gives them, so that all instructions have one hidden class.
    after.push({ kind, opcode, operands: own, guard: otherGuard, position, comment, line });
  });
  return after;
}

function renamedOperand(operand: Operand, nameOf: (register: Register) => Register): Operand {
  const change = (each: Operand): Operand => renamedOperand(each, nameOf);
  switch (operand.kind) {
    case "register":
      return nameOf(operand);
    case "address": {
      const base = operand.base.kind === "register" ? nameOf(operand.base) : operand.base;
      return { ...operand, base, coordinates: operand.coordinates?.map(change) };
    }
    case "vector":
    case "list":
      return { ...operand, elements: operand.elements.map(change) };
    case "pair":
      return { ...operand, first: change(operand.first), second: change(operand.second) };
    case "not":
      return { ...operand, operand: nameOf(operand.operand) };
    case "negated":
      return { ...operand, operand: change(operand.operand) };
    case "element":
      return { ...operand, register: nameOf(operand.register) };
    case "integer":
    case "float":
    case "symbol":
    case "discard":
      return operand;
  }
}
