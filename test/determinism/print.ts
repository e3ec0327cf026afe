/**
 * Makes the items and prints a hash of each, as JSON: `node print.js '{"seed":5,"threads":2,"rounds":1,"whole":false}'`. Without a seed in the
 * order of the list, with one in an order of its own; in a second round the other way around, so that what an item leaves behind would show in another.
 */
import { createHash } from "node:crypto";
import process from "node:process";
import { Random } from "../../src/support/random.ts";
import { all, usual } from "./items.ts";
import type { Part } from "./items.ts";

interface Asked {
  readonly seed?: number;
  readonly threads: number;
  readonly rounds: number;
  readonly whole: boolean;
}

function hash(parts: readonly Part[]): string {
  return parts
    .map((part) => createHash("sha256").update(part).digest("hex").slice(0, 12))
    .join(" ");
}

const { seed, threads, rounds, whole } = JSON.parse(process.argv[2] ?? "") as Asked;
const items = [...(whole ? all : usual)];
if (seed !== undefined) {
  const random = new Random(seed);
  const places = new Map(items.map((item) => [item, random.uniform()]));
  items.sort((one, other) => (places.get(one) ?? 0) - (places.get(other) ?? 0));
  // Neither chance nor the hour may show, and a clock that is fast hands launches to threads.
  let calls = 0;
  Math.random = () => (calls++ % 97) / 97;
  const [now, date] = [performance.now.bind(performance), Date.now.bind(Date)];
  performance.now = () => 1e4 * now();
  Date.now = () => date() - 1e12;
}
const hashes: { [name: string]: string[] } = {};
const surroundings = { threads, isTurned: seed !== undefined };
for (let round = 0; round < rounds; round += 1) {
  for (const { name, make } of items) (hashes[name] ??= []).push(hash(await make(surroundings)));
  items.reverse();
}
process.stdout.write(JSON.stringify(hashes));
