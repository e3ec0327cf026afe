/**
 * Writing a function's body: fresh registers, instructions, labels and the source line they belong to.
 *
 *   const sum = code.make("b32", "add.rn.f32", left, right);      add.rn.f32 %r4, %r1, %r2;
 *   code.emit("st.shared.b32", [address(place), sum]);              st.shared.b32 [%r0], %r4;
 *   code.guarded(inside, () => code.emit(…));                       @%p0 …
 */
import type { Location } from "../support/location.ts";
import { integer, symbol } from "./operands.ts";
import type { Guard, Instruction, Operand, Register, SourcePosition, Statement } from "./module.ts";

/** The classes that our own registers have; a b32 serves as f32, u32 and s32 alike. */
export type RegisterClass = "pred" | "b16" | "b32" | "b64" | "b128";

const prefixes: { readonly [C in RegisterClass]: string } = {
  pred: "%p",
  b16: "%h",
  b32: "%r",
  b64: "%d",
  b128: "%q",
};

/** The numbers of the source files, given out in the order of use. */
export class SourceFiles {
  readonly #numbers = new Map<string, number>();

  position({ position }: Location): SourcePosition | undefined {
    if (position === undefined) return undefined;
    const { file, line, column } = position;
    let number = this.#numbers.get(file);
    if (number === undefined) {
      number = this.#numbers.size + 1;
      this.#numbers.set(file, number);
    }
    return { file: number, line, column };
  }

  get paths(): readonly string[] {
    return [...this.#numbers.keys()];
  }
}

export class Code {
  /** What comes first in the body: parameters and numbers that the rest relies on. */
  readonly #prologue: Statement[] = [];
  readonly #body: Statement[] = [];
  /** What is rarely run and lies behind all else. */
  readonly #aside: Statement[] = [];
  #statements = this.#body;
  readonly #files: SourceFiles;
  readonly #counts: { [C in RegisterClass]: number } = { pred: 0, b16: 0, b32: 0, b64: 0, b128: 0 };
  #labels = 0;
  #guard: Guard | undefined;
  #position: SourcePosition | undefined;

  constructor(files: SourceFiles) {
    this.#files = files;
  }

  /** What is emitted from here on comes from this line of the user's. */
  at(location: Location): void {
    this.#position = this.#files.position(location) ?? this.#position;
  }

  /** The whole body. */
  get statements(): readonly Statement[] {
    return this.#prologue.concat(this.#body, this.#aside);
  }

  /** Emits at the kernel's start, whatever is being written now. */
  inPrologue<T>(make: () => T): T {
    return this.#elsewhere(this.#prologue, undefined, make);
  }

  /** Emits behind the kernel's end: code that is jumped to, which jumps back. */
  aside<T>(make: () => T): T {
    return this.#elsewhere(this.#aside, this.#position, make);
  }

  #elsewhere<T>(place: Statement[], position: SourcePosition | undefined, make: () => T): T {
    const saved = [this.#statements, this.#guard, this.#position] as const;
    this.#statements = place;
    this.#guard = undefined;
    this.#position = position;
    try {
      return make();
    } finally {
      [this.#statements, this.#guard, this.#position] = saved;
    }
  }

  register(type: RegisterClass): Register {
    const name = `${prefixes[type]}${this.#counts[type]++}`;
    return { kind: "register", name, type };
  }

  registers(type: RegisterClass, count: number): Register[] {
    return Array.from({ length: count }, () => this.register(type));
  }

  /** An instruction with all its operands, results first; `reason` is printed behind it. */
  emit(opcode: string, operands: readonly Operand[] = [], reason?: string): void {
    this.#statements.push({
      kind: "instruction",
      opcode,
      operands,
      guard: this.#guard,
      position: this.#position,
      comment: reason,
      line: undefined,
    });
  }

  /** An instruction as it was read, on the user's line. */
  append(instruction: Instruction): void {
    this.#statements.push({ ...instruction, line: undefined, position: this.#position });
  }

  /** An instruction whose one result is a fresh register, which is given back. */
  make(type: RegisterClass, opcode: string, ...operands: readonly Operand[]): Register {
    const result = this.register(type);
    this.emit(opcode, [result, ...operands]);
    return result;
  }

  /** Everything that `body` emits happens only where the predicate holds (or does not). Not nested. */
  guarded(register: Register, body: () => void, negated = false): void {
    if (this.#guard !== undefined) throw new Error("a guard within a guard");
    this.#guard = { register, negated };
    try {
      body();
    } finally {
      this.#guard = undefined;
    }
  }

  /** A fresh label, to be placed once. */
  label(purpose: string): string {
    return `$${purpose}${this.#labels++}`;
  }

  place(label: string): void {
    this.#statements.push({ kind: "label", name: label });
  }

  pragma(text: string): void {
    this.#statements.push({ kind: "pragma", text });
  }

  jump(label: string): void {
    this.emit("bra.uni", [symbol(label)]);
  }

  /** Jumps where the predicate holds (or does not). `uniform`: all lanes of the warp agree. */
  jumpIf(register: Register, label: string, { negated = false, uniform = true } = {}): void {
    this.guarded(register, () => this.emit(uniform ? "bra.uni" : "bra", [symbol(label)]), negated);
  }

  /** A register that holds the number. */
  constant(type: "b32" | "b64", value: number | bigint): Register {
    return this.make(type, `mov.${type}`, integer(value));
  }
}
