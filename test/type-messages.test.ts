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
];

test("mistakes are named by TypeScript where they are", async () => {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  try {
    const imports = 'import { constant, f32, i32, loop, zeros } from "tilewright";\n';
    mistakes.forEach(({ code }, index) => {
      writeFileSync(
        join(folder, `mistake-${index}.ts`),
        `${imports}${code}\nexport { constant, i32 };\n`,
      );
    });
    const config = {
      extends: "../../tsconfig.json",
      compilerOptions: { noUnusedLocals: false, noUnusedParameters: false },
      include: ["*.ts"],
    };
    const found = (await typeErrors(folder, config)).join("\n");
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
