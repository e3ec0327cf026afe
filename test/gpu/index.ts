/**
 * The device suite: every example and every case of the matrix on a device, against the simulator and
 * float64 references. `npm run test:gpu` runs it on the GPU; arguments pick another device or some cases.
 *
 *   npm run test:gpu                         everything
 *   npm run test:gpu -- --only "cast f32"    cases whose name contains the text; "example" for the examples, "pipeline" for
 *                                            pipelines, "runtime" for what devices do besides, "products" for those of
 *                                            the library, "attention" for its attention
 *   npm run test:gpu -- --device emulator    the same cases on the emulator
 */
import { open } from "../../src/runtime/open.ts";
import type { DeviceName } from "../../src/runtime/open-options.ts";
import { runCase } from "../matrix/case.ts";
import { matrixCases } from "../matrix/index.ts";
import { runAttention } from "./attention.ts";
import { runExamples } from "./examples.ts";
import { runPipelines } from "./pipelines.ts";
import { runProducts } from "./products.ts";
import { runRuntimeChecks } from "./runtime.ts";

function option(name: string, otherwise: string): string {
  const position = process.argv.indexOf(`--${name}`);
  return position < 0 ? otherwise : (process.argv[position + 1] ?? otherwise);
}

const only = option("only", "");
const every = Number(option("every", "1"));
// Cases are made to be odd; what slows them is nobody's concern here.
const device = await open(option("device", "gpu") as DeviceName, { onNotes: () => undefined });
const write = (text: string): boolean => process.stdout.write(text);
let failures = 0;

const isWanted = (name: string): boolean => name.includes(only);
for (const { name, problem } of [
  ...(await runExamples(device, isWanted)),
  ...(await runRuntimeChecks(device, isWanted)),
  ...(await runPipelines(device, isWanted)),
  ...(await runProducts(device, isWanted)),
  ...(await runAttention(device, isWanted)),
]) {
  if (problem !== undefined) failures += 1;
  write(problem === undefined ? `ok   ${name}\n` : `FAIL ${name}: ${problem}\n`);
}

const cases = matrixCases().filter(({ name }, index) => name.includes(only) && index % every === 0);
const started = performance.now();
let done = 0;
for (const one of cases) {
  const { name, problem } = await runCase(device, one);
  done += 1;
  if (problem !== undefined) {
    failures += 1;
    write(`FAIL ${name}: ${problem}\n`);
  }
  if (done % 250 === 0)
    write(
      `     ${done} of ${cases.length} cases, ${((performance.now() - started) / 1000).toFixed(0)} s\n`,
    );
}
write(
  `${cases.length} cases on ${device.name}, ${failures} failures, ${((performance.now() - started) / 1000).toFixed(1)} s\n`,
);
device.dispose();
process.exitCode = failures === 0 ? 0 : 1;
