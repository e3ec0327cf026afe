/** Short forms of calls. */
import { stringAttribute, symbolAttribute } from "../ops/attribute.ts";
import type { Attribute, AttributeMap } from "../ops/attribute.ts";
import type { GraphValue } from "../ops/node.ts";
import { noRegions, operandList } from "./form.ts";
import type { FormRule, OpReader } from "./form.ts";
import { trailingDictionary, typesOf } from "./form-labelled.ts";
import type { OpParts } from "./parts.ts";
import { quoted, symbolText } from "./scanner.ts";
import { functionTypeText } from "./types.ts";

function readTail(
  reader: OpReader,
  operands: readonly GraphValue[],
  name: string,
  value: Attribute,
): OpParts {
  const attributes = new Map<string, Attribute>([[name, value], ...reader.optionalDictionary()]);
  reader.scanner.expect(":");
  return { operands, attributes, regions: noRegions, resultTypes: reader.functionType(operands) };
}

function without(attributes: AttributeMap, name: string): AttributeMap {
  return new Map([...attributes].filter(([key]) => key !== name));
}

function tailText({ operands, attributes, resultTypes }: OpParts, name: string): string {
  const types = functionTypeText(typesOf(operands), resultTypes);
  return `${trailingDictionary(without(attributes, name))} : ${types}`;
}

/** `func.call @f(%x) : (T) -> U`. */
export const callForm: FormRule = {
  read(reader) {
    const callee = symbolAttribute(reader.scanner.symbol());
    const operands = reader.scanner.list("(", ")", () => reader.operand());
    return readTail(reader, operands, "callee", callee);
  },
  write(op, parts, writer) {
    if (op.kind !== "func.call") return undefined;
    const operands = operandList(parts.operands, writer);
    return ` ${symbolText(op.attributes.callee)}(${operands})${tailText(parts, "callee")}`;
  },
};

/** `stablehlo.custom_call @name(%x) {…} : (T) -> U`. */
export const customCallForm: FormRule = {
  read(reader) {
    const target = stringAttribute(reader.scanner.symbol());
    const operands = reader.scanner.list("(", ")", () => reader.operand());
    return readTail(reader, operands, "call_target_name", target);
  },
  write(op, parts, writer) {
    if (op.kind !== "stablehlo.custom_call") return undefined;
    const operands = operandList(parts.operands, writer);
    const target = symbolText(op.attributes.call_target_name);
    return ` ${target}(${operands})${tailText(parts, "call_target_name")}`;
  },
};

/** `stablehlo.composite "my.op" %x {decomposition = @f} : (T) -> U`. */
export const compositeForm: FormRule = {
  read(reader) {
    const { scanner } = reader;
    const name = stringAttribute(scanner.string());
    const operands = scanner.seesValue() ? scanner.commaSeparated(() => reader.operand()) : [];
    return readTail(reader, operands, "name", name);
  },
  write(op, parts, writer) {
    if (op.kind !== "stablehlo.composite") return undefined;
    const operands = parts.operands.length === 0 ? "" : ` ${operandList(parts.operands, writer)}`;
    return ` ${quoted(op.attributes.name)}${operands}${tailText(parts, "name")}`;
  },
};
