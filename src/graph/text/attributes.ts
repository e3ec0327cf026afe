/** Attributes in program text: reading and printing each form. */
import {
  arrayAttribute,
  denseAttribute,
  dialectAttribute,
  flagAttribute,
  integerAttribute,
  listAttribute,
  stringAttribute,
  unitAttribute,
} from "../ops/attribute.ts";
import type { Attribute, AttributeMap } from "../ops/attribute.ts";
import type { Literal } from "../ops/literal.ts";
import { isTensor, typeText } from "../ops/types.ts";
import type { GraphType, TensorType } from "../ops/types.ts";
import { DenseMismatch, denseText, parseDense } from "./dense.ts";
import { quoted, symbolText } from "./scanner.ts";
import type { Scanner } from "./scanner.ts";
import { parseType } from "./types.ts";

/** The names that a text gives to attributes (`#name = …`), types (`!name = …`) and data. */
export interface Aliases {
  attribute(name: string): Attribute | undefined;
  type(name: string): GraphType | undefined;
  resource(name: string, type: TensorType): Literal | undefined;
  /** A body that names a mesh of the module, with that mesh in its place. */
  withMesh(body: string): string;
}

export function parseAttribute(scanner: Scanner, aliases: Aliases): Attribute {
  return scanner.nested(() => parseNestedAttribute(scanner, aliases));
}

function parseNestedAttribute(scanner: Scanner, aliases: Aliases): Attribute {
  const item = (): Attribute => parseAttribute(scanner, aliases);
  const type = (): GraphType => parseType(scanner, (name) => aliases.type(name));
  if (scanner.accept("true")) return flagAttribute(true);
  if (scanner.accept("false")) return flagAttribute(false);
  if (scanner.accept("unit")) return unitAttribute;
  if (scanner.seesNumber()) return parseNumberAttribute(scanner, type);
  if (scanner.seesString()) {
    const text = stringAttribute(scanner.string());
    if (scanner.accept(":")) type();
    return text;
  }
  if (scanner.sees("[")) return listAttribute(scanner.list("[", "]", item));
  if (scanner.sees("{")) return { kind: "dictionary", entries: parseDictionary(scanner, aliases) };
  if (scanner.sees("@")) return parseSymbol(scanner);
  if (scanner.sees("#")) return parseDialectAttribute(scanner, aliases);
  if (scanner.accept("array")) return parseArray(scanner);
  if (scanner.accept("dense")) return parseDenseAttribute(scanner, type, parseDense);
  const { position } = scanner;
  if (scanner.accept("dense_resource"))
    return parseDenseAttribute(scanner, type, (name, found) => {
      const literal = aliases.resource(name.replace(/^"(.*)"$/, "$1"), found);
      return literal ?? absentResource(scanner, position, name);
    });
  if (scanner.sees("loc") || scanner.sees("affine_map") || scanner.sees("sparse"))
    return parseRaw(scanner);
  return { kind: "type", type: type() };
}

function parseNumberAttribute(scanner: Scanner, type: () => GraphType): Attribute {
  const text = scanner.number();
  const written = scanner.accept(":") ? typeText(type()) : undefined;
  const whole = /^[-+]?(\d+|0x[0-9a-fA-F]+)$/.test(text);
  const isReal = written === undefined ? !whole : /^(b?f|tf)\d/.test(written);
  if (isReal) return Object.freeze({ kind: "float", text, type: written ?? "f64" });
  if (!whole) return scanner.unexpected(`a whole number, of type ${written ?? "i64"}`);
  const negative = text.startsWith("-");
  const magnitude = BigInt(text.replace(/^[-+]/, ""));
  return integerAttribute(negative ? -magnitude : magnitude, written ?? "i64");
}

function parseSymbol(scanner: Scanner): Attribute {
  const path = [scanner.symbol()];
  while (scanner.accept("::")) path.push(scanner.symbol());
  return Object.freeze({ kind: "symbol", path: Object.freeze(path) });
}

function parseArray(scanner: Scanner): Attribute {
  const [element = "", ...rest] = scanner.balanced("<").split(":");
  const items = rest.join(":").trim();
  return arrayAttribute(
    element.trim(),
    items === "" ? [] : items.split(",").map((item) => item.trim()),
  );
}

function absentResource(scanner: Scanner, position: number, name: string): never {
  return scanner.fail("TW9007", `the text has no data that is called ${name}`, {
    position,
    expected: `${name} among the dialect_resources of builtin, at the end of the text`,
    found: name === "__elided__" ? "data that was left out when the program was printed" : "none",
  });
}

/** What stands between `<` and `>`, and a type; `read` makes a constant of both. */
function parseDenseAttribute(
  scanner: Scanner,
  type: () => GraphType,
  read: (body: string, type: TensorType) => Literal,
): Attribute {
  const { position } = scanner;
  const body = scanner.balanced("<");
  scanner.expect(":");
  const found = type();
  if (!isTensor(found)) return { kind: "raw", text: `dense<${body}> : ${typeText(found)}` };
  try {
    return denseAttribute(read(body, found));
  } catch (error) {
    if (!(error instanceof DenseMismatch)) throw error;
    const { expected, found: given } = error;
    return scanner.fail("TW9006", `the constant does not fit ${typeText(found)}`, {
      position,
      expected,
      found: given,
    });
  }
}

function parseRaw(scanner: Scanner): Attribute {
  const word = scanner.word();
  const open = scanner.sees("(") ? "(" : "<";
  const text = `${word}${open}${scanner.balanced(open)}${open === "(" ? ")" : ">"}`;
  if (!scanner.accept(":")) return { kind: "raw", text };
  const type = parseType(scanner, () => undefined);
  return { kind: "raw", text: `${text} : ${typeText(type)}` };
}

function parseDialectAttribute(scanner: Scanner, aliases: Aliases): Attribute {
  const name = (scanner.match(/#[\w$.-]+/y) ?? scanner.unexpected("an attribute")).slice(1);
  if (scanner.sees("<")) {
    const body = scanner.balanced("<");
    const isGroups = name === "stablehlo.replica_group_mesh_axes";
    return dialectAttribute(name, isGroups ? aliases.withMesh(body) : body);
  }
  return aliases.attribute(name) ?? dialectAttribute(name, undefined);
}

/** `{a = 1, b, "c d" = 2}`. */
export function parseDictionary(scanner: Scanner, aliases: Aliases): AttributeMap {
  const entries = scanner.list("{", "}", () => {
    const name = scanner.seesString() ? scanner.string() : scanner.word("an attribute's name");
    const value = scanner.accept("=") ? parseAttribute(scanner, aliases) : unitAttribute;
    return [name, value] as const;
  });
  return new Map(entries);
}

/** The attribute as text; the generic printer and every short form use this. */
export function attributeText(attribute: Attribute): string {
  switch (attribute.kind) {
    case "integer":
      return attribute.type === "i1"
        ? String(attribute.value !== 0n)
        : `${attribute.value} : ${attribute.type}`;
    case "float":
      return `${attribute.text} : ${attribute.type}`;
    case "flag":
      return String(attribute.value);
    case "string":
      return quoted(attribute.value);
    case "symbol":
      return attribute.path.map(symbolText).join("::");
    case "unit":
      return "unit";
    case "list":
      return `[${attribute.items.map(attributeText).join(", ")}]`;
    case "dictionary":
      return dictionaryText(attribute.entries);
    case "array":
      return attribute.items.length === 0
        ? `array<${attribute.element}>`
        : `array<${attribute.element}: ${attribute.items.join(", ")}>`;
    case "dense":
      return `dense<${denseText(attribute.literal)}> : ${typeText(attribute.literal.type)}`;
    case "raw":
      return attribute.text;
    case "type":
      return typeText(attribute.type);
    case "dialect":
      return attribute.body === undefined
        ? `#${attribute.name}`
        : `#${attribute.name}<${attribute.body}>`;
  }
}

/** A dictionary with its braces. */
export function dictionaryText(entries: AttributeMap): string {
  const items = Array.from(entries, ([name, value]) => {
    const key = /^[A-Za-z_][\w$.]*$/.test(name) ? name : quoted(name);
    return value.kind === "unit" ? key : `${key} = ${attributeText(value)}`;
  });
  return `{${items.join(", ")}}`;
}
