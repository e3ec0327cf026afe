/**
 * What a bound launch of a small kernel takes of the host, in microseconds: the median of rounds of 500.
 *
 *   node dist/cli/main.js run bench/gpu/launch-cost.ts [-- FILE]     FILE is that of docs/benchmarks
 */
import { readFileSync, writeFileSync } from "node:fs";
import { f32, open } from "tilewright";
import { median } from "../measure.ts";
import { copy } from "./kernels.ts";
import { randomArray } from "./random.ts";

const [rounds, launches, count] = [30, 500, 4096];

const device = await open("gpu");
const x = randomArray(device, f32, [count], 1);
const out = device.allocate(f32, [count]);
const bound = device.bind(copy, { x, out });
const samples: number[] = [];
for (let round = 0; round < rounds; round += 1) {
  await device.synchronize();
  const start = performance.now();
  for (let index = 0; index < launches; index += 1) bound.launch();
  samples.push(((performance.now() - start) / launches) * 1000);
}
await device.synchronize();
bound.dispose();
x.dispose();
out.dispose();
device.dispose();
const launchMicroseconds = median(samples);
process.stdout.write(`a bound launch takes ${launchMicroseconds.toFixed(2)} us of the host\n`);
const file = process.argv.slice(2).find((argument) => argument.endsWith(".json"));
if (file !== undefined) {
  const figures = JSON.parse(readFileSync(file, "utf8")) as object;
  writeFileSync(file, `${JSON.stringify({ ...figures, launchMicroseconds }, undefined, 2)}\n`);
}
