/**
 * What a name in a program stands for. TypeScript's binder finds the declaration that a name belongs to, so that a
 * parameter called `array` is not the import; from there one walks to an entry of the package:
 *
 *   import { array as a } from "tilewright"      a          ─▶ tilewright: array
 *   import * as tw from "tilewright"             tw.array   ─▶ tilewright: array
 *   const { nn: { conv } } = await import(…)     conv       ─▶ tilewright/arrays: nn.conv
 */
import ts from "typescript-api";

/** An export of an entry, or a part of it; the entry's module itself has no path. */
export interface Exported {
  readonly entry: string;
  readonly path: readonly string[];
}

export interface Bindings {
  readonly source: ts.SourceFile;
  /** What is written where the text is no program. */
  readonly mistake: string | undefined;
  /** The declaration a name belongs to. */
  symbolOf(this: void, name: ts.Node): ts.Symbol | undefined;
  /** What an expression, or a name in a type, is of the package. */
  exportedBy(this: void, node: ts.Node): Exported | undefined;
}

const entries = /^tilewright(?:\/[a-z]+)?$/u;

/** The entry that a text in an import names. */
export function entryOf(node: ts.Node | undefined): string | undefined {
  return node !== undefined && ts.isStringLiteralLike(node) && entries.test(node.text)
    ? node.text
    : undefined;
}

/** Binds one file by itself: nothing it imports is read. */
export function bind(fileName: string, text: string): Bindings {
  const source = ts.createSourceFile(fileName, text, ts.ScriptTarget.Latest, true);
  const program = ts.createProgram({
    rootNames: [fileName],
    options: {
      allowJs: true,
      noResolve: true,
      noLib: true,
      types: [],
      target: source.languageVersion,
    },
    host: {
      getSourceFile: (name) => (name === fileName ? source : undefined),
      writeFile: () => undefined,
      getDefaultLibFileName: () => "",
      useCaseSensitiveFileNames: () => true,
      getCanonicalFileName: (name) => name,
      getCurrentDirectory: () => "/",
      getNewLine: () => "\n",
      fileExists: (name) => name === fileName,
      readFile: () => undefined,
    },
  });
  const checker = program.getTypeChecker();
  const [wrong] = program.getSyntacticDiagnostics(source);

  const symbolOf = (name: ts.Node): ts.Symbol | undefined => {
    const { parent } = name;
    if (ts.isShorthandPropertyAssignment(parent) && parent.name === name)
      return checker.getShorthandAssignmentValueSymbol(parent);
    if (ts.isExportSpecifier(parent)) return checker.getExportSpecifierLocalTargetSymbol(parent);
    return checker.getSymbolAtLocation(name);
  };
  const exportedBy = exportsOf(symbolOf);
  return {
    source,
    mistake: wrong === undefined ? undefined : mistakeText(source, wrong),
    symbolOf,
    exportedBy,
  };
}

function mistakeText(source: ts.SourceFile, { start, messageText }: ts.Diagnostic): string {
  const { line, character } = source.getLineAndCharacterOfPosition(start ?? 0);
  return `${line + 1}:${character + 1}: ${ts.flattenDiagnosticMessageText(messageText, " ")}`;
}

const part = (whole: Exported | undefined, name: string | undefined): Exported | undefined =>
  whole && name !== undefined ? { entry: whole.entry, path: [...whole.path, name] } : undefined;

function exportsOf(
  symbolOf: (name: ts.Node) => ts.Symbol | undefined,
): (node: ts.Node) => Exported | undefined {
  const known = new Map<ts.Symbol, Exported | undefined>();

  const ofSymbol = (symbol: ts.Symbol | undefined): Exported | undefined => {
    if (symbol === undefined) return undefined;
    if (known.has(symbol)) return known.get(symbol);
    known.set(symbol, undefined); // a variable made from itself
    const [declaration] = symbol.declarations ?? [];
    const found = declaration === undefined ? undefined : ofDeclaration(declaration);
    known.set(symbol, found);
    return found;
  };

  const ofDeclaration = (declaration: ts.Node): Exported | undefined => {
    if (ts.isImportSpecifier(declaration)) {
      const entry = entryOf(declaration.parent.parent.parent.moduleSpecifier);
      return entry === undefined
        ? undefined
        : { entry, path: [(declaration.propertyName ?? declaration.name).text] };
    }
    if (ts.isNamespaceImport(declaration)) return whole(declaration.parent.parent.moduleSpecifier);
    if (ts.isImportEqualsDeclaration(declaration)) {
      const { moduleReference } = declaration;
      return ts.isExternalModuleReference(moduleReference)
        ? whole(moduleReference.expression)
        : exportedBy(moduleReference);
    }
    if (ts.isBindingElement(declaration))
      return part(ofPattern(declaration.parent), boundName(declaration));
    if (ts.isVariableDeclaration(declaration))
      return declaration.initializer && exportedBy(declaration.initializer);
    return ts.isParameter(declaration) ? ofParameter(declaration) : undefined;
  };

  const ofPattern = (pattern: ts.BindingPattern): Exported | undefined => {
    const { parent } = pattern;
    if (!ts.isObjectBindingPattern(pattern)) return undefined;
    if (ts.isBindingElement(parent)) return part(ofPattern(parent.parent), boundName(parent));
    if (ts.isVariableDeclaration(parent))
      return parent.initializer && exportedBy(parent.initializer);
    return ofParameter(parent);
  };

  /** The parameter of `import("tilewright").then((tw) => …)`. */
  const ofParameter = (parameter: ts.ParameterDeclaration): Exported | undefined => {
    const { parent: made } = parameter;
    if (!ts.isArrowFunction(made) && !ts.isFunctionExpression(made)) return undefined;
    const { parent: call } = made;
    const isFirst =
      made.parameters[0] === parameter && ts.isCallExpression(call) && call.arguments[0] === made;
    if (!isFirst || !ts.isPropertyAccessExpression(call.expression)) return undefined;
    return call.expression.name.text === "then"
      ? exportedBy(call.expression.expression)
      : undefined;
  };

  const exportedBy = (node: ts.Node): Exported | undefined => {
    if (ts.isIdentifier(node)) return ofSymbol(symbolOf(node));
    if (ts.isPropertyAccessExpression(node))
      return part(exportedBy(node.expression), node.name.text);
    if (ts.isQualifiedName(node)) return part(exportedBy(node.left), node.right.text);
    if (ts.isElementAccessExpression(node)) {
      const { argumentExpression } = node;
      const name = ts.isStringLiteralLike(argumentExpression) ? argumentExpression.text : undefined;
      return part(exportedBy(node.expression), name);
    }
    if (ts.isAwaitExpression(node) || isWrapper(node)) return exportedBy(node.expression);
    if (ts.isCallExpression(node)) {
      const isImport = node.expression.kind === ts.SyntaxKind.ImportKeyword;
      const isRequire = ts.isIdentifier(node.expression) && node.expression.text === "require";
      return isImport || isRequire ? whole(node.arguments[0]) : undefined;
    }
    return undefined;
  };
  return exportedBy;
}

function whole(specifier: ts.Node | undefined): Exported | undefined {
  const entry = entryOf(specifier);
  return entry === undefined ? undefined : { entry, path: [] };
}

function boundName({ propertyName, name }: ts.BindingElement): string | undefined {
  const bound = propertyName ?? name;
  return ts.isIdentifier(bound) || ts.isStringLiteralLike(bound) ? bound.text : undefined;
}

/** What changes nothing about a value: brackets, `as`, `satisfies`, `!`. */
export function isWrapper(
  node: ts.Node,
): node is
  | ts.ParenthesizedExpression
  | ts.AsExpression
  | ts.SatisfiesExpression
  | ts.NonNullExpression {
  return (
    ts.isParenthesizedExpression(node) ||
    ts.isAsExpression(node) ||
    ts.isSatisfiesExpression(node) ||
    ts.isNonNullExpression(node)
  );
}
