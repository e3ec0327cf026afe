/**
 * Checks a module of loops: types of operands and locals, labels in sight, expressions in one place, locals that are set
 * before they are read, and memory where it is accessed. An engine would refuse most of what is refused here, but it
 * names a byte; this names a function and a statement.
 */
import { opcodes } from "../wasm/opcodes.ts";
import type { ValueType } from "../wasm/opcode.ts";
import {
  expressionsOf,
  innerLists,
  localsSet,
  operandsOf,
  visitExpression,
  visitStatements,
} from "./ir.ts";
import type {
  Callee,
  Expression,
  Label,
  Local,
  LoopFunction,
  LoopModule,
  Statement,
} from "./ir.ts";
import { expressionText, statementText } from "./print.ts";

/** What is wrong with a module, a line each; none where it is sound. */
export function findLoopErrors(module: LoopModule): readonly string[] {
  const errors: string[] = [];
  const callees = new Set<Callee>(module.imports);
  const names = new Set<string>();
  for (const { callee } of module.functions) {
    if (names.has(callee.name)) errors.push(`two functions @${callee.name}`);
    names.add(callee.name);
    callees.add(callee);
  }
  for (const one of module.functions)
    new FunctionCheck(module, callees, one, (text) =>
      errors.push(`@${one.callee.name}: ${text}`),
    ).run();
  return errors;
}

/** Throws where the module is not sound: it is the compiler's mistake, never the user's. */
export function verifyLoops(module: LoopModule): void {
  const errors = findLoopErrors(module);
  if (errors.length > 0) throw new Error(`loops are not sound:\n  ${errors.join("\n  ")}`);
}

class FunctionCheck {
  readonly #module: LoopModule;
  readonly #callees: ReadonlySet<Callee>;
  readonly #function: LoopFunction;
  readonly #report: (text: string) => void;
  readonly #seen = new Set<Expression>();
  readonly #set: Set<Local>;

  constructor(
    module: LoopModule,
    callees: ReadonlySet<Callee>,
    checked: LoopFunction,
    report: (text: string) => void,
  ) {
    this.#module = module;
    this.#callees = callees;
    this.#function = checked;
    this.#report = report;
    this.#set = new Set(checked.parameters);
  }

  run(): void {
    const { callee, parameters, body } = this.#function;
    if (parameters.map(({ type }) => type).join() !== callee.parameters.join())
      this.#report("its parameters are not those that were declared");
    visitStatements(body, (statement) => {
      for (const local of localsSet(statement)) this.#set.add(local);
    });
    this.#statements(body, []);
    if (callee.results.length > 0 && !neverEnds(body)) this.#report("ends without a result");
  }

  #statements(statements: readonly Statement[], labels: readonly Label[]): void {
    for (const statement of statements) {
      for (const expression of expressionsOf(statement)) this.#expression(expression, statement);
      this.#statement(statement, labels);
      const inside =
        statement.form === "block" || statement.form === "loop"
          ? [...labels, statement.label]
          : labels;
      for (const list of innerLists(statement)) this.#statements(list, inside);
    }
  }

  #statement(statement: Statement, labels: readonly Label[]): void {
    const wants = (found: ValueType | undefined, expected: ValueType, what: string) => {
      if (found !== expected)
        this.#report(`${what} is ${found}, not ${expected}: ${statementText(statement)}`);
    };
    if (statement.form === "set")
      wants(statement.value.type, statement.local.type, `%${statement.local.name}`);
    if (statement.form === "if") wants(statement.condition.type, "i32", "the condition");
    if (statement.form === "switch") {
      wants(statement.index.type, "i32", "the index");
      if (statement.cases.length === 0) this.#report("a switch without cases");
    }
    if (statement.form === "branch") {
      if (!labels.includes(statement.label))
        this.#report(`$${statement.label.name} is not around its branch`);
      if (statement.condition !== undefined)
        wants(statement.condition.type, "i32", "the condition");
    }
    if (statement.form === "return")
      this.#types(statement.values, this.#function.callee.results, "return");
    if (statement.form === "call") {
      this.#callee(statement.callee, statement.operands);
      if (statement.into.map(({ type }) => type).join() !== statement.callee.results.join())
        this.#report(`results of @${statement.callee.name} have other types`);
    }
  }

  #expression(root: Expression, statement: Statement): void {
    visitExpression(root, (expression) => {
      if (expression.form === "constant") return;
      if (expression.form === "local") {
        if (!this.#set.has(expression.local))
          this.#report(`%${expression.local.name} is never set: ${statementText(statement)}`);
        return;
      }
      if (this.#seen.has(expression))
        this.#report(`stands in two places, and wants keep: ${expressionText(expression)}`);
      this.#seen.add(expression);
      for (const operand of operandsOf(expression))
        if (operand.type === undefined)
          this.#report(`an operand without a value: ${expressionText(expression)}`);
      if (expression.form === "call") this.#callee(expression.callee, expression.operands);
      if (expression.form === "operation") this.#operation(expression);
    });
  }

  #operation({ op, operands, lanes, offset }: Extract<Expression, { form: "operation" }>): void {
    const { parameters, immediate, lanes: count, bytes } = opcodes[op];
    this.#types(operands, parameters, op);
    const wanted = immediate === "shuffle" ? 16 : immediate.includes("lane") ? 1 : 0;
    if (lanes.length !== wanted || lanes.some((index) => index < 0 || index >= count))
      this.#report(`lanes ${lanes.join(" ")} of ${op}`);
    if (offset !== 0 && bytes === 0) this.#report(`an offset of ${op}`);
    if (offset < 0 || !Number.isInteger(offset)) this.#report(`offset ${offset} of ${op}`);
    if ((bytes > 0 || op.startsWith("memory.")) && this.#module.memory === undefined)
      this.#report(`${op} in a module without memory`);
  }

  #callee(callee: Callee, operands: readonly Expression[]): void {
    if (!this.#callees.has(callee)) this.#report(`@${callee.name} is not in the module`);
    this.#types(operands, callee.parameters, `@${callee.name}`);
  }

  #types(values: readonly Expression[], types: readonly ValueType[], what: string): void {
    const found = values.map(({ type }) => type ?? "nothing").join(", ");
    if (found !== types.join(", "))
      this.#report(`${what} takes (${types.join(", ")}), not (${found})`);
  }
}

/** Whether control never comes behind the statements: their last one returns, or repeats for good. */
export function neverEnds(statements: readonly Statement[]): boolean {
  const last = statements.at(-1);
  if (last === undefined) return false;
  if (last.form === "return" || last.form === "unreachable") return true;
  if (last.form === "branch") return last.condition === undefined;
  if (last.form === "if") return neverEnds(last.then) && neverEnds(last.otherwise);
  if (last.form === "loop") return neverEnds(last.body);
  return false;
}
