/**
 * IR as text, one op a line. Everything about an op comes from its entry in the op table, so a new op
 * prints without a line of code here. Values are numbered in the order the text defines them, so two
 * kernels that differ only in their value ids have the same text.
 *
 *   kernel @scale dimensions [n multiple 8] grid [i = ceildiv(n, 64)] threads [main] (
 *     input %0 "x": ref<gmem, f32, [n]>,
 *     output %1 "out": ref<gmem, f32, [n]>
 *   ) {
 *     %2 = block_index {axis = "i"} : i32 @ "scale.ts":7:3
 *     …
 *     %9 = loop %3, %4, %5 initial(%6) body(%10: i32, %11: f32) {
 *       %12 = binary %11, %7 {fn = add} : f32
 *       yield %12
 *     } : f32
 *     yield
 *   }
 *
 * The header of a placed kernel names its target, the bytes of shared memory and the register layouts, and
 * the types of its tiles end with such a name, or with `splat`:
 *
 *   kernel @scale grid [i = 4] threads [main] target sm_90a shared 0 layouts [A = "(L0 L1 L2 L3 L4)"] (
 *     …
 *     %3 = load %2 : tile<f32, [64], A>
 *
 * `parseModule` reads it back to the same module; see `parser/parser.ts` for the grammar.
 */
import type { Location } from "../support/location.ts";
import { warpsPerGroup } from "../targets/target.ts";
import type {
  AnyOp,
  GridAxis,
  Kernel,
  KernelParameter,
  Module,
  PlacedFor,
  Region,
  Value,
} from "./node.ts";
import { opTable } from "./ops.ts";
import { attributeSlotsOf } from "./schema.ts";
import type {
  AttributeForm,
  AttributeForms,
  AttributeSlot,
  AttributeValue,
  OpSchema,
} from "./schema.ts";
import { shapeText, sizeText } from "./size.ts";
import type { Dimension } from "./size.ts";
import { literalText, nameText, operandForm } from "./text-form.ts";
import { isSpread, spelledType, typeText } from "./types.ts";
import type { Type } from "./types.ts";

export interface PrintOptions {
  /** Whether each op is followed by the place in the user's program that made it. */
  readonly locations?: boolean;
}

export function printModule(module: Module, options: PrintOptions = {}): string {
  return `${module.kernels.map((kernel) => printKernel(kernel, options)).join("\n\n")}\n`;
}

export function printKernel(kernel: Kernel, options: PrintOptions = {}): string {
  return new KernelPrinter(options.locations ?? false).print(kernel);
}

/** The op's attributes as the text has them, braces included; empty where it has none. */
export function attributesText(op: Pick<AnyOp, "kind" | "attributes">): string {
  const record = op.attributes as { readonly [name: string]: AttributeValue | undefined };
  const schema: OpSchema = opTable[op.kind];
  const parts = [];
  for (const { name, slot } of attributeSlotsOf(schema)) {
    const value = record[name];
    if (value !== undefined) parts.push(`${name} = ${attributeText(slot, value)}`);
  }
  return parts.length === 0 ? "" : `{${parts.join(", ")}}`;
}

const attributeTexts: { readonly [F in AttributeForm]: (value: AttributeForms[F]) => string } = {
  integer: String,
  integers: (values) => `[${values.join(", ")}]`,
  text: (value) => JSON.stringify(value),
  texts: (values) => `[${values.map((value) => JSON.stringify(value)).join(", ")}]`,
  flag: String,
  literal: literalText,
  dtype: (dtype) => dtype.name,
  size: sizeText,
  sizes: shapeText,
};

function attributeText({ form }: AttributeSlot, value: AttributeValue): string {
  if (form === undefined && typeof value === "string") return value;
  return (attributeTexts[form ?? "text"] as (value: AttributeValue) => string)(value);
}

function axisText({ name, extent, cluster }: GridAxis): string {
  const suffix = cluster === 1 ? "" : ` cluster ${cluster}`;
  return `${nameText(name)} = ${sizeText(extent)}${suffix}`;
}

function dimensionText({ name, multipleOf }: Dimension): string {
  return multipleOf === 1 ? name : `${name} multiple ${multipleOf}`;
}

class KernelPrinter {
  readonly #locations: boolean;
  readonly #numbers = new Map<Value, number>();
  readonly #lines: string[] = [];
  readonly #layouts = new Map<string, string>();

  constructor(locations: boolean) {
    this.#locations = locations;
  }

  print(kernel: Kernel): string {
    const { name, dimensions, grid, threads, warps, parameters, body, location } = kernel;
    const parts = [`kernel @${nameText(name)}`];
    if (dimensions.length > 0)
      parts.push(`dimensions [${dimensions.map(dimensionText).join(", ")}]`);
    parts.push(`grid [${grid.map(axisText).join(", ")}]`);
    parts.push(`threads [${threads.map(nameText).join(", ")}]`);
    if (warps !== warpsPerGroup) parts.push(`warps ${warps}`);
    if (kernel.resident !== undefined) parts.push(`resident ${kernel.resident}`);
    if (kernel.placed !== undefined) parts.push(this.#placement(kernel.body, kernel.placed));
    this.#lines.push(`${parts.join(" ")} (`);
    parameters.forEach((parameter, position) => {
      const comma = position + 1 < parameters.length ? "," : "";
      this.#lines.push(`  ${this.#parameter(parameter)}${comma}`);
    });
    this.#lines.push(`)${this.#place(location)} {`);
    for (const op of body.ops) this.#op(op, "  ");
    this.#lines.push("}");
    return this.#lines.join("\n");
  }

  /** What a placed kernel has beyond a traced one; gives its layouts the names that types are written with. */
  #placement(body: Region, { target, sharedBytes }: PlacedFor): string {
    for (const layout of layoutsIn(body))
      if (layout !== "splat" && !this.#layouts.has(layout))
        this.#layouts.set(layout, layoutName(this.#layouts.size));
    const named = [...this.#layouts].map(([text, name]) => `${name} = ${JSON.stringify(text)}`);
    const list = named.length === 0 ? "" : ` layouts [${named.join(", ")}]`;
    const shared = sharedBytes === undefined ? "" : ` shared ${sharedBytes}`;
    return `target ${target.name}${shared}${list}`;
  }

  #type(type: Type): string {
    return spelledType(type, (layout) =>
      layout === "splat" ? layout : (this.#layouts.get(layout) ?? JSON.stringify(layout)),
    );
  }

  #parameter({ name, role, value, strides }: KernelParameter): string {
    const suffix = strides === undefined ? "" : ` strides ${shapeText(strides)}`;
    return `${role} ${this.#define(value)} ${JSON.stringify(name)}: ${typeText(value.type)}${suffix}`;
  }

  #op(op: AnyOp, indent: string): void {
    const results = op.results.map((value) => this.#define(value)).join(", ");
    const head = [op.kind, ...this.#operands(op), attributesText(op)].filter((part) => part !== "");
    let line = `${indent}${results === "" ? "" : `${results} = `}${head.join(" ")}`;
    for (const [name, region] of namedRegions(op)) {
      this.#lines.push(`${line} ${name}${this.#parameters(region)} {`);
      for (const inner of region.ops) this.#op(inner, `${indent}  `);
      line = `${indent}}`;
    }
    const types = op.results.map(({ type }) => this.#type(type)).join(", ");
    this.#lines.push(`${line}${types === "" ? "" : ` : ${types}`}${this.#place(op.location)}`);
  }

  /** The operands in the order of the text: positional ones, then named ones. */
  #operands(op: AnyOp): readonly string[] {
    const record = op.operands as { readonly [name: string]: Value | readonly Value[] | undefined };
    const { positional, list, named } = operandForm(op.kind);
    const values = (name: string) =>
      [record[name] ?? []]
        .flat()
        .map((value) => this.#use(value))
        .join(", ");
    const unnamed = list === undefined ? positional : [list];
    const parts = [unnamed.map(values).join(", ")];
    for (const name of named) {
      const text = values(name);
      if (text !== "") parts.push(`${name}(${text})`);
    }
    return parts;
  }

  #parameters({ parameters }: Region): string {
    if (parameters.length === 0) return "";
    const parts = parameters.map((value) => `${this.#define(value)}: ${this.#type(value.type)}`);
    return `(${parts.join(", ")})`;
  }

  #define(value: Value): string {
    const number = this.#numbers.size;
    this.#numbers.set(value, number);
    return `%${number}`;
  }

  /** A value that nothing defines, as in a kernel the verifier rejects, shows its id instead. */
  #use(value: Value): string {
    return `%${this.#numbers.get(value) ?? `undefined_${value.id}`}`;
  }

  #place(location: Location): string {
    // Looking a position up reads a stack, which nobody who prints without them should pay for.
    const position = this.#locations ? location.position : undefined;
    if (position === undefined) return "";
    return ` @ ${JSON.stringify(position.file)}:${position.line}:${position.column}`;
  }
}

/** A, B, … Z, A1, B1, … */
function layoutName(number: number): string {
  const round = Math.floor(number / 26);
  return `${String.fromCharCode(65 + (number % 26))}${round === 0 ? "" : round}`;
}

/** The layouts of a region's values in the order of their text. */
function* layoutsIn(region: Region): Generator<string> {
  const own = ({ type }: Value): readonly string[] =>
    isSpread(type) && type.layout !== undefined ? [type.layout] : [];
  yield* region.parameters.flatMap(own);
  for (const op of region.ops) {
    for (const [, inner] of namedRegions(op)) yield* layoutsIn(inner);
    yield* op.results.flatMap(own);
  }
}

function namedRegions(op: AnyOp): readonly (readonly [string, Region])[] {
  const record = op.regions as { readonly [name: string]: Region | readonly Region[] };
  return Object.keys(opTable[op.kind].regions).flatMap((name) =>
    [record[name] ?? []].flat().map((region) => [name, region] as const),
  );
}
