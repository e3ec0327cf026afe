/**
 * How fast kernels run on the GPU of this machine beside cuBLAS (through PyTorch and through JAX), Pallas:Mosaic GPU
 * and Triton, in interleaved rounds. Results are checked against float64 on a sample before anything is timed.
 *
 *   npm run bench:gpu -- --list                     the parts
 *   npm run bench:gpu -- --part matmul-1            one of them; several are given by several --part
 *   npm run bench:gpu -- --part memory --json FILE  and its figures into a file, in place of earlier ones of the same work
 *   npm run bench:gpu -- --part language --peer Triton      beside this peer alone
 *   npm run bench:gpu -- --part matmul-1 --only 4096x4096 --rounds 15 --launches 50 --no-peers --seconds 570
 *   npm run bench:gpu -- --part attention --launches 20 --rest 100  with 100 ms of rest before each sample
 */
import { fileURLToPath } from "node:url";
import { open } from "tilewright";
import { namedOption, numberOption, refuse, scriptOptions } from "../../scripts/arguments.ts";
import { compare } from "./compare.ts";
import type { Comparison } from "./compare.ts";
import { comparisonText, methodText } from "./comparisons.ts";
import { addComparisons } from "./figures.ts";
import { parts } from "./parts.ts";
import { compiledPeers, startPeers } from "./peers/peer.ts";
import type { PeerCommand } from "./peers/peer.ts";

const values = scriptOptions(import.meta.url, {
  part: { type: "string", multiple: true, default: [] },
  only: { type: "string" },
  json: { type: "string" },
  rounds: { type: "string", default: "15" },
  launches: { type: "string", default: "50" },
  rest: { type: "string", default: "0" },
  seconds: { type: "string", default: "570" },
  list: { type: "boolean", default: false },
  "no-peers": { type: "boolean", default: false },
  peer: { type: "string", multiple: true, default: [] },
});
const rounds = numberOption("rounds", values.rounds);
const launches = numberOption("launches", values.launches);
const rest = numberOption("rest", values.rest, { from: 0 });
const seconds = numberOption("seconds", values.seconds, { from: 0, whole: false });

const python = process.env["PYTHON"] ?? "python3";
const script = (file: string): readonly string[] => [
  python,
  fileURLToPath(new URL(`./peers/${file}`, import.meta.url)),
];
const peerCommands: readonly PeerCommand[] = [
  { name: "PyTorch", command: script("pytorch.py") },
  { name: "Triton", command: script("triton_peer.py") },
  { name: "JAX", command: script("jax_peer.py") },
];

/** All peers, or those that are named. */
function chosenPeers(): readonly PeerCommand[] {
  const names = peerCommands.map(({ name }) => name);
  const chosen = values.peer.map((name) => namedOption("peer", name, names));
  return peerCommands.filter(({ name }) => chosen.length === 0 || chosen.includes(name));
}

function say(line: string): void {
  process.stderr.write(`${line}\n`);
}

function chosenCases() {
  const names = [...parts.keys()];
  if (values.part.length === 0) return refuse(`no part is given: --part takes ${names.join(", ")}`);
  const cases = values.part
    .flatMap((name) => parts.get(namedOption("part", name, names)) ?? [])
    .filter(({ name }) => name.includes(values.only ?? ""));
  return cases.length > 0 ? cases : refuse(`no case of the part has "${values.only}" in its name`);
}

async function measure(): Promise<boolean> {
  const cases = chosenCases();
  const chosen = values["no-peers"] ? [] : chosenPeers();
  const until = performance.now() + seconds * 1000;
  const device = await open("gpu");
  const tasks = cases.map(({ task }) => task);
  const peers = await compiledPeers(await startPeers(chosen, say), tasks, say);
  const done: Comparison[] = [];
  let failed = 0;
  // A case takes about as long as the longest so far; one that would not end in time is left out.
  let longest = 0;
  try {
    for (const one of cases) {
      const start = performance.now();
      if (start + longest > until) {
        say(`${one.name}: left out, since the time is over`);
        failed += 1;
        continue;
      }
      try {
        const comparison = await compare(device, one, peers, { rounds, launches, rest });
        done.push(comparison);
        say(methodText(comparison));
        say(comparisonText([comparison]));
        if (values.json !== undefined) addComparisons(values.json, [comparison]);
      } catch (error) {
        failed += 1;
        say(`${one.name}: ${error instanceof Error ? error.message : String(error)}`);
      }
      longest = Math.max(longest, performance.now() - start);
    }
  } finally {
    for (const peer of peers) peer.stop();
    device.dispose();
  }
  process.stdout.write(comparisonText(done));
  return failed === 0;
}

if (values.list)
  for (const [name, cases] of parts)
    process.stdout.write(`${name}\n${cases.map((one) => `  ${one.name}\n`).join("")}`);
else process.exitCode = (await measure()) ? 0 : 1;
