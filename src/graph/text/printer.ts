/**
 * Prints programs. Values are numbered in the order in which they are defined, results as `%0`, parameters
 * as `%arg0`; an op is printed in its short form where that says everything, and else in the generic one.
 * What is printed is read back to the same program and printed to the same text.
 */
import type { AttributeMap } from "../ops/attribute.ts";
import type {
  AnyGraphOp,
  GraphFunction,
  GraphModule,
  GraphRegion,
  GraphValue,
} from "../ops/node.ts";
import { arrayAttribute } from "../ops/attribute.ts";
import { graphOpTable } from "../ops/table.ts";
import { operandsOf, textNameOf } from "../ops/traverse.ts";
import { typeText } from "../ops/types.ts";
import { dictionaryText } from "./attributes.ts";
import type { OpWriter } from "./form.ts";
import { formRules } from "./forms.ts";
import { locationText } from "./locations.ts";
import { partsOf, writtenSegments } from "./parts.ts";
import type { OpParts } from "./parts.ts";
import { quoted, symbolText } from "./scanner.ts";
import { functionTypeText, typesText } from "./types.ts";

/** Options of `printGraph`. */
export interface PrintOptions {
  /** Prints the names and places of ops that were read or recorded with them; off unless asked for. */
  readonly locations?: boolean | undefined;
  /** Prints every op in the generic form `"dialect.op"(…)`, which tools without our short forms read; off unless asked for. */
  readonly generic?: boolean | undefined;
}

/** A module as text. */
export function printGraph(module: GraphModule, options: PrintOptions = {}): string {
  const entries = [
    ...module.foreign.map(({ text }) => `  ${text}`),
    ...Array.from(module.functions.values(), (each) => new FunctionPrinter(options).function(each)),
  ];
  const name = module.name === "" ? "" : ` ${symbolText(module.name)}`;
  const attributes =
    module.attributes.size === 0 ? "" : ` attributes ${dictionaryText(module.attributes)}`;
  return `module${name}${attributes} {\n${entries.map((entry) => `${entry}\n`).join("")}}\n`;
}

/** A function as text, as it stands within a module. */
export function printFunction(printed: GraphFunction, options: PrintOptions = {}): string {
  return new FunctionPrinter(options).function(printed);
}

function isOfFunction({ type }: GraphValue): boolean {
  return type.kind === "opaque" && type.text.startsWith("(");
}

function trailing(attributes: AttributeMap | undefined): string {
  return attributes === undefined || attributes.size === 0 ? "" : ` ${dictionaryText(attributes)}`;
}

class FunctionPrinter implements OpWriter {
  readonly #locations: boolean;
  readonly #isGeneric: boolean;
  readonly #names = new Map<GraphValue, string>();
  #results = 0;
  #parameters = 0;
  #depth = 1;
  #terminator = "return";

  constructor({ locations = false, generic = false }: PrintOptions) {
    this.#locations = locations;
    this.#isGeneric = generic;
  }

  get #indent(): string {
    return "  ".repeat(this.#depth);
  }

  get continuation(): string {
    return `\n${this.#indent} `;
  }

  value(value: GraphValue): string {
    const name = this.#names.get(value);
    if (name === undefined) throw new Error("a value is printed after its definition");
    return name;
  }

  define(value: GraphValue, like?: GraphValue): string {
    const name = like === undefined ? `%arg${this.#parameters++}` : this.value(like);
    this.#names.set(value, name);
    return name;
  }

  function(printed: GraphFunction): string {
    const { body, visibility, name } = printed;
    const parameters = body.parameters.map((value, i) => {
      const attributes = trailing(printed.parameterAttributes[i]);
      return `${this.define(value)}: ${typeText(value.type)}${attributes}`;
    });
    const results = functionResults(printed);
    const attributes =
      printed.attributes.size === 0 ? "" : ` attributes ${dictionaryText(printed.attributes)}`;
    const head = `${this.#indent}func.func ${visibility} ${symbolText(name)}(${parameters.join(", ")})`;
    return `${head}${results}${attributes} ${this.region(body, false)}`;
  }

  region(region: GraphRegion, labelled: boolean): string {
    const label =
      labelled && region.parameters.length > 0
        ? [`${this.#indent}^bb0(${this.#blockParameters(region)}):`]
        : [];
    this.#depth++;
    const lines = region.ops.map((op) => `${this.#indent}${this.#op(op)}`);
    lines.push(`${this.#indent}${this.#return(region)}`);
    this.#depth--;
    return `{\n${[...label, ...lines].join("\n")}\n${this.#indent}}`;
  }

  #blockParameters({ parameters }: GraphRegion): string {
    return parameters.map((value) => `${this.define(value)}: ${typeText(value.type)}`).join(", ");
  }

  #return({ results }: GraphRegion): string {
    if (results.length === 0) return this.#terminator;
    const values = results.map((value) => this.value(value)).join(", ");
    return `${this.#terminator} ${values} : ${typesText(results.map(({ type }) => type))}`;
  }

  #op(op: AnyGraphOp): string {
    const results = this.#resultNames(op);
    const outer = this.#terminator;
    this.#terminator = op.kind.startsWith("sdy.") ? "sdy.return" : "stablehlo.return";
    const parts = partsOf(op);
    // In short forms a function type is ambiguous with those of the operands.
    const isGeneric = this.#isGeneric || [...operandsOf(op), ...op.results].some(isOfFunction);
    const form = isGeneric ? "generic" : graphOpTable[op.kind].text;
    const short = formRules[form].write(op, parts, this);
    const text = short === undefined ? this.#generic(op, parts) : `${op.kind}${short}`;
    this.#terminator = outer;
    return `${results}${text}${this.#location(op)}`;
  }

  #resultNames({ results }: AnyGraphOp): string {
    if (results.length === 0) return "";
    const name = `%${this.#results++}`;
    for (const [i, value] of results.entries())
      this.#names.set(value, results.length === 1 ? name : `${name}#${i}`);
    return results.length === 1 ? `${name} = ` : `${name}:${results.length} = `;
  }

  #generic(op: AnyGraphOp, { operands, attributes, regions, resultTypes }: OpParts): string {
    const name = textNameOf(op);
    const values = operands.map((value) => this.value(value)).join(", ");
    const printed = new Map(attributes);
    const sizes = writtenSegments(op);
    if (sizes !== undefined)
      printed.set("operandSegmentSizes", arrayAttribute("i32", sizes.map(String)));
    const properties = printed.size === 0 ? "" : ` <${dictionaryText(printed)}>`;
    const bodies =
      regions.length === 0
        ? ""
        : ` (${regions.map((region) => this.region(region, true)).join(", ")})`;
    const types = functionTypeText(
      operands.map(({ type }) => type),
      resultTypes,
    );
    return `${quoted(name)}(${values})${properties}${bodies} : ${types}`;
  }

  #location({ name, location }: AnyGraphOp): string {
    if (!this.#locations || (name === "" && location.generated === undefined)) return "";
    return ` ${locationText({ name, position: location.position })}`;
  }
}

/** ` -> T`, or the results with their attributes in parentheses. */
function functionResults({ body, resultAttributes }: GraphFunction): string {
  if (body.results.length === 0) return "";
  const texts = body.results.map(
    ({ type }, i) => `${typeText(type)}${trailing(resultAttributes[i])}`,
  );
  const plain = texts.length === 1 && (resultAttributes[0]?.size ?? 0) === 0;
  return ` -> ${plain ? texts.join("") : `(${texts.join(", ")})`}`;
}
