/** The commonest mistakes in bodies, and what TypeScript itself says of each: its message stands at the mistake and names it. */

export const mistakes = [
  {
    name: "a body that returns another kind",
    code: "loop({ to: 4, carry: zeros(f32, [8]) }, (k, total) => k);",
    says: /Type 'Scalar<"i32">' is (?:not assignable to|missing the following properties from) type 'Tile<"f32"/,
  },
  {
    name: "a body that returns nothing",
    code: "loop({ to: 4, carry: zeros(f32, [8]) }, (k, total) => { total.add(1); });",
    says: /Type 'void' is not assignable to type 'Tile<"f32"/,
  },
  {
    name: "a carry that the options do not have",
    code: "loop({ to: 4 }, (k, total) => total.add(1));",
    says: /does not exist on type 'LoopControl'/,
  },
  {
    name: "a structure without one of its fields",
    code: "loop({ to: 4, carry: { sum: zeros(f32, [8]), count: constant(i32, 0) } }, (k, c) => ({ sum: c.sum }));",
    says: /Property 'count' is missing in type/,
  },
  {
    name: "a second branch of another kind",
    code: "when(condition, () => zeros(f32, [8]), () => constant(f32, 1));",
    says: /Type 'Scalar<"f32">' is (?:not assignable to|missing the following properties from) type 'Tile<"f32"/,
  },
  {
    name: "a second branch of another format",
    code: "when(condition, () => zeros(f32, [8]), () => zeros(i32, [8]));",
    says: /Type '"i32"' is not assignable to type '"f32"'/,
  },
  {
    name: "a second branch that returns nothing",
    code: "when(condition, () => zeros(f32, [8]), () => { zeros(f32, [8]); });",
    says: /Type 'void' is not assignable to type 'Tile<"f32"/,
  },
  {
    name: "a second branch without one of the fields",
    code: "when(condition, () => ({ a: zeros(f32, [8]), b: zeros(f32, [8]) }), () => ({ a: zeros(f32, [8]) }));",
    says: /Property 'b' is missing in type/,
  },
  {
    name: "one branch that returns something",
    code: "when(condition, () => zeros(f32, [8]));",
    says: /Type 'Tile<"f32">' is not assignable to type 'void/,
  },
  {
    name: "a condition that is no condition",
    code: "when(constant(i32, 1), () => undefined, () => undefined);",
    says: /Type '"i32"' is not assignable to type '"bool"'/,
  },
];

/** Of branches that give nothing: these are no mistakes. */
export const right = [
  "when(condition, () => undefined, () => { zeros(f32, [8]); });",
  "when(condition, () => { zeros(f32, [8]); }, () => undefined);",
  "const either: { a: Tile<'f32'> } = when(condition, () => ({ a: zeros(f32, [8]) }), () => ({ a: zeros(f32, [8]) }));",
];

const imports =
  'import { constant, f32, i32, loop, when, zeros } from "tilewright"; import type { Scalar, Tile } from "tilewright"; ' +
  'declare const condition: Scalar<"bool">; export type { Tile }; export { constant, f32, i32, loop, when, zeros, condition };\n';

/** A module of this code, which is on its second line, below the imports. */
export function moduleOf(code: string): string {
  return `${imports}${code}\n`;
}
