/**
 * Reads ops and regions of program text, in generic and short form.
 *
 *   %0:2 = "stablehlo.sort"(%a, %b) <{is_stable = true}> ({ … }) : (T, U) -> (T, U) loc(#loc3)
 *   %1 = stablehlo.add %0#0, %x {mhlo.frontend = "a"} : T
 */
import { locationAt } from "../../support/location.ts";
import type { Location } from "../../support/location.ts";
import type { Attribute, AttributeMap } from "../ops/attribute.ts";
import { graphRegion, graphValue } from "../ops/node.ts";
import type { AnyGraphOp, GraphRegion, GraphValue } from "../ops/node.ts";
import { graphOpTable, isGraphOpKind } from "../ops/table.ts";
import { sameType } from "../ops/types.ts";
import type { GraphType } from "../ops/types.ts";
import { AliasTable } from "./aliases.ts";
import { parseAttribute, parseDictionary } from "./attributes.ts";
import type { NamedParameter, OpReader } from "./form.ts";
import { formRules } from "./forms.ts";
import { parseTrailingLocation } from "./locations.ts";
import type { TextLocation } from "./locations.ts";
import { opOfParts, PartsMismatch } from "./parts.ts";
import type { OpParts } from "./parts.ts";
import type { Scanner } from "./scanner.ts";
import { parseResultTypes, parseType, typesText } from "./types.ts";

/** Ops that end a region; what they return is kept with the region. */
const terminators: ReadonlySet<string> = new Set([
  "return",
  "func.return",
  "stablehlo.return",
  "sdy.return",
]);

/** Names that may stand for longer ones. */
const abbreviations: ReadonlyMap<string, string> = new Map([["call", "func.call"]]);

const nothing: AttributeMap = new Map<string, Attribute>();

export class OpParser implements OpReader {
  readonly scanner: Scanner;
  readonly aliases: AliasTable;
  #scopes: Map<string, GraphValue>[] = [];

  constructor(scanner: Scanner) {
    this.scanner = scanner;
    this.aliases = new AliasTable(scanner);
  }

  type(): GraphType {
    return parseType(this.scanner, (name) => this.aliases.type(name));
  }

  resultTypes(): readonly GraphType[] {
    return parseResultTypes(this.scanner, (name) => this.aliases.type(name));
  }

  attribute(): Attribute {
    return parseAttribute(this.scanner, this.aliases);
  }

  optionalDictionary(): AttributeMap {
    return this.scanner.sees("{") ? parseDictionary(this.scanner, this.aliases) : nothing;
  }

  trailingLocation(): TextLocation | undefined {
    return parseTrailingLocation(this.scanner, (name) => this.aliases.location(name));
  }

  operand(): GraphValue {
    const { position } = this.scanner;
    const name = this.scanner.value();
    for (let depth = this.#scopes.length - 1; depth >= 0; depth--) {
      const found = this.#scopes[depth]?.get(name);
      if (found !== undefined) return found;
    }
    return this.scanner.fail("TW9002", `${name} is not defined here`, {
      position,
      expected: "a value that is defined before, in this region or one around it",
      found: name,
    });
  }

  functionType(operands: readonly GraphValue[]): readonly GraphType[] {
    const types = this.scanner.list("(", ")", () => this.type());
    this.checkTypes(operands, types);
    this.scanner.expect("->");
    return this.resultTypes();
  }

  checkTypes(operands: readonly GraphValue[], types: readonly GraphType[]): void {
    const actual = operands.map(({ type }) => type);
    const equal =
      actual.length === types.length && types.every((type, i) => sameType(type, actual[i] ?? type));
    if (equal) return;
    this.scanner.fail("TW9005", "the written types are not those of the operands", {
      position: this.scanner.end,
      expected: typesText(actual) || "no operands",
      found: typesText(types) || "no types",
    });
  }

  parameter(): NamedParameter {
    const name = this.scanner.value();
    this.scanner.expect(":");
    const type = this.type();
    this.trailingLocation();
    return { name, type };
  }

  #define(name: string, value: GraphValue, position = this.scanner.position): void {
    const scope = this.#scopes.at(-1);
    if (scope === undefined) throw new Error("a value is defined within a region");
    if (scope.has(name))
      this.scanner.fail("TW9003", `${name} is defined twice in its region`, {
        position,
        expected: "a name of its own for each value",
        found: name,
      });
    scope.set(name, value);
  }

  region(parameters?: readonly NamedParameter[]): GraphRegion {
    return this.scanner.nested(() => this.#region(parameters));
  }

  #region(parameters?: readonly NamedParameter[]): GraphRegion {
    const { scanner } = this;
    scanner.expect("{");
    this.#scopes.push(new Map());
    const named = parameters ?? (scanner.sees("^") ? this.#blockLabel() : []);
    const values = named.map(({ name, type }) => {
      const value = graphValue(type);
      this.#define(name, value);
      return value;
    });
    const ops: AnyGraphOp[] = [];
    let results: readonly GraphValue[] = [];
    while (!scanner.sees("}")) {
      this.#refuseBlocks();
      const returned = this.#terminator();
      if (returned !== undefined) {
        results = returned;
        this.#refuseBlocks();
        break;
      }
      ops.push(this.#op());
    }
    scanner.expect("}");
    this.#scopes.pop();
    return graphRegion(values, ops, results);
  }

  #refuseBlocks(): void {
    if (this.scanner.sees("^"))
      this.scanner.fail("TW9008", "the region has more than one block", {
        expected: "one block",
        found: "a second block",
      });
  }

  /** A region that sees nothing of what is around it. */
  isolated(parameters?: readonly NamedParameter[]): GraphRegion {
    const outer = this.#scopes;
    this.#scopes = [];
    const region = this.region(parameters);
    this.#scopes = outer;
    return region;
  }

  #blockLabel(): readonly NamedParameter[] {
    const { scanner } = this;
    scanner.match(/\^[\w$.-]+/y);
    const parameters = scanner.sees("(") ? scanner.list("(", ")", () => this.parameter()) : [];
    scanner.expect(":");
    return parameters;
  }

  /** The values of the return that stands here, if one does. */
  #terminator(): readonly GraphValue[] | undefined {
    const { scanner } = this;
    const generic = scanner.seesString();
    const name = scanner.elsewhere(scanner.position, () =>
      generic ? scanner.string() : scanner.seesWord() ? scanner.word() : "",
    );
    if (!terminators.has(name)) return undefined;
    if (generic) {
      scanner.string();
      const { operands } = this.#genericParts();
      this.trailingLocation();
      return operands;
    }
    scanner.word();
    const values = scanner.seesValue() ? scanner.commaSeparated(() => this.operand()) : [];
    this.optionalDictionary();
    if (values.length > 0) {
      scanner.expect(":");
      this.checkTypes(
        values,
        scanner.commaSeparated(() => this.type()),
      );
    }
    this.trailingLocation();
    return values;
  }

  #op(): AnyGraphOp {
    const { scanner } = this;
    const start = scanner.position;
    const results = scanner.seesValue() ? this.#resultNames() : [];
    const position = scanner.position;
    const generic = scanner.seesString();
    const written = generic ? scanner.string() : scanner.word("an op");
    const name = abbreviations.get(written) ?? written;
    const parts = generic ? this.#genericParts() : this.#shortParts(name, position);
    const place = this.trailingLocation();
    const op = this.build(name, parts, position, place);
    this.#defineResults(results, op, start);
    return op;
  }

  build(name: string, parts: OpParts, position: number, place?: TextLocation): AnyGraphOp {
    try {
      const location = this.#locate(position, place);
      return opOfParts(name, parts, { location, name: place?.name ?? "" });
    } catch (error) {
      if (!(error instanceof PartsMismatch)) throw error;
      const { expected, found } = error;
      return this.scanner.fail("TW9004", `${name}: ${error.message}`, {
        position,
        expected,
        found,
      });
    }
  }

  /** The place that the text says it was made from, or the place in the text. */
  #locate(position: number, place: TextLocation | undefined): Location {
    const here = this.scanner.locationOf(position);
    if (place?.position === undefined) return here;
    const { file, line, column } = place.position;
    const origin = locationAt(file, line, column);
    return Object.freeze({ position: origin.position, generated: here.position });
  }

  #resultNames(): readonly { readonly name: string; readonly count: number }[] {
    const names = this.scanner.commaSeparated(() => ({
      name: this.scanner.value(),
      count: this.scanner.accept(":") ? this.scanner.integer() : 1,
    }));
    this.scanner.expect("=");
    return names;
  }

  #defineResults(
    names: readonly { readonly name: string; readonly count: number }[],
    op: AnyGraphOp,
    position: number,
  ): void {
    const count = names.reduce((sum, each) => sum + each.count, 0);
    if (names.length > 0 && count !== op.results.length)
      this.scanner.fail("TW9005", "the number of names is not that of the results", {
        position,
        expected: `${op.results.length}`,
        found: `${count}`,
      });
    let next = 0;
    for (const { name, count: own } of names)
      for (let i = 0; i < own; i++) {
        const value = op.results[next++];
        if (value === undefined) continue;
        if (i === 0) this.#define(name, value, position);
        this.#define(`${name}#${i}`, value, position);
      }
  }

  #shortParts(name: string, position: number): OpParts {
    const form = isGraphOpKind(name) ? graphOpTable[name].text : "generic";
    return formRules[form].read(this, name, position);
  }

  #genericParts(): OpParts {
    const { scanner } = this;
    const operands = scanner.list("(", ")", () => this.operand());
    if (scanner.sees("["))
      this.scanner.fail("TW9008", "the op names other blocks", {
        expected: "an op without successors",
        found: "a list of blocks",
      });
    let attributes: AttributeMap = nothing;
    if (scanner.accept("<")) {
      attributes = parseDictionary(scanner, this.aliases);
      scanner.expect(">");
    }
    const regions = scanner.sees("(") ? scanner.list("(", ")", () => this.region()) : [];
    attributes = new Map([...attributes, ...this.optionalDictionary()]);
    scanner.expect(":");
    return { operands, attributes, regions, resultTypes: this.functionType(operands) };
  }
}
