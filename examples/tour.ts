/** A tour: runs every example, checks it, and shows what the simulator says about a deliberate bug. */
import { f32, open, TilewrightError } from "tilewright";
import type { Device } from "tilewright";
import type { Comparison } from "tilewright/testing";
import * as axpy from "./axpy.ts";
import * as cluster from "./cluster.ts";
import * as columnSum from "./column-sum.ts";
import { brokenHandoff, main as handoff } from "./handoff.ts";
import * as matmul from "./matmul.ts";
import * as softmax from "./softmax.ts";
import { normal } from "./support/data.ts";
import * as transpose from "./transpose.ts";

const stops: readonly (readonly [string, (device: Device) => Promise<Comparison>])[] = [
  ["axpy with a tail", axpy.main],
  ["row softmax", softmax.main],
  ["column sum across blocks", columnSum.main],
  ["transpose through shared memory", transpose.main],
  ["double-buffered matmul", matmul.main],
  ["two program threads", handoff],
  ["cluster with shared sums", cluster.main],
];

function printRow(cells: readonly string[]): void {
  const widths = [33, 11, 10, 18, 9];
  console.log(
    cells
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join("")
      .trimEnd(),
  );
}

export async function main(device: Device): Promise<void> {
  console.log(`Running the examples on the ${device.name}, checked against float64:\n`);
  printRow(["example", "ran on", "elements", "error / allowed", "time"]);
  for (const [title, run] of stops) {
    const start = performance.now();
    const { elements, worst } = await run(device);
    const time = `${Math.round(performance.now() - start)} ms`;
    printRow([title, device.name, String(elements), worst.toFixed(2), time]);
  }
  await showBug();
}

async function showBug(): Promise<void> {
  console.log("\nThe two program threads again, with one wait deleted. The simulator reports:\n");
  const device = await open("simulator");
  try {
    await device.run(brokenHandoff, { x: normal(f32, [10_004], 8) });
    throw new Error("the bug was not found");
  } catch (error) {
    if (!(error instanceof TilewrightError)) throw error;
    console.log(error.message);
  } finally {
    device.dispose();
  }
}
