/**
 * `npm run soak -- --work launches --count 1000000`: does one thing for long and watches memory. It fails where a
 * result is wrong or memory grows.
 *
 *   --work NAME      launches (of one kernel), kernels (all different, on one device), rounds (open, fail, dispose)
 *                    or everything, which it is unless given. Of arrays: reads (without jit), gradients (without jit),
 *                    statics (values that are all different) and patterns (random lives), after which the device's account
 *                    must be empty but for the programs that are kept. Of the emulator with threads: memory (random
 *                    programs of a device against a model of its arrays) and programs (of arrays)
 *   --device NAME    simulator, emulator or gpu; emulator unless given. Those of arrays run on the evaluator, too
 *   --seed N         where memory and programs begin; 0 unless given
 *   --count N        how many; no end unless given
 *   --minutes N      how long at most; no end with a count, and 1 without
 *   --pause N        seconds of rest after each step, for machines that others use too; 0 unless given
 *   --every N        seconds between two looks at memory; 1 unless given
 *   --log FILE       writes the samples as JSON
 *   --plot FILE      draws them as an SVG
 *
 * Both files are written anew at every look, so that a run that is cut off leaves them. The last line is what was done
 * and by how much memory grew, in MiB, as JSON.
 */
import { writeFileSync } from "node:fs";
import process from "node:process";
import { setTimeout as rest } from "node:timers/promises";
import { CudaContext } from "../../src/cuda/context.ts";
import { processDriver } from "../../src/cuda/open.ts";
import { deviceNames } from "../../src/runtime/open-options.ts";
import { namedOption, numberOption, scriptOptions } from "../arguments.ts";
import { growth, measures, MemoryWatch } from "./memory.ts";
import { plotMemory } from "./plot.ts";
import { makeWork, workNames } from "./work.ts";
import type { Done } from "./work.ts";

const settings = scriptOptions(import.meta.url, {
  work: { type: "string", default: "everything" },
  device: { type: "string", default: "emulator" },
  seed: { type: "string", default: "0" },
  count: { type: "string", default: "Infinity" },
  minutes: { type: "string" },
  pause: { type: "string", default: "0" },
  every: { type: "string", default: "1" },
  log: { type: "string" },
  plot: { type: "string" },
});

/** Of the heap, buffers and device; the resident set is the allocator's, and shown alone. */
const mostGrowth = 16 * 2 ** 20;

/** Bytes in use on the GPU, asked through a context that lives as long as the soak. */
async function deviceMemory(): Promise<() => number | undefined> {
  if (settings.device !== "gpu") return () => undefined;
  const context = new CudaContext(await processDriver(), 0);
  return () => {
    context.enter();
    const memory = context.memory();
    return memory === undefined ? undefined : memory.total - memory.free;
  };
}

const anyTime = { from: 0, whole: false };
const workName = namedOption("work", settings.work, workNames);
const deviceName = namedOption("device", settings.device, [...deviceNames, "evaluator"] as const);
const every = numberOption("every", settings.every, anyTime);
const count = numberOption("count", settings.count);
const usualMinutes = Number.isFinite(count) ? "Infinity" : "1";
const seconds = 60 * numberOption("minutes", settings.minutes ?? usualMinutes, anyTime);
const pause = numberOption("pause", settings.pause, anyTime);

const seed = numberOption("seed", settings.seed, { from: 0 });
const work = await makeWork(workName, deviceName, seed);
const watch = new MemoryWatch(await deviceMemory(), every);
const { samples } = watch;
const done: Done = {};
let total = 0;

function keep(): void {
  const what = Object.entries(done).map(([name, number]) => `${number} ${name}`);
  const title = `${what.join(", ")} on the ${settings.device} in ${watch.seconds.toFixed(0)} s`;
  if (settings.log !== undefined) writeFileSync(settings.log, `${JSON.stringify(samples)}\n`);
  if (settings.plot !== undefined) writeFileSync(settings.plot, plotMemory(samples, title));
}

watch.note(total);
while (total < count && watch.seconds < seconds) {
  for (const [name, more] of Object.entries(await work.step()) as [keyof Done, number][]) {
    done[name] = (done[name] ?? 0) + more;
    total += more;
  }
  if (watch.note(total)) keep();
  if (pause > 0) await rest(1000 * pause);
}
await work.end();
watch.note(total, true);
keep();

const grown = measures.flatMap((measure) => {
  const bytes = growth(samples, measure);
  return bytes === undefined ? [] : [{ measure, bytes }];
});
const mebibytes = Object.fromEntries(
  grown.map(({ measure, bytes }) => [measure, Number((bytes / 2 ** 20).toFixed(2))]),
);
console.log(
  JSON.stringify({
    work: settings.work,
    device: settings.device,
    done,
    seconds: Number(watch.seconds.toFixed(1)),
    samples: samples.length,
    grownMebibytes: mebibytes,
  }),
);
if (grown.some(({ measure, bytes }) => measure !== "resident" && bytes > mostGrowth))
  process.exitCode = 1;
