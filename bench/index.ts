/**
 * `npm run bench`: measures the simulator, the compiler, the emulator and the arithmetic against their targets.
 *
 *   npm run bench                          the table
 *   npm run bench -- --part cpu            programs and operations on the CPU device, beside jax-js, numpy-ts and NumPy
 *   npm run bench -- --part cpu --only m   those with an m in their names
 *   npm run bench -- --rounds 11           more rounds than 7
 *   npm run bench -- --write               also docs/benchmarks.md and docs/benchmarks.svg
 *   npm run bench -- --json results.json   also the numbers as data
 *   npm run bench -- --date 2026-01-31     a date for the page other than today's
 */
import { writeFileSync } from "node:fs";
import { cpus } from "node:os";
import { fileURLToPath } from "node:url";
import { numberOption, refuse, scriptOptions } from "../scripts/arguments.ts";
import { writeResults } from "../scripts/results-section.ts";
import { benchCpu } from "./cpu/index.ts";
import { drawChart } from "./chart.ts";
import { emissionBenchmarks, emulatorBenchmarks, emulatorGrowth } from "./emulation.ts";
import { measure } from "./measure.ts";
import type { Benchmark, Measurement } from "./measure.ts";
import { markdownReport, printedReport, succeeded } from "./report.ts";
import type { Machine, Report } from "./report.ts";
import {
  compilerBenchmarks,
  formatBenchmarks,
  growthSuites,
  openDevices,
  placementBenchmarks,
  simulatorBenchmarks,
} from "./suite.ts";

const settings = scriptOptions(import.meta.url, {
  rounds: { type: "string", default: "7" },
  date: { type: "string", default: new Date().toISOString().slice(0, 10) },
  json: { type: "string" },
  part: { type: "string" },
  only: { type: "string" },
  write: { type: "boolean", default: false },
});
const rounds = numberOption("rounds", settings.rounds);

function thisMachine(): Machine {
  const processors = cpus();
  return {
    processor: processors[0]?.model.trim() ?? "unknown processor",
    cores: processors.length,
    node: process.versions.node,
    date: settings.date,
  };
}

function showProgress(text: string): void {
  if (process.stderr.isTTY) process.stderr.write(`\r\u001B[2K${text}`);
}

function measured(benchmarks: readonly Benchmark[]): Promise<readonly Measurement[]> {
  return measure(benchmarks, {
    rounds,
    warmups: 2,
    now: () => performance.now(),
    onProgress: showProgress,
  });
}

async function measureAll(): Promise<Report> {
  const devices = await openDevices();
  try {
    // First, as in a program that compiles and goes: what simulated arrays leave behind is no part of it.
    const compiling = await measured([
      ...compilerBenchmarks(),
      ...placementBenchmarks(),
      ...emissionBenchmarks(),
    ]);
    const running = await measured([
      ...simulatorBenchmarks(devices),
      ...emulatorBenchmarks(),
      ...formatBenchmarks(),
    ]);
    const measurements = [...compiling, ...running];
    const growth = [];
    const emulated = { title: "gemm on the emulator, checked", benchmarks: emulatorGrowth() };
    for (const { title, benchmarks } of [...growthSuites(devices), emulated])
      growth.push({ title, measurements: await measured(benchmarks) });
    return { machine: thisMachine(), rounds, measurements, growth };
  } finally {
    devices.checked.dispose();
    devices.unchecked.dispose();
    showProgress("");
  }
}

async function writePage(report: Report): Promise<void> {
  await writeResults("benchmarks.md", "npm run bench -- --write", markdownReport(report));
  const chart = fileURLToPath(new URL("../docs/benchmarks.svg", import.meta.url));
  writeFileSync(chart, drawChart(report.measurements));
}

export async function main(): Promise<unknown> {
  if (settings.part === undefined) return mainPart();
  if (settings.part !== "cpu") refuse(`there is no part ${settings.part}, only cpu`);
  const results = await benchCpu({ rounds, only: settings.only });
  if (settings.json !== undefined)
    writeFileSync(settings.json, `${JSON.stringify(results, null, 2)}\n`);
  return results;
}

async function mainPart(): Promise<Report> {
  const report = await measureAll();
  console.log(printedReport(report));
  if (settings.json !== undefined)
    writeFileSync(settings.json, `${JSON.stringify(report, null, 2)}\n`);
  if (settings.write) await writePage(report);
  if (!succeeded(report)) process.exitCode = 1;
  return report;
}
