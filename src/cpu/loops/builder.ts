/**
 * Builds modules of loops. Expressions are made by functions of this file; a `FunctionBuilder` gives statements their order.
 *
 *   const module = new ModuleBuilder({ memory });
 *   module.define("scale", ["i32", "i32"], [], (b, x, count) => {
 *     const two = splat("f32x4", 2);
 *     b.countedLoop(x, i32.add(x, i32.mul(count, i32.of(4))), 16, (at) =>
 *       b.store("v128.store", at, op("f32x4.mul", load("v128.load", at), two)));
 *   }, { exported: true });
 *   const bytes = emitModule(module.finish());
 *
 * An expression is evaluated where its statement stands, and stands in one place alone: `b.keep(expression)` evaluates it
 * once into a local that may be read again and again. Constants of vectors inside of loops are hoisted by the emitter.
 */
import { opcodes } from "../wasm/opcodes.ts";
import type { OpcodeName } from "../wasm/opcodes.ts";
import type { ValueType } from "../wasm/opcode.ts";
import { expressionsOf, localsSet, visitExpression, visitStatements } from "./ir.ts";
import type {
  Callee,
  Expression,
  Label,
  Local,
  LoopFunction,
  LoopModule,
  Operation,
  Statement,
} from "./ir.ts";

const noLanes: readonly number[] = Object.freeze([]);

/** An instruction on its operands. */
export function op(name: OpcodeName, ...operands: readonly Expression[]): Operation {
  return operation(name, operands, 0, noLanes);
}

/** A load from an address and a constant number of bytes behind it. */
export function load(name: OpcodeName, address: Expression, offset = 0): Operation {
  return operation(name, [address], offset, noLanes);
}

/** An instruction on one lane: `lane("f32x4.extract_lane", 2, x)`. */
export function lane(
  name: OpcodeName,
  index: number,
  ...operands: readonly Expression[]
): Operation {
  return operation(name, operands, 0, [index]);
}

/** A load of one lane of a vector, the others kept. */
export function loadLane(
  name: OpcodeName,
  index: number,
  address: Expression,
  vector: Expression,
  offset = 0,
): Operation {
  return operation(name, [address, vector], offset, [index]);
}

/** Sixteen bytes of two vectors, by number. */
export function shuffle(left: Expression, right: Expression, lanes: readonly number[]): Operation {
  return operation("i8x16.shuffle", [left, right], 0, lanes);
}

/** Lanes of `bytes` bytes of two vectors, by number: `shuffleLanes(a, b, [0, 4, 1, 5])` of f32x4. */
export function shuffleLanes(
  left: Expression,
  right: Expression,
  lanes: readonly number[],
): Operation {
  const bytes = 16 / lanes.length;
  return shuffle(
    left,
    right,
    lanes.flatMap((index) => Array.from({ length: bytes }, (_, byte) => index * bytes + byte)),
  );
}

function operation(
  name: OpcodeName,
  operands: readonly Expression[],
  offset: number,
  lanes: readonly number[],
): Operation {
  const { parameters, result } = opcodes[name];
  const types = operands.map(({ type }) => type);
  if (types.join() !== parameters.join())
    throw new Error(`${name} takes (${parameters.join(", ")}), not (${types.join(", ")})`);
  return { form: "operation", type: result, op: name, operands, offset, lanes };
}

export function constant(type: Exclude<ValueType, "v128">, value: number | bigint): Expression {
  return { form: "constant", type, value };
}

/** Sixteen bytes. */
export function vectorBytes(bytes: readonly number[]): Expression {
  if (bytes.length !== 16) throw new Error(`a vector has 16 bytes, not ${bytes.length}`);
  return { form: "constant", type: "v128", value: bytes };
}

export type LaneShape = "i8x16" | "i16x8" | "i32x4" | "i64x2" | "f32x4" | "f64x2";

const laneWriters: {
  readonly [Shape in LaneShape]: readonly [
    bytes: number,
    write: (view: DataView, at: number, value: number | bigint) => void,
  ];
} = {
  i8x16: [1, (view, at, value) => view.setInt8(at, Number(value))],
  i16x8: [2, (view, at, value) => view.setInt16(at, Number(value), true)],
  i32x4: [4, (view, at, value) => view.setInt32(at, Number(value), true)],
  i64x2: [8, (view, at, value) => view.setBigInt64(at, BigInt.asIntN(64, BigInt(value)), true)],
  f32x4: [4, (view, at, value) => view.setFloat32(at, Number(value), true)],
  f64x2: [8, (view, at, value) => view.setFloat64(at, Number(value), true)],
};

/** A constant vector, a number a lane. */
export function vector(shape: LaneShape, values: readonly (number | bigint)[]): Expression {
  const [bytes, write] = laneWriters[shape];
  const view = new DataView(new ArrayBuffer(16));
  values.forEach((value, index) => write(view, index * bytes, value));
  return vectorBytes([...new Uint8Array(view.buffer)]);
}

/** A constant vector of one number in all lanes. */
export function splat(shape: LaneShape, value: number | bigint): Expression {
  return vector(
    shape,
    Array.from({ length: 16 / laneWriters[shape][0] }, () => value),
  );
}

/** One of two values, both computed: `ifTrue` where the condition is not zero. */
export function select(condition: Expression, ifTrue: Expression, ifFalse: Expression): Expression {
  if (ifTrue.type === undefined || ifTrue.type !== ifFalse.type || condition.type !== "i32")
    throw new Error(`select of ${ifTrue.type} and ${ifFalse.type} by ${condition.type}`);
  return { form: "select", type: ifTrue.type, condition, ifTrue, ifFalse };
}

export function read(local: Local): Expression {
  return { form: "local", type: local.type, local };
}

/** The usual arithmetic of addresses and counts, with what is constant computed at once. */
export const i32 = {
  of: (value: number): Expression => constant("i32", value | 0),
  add: (left: Expression, right: Expression): Expression => {
    if (constantOf(right) === 0) return left;
    if (constantOf(left) === 0) return right;
    return folded("i32.add", left, right, (a, b) => (a + b) | 0);
  },
  sub: (left: Expression, right: Expression): Expression =>
    constantOf(right) === 0 ? left : folded("i32.sub", left, right, (a, b) => (a - b) | 0),
  mul: (left: Expression, right: Expression): Expression => {
    if (constantOf(right) === 1) return left;
    if (constantOf(left) === 1) return right;
    return folded("i32.mul", left, right, Math.imul);
  },
};

/** The value of a constant i32. */
export function constantOf(expression: Expression): number | undefined {
  return expression.form === "constant" &&
    typeof expression.value === "number" &&
    expression.type === "i32"
    ? expression.value
    : undefined;
}

function folded(
  name: OpcodeName,
  left: Expression,
  right: Expression,
  compute: (left: number, right: number) => number,
): Expression {
  const [a, b] = [constantOf(left), constantOf(right)];
  return a === undefined || b === undefined ? op(name, left, right) : i32.of(compute(a, b));
}

/** Gives the statements of one function their order. */
export class FunctionBuilder {
  readonly #names: Map<string, number>;
  #statements: Statement[] = [];

  constructor(names = new Map<string, number>()) {
    this.#names = names;
  }

  get statements(): readonly Statement[] {
    return this.#statements;
  }

  /** A builder of statements that are put into the same function, by `append`. */
  fork(): FunctionBuilder {
    return new FunctionBuilder(this.#names);
  }

  append(statements: readonly Statement[]): void {
    this.#statements.push(...statements);
  }

  #unique(name: string): string {
    const count = this.#names.get(name) ?? 0;
    this.#names.set(name, count + 1);
    return count === 0 ? name : `${name}.${count}`;
  }

  /** A local that is zero until it is set. */
  local(type: ValueType, name = "t"): Local {
    return Object.freeze({ name: this.#unique(name), type });
  }

  /** Evaluates the expression here, once; the result reads it. What is cheap to repeat stays as it is. */
  keep(expression: Expression, name = "t"): Expression {
    if (expression.form === "constant" || expression.form === "local") return expression;
    return read(this.variable(expression, name));
  }

  /** A local that begins with a value and may be set again. */
  variable(expression: Expression, name = "t"): Local {
    if (expression.type === undefined) throw new Error("a statement has no value to keep");
    const local = this.local(expression.type, name);
    this.set(local, expression);
    return local;
  }

  set(local: Local, value: Expression): void {
    if (local.type !== value.type)
      throw new Error(`%${local.name} is a ${local.type}, not a ${value.type}`);
    this.#statements.push({ form: "set", local, value });
  }

  store(name: OpcodeName, address: Expression, value: Expression, offset = 0): void {
    this.run(operation(name, [address, value], offset, noLanes));
  }

  storeLane(
    name: OpcodeName,
    index: number,
    address: Expression,
    vector: Expression,
    offset = 0,
  ): void {
    this.run(operation(name, [address, vector], offset, [index]));
  }

  /** Evaluates the expression for what it does. */
  run(expression: Expression): void {
    this.#statements.push({ form: "do", expression });
  }

  /** A call whose results lie in locals of their own; they are read by what is returned. */
  call(callee: Callee, ...operands: readonly Expression[]): readonly Expression[] {
    const into = callee.results.map((type) => this.local(type, callee.name));
    this.#statements.push({ form: "call", callee, operands, into });
    return into.map(read);
  }

  #inside(write: () => void): readonly Statement[] {
    const outer = this.#statements;
    this.#statements = [];
    try {
      write();
      return this.#statements;
    } finally {
      this.#statements = outer;
    }
  }

  if(condition: Expression, then: () => void, otherwise: () => void = () => {}): void {
    this.#statements.push({
      form: "if",
      condition,
      then: this.#inside(then),
      otherwise: this.#inside(otherwise),
    });
  }

  /** A block that branches to its label leave. */
  block(write: (leave: Label) => void, name = "leave"): void {
    const label = { name: this.#unique(name) };
    this.#statements.push({ form: "block", label, body: this.#inside(() => write(label)) });
  }

  /** Runs once, and again from each branch to its label. */
  loop(write: (again: Label) => void, name = "again"): void {
    const label = { name: this.#unique(name) };
    this.#statements.push({ form: "loop", label, body: this.#inside(() => write(label)) });
  }

  branch(label: Label, condition?: Expression): void {
    this.#statements.push({ form: "branch", label, condition });
  }

  switch(index: Expression, cases: readonly (() => void)[]): void {
    this.#statements.push({
      form: "switch",
      index,
      cases: cases.map((write) => this.#inside(write)),
    });
  }

  return(...values: readonly Expression[]): void {
    this.#statements.push({ form: "return", values });
  }

  unreachable(): void {
    this.#statements.push({ form: "unreachable" });
  }

  /** While the condition, evaluated before each round, is not zero. */
  whileLoop(condition: () => Expression, body: () => void): void {
    this.block((leave) =>
      this.loop((again) => {
        this.branch(leave, op("i32.eqz", condition()));
        body();
        this.branch(again);
      }),
    );
  }

  /** From `begin` below `end` by a positive constant step, unsigned: addresses and counts. Both ends are evaluated once. */
  countedLoop(
    begin: Expression,
    end: Expression,
    step: number,
    body: (index: Expression) => void,
    name = "i",
  ): void {
    const index = this.variable(begin, name);
    const last = this.keep(end, "end");
    const counted = () =>
      this.loop((again) => {
        body(read(index));
        this.set(index, i32.add(read(index), i32.of(step)));
        this.branch(again, op("i32.lt_u", read(index), last));
      }, name);
    const [first, limit] = [constantOf(begin), constantOf(end)];
    if (first !== undefined && limit !== undefined) {
      if (first >>> 0 < limit >>> 0) counted();
    } else this.if(op("i32.lt_u", read(index), last), counted);
  }
}

interface DefineOptions {
  readonly exported?: boolean;
  readonly names?: readonly string[];
}

/** Collects functions; one may be declared before it is defined, for calls in both directions. */
export class ModuleBuilder {
  readonly #memory: LoopModule["memory"];
  readonly #imports: Callee[] = [];
  readonly #functions: LoopFunction[] = [];
  readonly #names = new Map<string, number>();

  constructor({ memory }: { readonly memory?: LoopModule["memory"] } = {}) {
    this.#memory = memory;
  }

  import(
    from: string,
    name: string,
    parameters: readonly ValueType[],
    results: readonly ValueType[],
  ): Callee {
    const callee = Object.freeze({ name, parameters, results, from });
    this.#imports.push(callee);
    return callee;
  }

  /** Announces a function; names are made unique. */
  declare(name: string, parameters: readonly ValueType[], results: readonly ValueType[]): Callee {
    const count = this.#names.get(name) ?? 0;
    this.#names.set(name, count + 1);
    const unique = count === 0 ? name : `${name}.${count}`;
    return Object.freeze({ name: unique, parameters, results, from: undefined });
  }

  /** Gives a declared function its body, which takes the parameters as expressions. */
  body(
    callee: Callee,
    write: (builder: FunctionBuilder, ...parameters: readonly Expression[]) => void,
    { exported = false, names = [] }: DefineOptions = {},
  ): void {
    const builder = new FunctionBuilder();
    const parameters = callee.parameters.map((type, index) =>
      builder.local(type, names[index] ?? "p"),
    );
    write(builder, ...parameters.map(read));
    this.#functions.push({ callee, exported, parameters, body: builder.statements });
  }

  define(
    name: string,
    parameters: readonly ValueType[],
    results: readonly ValueType[],
    write: (builder: FunctionBuilder, ...parameters: readonly Expression[]) => void,
    options: DefineOptions = {},
  ): Callee {
    const callee = this.declare(name, parameters, results);
    this.body(callee, write, options);
    return callee;
  }

  /**
   * Statements as a function of their own, whose parameters are the locals that they read and do not set: engines replace
   * the code of a hot loop only when its function is called again.
   */
  outline(name: string, statements: readonly Statement[]): Expression {
    const own = new Set<Local>();
    const free = new Set<Local>();
    visitStatements(statements, (statement) => {
      for (const root of expressionsOf(statement))
        visitExpression(root, (expression) => {
          if (expression.form === "local" && !own.has(expression.local)) free.add(expression.local);
        });
      for (const local of localsSet(statement)) own.add(local);
    });
    const parameters = [...free].filter((local) => !own.has(local));
    const callee = this.declare(
      name,
      parameters.map(({ type }) => type),
      [],
    );
    this.#functions.push({ callee, exported: false, parameters, body: statements });
    return call(callee, ...parameters.map(read));
  }

  /** A function of statements that were written apart, and of the locals that are its parameters. */
  adopt(
    name: string,
    parameters: readonly Local[],
    results: readonly ValueType[],
    statements: readonly Statement[],
    { exported = false }: DefineOptions = {},
  ): Callee {
    const callee = this.declare(
      name,
      parameters.map(({ type }) => type),
      results,
    );
    this.#functions.push({ callee, exported, parameters, body: statements });
    return callee;
  }

  finish(): LoopModule {
    return { memory: this.#memory, imports: this.#imports, functions: this.#functions };
  }
}

/** A call of a function with one result, as an expression, or of one without, for `run`. */
export function call(callee: Callee, ...operands: readonly Expression[]): Expression {
  if (callee.results.length > 1) throw new Error(`${callee.name} has several results`);
  return { form: "call", type: callee.results[0], callee, operands };
}
