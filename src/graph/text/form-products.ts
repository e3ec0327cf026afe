/** Short forms of products and convolutions. */
import { arrayAttribute, dialectAttribute, listAttribute } from "../ops/attribute.ts";
import type { Attribute } from "../ops/attribute.ts";
import { precisions, rows } from "../ops/forms.ts";
import { algorithmFields, writeConvolution, writeStructure } from "../ops/structures.ts";
import { noRegions, operandList } from "./form.ts";
import type { FormRule, OpReader } from "./form.ts";
import { bareText, readBare, trailingDictionary, typesOf } from "./form-labelled.ts";
import { functionTypeText } from "./types.ts";

/** `[0, 1] x [2, 3]`. */
function readPair(reader: OpReader): readonly [string, string] {
  const left = bareText(readBare(reader));
  reader.scanner.expect("x");
  return [left, bareText(readBare(reader))];
}

/** The labels of a product: attributes, or pairs of lists of axes. */
const dotLabels = {
  batching_dims: "batching",
  contracting_dims: "contracting",
  precision: "precision",
  algorithm: "algorithm",
} as const;

/** A list of words, which may be empty. */
function readWords(reader: OpReader): Attribute {
  const found = readBare(reader);
  return found.kind === "array" && found.items.length === 0 ? listAttribute([]) : found;
}

/** `stablehlo.dot_general %x, %y, batching_dims = [0] x [0], contracting_dims = [2] x [1], … : (T, T) -> U`. */
export const dotGeneralForm: FormRule = {
  read(reader) {
    const { scanner } = reader;
    const left = reader.operand();
    scanner.expect(",");
    const operands = [left, reader.operand()];
    const fields: string[] = [];
    const attributes = new Map<string, Attribute>();
    while (scanner.accept(",")) {
      const label = scanner.wordOf(dotLabels);
      scanner.expect("=");
      if (label === "precision") attributes.set("precision_config", readWords(reader));
      else if (label === "algorithm")
        attributes.set(
          "algorithm",
          dialectAttribute("stablehlo.dot_algorithm", scanner.balanced("<")),
        );
      else {
        const [lhs, rhs] = readPair(reader);
        fields.push(`lhs_${label}_dimensions = ${lhs}`, `rhs_${label}_dimensions = ${rhs}`);
      }
    }
    attributes.set("dot_dimension_numbers", dialectAttribute("stablehlo.dot", fields.join(", ")));
    for (const [key, value] of reader.optionalDictionary()) attributes.set(key, value);
    scanner.expect(":");
    return { operands, attributes, regions: noRegions, resultTypes: reader.functionType(operands) };
  },
  write(op, { operands, resultTypes }, writer) {
    if (op.kind !== "stablehlo.dot_general") return undefined;
    const {
      dot_dimension_numbers: numbers,
      precision_config: precision,
      algorithm,
    } = op.attributes;
    const pair = (kind: "batching" | "contracting"): string =>
      `[${numbers[`lhs_${kind}_dimensions`].join(", ")}] x [${numbers[`rhs_${kind}_dimensions`].join(", ")}]`;
    const batched =
      numbers.lhs_batching_dimensions.length + numbers.rhs_batching_dimensions.length > 0;
    const pieces = [
      operandList(operands, writer),
      ...(batched ? [`batching_dims = ${pair("batching")}`] : []),
      `contracting_dims = ${pair("contracting")}`,
      ...(precision === undefined ? [] : [`precision = ${bareText(precisions.write(precision))}`]),
      ...(algorithm === undefined
        ? []
        : [`algorithm = <${writeStructure(algorithmFields, algorithm)}>`]),
    ];
    const types = functionTypeText(typesOf(operands), resultTypes);
    return ` ${pieces.join(", ")}${trailingDictionary(op.extra)} : ${types}`;
  },
};

/** The labels of a convolution's window, and the attributes that they set. */
const windowLabels: { readonly [label: string]: string } = {
  stride: "window_strides",
  pad: "padding",
  lhs_dilate: "lhs_dilation",
  rhs_dilate: "rhs_dilation",
  reverse: "window_reversal",
};

function readWindow(reader: OpReader): readonly (readonly [string, Attribute])[] {
  const { scanner } = reader;
  return scanner.list("{", "}", () => {
    const name = scanner.wordOf(windowLabels);
    scanner.expect("=");
    if (name !== "padding") {
      const flags = name === "window_reversal";
      const found = readBare(reader);
      const items = found.kind === "array" ? found.items : [];
      const bools = items.map((item) => (item === "0" ? "false" : item === "1" ? "true" : item));
      return [name, flags ? arrayAttribute("i1", bools) : found] as const;
    }
    const pairs = scanner.list("[", "]", () => {
      const pair = scanner.list("[", "]", () => scanner.integer());
      return pair.length === 2 ? pair : scanner.unexpected("two numbers for each axis");
    });
    return [name, rows.write(pairs)] as const;
  });
}

/** `stablehlo.convolution(%x, %w) dim_numbers = […]x[…]->[…], window = {…} {…} : (T, T) -> U`. */
export const convolutionForm: FormRule = {
  read(reader) {
    const { scanner } = reader;
    const operands = scanner.list("(", ")", () => reader.operand());
    scanner.expect("dim_numbers");
    scanner.expect("=");
    const side = (): string => `[${scanner.balanced("[")}]`;
    const input = side();
    scanner.expect("x");
    const kernel = side();
    scanner.expect("->");
    const numbers = dialectAttribute("stablehlo.conv", `${input}x${kernel}->${side()}`);
    const attributes = new Map<string, Attribute>([["dimension_numbers", numbers]]);
    if (scanner.accept(",")) {
      scanner.expect("window");
      scanner.expect("=");
      for (const [name, value] of readWindow(reader)) attributes.set(name, value);
    }
    for (const [key, value] of reader.optionalDictionary()) attributes.set(key, value);
    scanner.expect(":");
    return { operands, attributes, regions: noRegions, resultTypes: reader.functionType(operands) };
  },
  write(op, { operands, attributes, resultTypes }, writer) {
    if (op.kind !== "stablehlo.convolution" && op.kind !== "stablehlo.dynamic_conv")
      return undefined;
    const numbers = writeConvolution(op.attributes.dimension_numbers);
    if (numbers.startsWith("raw")) return undefined;
    const window = Object.entries(windowLabels).flatMap(([label, name]) => {
      const attribute = attributes.get(name);
      if (attribute === undefined) return [];
      const pairs = op.attributes.padding?.map((pair) => `[${pair.join(", ")}]`) ?? [];
      return [`${label} = ${name === "padding" ? `[${pairs.join(", ")}]` : bareText(attribute)}`];
    });
    const taken = new Set(["dimension_numbers", ...Object.values(windowLabels)]);
    const rest = new Map([...attributes].filter(([name]) => !taken.has(name)));
    const head = `(${operandList(operands, writer)}) dim_numbers = ${numbers}, window = {${window.join(", ")}}`;
    const types = functionTypeText(typesOf(operands), resultTypes);
    return `${head}${trailingDictionary(rest)} : ${types}`;
  },
};
