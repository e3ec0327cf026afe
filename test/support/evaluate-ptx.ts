/**
 * Runs a sequence of PTX arithmetic for one lane, on numbers: what functions are tested with. Every
 * register is eight bytes, seen as floats or integers as an instruction wants it; branches and guards work,
 * memory and other lanes do not exist.
 *
 *   const evaluate = compileSequence(32, 1, (code, [x]) => emitSomething(code, x));
 *   evaluate(0.5)
 *
 * Approximations give the nearest number moved `nudge` times by the error that they may have, since GPUs differ in these: `rcp`, `rsqrt` and
 * `sqrt` by a unit in the last place, `ex2` by 2^-22 of the result, `lg2` by 2^-22, `tanh` by 2^-11 of the result.
 */
import { fusedMultiplyAdd } from "../../src/formats/arithmetic/fused.ts";
import { Code, SourceFiles } from "../../src/ptx/function-builder.ts";
import type { Instruction, Operand, Register, Statement } from "../../src/ptx/module.ts";

type Scalar = number | bigint;
type Reader = () => Scalar;
type Step = () => void;
type View = { [index: number]: Scalar };
type Compute = (a: never, b: never, c: never) => Scalar;

const oddScratch = new Float64Array(1);
const oddWords = new Int32Array(oddScratch.buffer);

/** a·b + c of f32, ready for rounding to it: the product is exact in f64, the sum rounded to odd. */
function fuse32(a: number, b: number, c: number): number {
  const product = a * b;
  const sum = product + c;
  const part = sum - product;
  const error = product - (sum - part) + (c - part);
  if (!(error > 0 || error < 0)) return sum;
  oddScratch[0] = sum;
  const low = oddWords[0] as number;
  if ((low & 1) !== 0) return sum;
  if (error > 0 === sum > 0) oddWords[0] = low | 1;
  else {
    oddWords[0] = low - 1;
    if (low === 0) oddWords[1] = (oddWords[1] as number) - 1;
  }
  return oddScratch[0];
}

const single = new Float32Array(1);
const singleBits = new Int32Array(single.buffer);

/** The float `units` beyond a finite number other than zero. */
function moveUnits(value: number, units: number): number {
  single[0] = value;
  if (single[0] === 0 || !Number.isFinite(single[0])) return single[0];
  singleBits[0] = (singleBits[0] as number) + units;
  return single[0];
}

/** How far approximations move that are off by more than a unit. */
const errorOf: { readonly [root: string]: (value: number, nudge: number) => number } = {
  // 2^0 is 1 everywhere.
  ex2: (value, nudge) => (value === 1 ? value : value * (1 + nudge * 2 ** -22)),
  lg2: (value, nudge) =>
    value === 0 || !Number.isFinite(value)
      ? value
      : value + nudge * 2 ** -22 * Math.max(1, Math.abs(value)),
  tanh: (value, nudge) => value * (1 + nudge * 2 ** -11),
};

/** A subnormal f32 as the zero of its sign. */
function flushSubnormal(value: number): number {
  return Math.abs(value) < 2 ** -126 ? value * 0 : value;
}

function copySign(sign: number, magnitude: number): number {
  const negative = sign < 0 || Object.is(sign, -0);
  return negative ? -Math.abs(magnitude) : Math.abs(magnitude);
}

/** Operations of floats and of integers up to 32 bits; storing rounds or wraps the result. */
const ofNumbers: { readonly [opcode: string]: (...operands: number[]) => Scalar } = {
  add: (a = 0, b = 0) => a + b,
  sub: (a = 0, b = 0) => a - b,
  mul: (a = 0, b = 0) => a * b,
  div: (a = 0, b = 0) => a / b,
  rem: (a = 0, b = 0) => a % b,
  neg: (a = 0) => -a,
  abs: (a = 0) => Math.abs(a),
  copysign: (a = 0, b = 0) => copySign(a, b),
  min: (a = 0, b = 0) => Math.min(a, b),
  max: (a = 0, b = 0) => Math.max(a, b),
  and: (a = 0, b = 0) => a & b,
  or: (a = 0, b = 0) => a | b,
  xor: (a = 0, b = 0) => a ^ b,
  shl: (a = 0, b = 0) => a << b,
  shr: (a = 0, b = 0) => (a < 0 ? a >> b : a >>> b),
  "mul.lo": (a = 0, b = 0) => Math.imul(a, b),
  "mul.hi": (a = 0, b = 0) => Number((BigInt(a) * BigInt(b)) >> 32n),
  "mul.wide": (a = 0, b = 0) => BigInt(a) * BigInt(b),
  rcp: (a = 0) => 1 / a,
  sqrt: (a = 0) => Math.sqrt(a),
  rsqrt: (a = 0) => 1 / Math.sqrt(a),
  ex2: (a = 0) => 2 ** a,
  lg2: (a = 0) => Math.log2(a),
  tanh: (a = 0) => Math.tanh(a),
  mov: (a = 0) => a,
};

const ofWide: { readonly [opcode: string]: (a: bigint, b: bigint) => Scalar } = {
  add: (a, b) => a + b,
  and: (a, b) => a & b,
  or: (a, b) => a | b,
  xor: (a, b) => a ^ b,
  shl: (a, b) => a << BigInt(b),
  shr: (a, b) => a >> BigInt(b),
  rem: (a, b) => a % b,
  "mul.lo": (a, b) => a * b,
  "mul.hi": (a, b) => (a * b) >> 64n,
  mov: (a) => a,
};

const comparisons: { readonly [name: string]: (a: Scalar, b: Scalar) => boolean } = {
  eq: (a, b) => a === b,
  ne: (a, b) => a !== b && a === a && b === b,
  lt: (a, b) => a < b,
  le: (a, b) => a <= b,
  gt: (a, b) => a > b,
  ge: (a, b) => a >= b,
  nan: (a, b) => a !== a || b !== b,
};

class Sequence {
  readonly #slots = new Map<Register, number>();
  readonly #views: { readonly [type: string]: View };
  readonly #steps: Step[] = [];
  readonly #nudge: number;
  #next = 0;

  constructor(statements: readonly Statement[], registers: number, nudge: number) {
    const f64 = new Float64Array(registers);
    const { buffer } = f64;
    const words = new Uint32Array(buffer);
    const wide = new BigUint64Array(buffer);
    this.#views = {
      f32: new Float32Array(buffer),
      f64: f64,
      s32: new Int32Array(buffer),
      u32: words,
      b32: words,
      pred: words,
      s64: new BigInt64Array(buffer),
      u64: wide,
      b64: wide,
    };
    this.#nudge = nudge;
    const labels = new Map<string, number>();
    const instructions = statements.flatMap((statement) =>
      statement.kind === "instruction" ? [statement] : [],
    );
    let position = 0;
    for (const statement of statements) {
      if (statement.kind === "label") labels.set(statement.name, position);
      else if (statement.kind === "instruction") position++;
    }
    for (const instruction of instructions) this.#steps.push(this.#step(instruction, labels));
  }

  /** Writes the operands, runs, and reads the result. */
  run(
    type: string,
    inputs: readonly Register[],
    values: readonly number[],
    result: Register,
  ): number {
    inputs.forEach((input, index) => {
      (this.#views[type] as View)[this.#place(input, type)] = values[index] ?? 0;
    });
    const steps = this.#steps;
    this.#next = 0;
    while (this.#next < steps.length) (steps[this.#next++] as Step)();
    return (this.#views[type] as View)[this.#place(result, type)] as number;
  }

  /** Where a register is in the view of a type; half `part` of it for 32 bits. */
  #place(register: Register, type: string): number {
    let slot = this.#slots.get(register);
    if (slot === undefined) {
      slot = this.#slots.size;
      this.#slots.set(register, slot);
    }
    return type.endsWith("64") ? slot : 2 * slot;
  }

  #reader(operand: Operand | undefined, type: string): Reader {
    if (operand?.kind === "register") {
      const view = this.#views[type] as View;
      const place = this.#place(operand, type);
      return () => view[place] as Scalar;
    }
    if (operand?.kind !== "integer" && operand?.kind !== "float")
      throw new Error(`an operand ${operand?.kind}`);
    const bits = BigInt(operand.kind === "integer" ? operand.value : operand.bits);
    const scratch = new BigUint64Array([bits]).buffer;
    const constant = readConstant(new DataView(scratch), type);
    return () => constant;
  }

  #step(instruction: Instruction, labels: ReadonlyMap<string, number>): Step {
    const step = this.#unguarded(instruction, labels);
    if (instruction.guard === undefined) return step;
    const { register, negated } = instruction.guard;
    const holds = this.#reader(register, "pred");
    return () => {
      if ((holds() === 1) !== negated) step();
    };
  }

  #unguarded(instruction: Instruction, labels: ReadonlyMap<string, number>): Step {
    const { opcode, operands } = instruction;
    const [root = "", ...modifiers] = opcode.split(".");
    const type = modifiers.at(-1) ?? "";
    if (root === "bra") return this.#jump(operands[0], labels);
    if (root === "setp") return this.#compare(modifiers, operands);
    if (root === "selp") return this.#select(type, operands);
    if (root === "cvt") return this.#convert(modifiers, operands);
    if (root === "mov" && operands.some(({ kind }) => kind === "vector"))
      return this.#moveParts(operands);
    return this.#compute(opcode, operands);
  }

  #jump(target: Operand | undefined, labels: ReadonlyMap<string, number>): Step {
    const place = target?.kind === "symbol" ? labels.get(target.name) : undefined;
    if (place === undefined) throw new Error("a jump to nowhere");
    return () => {
      this.#next = place;
    };
  }

  #writer(target: Operand | undefined, type: string): (value: Scalar) => void {
    if (target?.kind !== "register") throw new Error(`a result ${target?.kind}`);
    const view = this.#views[type] as View;
    const place = this.#place(target, type);
    return (value) => {
      view[place] = value;
    };
  }

  #compare([comparison = "", ...rest]: readonly string[], operands: readonly Operand[]): Step {
    const type = rest.at(-1) ?? "";
    const [target, first, second, other] = operands;
    const [a, b] = [first, second].map((operand) => this.#reader(operand, type)) as [
      Reader,
      Reader,
    ];
    const also = other === undefined ? () => 1 : this.#reader(other, "pred");
    const write = this.#writer(target, "pred");
    const compare = comparisons[comparison];
    if (compare === undefined) throw new Error(`a comparison ${comparison}`);
    return () => write(Number(compare(a(), b()) && also() === 1));
  }

  #select(type: string, [target, first, second, condition]: readonly Operand[]): Step {
    const [a, b] = [first, second].map((operand) => this.#reader(operand, type)) as [
      Reader,
      Reader,
    ];
    const holds = this.#reader(condition, "pred");
    const write = this.#writer(target, type);
    return () => write(holds() === 1 ? a() : b());
  }

  #convert(modifiers: readonly string[], [target, source]: readonly Operand[]): Step {
    const [to = "", from = ""] = modifiers.slice(-2);
    const truncates = modifiers.includes("rzi");
    const read = this.#reader(source, truncates ? to : from);
    const write = this.#writer(target, to);
    if (truncates) return () => write(Math.trunc(read() as number));
    if (to === "u64") return () => write(BigInt(read()));
    if (to === "u32") return () => write(Number(BigInt.asUintN(32, read() as bigint)));
    return () => write(Number(read()));
  }

  #moveParts([target, source]: readonly Operand[]): Step {
    if (target?.kind === "vector") {
      const read = this.#reader(source, "b64");
      const [low, high] = target.elements.map((part) => this.#writer(part, "b32"));
      return () => {
        const bits = read() as bigint;
        low?.(Number(bits & 0xffffffffn));
        high?.(Number(bits >> 32n));
      };
    }
    const parts = source?.kind === "vector" ? source.elements : [];
    const [low, high] = parts.map((part) => this.#reader(part, "b32")) as [Reader, Reader];
    const write = this.#writer(target, "b64");
    return () => write(BigInt(low()) | (BigInt(high()) << 32n));
  }

  #compute(opcode: string, [target, ...sources]: readonly Operand[]): Step {
    const [root = "", ...modifiers] = opcode.split(".");
    const type = modifiers.at(-1) ?? "";
    const wide = /^[bus]64$/.test(type);
    const shifts = root === "shl" || root === "shr";
    const readers = sources.map((source, index) =>
      this.#reader(source, shifts && index === 1 ? "u32" : type),
    );
    const write = this.#writer(target, modifiers[0] === "wide" ? "u64" : type);
    const compute = this.#operation(root, modifiers, type, wide);
    const [a, b, c] = readers as [Reader, Reader, Reader];
    if (readers.length === 1) return () => write(compute(a() as never, 0 as never, 0 as never));
    if (readers.length === 2) return () => write(compute(a() as never, b() as never, 0 as never));
    return () => write(compute(a() as never, b() as never, c() as never));
  }

  #operation(root: string, modifiers: readonly string[], type: string, wide: boolean): Compute {
    if (root === "fma") return type === "f32" ? fuse32 : fusedMultiplyAdd;
    const name = modifiers.length > 1 && !type.startsWith("f") ? `${root}.${modifiers[0]}` : root;
    const operation = (wide ? ofWide : ofNumbers)[name];
    if (operation === undefined) throw new Error(`an instruction ${name} of ${type}`);
    if (!modifiers.includes("approx")) return operation;
    const exact = operation as (a: number) => number;
    const flush = modifiers.includes("ftz") ? flushSubnormal : (value: number) => value;
    const move = errorOf[root] ?? moveUnits;
    return (a: number) => flush(move(Math.fround(exact(flush(a))), this.#nudge));
  }
}

function readConstant(bytes: DataView, type: string): Scalar {
  if (type === "f32") return bytes.getFloat32(0, true);
  if (type === "f64") return bytes.getFloat64(0, true);
  if (type === "s32") return bytes.getInt32(0, true);
  if (type === "s64") return bytes.getBigInt64(0, true);
  return type.endsWith("64") ? bytes.getBigUint64(0, true) : bytes.getUint32(0, true);
}

/** The function that a sequence of one width computes. */
export function compileSequence(
  width: 32 | 64,
  emit: (code: Code, ...operands: readonly Register[]) => Register,
  { operands, nudge = 0 }: { readonly operands: number; readonly nudge?: number },
): (...values: readonly number[]) => number {
  const code = new Code(new SourceFiles());
  const inputs = code.registers(`b${width}`, operands);
  const result = emit(code, ...inputs);
  const sequence = new Sequence(code.statements, 4 * code.statements.length + 8, nudge);
  return (...values) => sequence.run(`f${width}`, inputs, values, result);
}
