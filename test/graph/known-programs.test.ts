/**
 * Random programs whose results are known: ops with unusual attributes and types, at the edges of their numbers, each computed a second
 * time from the specification (`odd/`). The evaluator, the printed program, the passes, a batch and a device have to give the same bits. A few run here;
 * `npm run fuzz:programs` runs many, on every device.
 */
import { differences } from "./odd/judge.ts";
import { knownProgram } from "./odd/harness.ts";
import { testPrograms } from "./seeds.ts";

testPrograms(60, async (device, seed) => {
  const program = knownProgram(seed);
  const found = program && (await differences([device], program, seed));
  return found?.map((what) => `${what}\n${program?.text}`);
});
