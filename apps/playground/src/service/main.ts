/**
 * TypeScript's own language service in a worker: errors, completions and types for the program, against the declarations of
 * the library. It never runs the program.
 */
import ts from "typescript";
import type {
  Problem,
  ServiceQuestionName,
  ServiceQuestions,
  Suggestion,
} from "../page/language-client.ts";

const programFile = "/program.ts";

const options: ts.CompilerOptions = {
  target: ts.ScriptTarget.ES2022,
  module: ts.ModuleKind.ESNext,
  moduleResolution: ts.ModuleResolutionKind.Bundler,
  lib: ["lib.es2023.d.ts"],
  strict: true,
  noUncheckedIndexedAccess: true,
  allowImportingTsExtensions: true,
  noEmit: true,
  skipLibCheck: true,
  types: [],
  paths: {
    tilewright: ["/node_modules/tilewright/index.d.ts"],
    "tilewright/arrays": ["/node_modules/tilewright/arrays/index.d.ts"],
    "tilewright/emulator": ["/node_modules/tilewright/emulator/api/index.d.ts"],
    "tilewright/files": ["/node_modules/tilewright/files/index.d.ts"],
    "tilewright/graph": ["/node_modules/tilewright/graph/index.d.ts"],
    "tilewright/kernels": ["/node_modules/tilewright/kernels/index.d.ts"],
    "tilewright/testing": ["/node_modules/tilewright/testing/index.d.ts"],
  },
};

/** What programs have besides the language itself. */
const surroundings = `
declare const console: Record<"log" | "info" | "warn" | "error", (...values: unknown[]) => void>;
declare const performance: { now(): number };
interface AbortSignal { readonly aborted: boolean; readonly reason: unknown }
declare function structuredClone<T>(value: T): T;
declare module "node:assert/strict" {
  export function ok(value: unknown, message?: string): asserts value;
  export function equal(actual: unknown, expected: unknown): void;
  export function deepEqual(actual: unknown, expected: unknown): void;
  export function match(actual: string, pattern: RegExp): void;
}
`;

class Service {
  readonly #files: Map<string, string>;
  readonly #service: ts.LanguageService;
  #text = "";
  #version = 0;

  constructor(files: { readonly [path: string]: string }) {
    this.#files = new Map(Object.entries(files));
    this.#files.set("/surroundings.d.ts", surroundings);
    const read = (path: string): string | undefined =>
      path === programFile ? this.#text : this.#files.get(path);
    this.#service = ts.createLanguageService({
      getCompilationSettings: () => options,
      getScriptFileNames: () => [programFile, "/surroundings.d.ts"],
      getScriptVersion: (path) => (path === programFile ? String(this.#version) : "1"),
      getScriptSnapshot: (path) => {
        const text = read(path);
        return text === undefined ? undefined : ts.ScriptSnapshot.fromString(text);
      },
      getCurrentDirectory: () => "/",
      getDefaultLibFileName: () => "/lib/lib.es2023.d.ts",
      fileExists: (path) => read(path) !== undefined,
      readFile: read,
      directoryExists: (path) =>
        [...this.#files.keys()].some((file) => file.startsWith(`${path}/`)),
    });
  }

  set text(text: string) {
    if (text === this.#text) return;
    this.#text = text;
    this.#version += 1;
  }

  problems(): readonly Problem[] {
    return [
      ...this.#service.getSyntacticDiagnostics(programFile),
      ...this.#service.getSemanticDiagnostics(programFile),
    ].map(({ start = 0, length = 0, messageText, category }) => ({
      from: start,
      to: start + length,
      message: ts.flattenDiagnosticMessageText(messageText, "\n"),
      severity: category === ts.DiagnosticCategory.Error ? "error" : "warning",
    }));
  }

  completions(position: number): readonly Suggestion[] {
    const found = this.#service.getCompletionsAtPosition(programFile, position, {});
    return (found?.entries ?? [])
      .filter(({ kind }) => kind !== ts.ScriptElementKind.warning)
      .slice(0, 400)
      .map(({ name, kind }) => ({ label: name, type: typeOfKind(kind), detail: "" }));
  }

  hover(position: number): ServiceQuestions["hover"]["gives"] {
    const found = this.#service.getQuickInfoAtPosition(programFile, position);
    if (found === undefined) return undefined;
    const { start, length } = found.textSpan;
    return {
      from: start,
      to: start + length,
      text: ts.displayPartsToString(found.displayParts),
      note: ts.displayPartsToString(found.documentation),
    };
  }
}

function typeOfKind(kind: ts.ScriptElementKind): string {
  if (kind === ts.ScriptElementKind.memberFunctionElement) return "method";
  if (kind === ts.ScriptElementKind.functionElement) return "function";
  if (kind === ts.ScriptElementKind.keyword) return "keyword";
  if (kind === ts.ScriptElementKind.memberVariableElement) return "property";
  return kind === ts.ScriptElementKind.typeElement ? "type" : "variable";
}

interface Asked {
  readonly id: number;
  readonly name: ServiceQuestionName;
  readonly text: string;
  readonly position?: number;
}

const service = (async () => {
  const response = await fetch("types.json");
  return new Service((await response.json()) as { readonly [path: string]: string });
})();

/** Declarations made while the library's own lib is TypeScript's: answers by name. */
const answers: {
  readonly [N in ServiceQuestionName]: (from: Service, position: number) => unknown;
} = {
  problems: (from) => from.problems(),
  completions: (from, position) => from.completions(position),
  hover: (from, position) => from.hover(position),
};

globalThis.onmessage = async ({ data }: MessageEvent<Asked>) => {
  const { id, name, text, position = 0 } = data;
  const ready = await service;
  ready.text = text;
  globalThis.postMessage({ id, answer: answers[name](ready, position) });
};
