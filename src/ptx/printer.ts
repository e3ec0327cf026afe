/**
 * The one place that makes PTX text. Registers are declared in the block whose instructions name them
 * first, by type and in order; a `.loc` is printed where the position changes.
 */
import type {
  Instruction,
  Operand,
  PtxFunction,
  PtxModule,
  Register,
  SourcePosition,
  Statement,
  Variable,
} from "./module.ts";

export function printPtx(module: PtxModule): string {
  const lines = [`.version ${module.version}`, `.target ${module.target}`, ".address_size 64", ""];
  module.files.forEach((path, index) => lines.push(`.file ${index + 1} "${quoted(path)}"`));
  if (module.files.length > 0) lines.push("");
  for (const declaration of module.declarations) {
    if (declaration.kind === "variable") lines.push(`${variableText(declaration)};`);
    else printFunction(declaration, lines);
  }
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
  for (const directive of directives)
    lines.push(`.${directive.name} ${directive.values.join(", ")}`.trimEnd());
  if (body === undefined) {
    lines.push(";");
    return;
  }
  const declared = new Set<Register>();
  printBlock(body, "", declared, lines);
  lines.push("");
}

function printBlock(
  body: readonly Statement[],
  indent: string,
  declared: Set<Register>,
  lines: string[],
): void {
  lines.push(`${indent}{`);
  const inner = `${indent}    `;
  printRegisters(body, declared, inner, lines);
  let last: SourcePosition | undefined;
  for (const statement of body) {
    if (statement.kind === "block") printBlock(statement.body, inner, declared, lines);
    else if (statement.kind === "label") lines.push(`${indent}${statement.name}:`);
    else if (statement.kind === "pragma") lines.push(`${inner}.pragma "${statement.text}";`);
    else if (statement.kind === "variable") lines.push(`${inner}${variableText(statement)};`);
    else if (statement.kind === "targets")
      lines.push(
        `${indent}${statement.name}: .${statement.directive} ${statement.labels.join(", ")};`,
      );
    else {
      last = printPosition(statement, last, inner, lines);
      lines.push(`${inner}${instructionText(statement)}`);
    }
  }
  lines.push(`${indent}}`);
}

function printPosition(
  { position }: Instruction,
  last: SourcePosition | undefined,
  indent: string,
  lines: string[],
): SourcePosition | undefined {
  if (position === undefined) return last;
  const same =
    last !== undefined &&
    last.line === position.line &&
    last.file === position.file &&
    last.column === position.column;
  if (!same) lines.push(`${indent}.loc ${position.file} ${position.line} ${position.column}`);
  return position;
}

/** Declares what the block's own instructions name and no block around it has declared. */
function printRegisters(
  body: readonly Statement[],
  declared: Set<Register>,
  indent: string,
  lines: string[],
): void {
  const byType = new Map<string, string[]>();
  const see = (register: Register): void => {
    if (declared.has(register)) return;
    declared.add(register);
    const names = byType.get(register.type);
    if (names === undefined) byType.set(register.type, [register.name]);
    else names.push(register.name);
  };
  for (const statement of body) {
    if (statement.kind !== "instruction") continue;
    if (statement.guard !== undefined) see(statement.guard.register);
    for (const operand of statement.operands) visitRegisters(operand, see);
  }
  for (const [type, names] of byType)
    for (const part of runs(names)) lines.push(`${indent}.reg .${type} ${part};`);
}

/** Names `%r0` to `%r11` in any order are `%r<12>`; others are listed. */
function runs(names: readonly string[]): readonly string[] {
  const counts = new Map<string, Set<number>>();
  const others: string[] = [];
  for (const name of names) {
    const match = /^(.*?)(0|[1-9]\d*)$/.exec(name);
    const [, prefix, digits] = match ?? [];
    if (prefix === undefined || digits === undefined) {
      others.push(name);
      continue;
    }
    const found = counts.get(prefix) ?? new Set<number>();
    found.add(Number(digits));
    counts.set(prefix, found);
  }
  const ranges: string[] = [];
  for (const [prefix, numbers] of counts) {
    const dense = Math.max(...numbers) === numbers.size - 1;
    if (dense) ranges.push(`${prefix}<${numbers.size}>`);
    else others.push(...[...numbers].map((number) => `${prefix}${number}`));
  }
  return others.length === 0 ? ranges : [...ranges, others.join(", ")];
}

export function visitRegisters(operand: Operand, visit: (register: Register) => void): void {
  switch (operand.kind) {
    case "register":
      visit(operand);
      return;
    case "address":
      visitRegisters(operand.base, visit);
      for (const coordinate of operand.coordinates ?? []) visitRegisters(coordinate, visit);
      return;
    case "vector":
    case "list":
      for (const element of operand.elements) visitRegisters(element, visit);
      return;
    case "pair":
      visitRegisters(operand.first, visit);
      visitRegisters(operand.second, visit);
      return;
    case "not":
    case "negated":
      visitRegisters(operand.operand, visit);
      return;
    case "element":
      visit(operand.register);
      return;
    case "integer":
    case "float":
    case "symbol":
    case "discard":
      return;
  }
}

export function instructionText({ opcode, operands, guard, comment }: Instruction): string {
  const condition = guard === undefined ? "" : `@${guard.negated ? "!" : ""}${guard.register.name} `;
  const listed = operands.map(operandText).join(", ");
  const note = comment === undefined ? "" : ` // ${quoted(comment)}`;
  return `${condition}${opcode}${listed === "" ? "" : ` ${listed}`};${note}`;
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
      return `${operand.name}${offsetText(operand.offset)}`;
    case "address": {
      const base = `${operandText(operand.base)}${offsetText(operand.offset)}`;
      if (operand.coordinates === undefined) return `[${base}]`;
      return `[${base}, {${operand.coordinates.map(operandText).join(", ")}}]`;
    }
    case "vector":
      return `{${operand.elements.map(operandText).join(", ")}}`;
    case "pair":
      return `${operandText(operand.first)}|${operandText(operand.second)}`;
    case "not":
      return `!${operand.operand.name}`;
    case "negated":
      return `-${operandText(operand.operand)}`;
    case "discard":
      return "_";
    case "list":
      return `(${operand.elements.map(operandText).join(", ")})`;
    case "element":
      return `${operand.register.name}.${operand.element}`;
  }
}

function offsetText(offset: number): string {
  if (offset === 0) return "";
  return offset > 0 ? `+${offset}` : `${offset}`;
}

export function variableText(variable: Variable): string {
  const { space, name, type, count, vector, alignment, linkage, initial } = variable;
  const parts = [
    linkage === undefined ? "" : `.${linkage}`,
    `.${space}`,
    alignment === undefined ? "" : `.align ${alignment}`,
    vector === undefined ? "" : `.v${vector}`,
    `.${type}`,
    count === undefined ? name : `${name}[${count === 0 ? "" : count}]`,
  ];
  const values = initial?.map(operandText).join(", ");
  const start = parts.filter((part) => part !== "").join(" ");
  if (values === undefined) return start;
  return count === undefined ? `${start} = ${values}` : `${start} = {${values}}`;
}
