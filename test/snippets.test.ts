/**
 * Every TypeScript block in the README, in docs/ and in comments runs as pasted; that its types hold, `package.test.ts` tells. A block that
 * is not a whole program is fenced as text. A block that uses vitest brings its own tests.
 */
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { describe, expect, test, vi } from "vitest";
import { repositoryRoot } from "./source-files.ts";
import { isProgram, programs, snippets } from "./support/snippets.ts";

const folder = join(repositoryRoot, "test/.snippets");

rmSync(folder, { recursive: true, force: true });
mkdirSync(folder, { recursive: true });
for (const { file, code } of programs) writeFileSync(join(folder, file), code);

describe("snippets of the documentation", () => {
  test("are whole programs", () => {
    const fragments = snippets.filter((one) => !isProgram(one)).map(({ title }) => title);
    expect(fragments, "begin these with their imports, or fence them as text").toEqual([]);
  });

  for (const { title, file, code } of programs) {
    const run = () => import(pathToFileURL(join(folder, file)).href);
    if (/from "vitest"/.test(code)) {
      describe(title, async () => {
        await run();
      });
    } else {
      test(`${title} runs`, async () => {
        const printed = vi.spyOn(console, "log").mockReturnValue(undefined);
        try {
          await run();
        } finally {
          printed.mockRestore();
        }
      });
    }
  }
});
