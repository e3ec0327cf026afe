/**
 * Renames of exports and types: where they are imported, and every use that TypeScript's binder says is theirs.
 *
 *   import { array } from "tilewright";     ─▶  import { tensor } from "tilewright";
 *   const array = 1; f(array);              ─▶  as it was: another array
 *   export { array } from "tilewright";     ─▶  export { tensor as array } from "tilewright";
 *
 * A file in which the new name means something else keeps the old one as an alias.
 */
import ts from "typescript-api";
import { entryOf } from "./bindings.ts";
import type { Bindings, Exported } from "./bindings.ts";
import type { Edits } from "./edits.ts";
import type { Rename } from "./table.ts";

const last = (path: string): string => path.slice(path.lastIndexOf(".") + 1);

/** The row of an export's name, where it has one. */
export function rowOfExport(
  rows: readonly Rename[],
  found: Exported | undefined,
): Rename | undefined {
  if (found === undefined) return undefined;
  const name = found.path.join(".");
  return rows.find(
    ({ kind, entry, old }) =>
      (kind === "export" || kind === "type") && entry === found.entry && old === name,
  );
}

export function renameNames(bindings: Bindings, rows: readonly Rename[], edits: Edits): void {
  const names = new Names(bindings, rows, edits);
  names.declarations(bindings.source);
  names.uses(bindings.source);
}

class Names {
  readonly #bindings: Bindings;
  readonly #rows: readonly Rename[];
  readonly #edits: Edits;
  readonly #taken: ReadonlySet<string>;
  /** What has the new name in this file. */
  readonly #renamed = new Map<ts.Symbol, Rename>();

  constructor(bindings: Bindings, rows: readonly Rename[], edits: Edits) {
    this.#bindings = bindings;
    this.#rows = rows;
    this.#edits = edits;
    this.#taken = namesIn(bindings.source);
  }

  declarations(node: ts.Node): void {
    if (ts.isImportSpecifier(node) || ts.isExportSpecifier(node)) this.#specifier(node);
    if (ts.isBindingElement(node)) this.#element(node);
    ts.forEachChild(node, (child) => this.declarations(child));
  }

  uses(node: ts.Node): void {
    if (ts.isIdentifier(node)) this.#identifier(node);
    else if (ts.isPropertyAccessExpression(node)) this.#member(node, node.name);
    else if (ts.isQualifiedName(node)) this.#member(node, node.right);
    else if (ts.isElementAccessExpression(node)) this.#quoted(node);
    else if (ts.isImportTypeNode(node)) this.#importType(node);
    ts.forEachChild(node, (child) => this.uses(child));
  }

  #row(found: Exported | undefined): Rename | undefined {
    return rowOfExport(this.#rows, found);
  }

  /** A name that a file takes without an alias: it has the new name from now on, unless that is taken. */
  #take(row: Rename, name: ts.Identifier, alias: string): void {
    const symbol = this.#bindings.symbolOf(name);
    const isFree = symbol !== undefined && !this.#taken.has(last(row.new));
    if (isFree) this.#renamed.set(symbol, row);
    this.#edits.replace(row, name, isFree ? last(row.new) : `${last(row.new)}${alias}${name.text}`);
  }

  #specifier(node: ts.ImportSpecifier | ts.ExportSpecifier): void {
    const { propertyName, name } = node;
    const from = ts.isImportSpecifier(node) ? node.parent.parent.parent : node.parent.parent;
    const entry = entryOf(from.moduleSpecifier);
    const row = this.#row(
      entry === undefined ? undefined : { entry, path: [(propertyName ?? name).text] },
    );
    if (row === undefined) return;
    if (propertyName !== undefined) this.#aliased(row, propertyName, name);
    else if (ts.isImportSpecifier(node) && ts.isIdentifier(name)) this.#take(row, name, " as ");
    else this.#edits.replace(row, name, `${row.new} as ${this.#text(name)}`);
  }

  #element(node: ts.BindingElement): void {
    const { propertyName, name } = node;
    if (!ts.isIdentifier(name)) return;
    const row = this.#row(this.#bindings.exportedBy(name));
    if (row === undefined) return;
    if (propertyName === undefined) this.#take(row, name, ": ");
    else this.#aliased(row, propertyName, name);
  }

  /** `old as alias`; an alias that is the new name is needed no longer. */
  #aliased(row: Rename, old: ts.Node, alias: ts.Node): void {
    const now = last(row.new);
    if (this.#text(alias) !== now) this.#edits.replace(row, old, now);
    else this.#edits.range(row, old.getStart(this.#bindings.source), alias.getEnd(), now);
  }

  #member(node: ts.Node, name: ts.Node): void {
    const row = this.#row(this.#bindings.exportedBy(node));
    if (row !== undefined) this.#edits.replace(row, name, last(row.new));
  }

  #quoted(node: ts.ElementAccessExpression): void {
    const row = this.#row(this.#bindings.exportedBy(node));
    const { argumentExpression: name } = node;
    const start = name.getStart(this.#bindings.source);
    if (row !== undefined) this.#edits.range(row, start + 1, name.getEnd() - 1, last(row.new));
  }

  #importType({ argument, qualifier }: ts.ImportTypeNode): void {
    const entry = ts.isLiteralTypeNode(argument) ? entryOf(argument.literal) : undefined;
    if (entry === undefined || qualifier === undefined) return;
    const row = this.#row({ entry, path: this.#text(qualifier).split(".") });
    const name = ts.isIdentifier(qualifier) ? qualifier : qualifier.right;
    if (row !== undefined) this.#edits.replace(row, name, last(row.new));
  }

  #identifier(node: ts.Identifier): void {
    const { parent } = node;
    if (ts.isImportSpecifier(parent) || isMemberName(node)) return;
    if (ts.isBindingElement(parent) && parent.initializer !== node) return;
    const symbol = this.#bindings.symbolOf(node);
    const row = symbol && this.#renamed.get(symbol);
    if (row === undefined) return;
    const now = last(row.new);
    if (ts.isShorthandPropertyAssignment(parent) && parent.name === node)
      this.#edits.replace(row, node, `${node.text}: ${now}`);
    else if (!ts.isExportSpecifier(parent)) this.#edits.replace(row, node, now);
    // Other files know what is exported here by its old name.
    else if (parent.propertyName === undefined)
      this.#edits.replace(row, node, `${now} as ${node.text}`);
    else this.#aliased(row, parent.propertyName, parent.name);
  }

  #text(node: ts.Node): string {
    return node.getText(this.#bindings.source);
  }
}

/** Whether an identifier is the name of a member or a key, which no scope holds. */
function isMemberName(node: ts.Identifier): boolean {
  const { parent } = node;
  return (
    (ts.isPropertyAccessExpression(parent) && parent.name === node) ||
    (ts.isQualifiedName(parent) && parent.right === node) ||
    (ts.isPropertyAssignment(parent) && parent.name === node)
  );
}

/** Every name that a scope of this file may hold. */
function namesIn(source: ts.SourceFile): ReadonlySet<string> {
  const names = new Set<string>();
  const visit = (node: ts.Node): void => {
    if (ts.isIdentifier(node) && !isMemberName(node) && !isOuterName(node)) names.add(node.text);
    ts.forEachChild(node, visit);
  };
  visit(source);
  return names;
}

/** Whether a name is that of another module, not of this one: `tensor` of `import { tensor as t }`. */
function isOuterName(node: ts.Identifier): boolean {
  const { parent } = node;
  return (
    ((ts.isImportSpecifier(parent) || ts.isBindingElement(parent)) &&
      parent.propertyName === node) ||
    (ts.isExportSpecifier(parent) && (parent.propertyName === undefined || parent.name === node))
  );
}
