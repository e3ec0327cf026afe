/** Short forms of constants, slices, formats, tuples and checks against constants. */
import { arrayAttribute, dialectAttribute, integerAttribute } from "../ops/attribute.ts";
import type { Attribute } from "../ops/attribute.ts";
import type { GraphType } from "../ops/types.ts";
import { sameType, typeText } from "../ops/types.ts";
import { attributeText } from "./attributes.ts";
import { noRegions, operandList } from "./form.ts";
import type { FormRule, OpReader } from "./form.ts";
import { readBare, trailingDictionary, typesOf } from "./form-labelled.ts";
import { functionTypeText, resultTypesText, typesText } from "./types.ts";

/** The type of a dense constant; of a constant that is kept as text, what follows its last colon. */
function typeOfConstant(reader: OpReader, value: Attribute): GraphType {
  if (value.kind === "dense") return value.literal.type;
  if (value.kind === "raw")
    return { kind: "opaque", text: value.text.slice(value.text.indexOf("> : ") + "> : ".length) };
  return reader.scanner.unexpected("a value such as `dense<1.0> : tensor<2xf32>`");
}

export const constantForm: FormRule = {
  read(reader) {
    const { scanner } = reader;
    if (scanner.accept("(")) {
      scanner.expect(")");
      const properties = scanner.accept("<");
      const attributes = reader.optionalDictionary();
      if (properties) scanner.expect(">");
      scanner.expect(":");
      return { operands: [], attributes, regions: noRegions, resultTypes: reader.functionType([]) };
    }
    const attributes = new Map(reader.optionalDictionary());
    const value = reader.attribute();
    attributes.set("value", value);
    const resultTypes = [typeOfConstant(reader, value)];
    return { operands: [], attributes, regions: noRegions, resultTypes };
  },
  write(op, { attributes, resultTypes }) {
    const value = attributes.get("value");
    const [result] = resultTypes;
    if (value?.kind !== "dense" || result === undefined) return undefined;
    if (!sameType(value.literal.type, result)) return undefined;
    return `${trailingDictionary(op.extra)} ${attributeText(value)}`;
  },
};

/** `check.expect_eq_const %x, dense<…> : T`. */
export const expectConstForm: FormRule = {
  read(reader) {
    const { scanner } = reader;
    const operands = [reader.operand()];
    scanner.expect(",");
    const attributes = new Map([["value", reader.attribute()]]);
    while (scanner.accept(",")) {
      const label = scanner.word();
      scanner.expect("=");
      attributes.set(label, readBare(reader));
    }
    for (const [key, value] of reader.optionalDictionary()) attributes.set(key, value);
    return { operands, attributes, regions: noRegions, resultTypes: [] };
  },
  write(_, { operands, attributes }, writer) {
    const value = attributes.get("value");
    if (value === undefined) return undefined;
    const rest = new Map([...attributes].filter(([name]) => name !== "value"));
    return ` ${operandList(operands, writer)}, ${attributeText(value)}${trailingDictionary(rest)}`;
  },
};

interface Bounds {
  readonly start: number;
  readonly limit: number;
  readonly stride: number;
}

/** `stablehlo.slice %x [0:4, 1:9:2] : (T) -> U`. */
export const sliceForm: FormRule = {
  read(reader) {
    const { scanner } = reader;
    const operands = [reader.operand()];
    const bounds = scanner.list("[", "]", (): Bounds => {
      const start = scanner.integer();
      scanner.expect(":");
      const limit = scanner.integer();
      return { start, limit, stride: scanner.accept(":") ? scanner.integer() : 1 };
    });
    const field = (name: keyof Bounds): Attribute =>
      arrayAttribute(
        "i64",
        bounds.map((each) => String(each[name])),
      );
    const attributes = new Map([
      ["start_indices", field("start")],
      ["limit_indices", field("limit")],
      ["strides", field("stride")],
      ...reader.optionalDictionary(),
    ]);
    scanner.expect(":");
    return { operands, attributes, regions: noRegions, resultTypes: reader.functionType(operands) };
  },
  write(op, { operands, resultTypes }, writer) {
    if (op.kind !== "stablehlo.slice") return undefined;
    const { start_indices: starts, limit_indices: limits, strides } = op.attributes;
    if (starts.length !== limits.length || starts.length !== strides.length) return undefined;
    const bounds = starts.map((start, axis) => {
      const stride = strides[axis];
      return `${start}:${limits[axis]}${stride === 1 ? "" : `:${stride}`}`;
    });
    const types = functionTypeText(typesOf(operands), resultTypes);
    const dictionary = trailingDictionary(op.extra);
    return ` ${operandList(operands, writer)} [${bounds.join(", ")}]${dictionary} : ${types}`;
  },
};

/** `stablehlo.reduce_precision %x, format = e8m10 : T`. */
export const reducePrecisionForm: FormRule = {
  read(reader) {
    const { scanner } = reader;
    const operands = [reader.operand()];
    scanner.expect(",");
    scanner.expect("format");
    scanner.expect("=");
    const format = scanner.word("a format such as e8m10");
    const [, exponent, mantissa] = /^e(\d+)m(\d+)$/.exec(format) ?? scanner.unexpected("e8m10");
    const attributes = new Map<string, Attribute>([
      ["exponent_bits", integerAttribute(Number(exponent), "i32")],
      ["mantissa_bits", integerAttribute(Number(mantissa), "i32")],
      ...reader.optionalDictionary(),
    ]);
    scanner.expect(":");
    const resultTypes = scanner.sees("(") ? reader.functionType(operands) : [reader.type()];
    return { operands, attributes, regions: noRegions, resultTypes };
  },
  write(op, { operands, resultTypes }, writer) {
    const [operand] = operands;
    const [result] = resultTypes;
    if (op.kind !== "stablehlo.reduce_precision" || operand === undefined || result === undefined)
      return undefined;
    const { exponent_bits: exponent, mantissa_bits: mantissa } = op.attributes;
    const same = sameType(operand.type, result);
    const types = same ? typeText(result) : functionTypeText([operand.type], resultTypes);
    const format = `e${exponent}m${mantissa}${trailingDictionary(op.extra)}`;
    return ` ${writer.value(operand)}, format = ${format} : ${types}`;
  },
};

/** `stablehlo.get_tuple_element %t[0] : (T) -> U`. */
export const tupleElementForm: FormRule = {
  read(reader) {
    const { scanner } = reader;
    const operands = [reader.operand()];
    scanner.expect("[");
    const index = integerAttribute(scanner.integer(), "i32");
    scanner.expect("]");
    const attributes = new Map<string, Attribute>([
      ["index", index],
      ...reader.optionalDictionary(),
    ]);
    scanner.expect(":");
    return { operands, attributes, regions: noRegions, resultTypes: reader.functionType(operands) };
  },
  write(op, { operands, resultTypes }, writer) {
    if (op.kind !== "stablehlo.get_tuple_element") return undefined;
    const types = functionTypeText(typesOf(operands), resultTypes);
    const index = `[${op.attributes.index}]${trailingDictionary(op.extra)}`;
    return ` ${operandList(operands, writer)}${index} : ${types}`;
  },
};

/** `chlo.top_k(%x, k = 5) : T -> (U, V)`. */
export const topKForm: FormRule = {
  read(reader) {
    const { scanner } = reader;
    scanner.expect("(");
    const operands = [reader.operand()];
    scanner.expect(",");
    scanner.expect("k");
    scanner.expect("=");
    const k = integerAttribute(scanner.integer());
    scanner.expect(")");
    const attributes = new Map<string, Attribute>([["k", k], ...reader.optionalDictionary()]);
    scanner.expect(":");
    if (scanner.sees("("))
      return {
        operands,
        attributes,
        regions: noRegions,
        resultTypes: reader.functionType(operands),
      };
    reader.checkTypes(operands, [reader.type()]);
    scanner.expect("->");
    return { operands, attributes, regions: noRegions, resultTypes: reader.resultTypes() };
  },
  write(op, { operands, resultTypes }, writer) {
    if (op.kind !== "chlo.top_k") return undefined;
    const head = `(${operandList(operands, writer)}, k = ${op.attributes.k})`;
    const types = `${typesText(typesOf(operands))} -> ${resultTypesText(resultTypes)}`;
    return `${head}${trailingDictionary(op.extra)} : ${types}`;
  },
};

/** `sdy.sharding_constraint %x <@mesh, [{"a"}]> : T`. */
export const shardingForm: FormRule = {
  read(reader) {
    const { scanner } = reader;
    const operands = [reader.operand()];
    const attributes = new Map<string, Attribute>([
      ["sharding", dialectAttribute("sdy.sharding", scanner.balanced("<"))],
      ...reader.optionalDictionary(),
    ]);
    scanner.expect(":");
    return { operands, attributes, regions: noRegions, resultTypes: [reader.type()] };
  },
  write(op, { operands, resultTypes }, writer) {
    if (op.kind !== "sdy.sharding_constraint") return undefined;
    const { sharding } = op.attributes;
    if (sharding.kind !== "dialect" || sharding.body === undefined) return undefined;
    if (sharding.name !== "sdy.sharding") return undefined;
    const dictionary = trailingDictionary(op.extra);
    return ` ${operandList(operands, writer)} <${sharding.body}>${dictionary} : ${typesText(resultTypes)}`;
  },
};
