/**
 * Renames of what a call is given: option keys, what they are set to, positional arguments that became options, and
 * methods. An object that a call takes is looked for where it is written:
 *
 *   convolution({ ...shared, stride: 2 })      the keys here, and those of `const shared = { … }`
 *   convolution(optionsOf(x))                  nobody can see it: a note with the line
 *   const given: ConvolutionSpec = { … }       an object of a type that has the option
 */
import ts from "typescript-api";
import { isWrapper } from "./bindings.ts";
import type { Bindings, Exported } from "./bindings.ts";
import type { Edits } from "./edits.ts";
import { rowOfExport } from "./names.ts";
import type { Rename } from "./table.ts";

export function renameOptions(bindings: Bindings, rows: readonly Rename[], edits: Edits): void {
  const options = new Options(bindings, rows, edits);
  options.visit(bindings.source);
  // Variables of options are met where they are handed over, which may be below where they are read.
  options.visit(bindings.source);
}

class Options {
  readonly #bindings: Bindings;
  readonly #rows: readonly Rename[];
  readonly #edits: Edits;
  /** Variables that hold options, with the rows that rename their fields. */
  readonly #fields = new Map<ts.Symbol, Set<Rename>>();

  constructor(bindings: Bindings, rows: readonly Rename[], edits: Edits) {
    this.#bindings = bindings;
    this.#rows = rows;
    this.#edits = edits;
  }

  visit(node: ts.Node): void {
    if (ts.isCallExpression(node) || ts.isNewExpression(node)) this.#called(node);
    else if (ts.isVariableDeclaration(node)) this.#typed(node.type, node.initializer);
    else if (ts.isSatisfiesExpression(node)) this.#typed(node.type, node.expression);
    else if (ts.isPropertyAccessExpression(node)) this.#accessed(node);
    ts.forEachChild(node, (child) => this.visit(child));
  }

  /** The rows of a function or a type, whose name may have changed too. */
  #rowsOf(found: Exported | undefined): readonly Rename[] {
    if (found === undefined || found.path.length === 0) return [];
    const name = rowOfExport(this.#rows, found)?.new ?? found.path.join(".");
    return this.#rows.filter(({ entry, of }) => entry === found.entry && of.includes(name));
  }

  /** The rows of a method by its name alone: which class it belongs to is not known here. */
  #rowsOfMethod(callee: ts.Expression): readonly Rename[] {
    if (!ts.isPropertyAccessExpression(callee)) return [];
    // Objects of the language itself, such as Math, are declared nowhere.
    const { expression } = callee;
    if (ts.isIdentifier(expression) && this.#bindings.symbolOf(expression) === undefined) return [];
    const { text } = callee.name;
    return this.#rows.filter(({ of }) =>
      of.some((name) => isMethod(name) && name.endsWith(`.${text}`)),
    );
  }

  #called(call: ts.CallExpression | ts.NewExpression): void {
    const found = this.#bindings.exportedBy(call.expression);
    const given = call.arguments ?? [];
    for (const row of found ? this.#rowsOf(found) : this.#rowsOfMethod(call.expression)) {
      if (row.kind === "signature") this.#rearrange(row, call, given);
      const options = given[row.argument ?? given.length - 1];
      if (isInside(row) && options !== undefined)
        this.#optionsIn(options, row, row.argument !== undefined);
    }
  }

  #typed(type: ts.TypeNode | undefined, value: ts.Expression | undefined): void {
    if (type === undefined || value === undefined || !ts.isTypeReferenceNode(type)) return;
    const rows = this.#rowsOf(this.#bindings.exportedBy(type.typeName));
    for (const row of rows.filter(isInside)) this.#optionsIn(value, row, false);
  }

  /** Renames within an expression that is an object of options, or may be. */
  #optionsIn(given: ts.Expression, row: Rename, isSure: boolean): void {
    const value = stripped(given);
    if (ts.isObjectLiteralExpression(value)) {
      this.#keysOf(value, row, (row.kind === "value" ? keyOf(row.old) : row.old).split("."));
    } else if (ts.isConditionalExpression(value)) {
      this.#optionsIn(value.whenTrue, row, isSure);
      this.#optionsIn(value.whenFalse, row, isSure);
    } else {
      const held = this.#heldBy(value);
      if (held !== undefined) {
        this.#fields.set(held.symbol, (this.#fields.get(held.symbol) ?? new Set()).add(row));
        this.#optionsIn(held.literal, row, isSure);
      } else if (isSure && !ts.isLiteralExpression(value))
        this.#hidden(value, "these options", row);
    }
  }

  /** The object that a variable was made with. */
  #heldBy(value: ts.Expression): { symbol: ts.Symbol; literal: ts.Expression } | undefined {
    const symbol = ts.isIdentifier(value) ? this.#bindings.symbolOf(value) : undefined;
    const declaration = symbol?.valueDeclaration;
    if (symbol === undefined || !declaration || !ts.isVariableDeclaration(declaration))
      return undefined;
    const literal = declaration.initializer && stripped(declaration.initializer);
    return literal && ts.isObjectLiteralExpression(literal) ? { symbol, literal } : undefined;
  }

  #keysOf(literal: ts.ObjectLiteralExpression, row: Rename, path: readonly string[]): void {
    const [key, ...deeper] = path;
    for (const property of literal.properties) {
      if (ts.isSpreadAssignment(property)) this.#optionsIn(property.expression, row, true);
      else if (property.name === undefined || keyText(property.name) !== key) continue;
      else if (deeper.length > 0) this.#deeper(property, row, deeper);
      else if (row.kind === "value") this.#setting(property, row);
      else this.#key(property, property.name, row);
    }
  }

  /** The options that an option holds, written here or in a variable. */
  #deeper(property: ts.ObjectLiteralElementLike, row: Rename, path: readonly string[]): void {
    const value = ts.isPropertyAssignment(property) ? stripped(property.initializer) : undefined;
    const name = ts.isShorthandPropertyAssignment(property) ? property.name : value;
    const literal =
      name && !ts.isObjectLiteralExpression(name) ? this.#heldBy(name)?.literal : name;
    if (literal && ts.isObjectLiteralExpression(literal)) this.#keysOf(literal, row, path);
  }

  #key(property: ts.Node, name: ts.PropertyName, row: Rename): void {
    const renamed = row.new.slice(row.new.lastIndexOf(".") + 1);
    const start = name.getStart(this.#bindings.source);
    if (ts.isShorthandPropertyAssignment(property))
      this.#edits.range(row, start, start, `${renamed}: `);
    else if (ts.isStringLiteral(name))
      this.#edits.range(row, start + 1, name.getEnd() - 1, renamed);
    else this.#edits.replace(row, name, renamed);
  }

  #setting(property: ts.ObjectLiteralElementLike, row: Rename): void {
    const value = ts.isPropertyAssignment(property) ? stripped(property.initializer) : undefined;
    if (value === undefined) this.#hidden(property, "what this is", row);
    else if (normal(value.getText(this.#bindings.source)) === valueOf(row.old))
      this.#edits.replace(row, property, row.new.slice(keyOf(row.new).lastIndexOf(".") + 1));
    else if (!isConstant(value)) this.#hidden(value, "what this is", row);
  }

  #hidden(node: ts.Node, what: string, { old, new: now }: Rename): void {
    this.#edits.note(node, `${what} cannot be seen here; ${old} is ${now} now`);
  }

  #accessed({ expression, name }: ts.PropertyAccessExpression): void {
    const isOurs = this.#bindings.exportedBy(expression) !== undefined;
    for (const row of this.#rows)
      if (row.kind === "method" && row.old === name.text && !isOurs)
        this.#edits.replace(row, name, row.new);
    const symbol = ts.isIdentifier(expression) ? this.#bindings.symbolOf(expression) : undefined;
    for (const row of (symbol && this.#fields.get(symbol)) ?? [])
      if (row.kind === "option" && row.old === name.text) this.#edits.replace(row, name, row.new);
  }

  /** `(x, axis)` to `(x, { axis })`, into the object that is already there if there is one. */
  #rearrange(row: Rename, call: ts.Node, given: readonly ts.Expression[]): void {
    if (given.some((each) => ts.isSpreadElement(each))) {
      this.#hidden(call, "these arguments", row);
      return;
    }
    if (!this.#fits(row, given)) return;
    const places = namedPlaces(row);
    const names = namesOf(row.old);
    const [{ place = 0 } = {}] = places;
    if (place + places.length < names.length) {
      this.#move(row, given.slice(0, names.length), given[names.length], place);
      return;
    }
    const after = given.slice(places[0]?.place ?? given.length);
    const at = after.findIndex((each) => ts.isObjectLiteralExpression(stripped(each)));
    const named = after.slice(0, at < 0 ? undefined : at).slice(0, places.length);
    const options = at < 0 ? undefined : after[at] && stripped(after[at]);
    const [first] = named;
    if (first === undefined || this.#heldBy(first) !== undefined) return;
    this.#nameEach(row, named, places);
    this.#close(named.at(-1) ?? first, options);
  }

  /** `a, b` to `{ axis: a, keepDims: b`. */
  #nameEach(
    row: Rename,
    values: readonly ts.Expression[],
    places: readonly { readonly name: string }[],
  ): void {
    for (const [index, value] of values.entries()) {
      const name = places[index]?.name ?? "";
      const isShort = ts.isIdentifier(value) && value.text === name;
      const text = `${index === 0 ? "{ " : ""}${isShort ? "" : `${name}: `}`;
      const start = value.getStart(this.#bindings.source);
      if (index === 0) this.#edits.range(row, start, start, text);
      else this.#edits.also(start, start, text);
    }
  }

  /** Whether a call is of the old form: quoted names are meant literally, and what a method's axis is looks like one. */
  #fits(row: Rename, given: readonly ts.Expression[]): boolean {
    const source = this.#bindings.source;
    const quoted = namesOf(row.old).every(
      (name, place) =>
        !name.startsWith('"') || normal(given[place]?.getText(source) ?? "") === name,
    );
    const [{ place = 0 } = {}] = namedPlaces(row);
    const first = given[place];
    return quoted && (!row.of.every(isMethod) || (first !== undefined && isLikeAxis(first)));
  }

  /** `(axis, payloads)` to `(payloads, { axis })`: the argument goes behind those that follow it. */
  #move(
    row: Rename,
    given: readonly ts.Expression[],
    options: ts.Expression | undefined,
    place: number,
  ): void {
    const { source } = this.#bindings;
    const [value, next] = [given[place], given[place + 1]];
    const final = given.at(-1);
    const name = namedPlaces(row)[0]?.name ?? "";
    if (value === undefined || next === undefined || final === undefined) return;
    if (given.length < namesOf(row.old).length || this.#isRecord(final)) return;
    const text = value.getText(source);
    const setting = text === name ? name : `${name}: ${text}`;
    this.#edits.range(row, value.getStart(source), next.getStart(source), "");
    if (options === undefined) this.#edits.also(final.getEnd(), final.getEnd(), `, { ${setting} }`);
    else if (ts.isObjectLiteralExpression(options) && options.properties.length > 0) {
      const start = options.getStart(source) + 1;
      this.#edits.also(start, start, ` ${setting},`);
    } else this.#edits.also(options.getStart(source), options.getEnd(), `{ ${setting} }`);
  }

  #isRecord(value: ts.Expression): boolean {
    return ts.isObjectLiteralExpression(stripped(value));
  }

  /** The end of an object that begins before the arguments it now holds. */
  #close(final: ts.Expression, options: ts.Expression | undefined): void {
    const end = final.getEnd();
    if (options === undefined || !ts.isObjectLiteralExpression(options))
      this.#edits.also(end, end, " }");
    else if (options.properties.length === 0) this.#edits.also(end, options.getEnd(), " }");
    else this.#edits.also(end, options.getStart(this.#bindings.source) + 1, ",");
  }
}

const isInside = ({ kind }: Rename): boolean => kind === "option" || kind === "value";

/** `Device.run` is a method, `nn.conv` a function of a namespace. */
const isMethod = (name: string): boolean => /^[A-Z]\w*\./u.test(name);

function stripped(value: ts.Expression): ts.Expression {
  return isWrapper(value) ? stripped(value.expression) : value;
}

function keyText(name: ts.PropertyName): string | undefined {
  return ts.isIdentifier(name) || ts.isStringLiteralLike(name) ? name.text : undefined;
}

/** Of `layout: "nk"` the key, and what it is set to. */
const keyOf = (setting: string): string => setting.replace(/:.*/su, "");
const valueOf = (setting: string): string => setting.replace(/^[^:]*: /u, "");
const normal = (text: string): string => text.replaceAll("'", '"');

/** Whether an expression is what it says, and nothing else. */
function isConstant(value: ts.Expression): boolean {
  const { TrueKeyword, FalseKeyword } = ts.SyntaxKind;
  return ts.isLiteralExpression(value) || value.kind === TrueKeyword || value.kind === FalseKeyword;
}

/** A number, a list of numbers, or a name with axis in it: of other classes' methods nothing is known. */
function isLikeAxis(value: ts.Expression): boolean {
  const { PlusToken, MinusToken } = ts.SyntaxKind;
  const given = stripped(value);
  if (ts.isArrayLiteralExpression(given))
    return given.elements.length > 0 && given.elements.every(isLikeAxis);
  if (
    ts.isPrefixUnaryExpression(given) &&
    [PlusToken, MinusToken].includes(given.operator as never)
  )
    return ts.isNumericLiteral(given.operand);
  return ts.isNumericLiteral(given) || (ts.isIdentifier(given) && /ax[ei]s$/iu.test(given.text));
}

/** The names in `(x, axis)`, without what is in braces. */
const namesOf = (signature: string): readonly string[] =>
  signature
    .replaceAll(/[()\s]|\{.*\}/gu, "")
    .split(",")
    .filter((name) => name !== "");

/** By place, the arguments that `new` has in braces and `old` has not. */
function namedPlaces({
  old,
  new: now,
}: Rename): readonly { readonly place: number; readonly name: string }[] {
  const names = namesOf(old);
  const braced =
    /\{(.*)\}/u
      .exec(now)?.[1]
      ?.split(",")
      .map((name) => name.trim()) ?? [];
  return names.flatMap((name, place) => {
    const found = braced.find((one) => one.split(":")[0] === name || one === name);
    return found === undefined ? [] : [{ place, name: found }];
  });
}
