/**
 * Reads IR text back to nodes; the inverse of the printer. Ops are read by their entries in the op
 * table. The type written after an op is compared with the inferred one, so a text that parses holds
 * no type that its ops do not give.
 *
 *   module    := kernel*
 *   kernel    := "kernel" "@" name ["dimensions" "[" dimension,* "]"] "grid" "[" axis,* "]"
 *                "threads" "[" name,+ "]" [placed] "(" parameter,* ")" [location] "{" op* "}"
 *   placed    := "target" name "shared" integer ["layouts" "[" (word "=" string),* "]"]
 *   dimension := word ["multiple" integer]
 *   axis      := name "=" size ["cluster" integer]
 *   parameter := role value string ":" type ["strides" sizes]
 *   op        := [value,+ "="] kind operands [attributes] region* [":" type,+] [location]
 *   operands  := value,* (name "(" value,* ")")*
 *   attributes:= "{" (name "=" attribute),* "}"
 *   region    := name ["(" (value ":" type),* ")"] "{" op* "}"        the last op is a yield
 *   location  := "@" string ":" line ":" column
 *
 * Values may have any name of word characters; the printer numbers them.
 */
import { noSlots, opOf } from "../make-op.ts";
import { TilewrightError } from "../../support/diagnostics.ts";
import { locationAt, unknownLocation } from "../../support/location.ts";
import type { Location } from "../../support/location.ts";
import { targetNamed, targetNames, warpsPerGroup } from "../../targets/target.ts";
import { inferResults } from "../infer/index.ts";
import type { InferContext } from "../infer/index.ts";
import type {
  AnyOp,
  GridAxis,
  Kernel,
  KernelParameter,
  Module,
  PlacedFor,
  Region,
  Value,
} from "../node.ts";
import { opKinds, opTable } from "../ops.ts";
import type { OpKind } from "../ops.ts";
import type { AttributeValue, OpSchema } from "../schema.ts";
import { attributeSlot } from "../schema.ts";
import { dimension } from "../size.ts";
import type { Dimension } from "../size.ts";
import { operandForm } from "../text-form.ts";
import { sameType, typeText } from "../types.ts";
import type { Type } from "../types.ts";
import { parseAttribute } from "./attributes.ts";
import { Cursor } from "./cursor.ts";
import type { Token } from "./lexer.ts";
import { parseSize, parseSizes, parseType } from "./types.ts";
import type { Names } from "./types.ts";

/** Parses a module; `file` names the text in reports. */
export function parseModule(text: string, file = "<ir>"): Module {
  const cursor = new Cursor(text, file);
  const kernels: Kernel[] = [];
  while (cursor.peek().kind !== "end") {
    const start = cursor.peek();
    const kernel = new KernelParser(cursor).parse();
    if (kernels.some(({ name }) => name === kernel.name))
      cursor.fail(
        ...(["TW2506", start, `the module has two kernels @${kernel.name}`] as const),
        ...(["a name of its own for each kernel", `@${kernel.name} twice`] as const),
      );
    kernels.push(kernel);
  }
  return Object.freeze({ kernels: Object.freeze(kernels) });
}

function parseLocation(cursor: Cursor): Location {
  if (!cursor.accept("@")) return unknownLocation;
  const file = cursor.expectString("the quoted name of a file");
  cursor.expect(":");
  const line = cursor.expectInteger("a line");
  cursor.expect(":");
  return locationAt(file, line, cursor.expectInteger("a column"));
}

type Parts<T> = { [name: string]: T | readonly T[] | undefined };

class KernelParser {
  readonly #cursor: Cursor;
  readonly #dimensions = new Map<string, Dimension>();
  readonly #layouts = new Map<string, string>();
  readonly #scopes = [new Map<string, Value>()];
  #context: InferContext = {
    grid: [],
    threads: [],
    warps: warpsPerGroup,
    dimensions: [],
  };
  #nextId = 0;

  constructor(cursor: Cursor) {
    this.#cursor = cursor;
  }

  parse(): Kernel {
    const cursor = this.#cursor;
    cursor.expect("kernel");
    cursor.expect("@");
    const name = cursor.expectName("the kernel's name");
    if (cursor.accept("dimensions")) cursor.list("[", "]", () => this.#dimension());
    cursor.expect("grid");
    const grid = cursor.list("[", "]", () => this.#axis());
    cursor.expect("threads");
    const threads = cursor.list("[", "]", () => cursor.expectName("a thread's name"));
    const warps = cursor.accept("warps")
      ? cursor.expectInteger("warps of a program thread")
      : warpsPerGroup;
    const resident = cursor.accept("resident")
      ? cursor.expectInteger("blocks that a processor holds")
      : undefined;
    const placed = cursor.accept("target") ? this.#placed() : undefined;
    const dimensions = Object.freeze([...this.#dimensions.values()]);
    this.#context = { grid, threads, warps, dimensions };
    const parameters = cursor.list("(", ")", () => this.#kernelParameter());
    const location = parseLocation(cursor);
    const values = Object.freeze(parameters.map(({ value }) => value));
    const body = Object.freeze({ parameters: values, ops: this.#ops() });
    const kernel = { name, grid, threads, warps, dimensions, parameters, body, location };
    return Object.freeze({
      ...kernel,
      ...(resident !== undefined && { resident }),
      ...(placed && { placed }),
    });
  }

  #placed(): PlacedFor {
    const cursor = this.#cursor;
    const token = cursor.peek();
    const target = targetNamed(cursor.expectName("a target"));
    if (target === undefined)
      return cursor.fail("TW2511", token, `${token.text} is no target`, targetNames.join(", "));
    const sharedBytes = cursor.accept("shared")
      ? cursor.expectInteger("bytes of shared memory")
      : undefined;
    if (cursor.accept("layouts")) cursor.list("[", "]", () => this.#layout());
    return Object.freeze({ target, ...(sharedBytes !== undefined && { sharedBytes }) });
  }

  #layout(): void {
    const cursor = this.#cursor;
    const token = cursor.expectKind("word", "the name of a layout");
    cursor.expect("=");
    const text = cursor.expectString("the quoted text of a layout");
    if (this.#layouts.has(token.text))
      cursor.fail("TW2506", token, `layout ${token.text} is listed twice`, "each layout once");
    this.#layouts.set(token.text, text);
  }

  get #names(): Names {
    return { dimensions: this.#dimensions, layouts: this.#layouts };
  }

  #dimension(): void {
    const cursor = this.#cursor;
    const token = cursor.expectKind("word", "a dimension's name");
    const multipleOf = cursor.accept("multiple") ? cursor.expectInteger() : 1;
    if (this.#dimensions.has(token.text))
      cursor.fail(
        "TW2506",
        token,
        `dimension ${token.text} is listed twice`,
        "each dimension once",
      );
    this.#dimensions.set(token.text, dimension(token.text, multipleOf));
  }

  #axis(): GridAxis {
    const cursor = this.#cursor;
    const name = cursor.expectName("a grid axis");
    cursor.expect("=");
    const extent = parseSize(cursor, this.#dimensions);
    const cluster = cursor.accept("cluster") ? cursor.expectInteger() : 1;
    return Object.freeze({ name, extent, cluster });
  }

  #kernelParameter(): KernelParameter {
    const cursor = this.#cursor;
    const role = cursor.expectWord(["input", "output", "inout", "scalar"], "a role");
    const token = cursor.expectKind("value", "a value");
    const name = cursor.expectString("the quoted name of the parameter");
    cursor.expect(":");
    const value = this.#define(token, parseType(cursor, this.#names), this.#nextId++);
    const strides = cursor.accept("strides") ? parseSizes(cursor, this.#dimensions) : undefined;
    return Object.freeze({ name, role, value, ...(strides && { strides }) });
  }

  /** The ops of a region from its opening to its closing brace, in the scope that is open. */
  #ops(): readonly AnyOp[] {
    this.#cursor.expect("{");
    const ops: AnyOp[] = [];
    while (ops.at(-1)?.kind !== "yield") {
      if (this.#cursor.sees("}")) this.#cursor.unexpected("`yield`, which ends every region");
      ops.push(this.#op());
    }
    this.#cursor.expect("}");
    return Object.freeze(ops);
  }

  #region(): Region {
    const cursor = this.#cursor;
    this.#scopes.push(new Map());
    const parameters = cursor.sees("(") ? cursor.list("(", ")", () => this.#parameter()) : [];
    const ops = this.#ops();
    this.#scopes.pop();
    return Object.freeze({ parameters: Object.freeze(parameters), ops });
  }

  #parameter(): Value {
    const token = this.#cursor.expectKind("value", "a value");
    this.#cursor.expect(":");
    return this.#define(token, parseType(this.#cursor, this.#names), this.#nextId++);
  }

  #op(): AnyOp {
    const cursor = this.#cursor;
    const names = cursor.peek().kind === "value" ? this.#resultNames() : [];
    // Numbered before the values of the op's regions, as the printer does.
    const firstId = this.#nextId;
    this.#nextId += names.length;
    const start = cursor.expectKind("word", "an operation");
    const kind = opKinds.find((candidate) => candidate === start.text);
    if (kind === undefined)
      return cursor.fail(
        "TW2504",
        start,
        `there is no operation ${start.text}`,
        "a kind of the op table",
      );
    const operands = this.#operands(kind, start);
    const attributes = this.#attributes(kind, start);
    const regions = this.#regions(kind, start);
    const written = cursor.accept(":") ? this.#types() : [];
    const location = parseLocation(cursor);
    const draft = { kind, operands, attributes, regions, location: cursor.locationOf(start) };
    // The parts follow the kind's schema, which TypeScript cannot see.
    const inferred = inferResults(draft as unknown as AnyOp, this.#context);
    this.#checkResults(start, names.length, inferred, written);
    const results = names.map((token, position) =>
      this.#define(token, written[position] as Type, firstId + position),
    );
    const parts = { kind, operands, attributes, regions, location };
    return opOf(parts as unknown as AnyOp, Object.freeze(results)) as unknown as AnyOp;
  }

  #resultNames(): readonly Token[] {
    const names = this.#cursor.commaSeparated(() => this.#cursor.expectKind("value", "a value"));
    this.#cursor.expect("=");
    return names;
  }

  #types(): readonly Type[] {
    return this.#cursor.commaSeparated(() => parseType(this.#cursor, this.#names));
  }

  #operands(kind: OpKind, start: Token): Parts<Value> {
    const cursor = this.#cursor;
    const { positional, list, named } = operandForm(kind);
    const parts: Parts<Value> = {};
    for (const name of [...named, list ?? []].flat())
      if (opTable[kind].operands[name] === "many") parts[name] = Object.freeze([]);
    positional.forEach((name, position) => {
      if (position > 0) cursor.expect(",");
      parts[name] = this.#use(`operand ${name} of ${kind}`);
    });
    // A value before `=` is the result of the next op.
    if (list !== undefined && cursor.peek().kind === "value" && !cursor.sees("=", 1))
      parts[list] = cursor.commaSeparated(() => this.#use("a value"));
    const seen = new Set<string>();
    while (cursor.peek().kind === "word" && cursor.sees("(", 1)) {
      const token = cursor.peek();
      if (!named.includes(token.text)) break;
      if (seen.has(token.text)) this.#surplus(token, start, "operand");
      seen.add(cursor.take().text);
      parts[token.text] = this.#namedOperand(opTable[kind], token);
    }
    return Object.freeze(parts);
  }

  #namedOperand(schema: OpSchema, name: Token): Value | readonly Value[] {
    const cursor = this.#cursor;
    if (schema.operands[name.text] === "many")
      return cursor.list("(", ")", () => this.#use("a value"));
    cursor.expect("(");
    const value = this.#use("a value");
    cursor.expect(")");
    return value;
  }

  #attributes(kind: OpKind, start: Token): { [name: string]: AttributeValue } {
    const cursor = this.#cursor;
    const schema = opTable[kind].attributes;
    const attributes: { [name: string]: AttributeValue } = {};
    if (cursor.sees("{"))
      cursor.list("{", "}", () => {
        const token = cursor.expectKind("word", "an attribute");
        const form = Object.hasOwn(schema, token.text) ? schema[token.text] : undefined;
        if (form === undefined || Object.hasOwn(attributes, token.text))
          return this.#surplus(token, start, "attribute");
        cursor.expect("=");
        attributes[token.text] = parseAttribute(cursor, form, this.#dimensions);
      });
    for (const [name, form] of Object.entries(schema))
      if (!attributeSlot(form).optional && attributes[name] === undefined)
        cursor.fail("TW2508", start, `${kind} has no attribute ${name}`, `{${name} = …}`);
    return Object.freeze(attributes);
  }

  #regions(kind: OpKind, start: Token): Parts<Region> {
    const cursor = this.#cursor;
    const parts: Parts<Region> = {};
    const declared = Object.entries(opTable[kind].regions);
    for (const [name, arity] of declared) {
      const found: Region[] = [];
      while (cursor.accept(name)) found.push(this.#region());
      if (arity === "many") parts[name] = Object.freeze(found);
      else if (found.length === 1) parts[name] = found[0];
      else cursor.fail("TW2508", start, `${kind} has ${found.length} regions ${name}`, "one");
    }
    return declared.length === 0 ? noSlots : Object.freeze(parts);
  }

  #surplus(token: Token, start: Token, part: string): never {
    const message = `${start.text} has no ${part} ${token.text}, or has it already`;
    return this.#cursor.fail("TW2508", token, message, "parts as docs/operations.md has them");
  }

  #checkResults(
    start: Token,
    names: number,
    inferred: readonly Type[],
    written: readonly Type[],
  ): void {
    const same =
      names === inferred.length &&
      written.length === inferred.length &&
      inferred.every((type, position) => sameType(type, written[position] as Type));
    if (same) return;
    const text = (types: readonly Type[]) => types.map(typeText).join(", ") || "no result";
    const counted = names === inferred.length ? "" : `, and ${names} names for them`;
    throw new TilewrightError({
      code: "TW2509",
      message: `the results of ${start.text} are not the written ones`,
      location: this.#cursor.locationOf(start),
      expected: text(inferred),
      found: `${text(written)}${counted}`,
    });
  }

  #use(expected: string): Value {
    const token = this.#cursor.expectKind("value", expected);
    for (const scope of this.#scopes) {
      const value = scope.get(token.text);
      if (value !== undefined) return value;
    }
    return this.#cursor.fail(
      "TW2505",
      token,
      `${token.text} is not defined here`,
      "a value that is defined before",
    );
  }

  #define(token: Token, type: Type, id: number): Value {
    if (this.#scopes.some((scope) => scope.has(token.text)))
      this.#cursor.fail("TW2506", token, `${token.text} is already defined`, "a number of its own");
    const value = Object.freeze({ id, type });
    this.#scopes.at(-1)?.set(token.text, value);
    return value;
  }
}
