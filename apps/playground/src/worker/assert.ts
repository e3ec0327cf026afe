/** What the programs of the docs take from Node's `node:assert/strict`: comparisons that throw. */

class AssertionError extends Error {
  override readonly name = "AssertionError";
}

function text(value: unknown): string {
  const plain = (_: string, each: unknown): unknown =>
    typeof each === "bigint" ? `${each}n` : ArrayBuffer.isView(each) ? itemsOf(each) : each;
  return typeof value === "bigint" ? `${value}n` : (JSON.stringify(value, plain) ?? "undefined");
}

function itemsOf(value: ArrayBufferView): readonly unknown[] {
  return value instanceof DataView ? [] : [...(value as unknown as Iterable<unknown>)];
}

/** The fields of an object, or what it holds, by name. */
function partsOf(value: object): ReadonlyMap<unknown, unknown> {
  if (value instanceof Map) return value;
  if (value instanceof Set) return new Map([...value].map((each) => [each, each]));
  if (ArrayBuffer.isView(value)) return new Map(itemsOf(value).entries());
  return new Map(Object.entries(value));
}

function isSame(left: unknown, right: unknown): boolean {
  if (Object.is(left, right)) return true;
  if (typeof left !== "object" || typeof right !== "object") return false;
  if (left === null || right === null) return false;
  if (Object.getPrototypeOf(left) !== Object.getPrototypeOf(right)) return false;
  const [mine, theirs] = [partsOf(left), partsOf(right)];
  return (
    mine.size === theirs.size &&
    [...mine].every(([name, value]) => theirs.has(name) && isSame(value, theirs.get(name)))
  );
}

function hold(condition: boolean, message: string): asserts condition {
  if (!condition) throw new AssertionError(message);
}

export function ok(value: unknown, message = `${text(value)} does not hold`): asserts value {
  hold(Boolean(value), message);
}

export function equal(actual: unknown, expected: unknown): void {
  hold(Object.is(actual, expected), `${text(actual)} is not ${text(expected)}`);
}

export function deepEqual(actual: unknown, expected: unknown): void {
  hold(isSame(actual, expected), `${text(actual)} is not ${text(expected)}`);
}

export function match(actual: string, pattern: RegExp): void {
  hold(pattern.test(actual), `${text(actual)} does not match ${String(pattern)}`);
}
