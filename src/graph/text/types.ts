/** Types in program text. What has no known shape and element is carried as its text. */
import { nearestName } from "../../support/options.ts";
import { elementTypes, isElementType } from "../ops/elements.ts";
import { futureType, opaqueType, tensorType, tokenType, tupleType } from "../ops/types.ts";
import type { GraphType, TensorType } from "../ops/types.ts";
import { typeText } from "../ops/types.ts";
import { deepest } from "./scanner.ts";
import type { Scanner } from "./scanner.ts";

const staticTensor = /tensor<((?:\d+x)*)([a-z]\w*|complex<f32>|complex<f64>)>/y;
/** Tensor types by their text: programs repeat a few of them often. */
const known = new Map<string, TensorType>();

/** A tensor type that has spaces, or more within its brackets than extents and a known element. */
function spacedTensor(scanner: Scanner): string {
  scanner.expect("tensor");
  return `tensor<${scanner.balanced("<")}>`;
}

function parseTensor(scanner: Scanner): GraphType {
  const { position } = scanner;
  const text = scanner.match(staticTensor) ?? spacedTensor(scanner);
  const found = known.get(text);
  if (found !== undefined) return found;
  const inner = text.slice("tensor<".length, -1);
  const extents = /^(?:\d+x)*/.exec(inner)?.[0] ?? "";
  const element = inner.slice(extents.length);
  if (!isElementType(element)) {
    requireTensorBody(scanner, position, inner);
    return opaqueType(text);
  }
  const shape = extents === "" ? [] : extents.slice(0, -1).split("x").map(Number);
  requireCountable(scanner, position, text, shape);
  const type = tensorType(element, shape);
  known.set(text, type);
  return type;
}

/** Elements of MLIR that are none of StableHLO's, and words that types of other dialects begin with: both are kept as text. */
const otherElement = /^(?:s?i\d+|ui\d+|f80|f128|tf32|none)$/;
const containers = ["tensor", "tuple", "memref", "vector", "complex"];

function refuseName(
  scanner: Scanner,
  position: number,
  name: string,
  known: readonly string[],
): never {
  const meant = nearestName(name, known);
  return scanner.fail(
    "TW9012",
    `there is no type ${name}${meant ? `; did you mean ${meant}?` : ""}`,
    {
      position,
      expected: meant ?? known.join(", "),
      found: name,
      remedy: meant && `write ${meant}`,
    },
  );
}

/** Refuses what stands between `tensor<` and `>` where it has elements that nobody knows, or no shape. */
function requireTensorBody(scanner: Scanner, position: number, body: string): void {
  const [, element] =
    /^(?:\*x|(?:(?:\d+|\?)x)*)(\w+|\w+<.*>|![\w.$-]+(?:<.*>)?)\s*(?:,.*)?$/s.exec(body) ?? [];
  if (element === undefined)
    scanner.fail("TW9001", `\`tensor<${body}>\` is no type`, {
      position,
      expected: "extents and an element type, such as tensor<2x?xf32>",
      found: `tensor<${body}>`,
    });
  const name = element.trim();
  if (!/^\w+$/.test(name) || isElementType(name) || otherElement.test(name)) return;
  refuseName(scanner, position, name, elementTypes);
}

/** Fails where numbers cannot count the elements, or the axes are more than anything can be nested. */
function requireCountable(
  scanner: Scanner,
  position: number,
  text: string,
  shape: readonly number[],
): void {
  if (shape.length > deepest) scanner.tooDeep(`${deepest} axes`, `${shape.length}`);
  const count = shape.reduce((product, extent) => product * Math.max(extent, 1), 1);
  if (count > Number.MAX_SAFE_INTEGER)
    scanner.fail("TW9011", "the type has more elements than can be counted", {
      position,
      expected: "at most 2^53 - 1 elements",
      found: text,
    });
}

/** A type; `aliases` looks up the names that the text gives to types. */
export function parseType(
  scanner: Scanner,
  aliases: (name: string) => GraphType | undefined,
): GraphType {
  return scanner.nested(() => parseNestedType(scanner, aliases));
}

function parseNestedType(
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
  const { position } = scanner;
  const word = scanner.word("a type");
  if (!isElementType(word) && !otherElement.test(word) && !containers.includes(word))
    refuseName(scanner, position, word, [...elementTypes, ...containers]);
  return opaqueType(scanner.sees("<") ? `${word}<${scanner.balanced("<")}>` : word);
}

function parseDialectType(
  scanner: Scanner,
  aliases: (name: string) => GraphType | undefined,
): GraphType {
  const { position } = scanner;
  const name = scanner.match(/![\w$.]+/y) ?? scanner.unexpected("a type");
  if (name === "!stablehlo.token" || name === "!mhlo.token") return tokenType;
  if (name === "!stablehlo.future")
    return futureType(scanner.list("<", ">", () => parseType(scanner, aliases)));
  const alias = aliases(name.slice(1));
  if (alias !== undefined) return alias;
  if (name.startsWith("!stablehlo."))
    refuseName(scanner, position, name, ["!stablehlo.token", "!stablehlo.future"]);
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
