/**
 * The base of every traced object. JavaScript must not see through one: an operator, a template
 * string or an array index asks for a primitive and is refused with the line where it happened.
 *
 *   tile + 1        Symbol.toPrimitive("default")   TW1001
 *   i < 3           Symbol.toPrimitive("number")    TW1001
 *   `${tile}`       Symbol.toPrimitive("string")    TW1001
 *   list[i]         Symbol.toPrimitive("string")    TW1001
 */
import type { Value } from "../ir/node.ts";
import { typeText } from "../ir/types.ts";
import { madeBy, refuseForeign, thisCopy } from "../support/duplicate-library.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import type { Location } from "../support/location.ts";
import { activeTrace, otherKernelText } from "./trace.ts";
import type { Origin } from "./trace.ts";

/** Where a traced object keeps its IR value; a symbol, to stay out of the user's sight. */
export const origin = Symbol("origin");

const inspect = Symbol.for("nodejs.util.inspect.custom");

const hints: { readonly [hint: string]: string } = {
  default: "an operator such as + or ==",
  number: "an arithmetic operator or a comparison such as <",
  string: "a template string or an index in []",
};

export abstract class Traced {
  /** @internal */
  readonly [origin]: Origin;

  /** @internal */
  constructor(made: Origin) {
    this[origin] = made;
  }

  /** @internal */
  get [madeBy](): object {
    return thisCopy;
  }

  /** Refuses: the number exists only when the kernel runs. */
  [Symbol.toPrimitive](hint: string): never {
    throw new TilewrightError({
      code: "TW1001",
      message: `${describe(this)} was used as a JavaScript value, by ${hints[hint] ?? "a conversion"}`,
      expected: "a function or method of the language, which records it",
      found: `${hints[hint] ?? "a conversion"} in JavaScript, which needs the number now`,
      notes: [{ message: "the value is made here", location: this[origin].location }],
    });
  }

  /** Refuses, like every other conversion. */
  toJSON(): never {
    throw new TilewrightError({
      code: "TW1001",
      message: `${describe(this)} was used as a JavaScript value, by JSON.stringify`,
      expected: "a function or method of the language, which records it",
      found: "JSON.stringify, which needs the number now",
      notes: [{ message: "the value is made here", location: this[origin].location }],
    });
  }

  /** What `console.log` shows. */
  [inspect](): string {
    return describe(this);
  }
}

/** A traced object in words: `Tile f32[4]` is said as its IR type. */
export function describe(item: unknown): string {
  if (item instanceof Traced) return typeText(item[origin].value.type);
  if (typeof item === "string") return `the text ${JSON.stringify(item)}`;
  if (typeof item === "bigint") return `${item}n`;
  if (typeof item === "function") return "a function";
  if (Array.isArray(item)) return item.length === 0 ? "an empty list" : "a list";
  if (typeof item === "object" && item !== null) return "an object";
  return String(item);
}

/** The IR value of an object that is used here and now; refuses one that is out of reach. */
export function useValue(item: Traced, location: Location): Value {
  const { value, scope, location: made } = item[origin];
  const trace = activeTrace(describe(item), location);
  if (scope.trace !== trace) {
    throw new TilewrightError({
      code: "TW1003",
      message: otherKernelText(describe(item), scope.trace, trace),
      location,
      expected: `a value of kernel ${trace.kernelName}`,
      found: `one of kernel ${scope.trace.kernelName}`,
      notes: [{ message: "the value is made here", location: made }],
    });
  }
  if (!scope.open) {
    throw new TilewrightError({
      code: "TW1004",
      message: `${describe(item)} was used outside ${scope.label}, in which it was made`,
      location,
      expected: `a use within ${scope.label}, or a value that it gives`,
      found: "a use after its end",
      notes: [{ message: "the value is made here", location: made }],
    });
  }
  trace.noteUse(value);
  return value;
}

/** Refuses an argument of the wrong kind. */
export function wrongKind(
  role: string,
  expected: string,
  item: unknown,
  location: Location,
  remedy?: string,
): never {
  refuseForeign(role, item, location);
  throw new TilewrightError({
    code: "TW1008",
    message: `${role} must be ${expected}`,
    location,
    expected,
    found: describe(item),
    remedy: remedy ?? `give ${expected}`,
  });
}

/** A frozen copy of a list of numbers that the user gave: a shape, axes, starts. */
export function numberList(role: string, list: unknown, location: Location): readonly number[] {
  if (!Array.isArray(list)) return wrongKind(role, "a list of numbers", list, location);
  const items: readonly unknown[] = list;
  const numbers = items.filter((item) => typeof item === "number");
  if (numbers.length === items.length) return Object.freeze(numbers);
  const at = items.findIndex((item) => typeof item !== "number");
  const remedy =
    items[at] instanceof Traced
      ? "write a number; for a window that moves, load it from memory: x.at(slice(start, size)).load()"
      : undefined;
  return wrongKind(`element ${at} of ${role}`, "a number", items[at], location, remedy);
}

/** Runs a function that the user gave; it may neither be asynchronous nor a generator. */
export function callBody<A extends readonly unknown[], T>(
  label: string,
  location: Location,
  body: (...parameters: A) => T,
  ...parameters: A
): T {
  if (typeof body !== "function") wrongKind(label, "a function", body, location);
  const result = body(...parameters);
  if (typeof result === "object" && result !== null) {
    const asynchronous = "then" in result && typeof result.then === "function";
    const generator = "next" in result && typeof result.next === "function";
    if (asynchronous || generator) {
      // What the function does later fails by itself; nobody would be waiting for the report.
      if (asynchronous) Promise.resolve(result).catch(() => undefined);
      throw new TilewrightError({
        code: "TW1005",
        message: `${label} is ${asynchronous ? "an asynchronous function" : "a generator"}`,
        location,
        expected: "a function that has finished when it returns",
        found: asynchronous ? "a function that returned a promise" : "a function with yield",
      });
    }
  }
  return result;
}
