/**
 * Reads PTX text into a module: what our emitter prints, and what nvcc and Triton write.
 *
 *   .version 9.0                          header
 *   .target sm_90a, debug
 *   .address_size 64
 *   .visible .global .f32 table[4];       variables and functions, after their linkage
 *   .entry axpy (…) { … }                 see functions.ts
 *   .file 1 "axpy.cu"                     anywhere
 *   .section .debug_str { … }             kept as it is
 */
import type { Linkage, PtxFunction, PtxModule, Section, Variable } from "../module.ts";
import { readFunction } from "./functions.ts";
import type { Header } from "./functions.ts";
import { readNumber } from "./positions.ts";
import { Scanner } from "./scanner.ts";
import { Scope } from "./scope.ts";
import { isStateSpace, readVariables } from "./variables.ts";

/** The module that the text describes. With `file`, reports of what runs name lines of the text. */
export function parsePtx(text: string, file?: string): PtxModule {
  const module = new ModuleReader(new Scanner(text, file ?? "<ptx>")).read();
  return file === undefined ? module : { ...module, source: file };
}

const linkages: ReadonlySet<string> = new Set<Linkage>(["visible", "extern", "weak", "common"]);

/** More source files than any module has; a number above it is a mistake. */
const fileLimit = 10_000;

class ModuleReader {
  readonly #scanner: Scanner;
  readonly #scope = new Scope();
  readonly #files: string[] = [];
  readonly #sections: Section[] = [];
  readonly #declarations: (Variable | PtxFunction)[] = [];
  readonly #defined = new Set<string>();
  #header: Header = { version: "", target: "" };

  constructor(scanner: Scanner) {
    this.#scanner = scanner;
  }

  read(): PtxModule {
    const header = this.#readHeader();
    this.#header = header;
    while (!this.#scanner.atEnd) if (!this.#scanner.accept(";")) this.#declaration();
    this.#scope.close(this.#scanner);
    return {
      ...header,
      files: Array.from(this.#files, (path: string | undefined) => path ?? ""),
      declarations: this.#declarations,
      sections: this.#sections,
    };
  }

  #readHeader(): Header {
    const scanner = this.#scanner;
    if (!scanner.acceptWord(".version")) scanner.unexpected(".version");
    const version = scanner.numeral();
    if (!scanner.acceptWord(".target")) scanner.unexpected(".target");
    const target = scanner.name("an architecture, such as sm_90a");
    const targetOptions: string[] = [];
    while (scanner.accept(",")) targetOptions.push(scanner.name("an option of the target"));
    if (scanner.acceptWord(".address_size")) {
      const start = scanner.offset;
      if (readNumber(scanner) !== 64) scanner.fail("TW7106", "addresses have 32 bits", start, "64");
    }
    return { version, target, targetOptions };
  }

  #declaration(): void {
    const scanner = this.#scanner;
    const start = scanner.offset;
    const word = scanner.directive();
    if (word === "file") this.#file();
    else if (word === "section") this.#section();
    else if (isLinkage(word)) this.#declared(scanner.directive(), word, start);
    else this.#declared(word, undefined, start);
  }

  /** `.file 1 "directory" "name"` or `.file 1 "path", time, size`. */
  #file(): void {
    const scanner = this.#scanner;
    const start = scanner.offset;
    const number = readNumber(scanner);
    if (number > fileLimit)
      scanner.fail("TW7103", `.file ${number} is out of range`, start, `at most ${fileLimit}`);
    let path = scanner.string();
    if (scanner.peek() === '"') path = `${path}/${scanner.string()}`;
    while (scanner.accept(",")) scanner.numeral();
    if (number > 0) this.#files[number - 1] = path;
  }

  #section(): void {
    const scanner = this.#scanner;
    const name = `.${scanner.directive()}`;
    scanner.take("{");
    const text = scanner.upTo("}", `section ${name}`);
    for (const [, label = ""] of text.matchAll(/^[ \t]*([\w$]+)[ \t]*:/gm)) this.#scope.know(label);
    this.#sections.push({ name, text });
  }

  #declared(word: string, linkage: Linkage | undefined, start: number): void {
    const scanner = this.#scanner;
    if (word === "entry" || word === "func") this.#function(word === "entry", linkage, start);
    else if (isStateSpace(word))
      this.#declarations.push(...readVariables(scanner, this.#scope, word, linkage));
    else
      scanner.fail(
        "TW7106",
        `.${word} is not a directive of a module`,
        start,
        ".entry, .func, or a variable in a state space",
      );
  }

  #function(entry: boolean, linkage: Linkage | undefined, start: number): void {
    const scanner = this.#scanner;
    const declaration = readFunction(scanner, this.#scope, this.#header, { entry, linkage });
    const { name, body } = declaration;
    if (body !== undefined) {
      if (this.#defined.has(name))
        scanner.fail("TW7105", `function ${name} has two bodies`, start, "one body", {
          found: name,
        });
      this.#defined.add(name);
    }
    this.#declarations.push(declaration);
  }
}

function isLinkage(word: string): word is Linkage {
  return linkages.has(word);
}
