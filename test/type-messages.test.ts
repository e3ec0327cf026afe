/** What TypeScript itself says of the commonest mistakes in bodies: its message stands at the mistake and names it. */
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { repositoryRoot } from "./source-files.ts";
import { typeErrors } from "./type-check.ts";

const folder = join(repositoryRoot, "test/.type-messages");

const mistakes = [
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
    says: /carry/,
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
const right = [
  "when(condition, () => undefined, () => { zeros(f32, [8]); });",
  "when(condition, () => { zeros(f32, [8]); }, () => undefined);",
  "const either: { a: Tile<'f32'> } = when(condition, () => ({ a: zeros(f32, [8]) }), () => ({ a: zeros(f32, [8]) }));",
];

test("mistakes are named by TypeScript where they are", async () => {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  try {
    const imports =
      'import { constant, f32, i32, loop, when, zeros } from "tilewright"; import type { Scalar, Tile } from "tilewright"; ' +
      'declare const condition: Scalar<"bool">; export type { Tile }; export { constant, f32, i32, loop, when, zeros, condition };\n';
    const write = (name: string, code: string): void =>
      writeFileSync(join(folder, name), `${imports}${code}\n`);
    mistakes.forEach(({ code }, index) => write(`mistake-${index}.ts`, code));
    write("right.ts", right.join("\n"));
    const config = {
      extends: "../../tsconfig.json",
      compilerOptions: { noUnusedLocals: false, noUnusedParameters: false },
      include: ["*.ts"],
    };
    const found = (await typeErrors(folder, config)).join("\n");
    expect(found).not.toContain("right.ts");
    mistakes.forEach(({ name, says }, index) => {
      const own = found
        .split(/(?=mistake-\d+\.ts)/)
        .filter((part) => part.startsWith(`mistake-${index}.ts`))
        .join("");
      expect(own, name).toMatch(says);
      expect(own, name).not.toContain("'carry' does not exist");
      // The mistake is on the second line, below the imports.
      expect(own, name).toMatch(/^mistake-\d+\.ts:2:/);
    });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
