/**
 * Declarations of variables and parameters.
 *
 *   .visible .global .align 16 .v4 .f32 table[8] = {{0f3F800000, …}, …};
 *   |        |                          |          initial(): braces within braces become one list
 *   |        variables(), after it      dimensions(): [2][4] becomes 8
 *   by the caller
 */
import { ptxTypes } from "../module.ts";
import type {
  Linkage,
  Operand,
  PointerTarget,
  PtxType,
  StateSpace,
  Variable,
  VectorWidth,
} from "../module.ts";
import { readConstant, readOffset, readSize } from "./constants.ts";
import { readNumber } from "./positions.ts";
import type { Scanner } from "./scanner.ts";
import type { Scope } from "./scope.ts";

const types: ReadonlySet<string> = new Set(ptxTypes);
const spaces: ReadonlySet<string> = new Set<StateSpace>([
  "global",
  "shared",
  "local",
  "const",
  "param",
]);

export function isStateSpace(word: string): word is StateSpace {
  return spaces.has(word);
}

/** What one declaration says of all the names it lists. */
interface Form {
  readonly type: PtxType;
  readonly vector: VectorWidth | undefined;
  readonly alignment: number | undefined;
  readonly pointer: PointerTarget | undefined;
  readonly attribute: string | undefined;
}

/** `.align 8 .v2 .b32`, in any order, up to the name. */
export function readForm(scanner: Scanner): Form {
  let type: PtxType | undefined;
  let vector: VectorWidth | undefined;
  let alignment: number | undefined;
  let pointer: PointerTarget | undefined;
  let attribute: string | undefined;
  while (scanner.peek() === ".") {
    const start = scanner.offset;
    const word = scanner.directive();
    if (isType(word)) type = word;
    else if (word === "v2" || word === "v4") vector = word === "v2" ? 2 : 4;
    else if (word === "align") alignment = readAlignment(scanner);
    else if (word === "ptr") pointer = readPointer(scanner);
    else if (word === "attribute") attribute = readAttribute(scanner);
    else
      scanner.fail(
        "TW7106",
        `.${word} is not a type tilewright knows`,
        start,
        "a type, such as .b32",
      );
  }
  if (type === undefined) scanner.unexpected("a type, such as .b32");
  return { type, vector, alignment, pointer, attribute };
}

function isType(word: string): word is PtxType {
  return types.has(word);
}

function readAlignment(scanner: Scanner): number {
  const start = scanner.offset;
  const alignment = readNumber(scanner);
  if (alignment > 0 && Number.isInteger(Math.log2(alignment))) return alignment;
  scanner.fail("TW7103", "an alignment is not a power of two", start, "1, 2, 4 and so on", {
    found: String(alignment),
  });
}

/** `.ptr .global .align 16`: both parts may be absent. */
function readPointer(scanner: Scanner): PointerTarget {
  const space = [...spaces].find((word) => scanner.acceptWord(`.${word}`));
  const alignment = scanner.acceptWord(".align") ? readAlignment(scanner) : undefined;
  return { space: space !== undefined && isStateSpace(space) ? space : undefined, alignment };
}

function readAttribute(scanner: Scanner): string {
  scanner.take("(");
  let text = "";
  let depth = 1;
  for (;;) {
    const start = scanner.offset;
    if (scanner.atEnd) scanner.unexpected('")"');
    if (scanner.accept("(")) depth++;
    else if (scanner.accept(")")) depth--;
    else if (scanner.atName()) scanner.name();
    else if (scanner.atDigit()) scanner.numeral();
    else if (!scanner.accept(".") && !scanner.accept(",")) scanner.unexpected('")"');
    if (depth === 0) return text;
    text += scanner.text.slice(start, scanner.taken);
  }
}

/** A parameter of a function, or `_` with its type in a prototype. */
export function readParameter(scanner: Scanner): Variable {
  const start = scanner.offset;
  const space = scanner.directive();
  if (space === "reg") scanner.fail("TW7106", "a parameter is a register", start, ".param");
  if (space !== "param") scanner.fail("TW7102", "a parameter is missing", start, ".param");
  return readNamed(scanner, "param", readForm(scanner), undefined);
}

/** The variables of one declaration, its space already taken, its semicolon included. */
export function readVariables(
  scanner: Scanner,
  scope: Scope,
  space: StateSpace,
  linkage: Linkage | undefined,
): readonly Variable[] {
  const form = readForm(scanner);
  const variables: Variable[] = [];
  do {
    const start = scanner.offset;
    const variable = readNamed(scanner, space, form, linkage);
    variables.push(scanner.accept("=") ? withInitial(variable, scanner, scope) : variable);
    if (linkage === undefined) scope.declare(variable.name, scanner, start);
    else scope.know(variable.name);
  } while (scanner.accept(","));
  scanner.take(";");
  return variables;
}

function readNamed(
  scanner: Scanner,
  space: StateSpace,
  form: Form,
  linkage: Linkage | undefined,
): Variable {
  const name = scanner.name("the name of a variable");
  const count = readDimensions(scanner);
  return { kind: "variable", space, name, count, linkage, ...form };
}

/** `[2][3]` is 6, `[]` is 0 as yet. */
function readDimensions(scanner: Scanner): number | undefined {
  let count: number | undefined;
  while (scanner.accept("[")) {
    const start = scanner.offset;
    const extent = scanner.peek() === "]" ? 0 : readSize(scanner, "the size of an array");
    if (extent < 0) scanner.fail("TW7103", "the size of an array is negative", start, "0 or more");
    scanner.take("]");
    count = (count ?? 1) * extent;
  }
  return count;
}

function withInitial(variable: Variable, scanner: Scanner, scope: Scope): Variable {
  const initial: Operand[] = [];
  if (scanner.accept("{")) readValues(scanner, scope, initial, 0);
  else initial.push(readValue(scanner, scope));
  const { count, vector = 1 } = variable;
  return { ...variable, initial, count: count === 0 ? initial.length / vector : count };
}

const nestingLimit = 100;

function readValues(scanner: Scanner, scope: Scope, values: Operand[], depth: number): void {
  if (depth > nestingLimit)
    scanner.fail(
      "TW7106",
      "too deeply nested values",
      scanner.offset,
      `at most ${nestingLimit} deep`,
    );
  if (scanner.accept("}")) return;
  do {
    if (scanner.accept("{")) readValues(scanner, scope, values, depth + 1);
    else values.push(readValue(scanner, scope));
  } while (scanner.accept(","));
  scanner.take("}");
}

/** A number, an address as in `generic(name)+4`, or one byte of an address as in `0xFF00(name)`. */
function readValue(scanner: Scanner, scope: Scope): Operand {
  if (scanner.atName()) return readSymbol(scanner, scope);
  const start = scanner.offset;
  const constant = readConstant(scanner);
  if (!scanner.accept("(")) return constant;
  if (constant.kind === "float") scanner.fail("TW7103", "a mask is a float", start, "an integer");
  const symbol = readSymbol(scanner, scope);
  scanner.take(")");
  return { ...symbol, mask: constant.value };
}

function readSymbol(scanner: Scanner, scope: Scope): Operand & { readonly kind: "symbol" } {
  if (!scanner.acceptWord("generic")) {
    const name = readUse(scanner, scope);
    return { kind: "symbol", name, offset: readOffset(scanner) };
  }
  scanner.take("(");
  const name = readUse(scanner, scope);
  scanner.take(")");
  return { kind: "symbol", name, offset: readOffset(scanner), generic: true };
}

function readUse(scanner: Scanner, scope: Scope): string {
  const start = scanner.offset;
  const name = scanner.name();
  scope.use(name, start);
  return name;
}
