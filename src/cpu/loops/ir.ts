/**
 * Structured loops over typed locals: what kernels are for the CPU before they are bytes. Expressions are trees of
 * WebAssembly's instructions; statements give them an order. What is used twice lies in a local.
 *
 *   func @scale(%x: i32, %end: i32) {
 *     loop $next {
 *       v128.store(%x, f32x4.mul(v128.load(%x), splat f32x4 2))
 *       %x = i32.add(%x, 16)
 *       branch $next if i32.lt_u(%x, %end)
 *     }
 *   }
 */
import type { ValueType } from "../wasm/opcode.ts";
import type { OpcodeName } from "../wasm/opcodes.ts";

export interface Local {
  readonly name: string;
  readonly type: ValueType;
}

/** Where branches lead: behind a block, or to the beginning of a loop. */
export interface Label {
  readonly name: string;
}

/** A function that can be called: its body may be defined later. */
export interface Callee {
  readonly name: string;
  readonly parameters: readonly ValueType[];
  readonly results: readonly ValueType[];
  /** The module it comes from; undefined of a function of this one. */
  readonly from: string | undefined;
}

export type Expression = Constant | Read | Operation | Choice | Call;

/** A number; of v128 its sixteen bytes. */
export interface Constant {
  readonly form: "constant";
  readonly type: ValueType;
  readonly value: number | bigint | readonly number[];
}

export interface Read {
  readonly form: "local";
  readonly type: ValueType;
  readonly local: Local;
}

export interface Operation {
  readonly form: "operation";
  /** Undefined of stores and fences, which are statements. */
  readonly type: ValueType | undefined;
  readonly op: OpcodeName;
  readonly operands: readonly Expression[];
  /** Bytes added to the address of an access. */
  readonly offset: number;
  /** The lane of a lane instruction, the sixteen of a shuffle. */
  readonly lanes: readonly number[];
}

/** One of two values, both computed. */
export interface Choice {
  readonly form: "select";
  readonly type: ValueType;
  readonly condition: Expression;
  readonly ifTrue: Expression;
  readonly ifFalse: Expression;
}

/** A call of a function with one result, or none as a statement. */
export interface Call {
  readonly form: "call";
  readonly type: ValueType | undefined;
  readonly callee: Callee;
  readonly operands: readonly Expression[];
}

export type Statement =
  | { readonly form: "set"; readonly local: Local; readonly value: Expression }
  /** An expression for what it does; a result is dropped. */
  | { readonly form: "do"; readonly expression: Expression }
  /** A call with several results. */
  | {
      readonly form: "call";
      readonly callee: Callee;
      readonly operands: readonly Expression[];
      readonly into: readonly Local[];
    }
  | { readonly form: "block"; readonly label: Label; readonly body: readonly Statement[] }
  /** Runs once, and again from each branch to its label. */
  | { readonly form: "loop"; readonly label: Label; readonly body: readonly Statement[] }
  | {
      readonly form: "if";
      readonly condition: Expression;
      readonly then: readonly Statement[];
      readonly otherwise: readonly Statement[];
    }
  /** To a label, where the condition is not zero or there is none. */
  | {
      readonly form: "branch";
      readonly label: Label;
      readonly condition: Expression | undefined;
    }
  /** The case of the index, or the last one where there is none. */
  | {
      readonly form: "switch";
      readonly index: Expression;
      readonly cases: readonly (readonly Statement[])[];
    }
  | { readonly form: "return"; readonly values: readonly Expression[] }
  | { readonly form: "unreachable" };

export interface LoopFunction {
  readonly callee: Callee;
  readonly exported: boolean;
  readonly parameters: readonly Local[];
  readonly body: readonly Statement[];
}

export interface LoopModule {
  /** Pages of the imported memory at least; undefined where the module has none. */
  readonly memory:
    | { readonly minimum: number; readonly maximum: number; readonly shared: boolean }
    | undefined;
  readonly imports: readonly Callee[];
  readonly functions: readonly LoopFunction[];
}

/** The lists of statements inside of a statement. */
export function innerLists(statement: Statement): readonly (readonly Statement[])[] {
  if (statement.form === "block" || statement.form === "loop") return [statement.body];
  if (statement.form === "if") return [statement.then, statement.otherwise];
  if (statement.form === "switch") return statement.cases;
  return [];
}

/** The expressions that a statement evaluates itself, in order. */
export function expressionsOf(statement: Statement): readonly Expression[] {
  if (statement.form === "set") return [statement.value];
  if (statement.form === "do") return [statement.expression];
  if (statement.form === "call") return statement.operands;
  if (statement.form === "if") return [statement.condition];
  if (statement.form === "branch")
    return statement.condition === undefined ? [] : [statement.condition];
  if (statement.form === "switch") return [statement.index];
  if (statement.form === "return") return statement.values;
  return [];
}

/** The locals that a statement sets itself. */
export function localsSet(statement: Statement): readonly Local[] {
  if (statement.form === "set") return [statement.local];
  return statement.form === "call" ? statement.into : [];
}

export function operandsOf(expression: Expression): readonly Expression[] {
  if (expression.form === "operation" || expression.form === "call") return expression.operands;
  if (expression.form === "select")
    return [expression.ifTrue, expression.ifFalse, expression.condition];
  return [];
}

/** Visits an expression after its operands. */
export function visitExpression(
  expression: Expression,
  visit: (expression: Expression) => void,
): void {
  for (const operand of operandsOf(expression)) visitExpression(operand, visit);
  visit(expression);
}

/** Visits statements, and those inside of them, in the order of the text. */
export function visitStatements(
  statements: readonly Statement[],
  visit: (statement: Statement, loops: number) => void,
  loops = 0,
): void {
  for (const statement of statements) {
    visit(statement, loops);
    const inside = statement.form === "loop" ? loops + 1 : loops;
    for (const list of innerLists(statement)) visitStatements(list, visit, inside);
  }
}
