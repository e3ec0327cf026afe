/** Data for subjects: what goes into their arrays and scalars, and elements as text that can be compared. */
import { isWide } from "../../src/formats/dtype.ts";
import type { DType, HostValue } from "../../src/formats/dtype.ts";
import { fromNumbers, toNumbers } from "../../src/formats/hostarray.ts";
import type { HostArray } from "../../src/formats/hostarray.ts";
import type { KernelParameter } from "../../src/ir/node.ts";
import type { Random } from "../../src/support/random.ts";
import type { Subject } from "./subjects.ts";

export function dataFor(dtype: DType, count: number, random: Random): HostArray {
  const special = [0, 1, -1, 3, 7, 100];
  const integer = dtype.kind !== "float";
  const draw = (): number => {
    const value = random.below(4) === 0 ? random.pick(special) : random.normal() * 10;
    return integer ? Math.round(value) : value;
  };
  const numbers = Array.from({ length: count }, draw);
  if (dtype.kind === "bool")
    return fromNumbers(
      dtype,
      [count],
      numbers.map((x) => (x > 0 ? 1 : 0)),
    );
  if (dtype.kind === "float") return fromNumbers(dtype, [count], numbers);
  const [least, most] = dtype.kind === "signed" ? [-7, 7] : [0, 15];
  const small = numbers.map((x) => Math.min(most, Math.max(least, x)));
  return fromNumbers(dtype, [count], isWide(dtype) ? small.map((x) => BigInt(x)) : small);
}

export function scalarFor(
  { name, value }: KernelParameter,
  { scalars = {} }: Subject,
  random: Random,
): HostValue {
  if (value.type.kind !== "scalar") throw new Error("no scalar");
  const { dtype } = value.type;
  const drawn = dtype.kind === "float" ? Math.fround(random.normal()) : random.below(5) - 1;
  return scalars[name] ?? drawn;
}

/** Elements as text, -0 and NaN apart from everything else. */
export function elementsText(array: HostArray): string {
  const { data } = array;
  if (data instanceof BigInt64Array || data instanceof BigUint64Array)
    return [...data].map(String).join(" ");
  return [...toNumbers(array)].map((x) => (Object.is(x, -0) ? "-0" : `${x}`)).join(" ");
}

/** The first elements that differ, array by array. */
export function difference(expected: string, found: string): string {
  const lines = found.split("\n");
  return expected
    .split("\n")
    .flatMap((line, at) => {
      const [wanted, given] = [line.split(" "), (lines[at] ?? "").split(" ")];
      const wrong = wanted.flatMap((text, place) => (text === given[place] ? [] : [place]));
      const [first] = wrong;
      if (first === undefined) return [];
      const counts = `${wrong.length} of ${wanted.length - 1}`;
      return [
        `${wanted[0] ?? ""} ${counts} differ, first element ${first - 1}: ${wanted[first]} became ${given[first]}`,
      ];
    })
    .join("\n");
}
