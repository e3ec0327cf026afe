/** Whether tools that read manifests find fault with this one: publint, and are-the-types-wrong. */
import { join } from "node:path";
import process from "node:process";
import { Wrong } from "./check.ts";
import type { Check } from "./check.ts";
import { run, tail } from "./processes.ts";

export const manifestChecks: readonly Check[] = [
  {
    name: "publint",
    about: "the manifest, by publint: not even a suggestion",
    run: async ({ tool, archive, project }) => {
      const program = join(await tool("publint"), "src/cli.js");
      const ended = await run(process.execPath, [program, archive, "--strict"], project);
      if (ended.status !== 0 || !ended.stdout.includes("All good!")) throw new Wrong(tail(ended));
      return "nothing to say";
    },
  },
  {
    name: "attw",
    about: "types of every entry under every resolution, by are-the-types-wrong",
    run: async ({ tool, archive, project }) => {
      const program = join(await tool("@arethetypeswrong/cli"), "dist/index.js");
      // The package is of modules alone: a TypeScript file that is CommonJS imports it by import(), which Node's own require() can do without.
      const allowed = ["--ignore-rules", "cjs-resolves-to-esm"];
      const given = [program, archive, ...allowed, "--format", "ascii", "--no-emoji"];
      const ended = await run(process.execPath, given, project);
      if (ended.status !== 0) throw new Wrong(tail(ended, 40));
      return "no errors; from CommonJS by import() alone";
    },
  },
];
