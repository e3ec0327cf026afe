/**
 * What an editor shows of the library where a program uses it: TypeScript's language service is asked about every export of
 * every entry, as an editor asks when the pointer rests on a name.
 *
 *   matmul    const matmul: <D extends DTypeName>(x: …, y: …) => …
 *             The product of two matrices, or of batches of them …
 *
 * The sources stand for the declarations of the package: a comment comes out of both the same.
 */
import { join } from "node:path";
import ts from "typescript-api";
import { describe, expect, test } from "vitest";
import { repositoryRoot } from "./source-files.ts";

const page = join(repositoryRoot, "test/editor-help-page.ts");
const { options } = ts.convertCompilerOptionsFromJson(
  {
    ...readConfiguration(join(repositoryRoot, "tsconfig.json")),
    // Types of Node and of the browser would only take time.
    types: [],
    lib: ["ES2023"],
  },
  repositoryRoot,
);
const entries = Object.entries(options.paths ?? {});

/** What the page says; the first time it only imports. */
const lines = entries.map(([entry], index) => `import * as part${index} from "${entry}";`);
let version = 1;

const service = ts.createLanguageService({
  getCompilationSettings: () => options,
  getCurrentDirectory: () => repositoryRoot,
  getDefaultLibFileName: (settings) => ts.getDefaultLibFilePath(settings),
  getScriptFileNames: () => [page],
  getScriptVersion: (file) => (file === page ? String(version) : "1"),
  getScriptSnapshot: (file) => {
    const text = file === page ? lines.join("\n") : ts.sys.readFile(file);
    return text === undefined ? undefined : ts.ScriptSnapshot.fromString(text);
  },
  fileExists: (file) => file === page || ts.sys.fileExists(file),
  readFile: (file) => ts.sys.readFile(file),
  directoryExists: (folder) => ts.sys.directoryExists(folder),
});

function readConfiguration(path: string): object {
  const { compilerOptions } = ts.readConfigFile(path, (file) => ts.sys.readFile(file)).config as {
    readonly compilerOptions: object;
  };
  return compilerOptions;
}

function programNow(): ts.Program {
  const program = service.getProgram();
  if (program === undefined) throw new Error("the service has a program");
  return program;
}

interface Export {
  /** "tilewright/arrays: nn.relu" */
  readonly name: string;
  /** Where the page uses it. */
  readonly line: number;
  /** What it is, behind all that only names it elsewhere. */
  readonly symbol: ts.Symbol;
}

/**
 * The exports of a module and of the namespaces in it, each with a line of the page that uses it. Namespaces themselves are left out:
 * editors show no comment of them.
 */
function exportsOf(
  checker: ts.TypeChecker,
  entry: string,
  part: string,
  module: ts.Symbol,
): readonly Export[] {
  return checker.getExportsOfModule(module).flatMap((each): readonly Export[] => {
    const isAlias = (each.flags & ts.SymbolFlags.Alias) !== 0;
    const symbol = isAlias ? checker.getAliasedSymbol(each) : each;
    const path = `${part}.${each.name}`;
    if ((symbol.flags & ts.SymbolFlags.ValueModule) !== 0)
      return exportsOf(checker, entry, path, symbol);
    const isType = (symbol.flags & ts.SymbolFlags.Type) !== 0;
    const line = lines.push(`${isType ? "export let each: " : ""}${path};`) - 1;
    return [{ name: `${entry}: ${path.replace(/^part\d+\./, "")}`, line, symbol }];
  });
}

const first = programNow();
const listed = entries.flatMap(([entry, [path = ""] = []], index) => {
  const checker = first.getTypeChecker();
  const file = first.getSourceFile(join(repositoryRoot, path));
  const module = file && checker.getSymbolAtLocation(file);
  if (module === undefined) throw new Error(`${entry} has a module`);
  return exportsOf(checker, entry, `part${index}`, module);
});
version += 1;
const program = programNow();
const checker = program.getTypeChecker();

/** What an editor shows where the page uses the export. */
function shown({ line }: Export): ts.QuickInfo | undefined {
  const file = program.getSourceFile(page);
  const end = file?.getLineEndOfPosition(file.getPositionOfLineAndCharacter(line, 0)) ?? 0;
  return service.getQuickInfoAtPosition(page, end - 2);
}

function commentOf(symbol: ts.Symbol): string {
  return ts.displayPartsToString(symbol.getDocumentationComment(checker));
}

/** Whether a member is one that programs use: declared in an interface or a class of the library, and not for itself alone. */
function isPublic(member: ts.Symbol): boolean {
  const [declaration] = member.declarations ?? [];
  if (declaration === undefined) return false;
  const isOwn = declaration.getSourceFile().fileName.startsWith(join(repositoryRoot, "src"));
  const isMember =
    ts.isInterfaceDeclaration(declaration.parent) || ts.isClassLike(declaration.parent);
  const isInternal = ts
    .getJSDocTags(declaration)
    .some(({ tagName }) => tagName.text === "internal");
  const isNamed = "name" in declaration && ts.isIdentifier(declaration.name as ts.Node);
  return isOwn && isMember && isNamed && !isInternal;
}

/** What tells the members of a union apart says enough by its own value. */
function isTag(member: ts.Symbol): boolean {
  return member.name === "kind" && checker.getTypeOfSymbol(member).isStringLiteral();
}

const information = listed.map((each) => ({ ...each, info: shown(each) }));
const names = new Set(listed.map(({ symbol }) => symbol.name));

describe("editors show", () => {
  test("a comment for every export", () => {
    expect(listed.length).toBeGreaterThan(700);
    const silent = information.filter(({ info }) => (info?.documentation ?? []).length === 0);
    expect(silent.map(({ name }) => name)).toEqual([]);
  });

  test("a comment for every option, field and method of what is exported", () => {
    const members = listed.flatMap(({ name, symbol }) => {
      if ((symbol.flags & ts.SymbolFlags.Type) === 0) return [];
      const type = checker.getDeclaredTypeOfSymbol(symbol);
      const types = type.isUnion() ? type.types : [type];
      return types
        .flatMap((each) => ((each.flags & ts.TypeFlags.Object) === 0 ? [] : each.getProperties()))
        .filter((member) => isPublic(member) && !isTag(member))
        .map((member) => ({ name: `${name}.${member.name}`, comment: commentOf(member) }));
    });
    expect(members.length).toBeGreaterThan(1500);
    expect(members.filter(({ comment }) => comment === "").map(({ name }) => name)).toEqual([]);
  });

  test("no paths of files, and of classes and options only those that a program can import", () => {
    const foreign = information.flatMap(({ name, info }) => {
      const parts = info?.displayParts ?? [];
      const text = ts.displayPartsToString(parts);
      const hidden = parts.filter(
        (part) =>
          (part.kind === "className" || /(?:Options|Settings)$/.test(part.text)) &&
          !names.has(part.text) &&
          !/^part\d+$/.test(part.text) &&
          part.text !== "Promise",
      );
      const paths = text.includes('import("') ? ["a path"] : [];
      return [...paths, ...hidden.map((part) => part.text)].map((what) => `${name} shows ${what}`);
    });
    expect(foreign).toEqual([]);
  });
});
