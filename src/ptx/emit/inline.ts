/**
 * Emission of instructions that the user wrote. The text is read once; then it is written for each element, or once for the
 * lane, with registers of this kernel in place of its own:
 *
 *   add.f32 %out0, %in0, %in1;        %in…   registers of the operands, which are only read
 *                                     %out…  fresh ones, which become the results
 *   .reg .f32 t;                      t      a fresh one each time
 *
 * What is more than arithmetic on registers is refused: nothing else here knows of it.
 */
import type { DType } from "../../formats/dtype.ts";
import type { OpOf, Value } from "../../ir/node.ts";
import { isData } from "../../ir/types.ts";
import { layoutOf } from "../../layout/model/placed-types.ts";
import { TilewrightError } from "../../support/diagnostics.ts";
import type { Location } from "../../support/location.ts";
import type { Code, RegisterClass } from "../function-builder.ts";
import { effectsOf } from "../register-coalescing/effects.ts";
import type { Instruction, Operand, PtxType, Register, Statement } from "../module.ts";
import { parsePtx } from "../parser/index.ts";
import { instructionText } from "../printer.ts";
import { visitRegisters } from "../register-declarations.ts";
import type { EmitContext } from "./context.ts";
import { elementCount, tileElements, tileFromElements } from "./elements.ts";
import { wrapInteger } from "./elementwise/integers.ts";
import { elementClass } from "./values.ts";

type InlineOp = OpOf<"inline_ptx" | "inline_ptx_memory">;

export function inlinePtx(op: InlineOp, context: EmitContext): void {
  const { sources } = op.operands;
  const perLane = op.attributes.layouts !== undefined;
  const given = sources.map((source) => elementsOf(context, source));
  const counts = op.results.map((result) => (perLane ? registersOf(result) : 1));
  const template = new Template(
    op,
    perLane ? given : given.map((each) => each.slice(0, 1)),
    counts,
  );
  const times = perLane ? 1 : (given[0]?.length ?? 0);
  const made = Array.from({ length: times }, (_, at) =>
    template.write(context.code, perLane ? given : given.map((each) => each.slice(at, at + 1))),
  );
  for (const [position, result] of op.results.entries())
    defineElements(
      context,
      result,
      made.flatMap((each) => each[position] ?? []),
    );
}

function elementsOf(context: EmitContext, value: Value): readonly Register[] {
  if (value.type.kind === "scalar") return [context.scalar(value).register];
  const tile = context.tile(value);
  return tileElements(context, tile).slice(0, tile.layout.kind === "splat" ? 1 : undefined);
}

function registersOf(value: Value): number {
  return value.type.kind === "tile"
    ? elementCount({ layout: layoutOf(value), shape: value.type.shape })
    : 1;
}

function defineElements(context: EmitContext, value: Value, elements: readonly Register[]): void {
  const dtype = dtypeOf(value);
  const [first] = elements;
  if (value.type.kind === "tile") {
    const { shape } = value.type;
    const form = { dtype, shape, layout: layoutOf(value) };
    context.define(value, tileFromElements(context, form, elements));
  } else if (first !== undefined) {
    // Lone narrow numbers are extended; the code need not have seen to it.
    const isNarrow = dtype.bits < 16 && dtype.kind !== "bool";
    const register = isNarrow ? wrapInteger(context.code, dtype, first) : first;
    context.define(value, { kind: "scalar", dtype, register });
  }
}

function dtypeOf({ type, id }: Value): DType {
  if (!isData(type)) throw new Error(`%${id} is no number`);
  return type.dtype;
}

/** Roots of opcodes that act on more than registers and have no address among their operands. */
const refused: ReadonlySet<string> = new Set([
  ...["bar", "barrier", "bra", "brx", "call", "ret", "exit", "trap", "brkpt", "wgmma", "tcgen05"],
  ...["cp", "setmaxnreg", "griddepcontrol", "fence", "membar", "nanosleep", "pmevent", "mbarrier"],
]);

/** The code of an op, read once. */
class Template {
  readonly #inputs: readonly (readonly string[])[];
  readonly #outputs: readonly (readonly string[])[];
  readonly #outputClasses: readonly RegisterClass[];
  readonly #instructions: readonly Instruction[];
  readonly #location: Location;
  /** Whether it may access memory, by addresses that it is given. */
  readonly #accesses: boolean;

  /** Registers of the operands for one writing, and how many each result has. */
  constructor(op: InlineOp, given: readonly (readonly Register[])[], counts: readonly number[]) {
    const perLane = op.attributes.layouts !== undefined;
    this.#location = op.location;
    this.#accesses = op.kind === "inline_ptx_memory";
    this.#inputs = given.map((registers, position) =>
      names("%in", position, registers.length, perLane),
    );
    this.#outputs = counts.map((count, position) => names("%out", position, count, perLane));
    this.#outputClasses = op.results.map((result) => elementClass(dtypeOf(result)));
    const inputs = given.flatMap((registers, position) =>
      registers.map(({ type }, at) => `.reg .${type} ${this.#inputs[position]?.[at]};`),
    );
    const outputs = this.#outputs.flatMap((each, position) =>
      each.map((name) => `.reg .${this.#outputClasses[position]} ${name};`),
    );
    this.#instructions = this.#read([...inputs, ...outputs].join(" "), op.attributes.code);
    this.#check();
  }

  /** Writes the code for these operands; gives the registers of each result. */
  write(code: Code, given: readonly (readonly Register[])[]): readonly (readonly Register[])[] {
    const registers = new Map<string, Register>();
    for (const [position, list] of this.#inputs.entries())
      for (const [at, name] of list.entries()) {
        const register = given[position]?.[at];
        if (register !== undefined) registers.set(name, register);
      }
    const results = this.#outputs.map((list, position) =>
      list.map((name) => {
        const made = code.register(this.#outputClasses[position] ?? "b32");
        registers.set(name, made);
        return made;
      }),
    );
    const own = new Map<Register, Register>();
    const replace = (register: Register): Register => {
      const known = registers.get(register.name) ?? own.get(register);
      if (known !== undefined) return known;
      const made = code.register(classOf(register.type));
      own.set(register, made);
      return made;
    };
    for (const { guard, operands, ...rest } of this.#instructions)
      code.append({
        ...rest,
        operands: operands.map((operand) => withRegisters(operand, replace)),
        guard: guard && { ...guard, register: replace(guard.register) },
      });
    return results;
  }

  #read(declarations: string, text: string): readonly Instruction[] {
    const header = ".version 8.6 .target sm_90a .address_size 64 .func inline ()";
    try {
      const { declarations: found } = parsePtx(`${header} { ${declarations} {\n${text}\n} }`);
      const [body] = found.flatMap((each) => (each.kind === "function" ? [each.body ?? []] : []));
      return (body ?? []).flatMap((statement) => this.#flat(statement));
    } catch (error) {
      if (!(error instanceof TilewrightError) || error.code === "TW7003") throw error;
      throw this.#refusal(`the code of inlinePtx cannot be read: ${error.summary}`, text);
    }
  }

  #flat(statement: Statement): readonly Instruction[] {
    if (statement.kind === "block") return statement.body.flatMap((inner) => this.#flat(inner));
    if (statement.kind === "instruction") return [statement];
    throw this.#refusal(`inlinePtx takes no ${statement.kind}`, statement.kind);
  }

  #check(): void {
    const inputs = new Set(this.#inputs.flat());
    const written = new Set<string>();
    for (const instruction of this.#instructions) {
      const text = instructionText(instruction);
      const [root = ""] = instruction.opcode.split(".");
      if (refused.has(root)) throw this.#refusal(`inlinePtx takes no ${root}`, text);
      for (const operand of instruction.operands) this.#checkOperand(operand, text);
      for (const name of writtenBy(instruction)) {
        if (inputs.has(name)) throw this.#refusal("inlinePtx changes an operand", text);
        written.add(name);
      }
    }
    const missing = this.#outputs.flat().find((name) => !written.has(name));
    if (missing !== undefined)
      throw this.#refusal(
        `inlinePtx leaves no result in ${missing}`,
        "no instruction that writes it",
      );
  }

  #checkOperand(operand: Operand, text: string): void {
    if (operand.kind === "address") {
      if (!this.#accesses) throw this.#refusal("inlinePtx takes no memory", text);
      if (operand.base.kind !== "register")
        throw this.#refusal("inlinePtx takes addresses in registers", text);
      return;
    }
    const isSpecial = operand.kind === "symbol" && operand.name.startsWith("%");
    if (operand.kind === "element" || (operand.kind === "symbol" && !isSpecial))
      throw this.#refusal("inlinePtx takes registers and numbers", text);
    visitRegisters(operand, ({ type, vector }) => {
      if (vector !== undefined || type === "b128")
        throw this.#refusal("inlinePtx takes registers of at most 64 bits", text);
    });
  }

  #refusal(message: string, found: string): TilewrightError {
    return new TilewrightError({
      code: "TW7003",
      message,
      location: this.#location,
      expected: this.#accesses
        ? "instructions on registers, and on memory by the addresses that are given"
        : "instructions that compute results from operands",
      found,
    });
  }
}

/** Registers of one operand or result: `%in0`, or `%in0_0`, `%in0_1` … where a lane has several. */
function names(
  prefix: string,
  position: number,
  count: number,
  perLane: boolean,
): readonly string[] {
  return Array.from({ length: count }, (_, at) => `${prefix}${position}${perLane ? `_${at}` : ""}`);
}

function writtenBy(instruction: Instruction): readonly string[] {
  const found: Register[] = [];
  for (const operand of instruction.operands)
    visitRegisters(operand, (register) => {
      found.push(register);
    });
  const numbers = new Map(found.map((register, at) => [register, at]));
  const [effects] = effectsOf([instruction], numbers);
  return effects?.writes.flatMap((at) => found[at]?.name ?? []) ?? [];
}

/** The class of our own registers that a declared one becomes; instructions say how they read it. */
function classOf(type: PtxType): RegisterClass {
  if (type === "pred") return "pred";
  if (type.endsWith("64")) return "b64";
  return type.endsWith("32") || type.endsWith("x2") ? "b32" : "b16";
}

function withRegisters(operand: Operand, replace: (register: Register) => Register): Operand {
  switch (operand.kind) {
    case "register":
      return replace(operand);
    case "vector":
    case "list":
      return { ...operand, elements: operand.elements.map((each) => withRegisters(each, replace)) };
    case "pair":
      return {
        ...operand,
        first: withRegisters(operand.first, replace),
        second: withRegisters(operand.second, replace),
      };
    case "not":
      return { ...operand, operand: replace(operand.operand) };
    case "negated":
      return { ...operand, operand: withRegisters(operand.operand, replace) };
    case "address":
      return operand.base.kind === "register"
        ? { ...operand, base: replace(operand.base) }
        : operand;
    case "integer":
    case "float":
    case "symbol":
    case "discard":
    case "element":
      return operand;
  }
}
