/**
 * Functions: what stands before the body, and the body's statements with their blocks.
 *
 *   .visible .entry axpy (.param .u64 x, …)     readFunction(), the linkage already taken
 *   .maxntid 128, 1, 1                          readDirectives()
 *   {
 *     .reg .b32 %r<9>;                          into the block's scope
 *     .loc 1 12 5                               position of what follows
 *   $done:                                      a label, or the start of .branchtargets
 *     @%p1 bra $done;                           an instruction
 *   }
 */
import { checkForm, GroupCheck } from "../forms/index.ts";
import type {
  FunctionDirective,
  Instruction,
  Linkage,
  PtxFunction,
  PtxModule,
  SourcePosition,
  Statement,
  Variable,
} from "../module.ts";
import { readSize } from "./constants.ts";
import { OperandReader } from "./operands.ts";
import { readNumber, readPosition } from "./positions.ts";
import { Scope } from "./scope.ts";
import type { Scanner } from "./scanner.ts";
import { isStateSpace, readForm, readParameter, readVariables } from "./variables.ts";

/** Directives between a function's parameters and its body, all with numbers or nothing behind them. */
const functionDirectives: ReadonlySet<string> = new Set([
  "maxntid",
  "reqntid",
  "minnctapersm",
  "maxnctapersm",
  "maxnreg",
  "noreturn",
  "reqnctapercluster",
  "explicitcluster",
  "maxclusterrank",
  "blocksareclusters",
  "abi_preserve",
  "abi_preserve_control",
]);

const nestingLimit = 200;

/** What the module's first lines say. */
export type Header = Pick<PtxModule, "version" | "target" | "targetOptions">;

/** Reads from the result or name on. */
export function readFunction(
  scanner: Scanner,
  moduleScope: Scope,
  header: Header,
  { entry, linkage }: { readonly entry: boolean; readonly linkage: Linkage | undefined },
): PtxFunction {
  const scope = new Scope(moduleScope);
  const results = entry ? [] : readParameters(scanner, scope);
  const name = scanner.name("the name of a function");
  moduleScope.know(name);
  const early = readDirectives(scanner);
  const parameters = readParameters(scanner, scope);
  const directives = [...early, ...readDirectives(scanner)];
  const start = {
    kind: "function",
    entry,
    name,
    linkage,
    results,
    parameters,
    directives,
  } as const;
  if (scanner.accept(";")) return start;
  return { ...start, body: new BodyReader(scanner, scope, header).read() };
}

/** `(.param .b32 a, …)`, or nothing. */
function readParameters(scanner: Scanner, scope: Scope | undefined): readonly Variable[] {
  const parameters: Variable[] = [];
  if (!scanner.accept("(") || scanner.accept(")")) return parameters;
  do {
    const start = scanner.offset;
    const parameter = readParameter(scanner);
    if (scope !== undefined) scope.declare(parameter.name, scanner, start);
    parameters.push(parameter);
  } while (scanner.accept(","));
  scanner.take(")");
  return parameters;
}

function readDirectives(scanner: Scanner): readonly FunctionDirective[] {
  const directives: FunctionDirective[] = [];
  while (scanner.peek() === ".") {
    const start = scanner.offset;
    const name = scanner.directive();
    if (!functionDirectives.has(name))
      scanner.fail(
        "TW7106",
        `.${name} is not a directive of a function`,
        start,
        [...functionDirectives].map((each) => `.${each}`).join(", "),
      );
    const values: number[] = [];
    if (scanner.atDigit()) {
      do values.push(readSize(scanner, `a value of .${name}`));
      while (scanner.accept(","));
    }
    directives.push({ name, values });
  }
  return directives;
}

class BodyReader {
  readonly #scanner: Scanner;
  readonly #operands: OperandReader;
  readonly #header: Header;
  readonly #groups = new GroupCheck();
  #position: SourcePosition | undefined;
  #depth = 0;

  constructor(scanner: Scanner, scope: Scope, header: Header) {
    this.#scanner = scanner;
    this.#header = header;
    this.#operands = new OperandReader(scanner, scope);
  }

  read(): readonly Statement[] {
    if (!this.#scanner.accept("{")) this.#scanner.unexpected('"{" or ";"');
    const body = this.#statements();
    this.#operands.scope.close(this.#scanner);
    return body;
  }

  #block(): Statement {
    if (this.#depth >= nestingLimit)
      this.#scanner.fail(
        "TW7106",
        "too deeply nested blocks",
        this.#scanner.offset,
        `at most ${nestingLimit} deep`,
      );
    const around = this.#operands.scope;
    this.#operands.scope = new Scope(around);
    this.#depth++;
    const body = this.#statements();
    this.#depth--;
    this.#operands.scope.close(this.#scanner);
    this.#operands.scope = around;
    return { kind: "block", body };
  }

  /** Up to and with the closing brace. */
  #statements(): readonly Statement[] {
    const scanner = this.#scanner;
    const body: Statement[] = [];
    while (!scanner.accept("}")) {
      if (scanner.accept("{")) body.push(this.#block());
      else if (scanner.peek() === ".") this.#directive(body);
      else if (!scanner.accept(";")) body.push(this.#labelOrInstruction());
    }
    return body;
  }

  #directive(body: Statement[]): void {
    const scanner = this.#scanner;
    const start = scanner.offset;
    const word = scanner.directive();
    if (word === "loc") this.#position = readPosition(scanner);
    else if (word === "reg") this.#registers();
    else if (word === "pragma") {
      body.push({ kind: "pragma", text: scanner.string() });
      scanner.take(";");
    } else if (isStateSpace(word))
      body.push(...readVariables(scanner, this.#operands.scope, word, undefined));
    else
      scanner.fail(
        "TW7106",
        `.${word} is not a directive of a body`,
        start,
        "a directive of a body, such as .reg",
      );
  }

  /** `.reg .b32 %r<9>, %s;` */
  #registers(): void {
    const scanner = this.#scanner;
    const scope = this.#operands.scope;
    const form = readForm(scanner);
    do {
      const start = scanner.offset;
      const name = scanner.name("the name of a register");
      if (!scanner.accept("<")) {
        scope.declareRegister(name, form, scanner, start);
        continue;
      }
      const count = readNumber(scanner);
      scanner.take(">");
      scope.declareRange(name, { ...form, count }, scanner, start);
    } while (scanner.accept(","));
    scanner.take(";");
  }

  #labelOrInstruction(): Statement {
    const scanner = this.#scanner;
    const start = scanner.offset;
    const guard = scanner.accept("@") ? this.#operands.guard() : undefined;
    const opcode = scanner.opcode();
    if (guard === undefined && scanner.accept(":")) return this.#labelled(opcode, start);
    const operands = this.#operands.operands(opcode === "call" || opcode.startsWith("call."));
    const position = this.#position;
    const line = scanner.lineAt(start);
    const instruction: Instruction = {
      ...{ kind: "instruction", opcode, operands, guard, position, line },
    };
    const problem = checkForm(instruction, this.#header) ?? this.#groups.next(instruction);
    if (problem !== undefined) {
      const { code, message, expected, found } = problem;
      scanner.fail(code, message, start, expected, { found });
    }
    return instruction;
  }

  #labelled(name: string, start: number): Statement {
    const scanner = this.#scanner;
    if (name.includes("."))
      scanner.fail("TW7102", `${name} cannot be a label`, start, "a name without a point");
    this.#operands.scope.declare(name, scanner, start);
    if (scanner.acceptWord(".branchtargets")) return this.#targets(name, "branchtargets");
    if (scanner.acceptWord(".calltargets")) return this.#targets(name, "calltargets");
    if (!scanner.acceptWord(".callprototype")) return { kind: "label", name };
    const results = readParameters(scanner, undefined);
    scanner.take("_");
    const parameters = readParameters(scanner, undefined);
    const directives = readDirectives(scanner);
    scanner.take(";");
    return { kind: "prototype", name, results, parameters, directives };
  }

  #targets(name: string, directive: "branchtargets" | "calltargets"): Statement {
    const scanner = this.#scanner;
    const labels: string[] = [];
    do {
      const start = scanner.offset;
      const label = scanner.name("a label");
      this.#operands.scope.use(label, start);
      labels.push(label);
    } while (scanner.accept(","));
    scanner.take(";");
    return { kind: "targets", name, directive, labels };
  }
}
