/** Loops as text, for goldens and for reading: `%x = f32x4.mul(v128.load(%p + 16), %two)`. */
import type { Expression, LoopFunction, LoopModule, Statement } from "./ir.ts";

function constantText({ type, value }: Extract<Expression, { form: "constant" }>): string {
  if (typeof value === "number" || typeof value === "bigint")
    return type === "i32" ? `${value}` : `${type} ${Object.is(value, -0) ? "-0" : value}`;
  const words = new Int32Array(new Uint8Array(value).buffer);
  const hex = Array.from(words, (word) => (word >>> 0).toString(16).padStart(8, "0"));
  return new Set(hex).size === 1 ? `v128 0x${hex[0]} each` : `v128 0x${hex.join(" 0x")}`;
}

export function expressionText(expression: Expression): string {
  if (expression.form === "constant") return constantText(expression);
  if (expression.form === "local") return `%${expression.local.name}`;
  if (expression.form === "call")
    return `@${expression.callee.name}(${expression.operands.map(expressionText).join(", ")})`;
  if (expression.form === "select")
    return `select(${[expression.condition, expression.ifTrue, expression.ifFalse].map(expressionText).join(", ")})`;
  const [address, ...others] = expression.operands.map(expressionText);
  const first =
    expression.offset === 0 ? (address ?? "") : `${address ?? ""} + ${expression.offset}`;
  const lanes = expression.lanes.length === 0 ? "" : `[${expression.lanes.join(" ")}]`;
  return `${expression.op}${lanes}(${[first, ...others].join(", ")})`;
}

/** The first line of a statement. */
export function statementText(statement: Statement): string {
  switch (statement.form) {
    case "set":
      return `%${statement.local.name} = ${expressionText(statement.value)}`;
    case "do":
      return expressionText(statement.expression);
    case "call":
      return `${statement.into.map(({ name }) => `%${name}`).join(", ")} = @${statement.callee.name}(${statement.operands.map(expressionText).join(", ")})`;
    case "block":
      return `block $${statement.label.name}`;
    case "loop":
      return `loop $${statement.label.name}`;
    case "if":
      return `if ${expressionText(statement.condition)}`;
    case "branch":
      return `branch $${statement.label.name}${statement.condition === undefined ? "" : ` if ${expressionText(statement.condition)}`}`;
    case "switch":
      return `switch ${expressionText(statement.index)}`;
    case "return":
      return ["return", statement.values.map(expressionText).join(", ")].join(" ").trim();
    case "unreachable":
      return "unreachable";
  }
}

function lines(statements: readonly Statement[], indent: string): readonly string[] {
  const inside = (list: readonly Statement[]) => lines(list, `${indent}  `);
  return statements.flatMap((statement) => {
    const head = `${indent}${statementText(statement)}`;
    if (statement.form === "block" || statement.form === "loop")
      return [`${head} {`, ...inside(statement.body), `${indent}}`];
    if (statement.form === "if")
      return [
        `${head} {`,
        ...inside(statement.then),
        ...(statement.otherwise.length === 0
          ? []
          : [`${indent}} else {`, ...inside(statement.otherwise)]),
        `${indent}}`,
      ];
    if (statement.form === "switch")
      return [
        `${head} {`,
        ...statement.cases.flatMap((list, index) => [
          `${indent}case ${index === statement.cases.length - 1 ? "else" : index}:`,
          ...inside(list),
        ]),
        `${indent}}`,
      ];
    return [head];
  });
}

export function functionText({ callee, exported, parameters, body }: LoopFunction): string {
  const list = parameters.map(({ name, type }) => `%${name}: ${type}`).join(", ");
  const results = callee.results.length === 0 ? "" : ` -> ${callee.results.join(", ")}`;
  return `${exported ? "export " : ""}func @${callee.name}(${list})${results} {\n${lines(body, "  ")
    .map((line) => `${line}\n`)
    .join("")}}\n`;
}

export function loopsText({ memory, imports, functions }: LoopModule): string {
  const head = [
    ...(memory === undefined
      ? []
      : [`memory ${memory.minimum} to ${memory.maximum}${memory.shared ? " shared" : ""}\n`]),
    ...imports.map(
      ({ from, name, parameters, results }) =>
        `import @${name} from "${from}" (${parameters.join(", ")}) -> (${results.join(", ")})\n`,
    ),
  ].join("");
  return [head, ...functions.map(functionText)].filter((text) => text !== "").join("\n");
}
