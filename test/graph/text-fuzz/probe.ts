/** temporary */
import { corpus } from "./corpus.ts";
import { changed } from "./mutations.ts";
import { judge } from "./judge.ts";
import { Random } from "../../../src/support/random.ts";
import { writeFileSync, mkdirSync } from "node:fs";
import { open } from "../../../src/index.ts";
const [from, count, every = "20"] = process.argv.slice(2).filter((a) => a !== "--");
const seeds = corpus();
const device = await open("simulator");
const groups = new Map<string, number[]>(); const stages: Record<string, number> = {}; const codes: Record<string, number> = {};
mkdirSync("/tmp/fuzzfound", { recursive: true });
for (let seed = Number(from); seed < Number(from) + Number(count); seed++) {
  const random = new Random(seed);
  const text = changed(random.pick(seeds), random, seeds);
  writeFileSync("/tmp/fuzzfound/current." + from, seed + "\n" + text);
  const start = process.cpuUsage();
  const { stage, code, problem } = await judge(text, seed % Number(every) === 0 ? device : undefined);
  const used = process.cpuUsage(start), took = (used.user + used.system) / 1000;
  stages[stage] = (stages[stage] ?? 0) + 1;
  if (code) codes[code] = (codes[code] ?? 0) + 1;
  const all = [problem, took > 1500 ? "slow " + Math.round(took) : undefined];
  for (const p of all) if (p !== undefined) {
    const key = p.startsWith("slow") ? "slow" : p.replace(/\d+/g, "N").split("\n").slice(0, 2).map((l) => l.slice(0, 150)).join(" | ");
    if (!groups.has(key)) { groups.set(key, []); writeFileSync(`/tmp/fuzzfound/${seed}.mlir`, text); writeFileSync(`/tmp/fuzzfound/${seed}.why`, p); }
    groups.get(key)?.push(seed);
  }
}
console.log(JSON.stringify(stages), JSON.stringify(codes));
for (const [k, v] of [...groups].sort((a, b) => b[1].length - a[1].length)) console.log(v.length, k, v.slice(0, 3).join(" "));
