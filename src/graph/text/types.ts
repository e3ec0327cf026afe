/** Types in program text. What has no known shape and element is carried as its text. */
import { isElementType } from "../ops/elements.ts";
import { futureType, opaqueType, tensorType, tokenType, tupleType } from "../ops/types.ts";
import type { GraphType, TensorType } from "../ops/types.ts";
import { typeText } from "../ops/types.ts";
import type { Scanner } from "./scanner.ts";

const staticTensor = /tensor<((?:\d+x)*)([a-z]\w*|complex<f32>|complex<f64>)>/y;
/** Tensor types by their text: programs repeat a few of them often. */
const known = new Map<string, TensorType>();

function parseTensor(scanner: Scanner): GraphType {
  const text = scanner.match(staticTensor);
  if (text === undefined) {
    scanner.expect("tensor");
    return opaqueType(`tensor<${scanner.balanced("<")}>`);
  }
  const found = known.get(text);
  if (found !== undefined) return found;
  const inner = text.slice("tensor<".length, -1);
  const extents = /^(?:\d+x)*/.exec(inner)?.[0] ?? "";
  const element = inner.slice(extents.length);
  if (!isElementType(element)) return opaqueType(text);
  const shape = extents === "" ? [] : extents.slice(0, -1).split("x").map(Number);
  const type = tensorType(element, shape);
  known.set(text, type);
  return type;
}

/** A type; `aliases` looks up the names that the text gives to types. */
export function parseType(
  scanner: Scanner,
  aliases: (name: string) => GraphType | undefined,
): GraphType {
  const recurse = (): GraphType => parseType(scanner, aliases);
  if (scanner.sees("tensor")) return parseTensor(scanner);
  if (scanner.accept("tuple")) return tupleType(scanner.list("<", ">", recurse));
  if (scanner.sees("!")) return parseDialectType(scanner, aliases);
  if (scanner.sees("(")) {
    const inputs = scanner.list("(", ")", recurse);
    scanner.expect("->");
    return opaqueType(functionTypeText(inputs, parseResultTypes(scanner, aliases)));
  }
  const word = scanner.word("a type");
  return opaqueType(scanner.sees("<") ? `${word}<${scanner.balanced("<")}>` : word);
}

function parseDialectType(
  scanner: Scanner,
  aliases: (name: string) => GraphType | undefined,
): GraphType {
  const name = scanner.match(/![\w$.]+/y) ?? scanner.unexpected("a type");
  if (name === "!stablehlo.token" || name === "!mhlo.token") return tokenType;
  if (name === "!stablehlo.future")
    return futureType(scanner.list("<", ">", () => parseType(scanner, aliases)));
  const alias = aliases(name.slice(1));
  if (alias !== undefined) return alias;
  return opaqueType(scanner.sees("<") ? `${name}<${scanner.balanced("<")}>` : name);
}

/** `T`, or `(T, U)`. */
export function parseResultTypes(
  scanner: Scanner,
  aliases: (name: string) => GraphType | undefined,
): readonly GraphType[] {
  const item = (): GraphType => parseType(scanner, aliases);
  return scanner.sees("(") ? scanner.list("(", ")", item) : [item()];
}

export function typesText(types: readonly GraphType[]): string {
  return types.map(typeText).join(", ");
}

/** `(T, U) -> T`; one result has no parentheses. */
export function functionTypeText(
  inputs: readonly GraphType[],
  results: readonly GraphType[],
): string {
  return `(${typesText(inputs)}) -> ${resultTypesText(results)}`;
}

export function resultTypesText(results: readonly GraphType[]): string {
  const [only] = results;
  if (results.length !== 1 || only === undefined) return `(${typesText(results)})`;
  const text = typeText(only);
  return text.startsWith("(") ? `(${text})` : text;
}
