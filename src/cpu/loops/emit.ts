/**
 * Modules of loops as bytes. Statements are emitted as they stand; two things are added:
 *
 *   constants   a vector inside of a loop lies in a local that is set before the function's first statement, since new
 *               engines build `v128.const` again in every round
 *   labels      branches count the blocks between themselves and their label
 */
import type { Bytes } from "../wasm/bytes.ts";
import { controlCodes as control, typeCodes, writeModule, writeOpcode } from "../wasm/module.ts";
import { opcodes } from "../wasm/opcodes.ts";
import type { ValueType } from "../wasm/opcode.ts";
import { expressionsOf, localsSet, visitExpression, visitStatements } from "./ir.ts";
import type {
  Callee,
  Constant,
  Expression,
  Label,
  Local,
  LoopFunction,
  LoopModule,
  Operation,
  Statement,
} from "./ir.ts";
import { neverEnds, verifyLoops } from "./verify.ts";

/** The bytes of a module, which imports its memory as ("env", "memory"). */
export function emitModule(module: LoopModule): Uint8Array<ArrayBuffer> {
  verifyLoops(module);
  const numbers = new Map<Callee, number>(
    [...module.imports, ...module.functions.map(({ callee }) => callee)].map((callee, index) => [
      callee,
      index,
    ]),
  );
  return writeModule({
    memory: module.memory && { module: "env", name: "memory", ...module.memory },
    imports: module.imports.map(({ from = "env", name, parameters, results }) => ({
      module: from,
      name,
      parameters,
      results,
    })),
    functions: module.functions.map((one) => {
      const emission = new FunctionEmission(one, numbers);
      return {
        name: one.callee.name,
        exported: one.exported,
        parameters: one.callee.parameters,
        results: one.callee.results,
        locals: emission.localTypes,
        write: (code) => emission.write(code),
      };
    }),
  });
}

/** The key of a vector's constant; numbers are immediates, which cost nothing. */
function hoistedKey({ value }: Constant): string {
  return typeof value === "number" || typeof value === "bigint" ? "" : value.join();
}

class FunctionEmission {
  readonly #function: LoopFunction;
  readonly #callees: ReadonlyMap<Callee, number>;
  readonly #numbers = new Map<Local, number>();
  readonly #hoisted = new Map<string, { readonly constant: Constant; readonly number: number }>();
  readonly localTypes: ValueType[] = [];

  constructor(emitted: LoopFunction, callees: ReadonlyMap<Callee, number>) {
    this.#function = emitted;
    this.#callees = callees;
    const locals = new Set<Local>();
    const constants = new Map<string, Constant>();
    visitStatements(emitted.body, (statement, loops) => {
      for (const local of localsSet(statement)) locals.add(local);
      if (loops === 0) return;
      for (const root of expressionsOf(statement))
        visitExpression(root, (expression) => {
          if (expression.form === "constant" && expression.type === "v128")
            constants.set(hoistedKey(expression), expression);
        });
    });
    for (const local of emitted.parameters) this.#number(local);
    const own = [...locals].filter((local) => !this.#numbers.has(local));
    // One run a type.
    for (const type of ["i32", "i64", "f32", "f64", "v128"] as const)
      for (const local of own)
        if (local.type === type) {
          this.#number(local);
          this.localTypes.push(type);
        }
    for (const [key, constant] of constants) {
      this.#hoisted.set(key, { constant, number: this.#numbers.size + this.#hoisted.size });
      this.localTypes.push("v128");
    }
  }

  #number(local: Local): void {
    this.#numbers.set(local, this.#numbers.size);
  }

  write(code: Bytes): void {
    for (const { constant, number } of this.#hoisted.values()) {
      this.#constant(code, constant);
      code.byte(control["local.set"]);
      code.unsigned(number);
    }
    this.#statements(code, this.#function.body, []);
    // A loop or an `if` that never ends has no value for what stands behind it.
    if (this.#function.callee.results.length > 0 && neverEnds(this.#function.body))
      code.byte(control.unreachable);
  }

  #local(local: Local): number {
    const number = this.#numbers.get(local);
    if (number === undefined) throw new Error(`%${local.name} has no number`);
    return number;
  }

  /** `labels` are those of the blocks around, the outermost first; undefined for an `if`. */
  #statements(
    code: Bytes,
    statements: readonly Statement[],
    labels: readonly (Label | undefined)[],
  ): void {
    for (const statement of statements) this.#statement(code, statement, labels);
  }

  #statement(code: Bytes, statement: Statement, labels: readonly (Label | undefined)[]): void {
    switch (statement.form) {
      case "set":
        this.#expression(code, statement.value);
        code.byte(control["local.set"]);
        code.unsigned(this.#local(statement.local));
        return;
      case "do":
        this.#expression(code, statement.expression);
        if (statement.expression.type !== undefined) code.byte(control.drop);
        return;
      case "call":
        this.#call(code, statement.callee, statement.operands);
        for (const local of statement.into.toReversed()) {
          code.byte(control["local.set"]);
          code.unsigned(this.#local(local));
        }
        return;
      case "block":
      case "loop":
        code.byte(control[statement.form]);
        code.byte(control.empty);
        this.#statements(code, statement.body, [...labels, statement.label]);
        code.byte(control.end);
        return;
      case "if":
        this.#expression(code, statement.condition);
        code.byte(control.if);
        code.byte(control.empty);
        this.#statements(code, statement.then, [...labels, undefined]);
        if (statement.otherwise.length > 0) {
          code.byte(control.else);
          this.#statements(code, statement.otherwise, [...labels, undefined]);
        }
        code.byte(control.end);
        return;
      case "branch":
        if (statement.condition !== undefined) this.#expression(code, statement.condition);
        code.byte(statement.condition === undefined ? control.br : control.br_if);
        code.unsigned(labels.length - 1 - labels.lastIndexOf(statement.label));
        return;
      case "switch":
        this.#switch(code, statement, labels);
        return;
      case "return":
        for (const value of statement.values) this.#expression(code, value);
        code.byte(control.return);
        return;
      case "unreachable":
        code.byte(control.unreachable);
        return;
    }
  }

  /** Blocks around one another: the table leaves as many as its case says, and each case leaves the outermost. */
  #switch(
    code: Bytes,
    { index, cases }: Extract<Statement, { form: "switch" }>,
    labels: readonly (Label | undefined)[],
  ): void {
    for (let block = 0; block <= cases.length; block++) {
      code.byte(control.block);
      code.byte(control.empty);
    }
    this.#expression(code, index);
    code.byte(control.br_table);
    code.unsigned(cases.length - 1);
    for (let number = 0; number < cases.length; number++) code.unsigned(number);
    cases.forEach((list, number) => {
      code.byte(control.end);
      const blocks = cases.length - number;
      const around = [...labels, ...Array.from({ length: blocks }, () => undefined)];
      this.#statements(code, list, around);
      code.byte(control.br);
      code.unsigned(blocks - 1);
    });
    code.byte(control.end);
  }

  #call(code: Bytes, callee: Callee, operands: readonly Expression[]): void {
    for (const operand of operands) this.#expression(code, operand);
    code.byte(control.call);
    code.unsigned(this.#callees.get(callee) ?? 0);
  }

  #expression(code: Bytes, expression: Expression): void {
    switch (expression.form) {
      case "constant": {
        const hoisted =
          expression.type === "v128" ? this.#hoisted.get(hoistedKey(expression)) : undefined;
        if (hoisted === undefined) this.#constant(code, expression);
        else {
          code.byte(control["local.get"]);
          code.unsigned(hoisted.number);
        }
        return;
      }
      case "local":
        code.byte(control["local.get"]);
        code.unsigned(this.#local(expression.local));
        return;
      case "call":
        this.#call(code, expression.callee, expression.operands);
        return;
      case "select":
        this.#expression(code, expression.ifTrue);
        this.#expression(code, expression.ifFalse);
        this.#expression(code, expression.condition);
        if (expression.type === "v128") {
          code.byte(control.selectOfType);
          code.byte(1);
          code.byte(typeCodes[expression.type]);
        } else code.byte(control.select);
        return;
      case "operation":
        for (const operand of expression.operands) this.#expression(code, operand);
        writeOperation(code, expression);
        return;
    }
  }

  #constant(code: Bytes, { type, value }: Constant): void {
    if (typeof value === "number" || typeof value === "bigint") {
      if (type === "v128") throw new Error("a vector has sixteen bytes");
      code.byte(control[`${type}.const`]);
      if (type === "i32") code.signed(Number(value));
      if (type === "i64") code.signed64(BigInt(value));
      if (type === "f32") code.float32(Number(value));
      if (type === "f64") code.float64(Number(value));
      return;
    }
    code.byte(0xfd);
    code.unsigned(0x0c);
    code.bytes(value);
  }
}

/** The largest alignment that is promised: atomics must have theirs, others are free to be misaligned. */
function alignmentOf(bytes: number): number {
  return Math.log2(bytes);
}

function writeOperation(code: Bytes, { op, offset, lanes }: Operation): void {
  const opcode = opcodes[op];
  writeOpcode(code, opcode);
  if (opcode.bytes > 0) {
    // What is not atomic promises nothing about its address.
    code.unsigned(opcode.prefix === 0xfe ? alignmentOf(opcode.bytes) : 0);
    code.unsigned(offset);
  }
  for (const index of lanes) code.byte(index);
  for (const byte of opcode.fixed) code.byte(byte);
}
