/**
 * The one place that makes PTX text. Registers are declared by type and in order in the innermost block
 * that holds all their uses; a `.loc` is printed where the position changes.
 */
import { registerDeclarations, registerHomes } from "./register-declarations.ts";
import type { Homes } from "./register-declarations.ts";
import type {
  CallPrototype,
  FunctionDirective,
  Instruction,
  Operand,
  PtxFunction,
  PtxModule,
  SourcePosition,
  Statement,
  SymbolOperand,
  Variable,
} from "./module.ts";

export function printPtx(module: PtxModule): string {
  const target = [module.target, ...(module.targetOptions ?? [])].join(", ");
  const lines = [`.version ${module.version}`, `.target ${target}`, ".address_size 64", ""];
  module.files.forEach((path, index) => lines.push(`.file ${index + 1} "${quoted(path)}"`));
  if (module.files.length > 0) lines.push("");
  for (const declaration of module.declarations) {
    if (declaration.kind === "variable") lines.push(`${variableText(declaration)};`);
    else printFunction(declaration, lines);
  }
  for (const { name, text } of module.sections ?? []) lines.push(`.section ${name} {${text}}`);
  return `${lines.join("\n")}\n`;
}

/** Assemblers read ASCII alone; others are written by their code. */
function quoted(text: string): string {
  return text
    .replace(/["\\]/g, (character) => `\\${character}`)
    .replace(/[^\x20-\x7e]/gu, (character) => `<${character.codePointAt(0)?.toString(16)}>`);
}

function printFunction(declaration: PtxFunction, lines: string[]): void {
  const { entry, name, linkage, results, parameters, directives, body } = declaration;
  const start = `${linkage === undefined ? "" : `.${linkage} `}${entry ? ".entry" : ".func"}`;
  const returned = results.length === 0 ? "" : ` (${results.map(variableText).join(", ")})`;
  const listed = parameters.map((parameter) => `    ${variableText(parameter)}`).join(",\n");
  lines.push(`${start}${returned} ${name} (${listed === "" ? "" : `\n${listed}\n`})`);
  for (const directive of directives) lines.push(directiveText(directive));
  if (body === undefined) {
    lines.push(";");
    return;
  }
  printBlock(body, "", { homes: registerHomes(body), lines, position: undefined });
  lines.push("");
}

function directiveText({ name, values }: FunctionDirective): string {
  return `.${name} ${values.join(", ")}`.trimEnd();
}

interface Body {
  readonly homes: Homes;
  readonly lines: string[];
  /** What the last `.loc` said. */
  position: SourcePosition | undefined;
}

function printBlock(statements: readonly Statement[], indent: string, body: Body): void {
  const { homes, lines } = body;
  const inner = `${indent}    `;
  lines.push(`${indent}{`);
  for (const declaration of registerDeclarations(homes.get(statements) ?? [], indent === ""))
    lines.push(`${inner}${declaration}`);
  for (let index = 0; index < statements.length; index += 1) {
    const statement = statements[index] as Statement;
    if (statement.kind === "instruction") {
      printPosition(statement, inner, body);
      lines.push(`${inner}${instructionText(statement)}`);
    } else if (statement.kind === "block") printBlock(statement.body, inner, body);
    else if (statement.kind === "label") lines.push(`${indent}${statement.name}:`);
    else if (statement.kind === "pragma")
      lines.push(`${inner}.pragma "${quoted(statement.text)}";`);
    else if (statement.kind === "variable") lines.push(`${inner}${variableText(statement)};`);
    else if (statement.kind === "targets")
      lines.push(
        `${indent}${statement.name}: .${statement.directive} ${statement.labels.join(", ")};`,
      );
    else lines.push(`${indent}${prototypeText(statement)}`);
  }
  lines.push(`${indent}}`);
}

function prototypeText({ name, results, parameters, directives }: CallPrototype): string {
  const [returned, taken] = [results, parameters].map((list) => list.map(variableText).join(", "));
  const end = directives.map((directive) => ` ${directiveText(directive)}`).join("");
  return `${name}: .callprototype (${returned}) _ (${taken})${end};`;
}

function printPosition({ position }: Instruction, indent: string, body: Body): void {
  if (position === undefined) return;
  if (body.position === undefined || !samePosition(body.position, position))
    body.lines.push(`${indent}.loc ${positionText(position)}`);
  body.position = position;
}

function samePosition(left: SourcePosition, right: SourcePosition): boolean {
  if (left === right) return true;
  const from = left.inlined;
  const to = right.inlined;
  return (
    left.line === right.line &&
    left.column === right.column &&
    left.file === right.file &&
    from?.name === to?.name &&
    from?.offset === to?.offset &&
    (from === undefined || to === undefined || samePosition(from.at, to.at))
  );
}

function positionText({ file, line, column, inlined }: SourcePosition): string {
  const place = `${file} ${line} ${column}`;
  if (inlined === undefined) return place;
  const name = `${inlined.name}${offsetText(inlined.offset)}`;
  return `${place}, function_name ${name}, inlined_at ${positionText(inlined.at)}`;
}

export function instructionText({ opcode, operands, guard, comment }: Instruction): string {
  const condition =
    guard === undefined ? "" : `@${guard.negated ? "!" : ""}${guard.register.name} `;
  const listed = listText(operands);
  const note = comment === undefined ? "" : ` // ${quoted(comment)}`;
  return `${condition}${opcode}${listed === "" ? "" : ` ${listed}`};${note}`;
}

/** Operands one after the other; most of them are registers, and products have hundreds. */
function listText(operands: readonly Operand[]): string {
  let listed = "";
  for (let place = 0; place < operands.length; place += 1) {
    const operand = operands[place] as Operand;
    const text = operand.kind === "register" ? operand.name : operandText(operand);
    listed += place === 0 ? text : `, ${text}`;
  }
  return listed;
}

export function operandText(operand: Operand): string {
  switch (operand.kind) {
    case "register":
      return operand.name;
    case "integer":
      return String(operand.value);
    case "float":
      return `0${operand.width === 32 ? "f" : "d"}${operand.bits
        .toString(16)
        .toUpperCase()
        .padStart(operand.width / 4, "0")}`;
    case "symbol":
      return symbolText(operand);
    case "address": {
      const base = `${operandText(operand.base)}${offsetText(operand.offset)}`;
      if (operand.coordinates === undefined) return `[${base}]`;
      return `[${base}, {${listText(operand.coordinates)}}]`;
    }
    case "vector":
      return `{${listText(operand.elements)}}`;
    case "pair":
      return `${operandText(operand.first)}|${operandText(operand.second)}`;
    case "not":
      return `!${operand.operand.name}`;
    case "negated":
      return `-${operandText(operand.operand)}`;
    case "discard":
      return "_";
    case "list":
      return `(${listText(operand.elements)})`;
    case "element":
      return `${operand.register.name}.${operand.element}`;
  }
}

function symbolText({ name, offset, generic, mask }: SymbolOperand): string {
  const named = generic === true ? `generic(${name})` : name;
  const whole = `${named}${offsetText(offset)}`;
  return mask === undefined ? whole : `0x${mask.toString(16)}(${whole})`;
}

/** Assemblers take `[%r0+-4]` but not `[%r0-4]`. */
function offsetText(offset: number): string {
  return offset === 0 ? "" : `+${offset}`;
}

function variableText(variable: Variable): string {
  const { space, name, type, count, vector, alignment, linkage, initial } = variable;
  const { pointer, attribute } = variable;
  const parts = [
    linkage === undefined ? "" : `.${linkage}`,
    `.${space}`,
    attribute === undefined ? "" : `.attribute(${attribute})`,
    alignment === undefined ? "" : `.align ${alignment}`,
    vector === undefined ? "" : `.v${vector}`,
    `.${type}`,
    pointer === undefined ? "" : ".ptr",
    pointer?.space === undefined ? "" : `.${pointer.space}`,
    pointer?.alignment === undefined ? "" : `.align ${pointer.alignment}`,
    count === undefined ? name : `${name}[${count === 0 ? "" : count}]`,
  ];
  const values = initial?.map(operandText).join(", ");
  const start = parts.filter((part) => part !== "").join(" ");
  if (values === undefined) return start;
  return count === undefined && vector === undefined
    ? `${start} = ${values}`
    : `${start} = {${values}}`;
}
