/**
 * Short forms that are a list of operands, then attributes after labels, then types:
 *
 *   stablehlo.pad %x, %v, low = [1], high = [-1], interior = [0] {extra = 1 : i64} : (T, T) -> U
 */
import {
  arrayAttribute,
  flagAttribute,
  integerAttribute,
  listAttribute,
  stringAttribute,
} from "../ops/attribute.ts";
import type { Attribute, AttributeMap } from "../ops/attribute.ts";
import type { AnyGraphOp, GraphValue } from "../ops/node.ts";
import { graphOpTable, isGraphOpKind } from "../ops/table.ts";
import { sameType, typeText } from "../ops/types.ts";
import type { GraphType } from "../ops/types.ts";
import { attributeText, dictionaryText } from "./attributes.ts";
import { noRegions, operandList } from "./form.ts";
import type { FormRule, OpReader, OpWriter } from "./form.ts";
import type { OpParts } from "./parts.ts";
import { functionTypeText, typesText } from "./types.ts";

/** An attribute after its label, without its type: `[1, 2]`, `0`, `true`, `THREE_FRY`, `"ij,jk->ik"`. */
export function readBare(reader: OpReader): Attribute {
  return reader.scanner.nested(() => readNestedBare(reader));
}

function readNestedBare(reader: OpReader): Attribute {
  const { scanner } = reader;
  if (scanner.seesNumber()) {
    const text = scanner.number();
    if (/^-?\d+$/.test(text)) return integerAttribute(Number(text));
    return Object.freeze({ kind: "float", text, type: "f64" });
  }
  if (scanner.seesString()) return stringAttribute(scanner.string());
  if (scanner.accept("true")) return flagAttribute(true);
  if (scanner.accept("false")) return flagAttribute(false);
  if (!scanner.sees("[")) return stringAttribute(scanner.word());
  const items = scanner.list("[", "]", () => readBare(reader));
  if (items.every((item) => item.kind === "flag") && items.length > 0)
    return arrayAttribute(
      "i1",
      items.map(({ value }) => String(value)),
    );
  if (items.every((item) => item.kind === "integer"))
    return arrayAttribute(
      "i64",
      items.map(({ value }) => String(value)),
    );
  return listAttribute(items);
}

/** The text that `readBare` reads back. */
export function bareText(attribute: Attribute): string {
  if (attribute.kind === "integer") return String(attribute.value);
  if (attribute.kind === "float") return attribute.text;
  if (attribute.kind === "array") return `[${attribute.items.join(", ")}]`;
  if (attribute.kind === "list") return `[${attribute.items.map(bareText).join(", ")}]`;
  if (attribute.kind === "dialect") return attribute.body?.split(" ")[1] ?? "";
  return attributeText(attribute);
}

function labelsOf(name: string): { readonly [label: string]: string } {
  return (isGraphOpKind(name) ? graphOpTable[name].labels : undefined) ?? {};
}

interface Head {
  readonly operands: readonly GraphValue[];
  readonly attributes: Map<string, Attribute>;
}

/** Operands and labelled attributes, then the dictionary. */
function readHead(reader: OpReader, name: string): Head {
  const { scanner } = reader;
  const labels = labelsOf(name);
  const attributes = new Map<string, Attribute>();
  const operands: GraphValue[] = [];
  if (scanner.sees("(")) operands.push(...scanner.list("(", ")", () => reader.operand()));
  else
    do {
      if (scanner.seesValue()) {
        operands.push(reader.operand());
        continue;
      }
      if (!scanner.seesWord()) break;
      const attribute = scanner.wordOf(labels);
      scanner.expect("=");
      attributes.set(attribute, readBare(reader));
    } while (scanner.accept(","));
  for (const [key, value] of reader.optionalDictionary()) attributes.set(key, value);
  return { operands, attributes };
}

/** The labelled attributes of an op as text, and those that are left for the dictionary. */
function writeLabels(
  op: AnyGraphOp,
  attributes: AttributeMap,
): { readonly labelled: readonly string[]; readonly rest: AttributeMap } {
  const labels = Object.entries(labelsOf(op.kind));
  const labelled = labels.flatMap(([label, name]) => {
    const attribute = attributes.get(name);
    return attribute === undefined ? [] : [`${label} = ${bareText(attribute)}`];
  });
  const taken = labels.map(([, name]) => name);
  return { labelled, rest: new Map([...attributes].filter(([name]) => !taken.includes(name))) };
}

/** A space and the dictionary, where there is something in it. */
export function trailingDictionary(attributes: AttributeMap): string {
  return attributes.size === 0 ? "" : ` ${dictionaryText(attributes)}`;
}

function writeHead(op: AnyGraphOp, { operands, attributes }: OpParts, writer: OpWriter): string {
  const { labelled, rest } = writeLabels(op, attributes);
  const head = [...operands.map((value) => writer.value(value)), ...labelled].join(", ");
  return `${head === "" ? "" : ` ${head}`}${trailingDictionary(rest)}`;
}

export function typesOf(operands: readonly GraphValue[]): readonly GraphType[] {
  return operands.map(({ type }) => type);
}

type TypesReader = (reader: OpReader, operands: readonly GraphValue[]) => readonly GraphType[];

/** Types after the colon: a function type, types and an arrow, or what `alone` makes of a bare list. */
function readTypes(
  reader: OpReader,
  operands: readonly GraphValue[],
  alone: (types: readonly GraphType[]) => readonly GraphType[],
): readonly GraphType[] {
  const { scanner } = reader;
  scanner.expect(":");
  if (scanner.sees("(")) return reader.functionType(operands);
  const types = scanner.commaSeparated(() => reader.type());
  if (!scanner.accept("->")) return alone(types);
  reader.checkTypes(operands, types);
  return reader.resultTypes();
}

function labelled(read: TypesReader, write: (parts: OpParts) => string | undefined): FormRule {
  return {
    read(reader, name) {
      const { operands, attributes } = readHead(reader, name);
      return { operands, attributes, regions: noRegions, resultTypes: read(reader, operands) };
    },
    write(op, parts, writer) {
      const types = write(parts);
      return types === undefined ? undefined : `${writeHead(op, parts, writer)} : ${types}`;
    },
  };
}

function functionText({ operands, resultTypes }: OpParts): string {
  return functionTypeText(typesOf(operands), resultTypes);
}

/** One type for all, where they are equal. */
function sharedType({ operands, resultTypes }: OpParts): string | undefined {
  const [first, ...rest] = [...resultTypes, ...typesOf(operands)];
  return first !== undefined && rest.every((type) => sameType(type, first))
    ? typeText(first)
    : undefined;
}

export const shortForm = labelled(
  (reader, operands) => readTypes(reader, operands, (types) => types.slice(0, 1)),
  (parts) => sharedType(parts) ?? functionText(parts),
);

export const functionForm = labelled(
  (reader, operands) => readTypes(reader, operands, (types) => types.slice(0, 1)),
  functionText,
);

export const arrowForm = labelled(
  (reader, operands) => readTypes(reader, operands, (types) => types.slice(0, 1)),
  ({ operands, resultTypes }) => {
    const [result] = resultTypes;
    if (result === undefined || resultTypes.length !== 1) return undefined;
    return `${typesText(typesOf(operands))} -> ${typeText(result)}`;
  },
);

export const resultForm = labelled(
  (reader, operands) => readTypes(reader, operands, (types) => types),
  ({ resultTypes }) => (resultTypes.length === 1 ? typesText(resultTypes) : undefined),
);

export const expectForm = labelled(
  (reader, operands) => readTypes(reader, operands, () => []),
  (parts) => sharedType(parts) ?? typesText(typesOf(parts.operands)),
);

export const expectTypesForm = labelled(
  (reader, operands) => readTypes(reader, operands, () => []),
  ({ operands }) => typesText(typesOf(operands)),
);

export const operandsForm: FormRule = {
  read(reader, name) {
    const { operands, attributes } = readHead(reader, name);
    const { scanner } = reader;
    if (operands.length === 0 && !scanner.sees(":"))
      return { operands, attributes, regions: noRegions, resultTypes: [] };
    const resultTypes = readTypes(reader, operands, (types) => {
      reader.checkTypes(operands, types);
      return types;
    });
    return { operands, attributes, regions: noRegions, resultTypes };
  },
  write(op, parts, writer) {
    const types = typesText(typesOf(parts.operands));
    if (parts.operands.length === 0 || typesText(parts.resultTypes) !== types) return undefined;
    return `${writeHead(op, parts, writer)} : ${types}`;
  },
};

export const compareForm: FormRule = {
  read(reader) {
    const { scanner } = reader;
    const direction = stringAttribute(scanner.word("a direction such as LT"));
    scanner.expect(",");
    const left = reader.operand();
    scanner.expect(",");
    const operands = [left, reader.operand()];
    const attributes = new Map<string, Attribute>([["comparison_direction", direction]]);
    if (scanner.accept(",")) attributes.set("compare_type", stringAttribute(scanner.word()));
    for (const [key, value] of reader.optionalDictionary()) attributes.set(key, value);
    scanner.expect(":");
    return { operands, attributes, regions: noRegions, resultTypes: reader.functionType(operands) };
  },
  write(op, parts, writer) {
    if (op.kind !== "stablehlo.compare") return undefined;
    const { comparison_direction: direction, compare_type: type } = op.attributes;
    const kind = type === undefined ? "" : `, ${type}`;
    const dictionary = trailingDictionary(op.extra);
    return ` ${direction}, ${operandList(parts.operands, writer)}${kind}${dictionary} : ${functionText(parts)}`;
  },
};

/** `stablehlo.select %p, %x, %y : P, T`. */
export const selectForm: FormRule = {
  read(reader, name) {
    const { operands, attributes } = readHead(reader, name);
    const resultTypes = readTypes(reader, operands, (types) => types.slice(-1));
    return { operands, attributes, regions: noRegions, resultTypes };
  },
  write(op, parts, writer) {
    const [pred, onTrue, onFalse] = typesOf(parts.operands);
    const [result] = parts.resultTypes;
    if (pred === undefined || onTrue === undefined || onFalse === undefined) return undefined;
    const same = result !== undefined && sameType(onTrue, onFalse) && sameType(onTrue, result);
    const types = same ? typesText([pred, onTrue]) : functionText(parts);
    return `${writeHead(op, parts, writer)} : ${types}`;
  },
};
