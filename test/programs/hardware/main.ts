/**
 * Runs all programs on the GPU of this machine and compares them with the emulator. Each group runs in a
 * process of its own, since a fault ends the driver's context; a program that faults is left out and the
 * rest of its group is run again.
 *
 *   npm run build
 *   node dist/cli/main.js run test/programs/hardware/main.ts -- --out results.json \
 *     --measurements test/programs/h200.json --machine "H200, driver 580.159, 2026-11-15"
 *
 * Measurements are kept for the tests once nothing differs.
 */
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { compareOutputs } from "../compare-bytes.ts";
import type { Mismatch } from "../compare-bytes.ts";
import { emulateProgram, programModule } from "../emulate.ts";
import { allPrograms } from "../index.ts";
import { measurement } from "../measured.ts";
import type { Measurements } from "../measured.ts";
import type { Program } from "../program.ts";
import { DeviceModule, openDevice, openDriver } from "./device.ts";

interface GroupResult {
  readonly done: string[];
  readonly measured: { [program: string]: string };
  /** What the hardware gave for programs that differ, compressed. */
  readonly outputs: { [program: string]: string };
  readonly mismatches: Mismatch[];
  /** Programs that the assembler or the hardware refused. */
  readonly failures: { readonly program: string; readonly message: string }[];
  /** The program under way; undefined once all are done. */
  running?: string | undefined;
}

function option(name: string): string | undefined {
  const position = process.argv.indexOf(`--${name}`);
  return position < 0 ? undefined : process.argv[position + 1];
}

function emptyResult(): GroupResult {
  return { done: [], measured: {}, outputs: {}, mismatches: [], failures: [] };
}

/** Runs a group in this process; results so far are kept in a file, in case a program ends it. */
async function runGroup(group: string, file: string, skipped: readonly string[]): Promise<void> {
  const result = emptyResult();
  const save = (): void => writeFileSync(file, JSON.stringify(result));
  const programs = allPrograms().filter(
    (program) => program.group === group && !skipped.includes(program.name),
  );
  const context = await openDevice();
  const modules = new Map<Program, DeviceModule>();
  try {
    const whole = new DeviceModule(context, programs, group);
    for (const program of programs) modules.set(program, whole);
  } catch {
    // Somebody's text is refused: one by one, then.
    for (const program of programs)
      try {
        modules.set(program, new DeviceModule(context, [program], program.name));
      } catch (error) {
        result.failures.push({ program: program.name, message: String(error).slice(0, 2000) });
      }
  }
  for (const [program, module] of modules) {
    result.running = program.name;
    save();
    const found = module.run(program);
    const ptx = programModule(program);
    try {
      const { output } = emulateProgram(program, ptx, { seed: 1, checks: false });
      const mismatches = compareOutputs(program, output, found);
      result.mismatches.push(...mismatches);
      if (mismatches.length > 0) result.outputs[program.name] = gzipSync(found).toString("base64");
    } catch (error) {
      result.failures.push({ program: program.name, message: `emulator: ${String(error)}` });
    }
    result.measured[program.name] = measurement(program, found);
    result.done.push(program.name);
  }
  result.running = undefined;
  save();
  process.exit(0);
}

/** Starts a process for a group; gives its result, with the program that ended it as a failure. */
async function spawnGroup(group: string, folder: string): Promise<GroupResult> {
  const total = emptyResult();
  const skipped: string[] = [];
  for (let attempt = 0, empty = 0; attempt < 8 && empty < 2; attempt++) {
    const file = join(folder, `${group}-${attempt}.json`);
    const output = await child(["--group", group, "--file", file, "--skip", skipped.join(",")]);
    let part: GroupResult;
    try {
      part = JSON.parse(readFileSync(file, "utf8")) as GroupResult;
    } catch {
      total.failures.push({ program: group, message: output.slice(-1500) });
      return total;
    }
    if (part.done.length === 0) empty += 1;
    total.done.push(...part.done);
    Object.assign(total.measured, part.measured);
    Object.assign(total.outputs, part.outputs);
    total.mismatches.push(...part.mismatches);
    total.failures.push(...part.failures);
    if (part.running === undefined) return total;
    total.failures.push({ program: part.running, message: output.slice(-1500) });
    skipped.push(...part.done, ...part.failures.map(({ program }) => program), part.running);
  }
  return total;
}

const secondsPerGroup = 120;

/** How this program is started: bundled, or by the command line tool. */
function thisProgram(): readonly string[] {
  const [script = ""] = process.argv.slice(1);
  if (script.endsWith(".mjs")) return [script];
  const tool = fileURLToPath(new URL("../../../dist/cli/main.js", import.meta.url));
  return [tool, "run", script, "--"];
}

function child(options: readonly string[]): Promise<string> {
  return new Promise((resolve) => {
    const started = spawn(process.execPath, [...thisProgram(), ...options]);
    let output = "";
    const take = (text: Buffer): void => {
      output += text.toString();
    };
    started.stdout.on("data", take);
    started.stderr.on("data", take);
    const limit = setTimeout(() => {
      output += `\nended after ${secondsPerGroup} s`;
      started.kill("SIGKILL");
    }, 1000 * secondsPerGroup);
    started.on("close", () => {
      clearTimeout(limit);
      resolve(output);
    });
  });
}

async function runAll(target: string): Promise<void> {
  // Without a driver every group would fail by itself, each after having been assembled.
  await openDriver();
  const groups = [...new Set(allPrograms().map(({ group }) => group))];
  const folder = mkdtempSync(join(tmpdir(), "programs-"));
  const results: { [group: string]: GroupResult } = {};
  const waiting = [...groups];
  const worker = async (): Promise<void> => {
    for (let group = waiting.shift(); group !== undefined; group = waiting.shift())
      results[group] = await spawnGroup(group, folder);
  };
  const started = performance.now();
  await Promise.all(Array.from({ length: Math.min(6, availableParallelism()) }, worker));
  report(results);
  process.stdout.write(`${((performance.now() - started) / 1000).toFixed(1)} s\n`);
  writeFileSync(target, `${JSON.stringify(results, undefined, 1)}\n`);
  const kept = option("measurements");
  const isRight = Object.values(results).every(
    ({ mismatches, failures }) => mismatches.length === 0 && failures.length === 0,
  );
  if (isRight && kept !== undefined) writeFileSync(kept, measurementsText(results));
  if (!isRight) process.exitCode = 1;
}

/** What the tests compare with: the digests of all programs, in order. */
function measurementsText(results: { readonly [group: string]: GroupResult }): string {
  const all = Object.values(results).flatMap(({ measured }) => Object.entries(measured));
  all.sort(([left], [right]) => (left < right ? -1 : 1));
  const machine = option("machine") ?? "a GPU";
  const kept: Measurements = { machine, programs: Object.fromEntries(all) };
  return `${JSON.stringify(kept, undefined, 2)}\n`;
}

function report(results: { readonly [group: string]: GroupResult }): void {
  for (const [group, { done, mismatches, failures }] of Object.entries(results)) {
    const differing = new Set(mismatches.map(({ program }) => program));
    process.stdout.write(
      `${group}: ${done.length} programs ran, ${differing.size} differ, ${failures.length} failed\n`,
    );
    for (const { program, message } of failures)
      process.stdout.write(`  FAIL ${program}: ${message.split("\n").slice(0, 6).join(" / ")}\n`);
    for (const { program, slot, count, of, examples } of mismatches)
      process.stdout.write(
        `  DIFF ${program} ${slot} ${count}/${of} ${examples.slice(0, 2).join("; ")}\n`,
      );
  }
}

const group = option("group");
const file = option("file");
if (group !== undefined && file !== undefined)
  await runGroup(group, file, (option("skip") ?? "").split(","));
else await runAll(option("out") ?? "results.json");
