/**
 * Reads programs: files of modules, or of functions without a module around them, cut by `// -----`.
 *
 *   parseGraph(text, "model.mlir")  ->  one GraphModule a program
 */
import type { Attribute, AttributeMap } from "../ops/attribute.ts";
import type { ForeignEntry, GraphFunction, GraphModule } from "../ops/node.ts";
import { graphRegion } from "../ops/node.ts";
import { typeText } from "../ops/types.ts";
import { parseAttribute } from "./attributes.ts";
import type { NamedParameter } from "./form.ts";
import { OpParser } from "./parser.ts";
import { Scanner } from "./scanner.ts";
import { typesText } from "./types.ts";

/** A part of a file between `// -----` lines, and how many lines of the file are before it. */
export interface ProgramPiece {
  readonly text: string;
  readonly line: number;
}

/** Cuts a file at its `// -----` lines, those within comments too; pieces with comments alone are left out. */
export function cutPrograms(text: string): readonly ProgramPiece[] {
  const pieces: ProgramPiece[] = [];
  let line = 0;
  for (const piece of text.split(/^[ \t]*(?:\/\/ )+-----.*$/m)) {
    const empty = piece.split("\n").every((each) => /^\s*(\/\/.*)?$/.test(each));
    if (!empty) pieces.push({ text: piece, line });
    line += piece.split("\n").length - 1;
  }
  return pieces;
}

/** Every program of a text; `file` is named in reports. */
export function parseGraph(text: string, file = "program.mlir"): readonly GraphModule[] {
  return cutPrograms(text).flatMap((piece) => parsePiece(piece, file));
}

/** The programs of one piece of a file: where it is wrong, the other pieces are not. */
export function parsePiece({ text, line }: ProgramPiece, file: string): readonly GraphModule[] {
  const scanner = new Scanner(text, file, line);
  // The third byte of bytecode is no UTF-8.
  if (/^ML[\u00ef\ufffd]R/.test(text))
    scanner.fail("TW9001", "the file is MLIR's bytecode", {
      expected: "text, such as that of lowered.as_text() or exported.mlir_module() in JAX",
      found: "bytecode",
    });
  return new ProgramParser(scanner).programs();
}

type Entries = Map<string, GraphFunction>;

class ProgramParser {
  readonly #scanner: Scanner;
  readonly #ops: OpParser;

  constructor(scanner: Scanner) {
    this.#scanner = scanner;
    this.#ops = new OpParser(scanner);
  }

  programs(): readonly GraphModule[] {
    const scanner = this.#scanner;
    const modules: GraphModule[] = [];
    const loose: Entries = new Map();
    const foreign: ForeignEntry[] = [];
    while (!scanner.atEnd) {
      if (this.#skipDefinition()) continue;
      if (scanner.sees("module") || scanner.sees("builtin.module")) modules.push(this.#module());
      else if (scanner.sees('"builtin.module"')) modules.push(this.#genericModule());
      else this.#entry(loose, foreign);
    }
    if (loose.size === 0 && foreign.length === 0) return modules;
    const attributes = new Map<string, Attribute>();
    return [...modules, Object.freeze({ name: "", functions: loose, attributes, foreign })];
  }

  /** Passes over `#name = …`, `!name = …` and the resources at a file's end. */
  #skipDefinition(): boolean {
    const scanner = this.#scanner;
    if (scanner.sees("{-#")) {
      if (scanner.match(/\{-#[\s\S]*?#-\}/y) === undefined) scanner.unexpected("`#-}`");
      return true;
    }
    if (scanner.match(/#[\w$.-]+\s*=/y) !== undefined) {
      parseAttribute(scanner, this.#ops.aliases);
      return true;
    }
    if (scanner.match(/![\w$.-]+\s*=/y) === undefined) return false;
    this.#ops.type();
    return true;
  }

  #module(): GraphModule {
    const scanner = this.#scanner;
    scanner.word();
    const name = scanner.sees("@") ? scanner.symbol() : "";
    const attributes = scanner.accept("attributes")
      ? this.#ops.optionalDictionary()
      : new Map<string, Attribute>();
    const functions: Entries = new Map();
    const foreign: ForeignEntry[] = [];
    scanner.expect("{");
    while (!scanner.accept("}")) this.#entry(functions, foreign);
    this.#ops.trailingLocation();
    return Object.freeze({ name, functions, attributes, foreign: Object.freeze(foreign) });
  }

  #entry(functions: Entries, foreign: ForeignEntry[]): void {
    const scanner = this.#scanner;
    if (scanner.sees("func.func") && this.#isDeclaration()) foreign.push(this.#declaration());
    else if (scanner.sees("func.func")) this.#add(functions, () => this.#function());
    else if (scanner.sees('"func.func"')) this.#add(functions, () => this.#genericFunction());
    else if (/^(sdy|ml_program|mpmd)\./.test(scanner.text.slice(scanner.position)))
      foreign.push(this.#foreign());
    else scanner.unexpected("func.func or an entry of another dialect such as sdy.mesh");
  }

  #add(functions: Entries, read: () => GraphFunction): void {
    const { position } = this.#scanner;
    const added = read();
    if (functions.has(added.name))
      this.#scanner.fail("TW9003", `the module has two functions @${added.name}`, {
        position,
        expected: "a name of its own for each function",
        found: `@${added.name} twice`,
      });
    functions.set(added.name, added);
  }

  /** A function's head, which is passed over. */
  #skipHead(): void {
    const scanner = this.#scanner;
    for (const word of ["func.func", "private", "nested", "public"]) scanner.accept(word);
    scanner.symbol();
    scanner.balanced("(");
    if (scanner.accept("->")) {
      if (scanner.sees("(")) scanner.balanced("(");
      else this.#ops.type();
    }
    if (scanner.accept("attributes")) this.#ops.optionalDictionary();
  }

  #isDeclaration(): boolean {
    const scanner = this.#scanner;
    return scanner.elsewhere(scanner.position, () => {
      this.#skipHead();
      return !scanner.sees("{");
    });
  }

  /** A function without a body: kept as text. */
  #declaration(): ForeignEntry {
    const scanner = this.#scanner;
    const start = scanner.position;
    this.#skipHead();
    const text = scanner.text.slice(start, scanner.position).trim().replace(/\s+/g, " ");
    this.#ops.trailingLocation();
    return Object.freeze({ text });
  }

  /** An entry of another dialect: a name, a symbol and whatever is between brackets after them. */
  #foreign(): ForeignEntry {
    const scanner = this.#scanner;
    const start = scanner.position;
    let end = start;
    const brackets = ["<", "(", "[", "{"];
    for (;;) {
      const line = scanner.text.indexOf("\n", end);
      const open = brackets.find((each) => scanner.sees(each));
      if (open !== undefined) scanner.balanced(open);
      else if (scanner.match(/[^\s<([{})\]>]+/y) === undefined) break;
      end = scanner.elsewhere(scanner.position, () => scanner.position);
      if (line >= 0 && end > line) break;
    }
    return Object.freeze({ text: scanner.text.slice(start, end).trim().replace(/\s+/g, " ") });
  }

  #function(): GraphFunction {
    const scanner = this.#scanner;
    const { position } = scanner;
    scanner.expect("func.func");
    const visibility = scanner.accept("private") || scanner.accept("nested") ? "private" : "public";
    scanner.accept("public");
    const name = scanner.symbol();
    const parameterAttributes: AttributeMap[] = [];
    const parameters = scanner.list("(", ")", (): NamedParameter => {
      const parameter = { name: scanner.value(), type: this.#parameterType() };
      parameterAttributes.push(this.#ops.optionalDictionary());
      this.#ops.trailingLocation();
      return parameter;
    });
    const results = scanner.accept("->") ? this.#functionResults() : [];
    const attributes = scanner.accept("attributes")
      ? this.#ops.optionalDictionary()
      : new Map<string, Attribute>();
    const body = this.#ops.isolated(parameters);
    this.#ops.trailingLocation();
    const expected = results.map(({ type }) => type).join(", ");
    const found = typesText(body.results.map(({ type }) => type));
    if (expected !== found)
      this.#scanner.fail("TW9005", `@${name} returns other types than it declares`, {
        position,
        expected: expected || "nothing",
        found: found || "nothing",
      });
    return Object.freeze({
      name,
      visibility,
      body,
      parameterAttributes,
      resultAttributes: results.map((each) => each.attributes),
      attributes,
      location: scanner.locationOf(position),
    });
  }

  #parameterType(): NamedParameter["type"] {
    this.#scanner.expect(":");
    return this.#ops.type();
  }

  /** `T`, or `(T {…}, U {…})`. */
  #functionResults(): readonly { readonly type: string; readonly attributes: AttributeMap }[] {
    const scanner = this.#scanner;
    if (!scanner.sees("("))
      return [{ type: typeText(this.#ops.type()), attributes: new Map<string, Attribute>() }];
    return scanner.list("(", ")", () => ({
      type: typeText(this.#ops.type()),
      attributes: this.#ops.optionalDictionary(),
    }));
  }

  /** `"builtin.module"() <{sym_name = "m"}> ({ … }) {…} : () -> ()`. */
  #genericModule(): GraphModule {
    const scanner = this.#scanner;
    scanner.string();
    const properties = this.#properties();
    const functions: Entries = new Map();
    const foreign: ForeignEntry[] = [];
    scanner.expect("(");
    scanner.expect("{");
    scanner.match(/\^[\w$.-]+\s*:/y);
    while (!scanner.accept("}")) this.#entry(functions, foreign);
    const attributes = this.#genericTail(properties);
    const name = textOf(attributes.get("sym_name"));
    attributes.delete("sym_name");
    return Object.freeze({ name, functions, attributes, foreign });
  }

  #properties(): AttributeMap {
    const scanner = this.#scanner;
    scanner.expect("(");
    scanner.expect(")");
    if (!scanner.accept("<")) return new Map<string, Attribute>();
    const properties = this.#ops.optionalDictionary();
    scanner.expect(">");
    return properties;
  }

  /** What follows the region of a module or function in generic form. */
  #genericTail(properties: AttributeMap): Map<string, Attribute> {
    const scanner = this.#scanner;
    scanner.expect(")");
    const attributes = new Map([...properties, ...this.#ops.optionalDictionary()]);
    scanner.expect(":");
    this.#ops.functionType([]);
    this.#ops.trailingLocation();
    return attributes;
  }

  #genericFunction(): GraphFunction {
    const scanner = this.#scanner;
    const location = scanner.locationOf(scanner.position);
    scanner.string();
    const properties = this.#properties();
    scanner.expect("(");
    const body = this.#ops.isolated();
    const attributes = this.#genericTail(properties);
    const dictionaries = (name: string, count: number): readonly AttributeMap[] => {
      const found = attributes.get(name);
      const items = found?.kind === "list" ? found.items : [];
      return Array.from({ length: count }, (_, i) => {
        const item = items[i];
        return item?.kind === "dictionary" ? item.entries : new Map<string, Attribute>();
      });
    };
    const built = {
      name: textOf(attributes.get("sym_name")),
      visibility: textOf(attributes.get("sym_visibility")) === "private" ? "private" : "public",
      body: graphRegion(body.parameters, body.ops, body.results),
      parameterAttributes: dictionaries("arg_attrs", body.parameters.length),
      resultAttributes: dictionaries("res_attrs", body.results.length),
      location,
    } as const;
    for (const name of ["sym_name", "sym_visibility", "arg_attrs", "res_attrs", "function_type"])
      attributes.delete(name);
    return Object.freeze({ ...built, attributes });
  }
}

function textOf(attribute: Attribute | undefined): string {
  return attribute?.kind === "string" ? attribute.value : "";
}
