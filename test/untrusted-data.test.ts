/**
 * Manifests of compiled kernels and tuning files with changes made at random: each is refused with a code, or taken and then runs or is refused with a code.
 * `TILEWRIGHT_CASES=all` makes more changes; `TILEWRIGHT_SEED=5` begins with the seed that a failure printed.
 */
import process from "node:process";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  bf16,
  compileAhead,
  f32,
  fromNumbers,
  kernelFromCompiled,
  open,
  TilewrightError,
} from "tilewright";
import type { Device } from "tilewright";
import { TuningTable } from "tilewright/tune";
import { axpy } from "../examples/axpy.ts";
import { transpose } from "../examples/transpose.ts";
import { Random } from "../src/support/random.ts";
import { takesAll } from "./support/sample.ts";

type Json = null | boolean | number | string | Json[] | { [name: string]: Json };

/** Values that are nested so deep that they are put into the text: JSON is read to any depth, but not written. */
const nested: { readonly [name: string]: string } = {
  "a deep size": `${'{"kind":"ceildiv","by":1,"of":'.repeat(20_000)}1${"}".repeat(20_000)}`,
  "a deep list": `${"[".repeat(20_000)}${"]".repeat(20_000)}`,
};

function textOf(value: Json): string {
  const text = JSON.stringify(value) ?? "";
  return Object.entries(nested).reduce(
    (all, [name, deep]) => all.replaceAll(`"${name}"`, deep),
    text,
  );
}

/** What stands in for a value: kinds that do not belong there, numbers at edges, names that objects have of themselves, and nesting. */
const strange: readonly (() => Json)[] = [
  () => null,
  () => true,
  () => -1,
  () => 0,
  () => 1,
  () => 1.5,
  () => 2 ** 31,
  () => 2 ** 53,
  () => 1e308,
  () => "",
  () => "__proto__",
  () => "constructor",
  () => "\u0000\ud800",
  () => [],
  () => ({}),
  () => JSON.parse('{"__proto__":{"kind":"dimension"}}') as Json,
  () => ({ toString: 1, valueOf: 2, toJSON: 3 }),
  () => ({ kind: "sum", constant: 1, terms: [{ kind: "dimension", name: "n", multipleOf: 1 }] }),
  ...Object.keys(nested).map((name) => () => name),
];

/** A place within the value, by names. */
function placesOf(value: Json, path: readonly string[] = []): readonly (readonly string[])[] {
  const inner =
    typeof value === "object" && value !== null
      ? Object.entries(value).flatMap(([name, each]) => placesOf(each as Json, [...path, name]))
      : [];
  return [path, ...inner];
}

/** The value with one thing changed: replaced, left out, moved, said twice, or another value of the same. */
function changed(value: Json, random: Random): Json {
  const copy = structuredClone(value);
  const place = random.pick(placesOf(copy).slice(1));
  const [last = "", ...above] = place.toReversed();
  let holder = copy as { [name: string]: Json };
  for (const name of above.toReversed()) holder = holder[name] as { [name: string]: Json };
  const other = random.pick(placesOf(copy).slice(1));
  const found = other.reduce<Json>(
    (at, name) => (at as { [name: string]: Json })[name] as Json,
    copy,
  );
  const how = random.below(6);
  const now = holder[last];
  if (how === 0) delete holder[last];
  else if (how === 1) holder[last] = structuredClone(found);
  else if (how === 2 && typeof now === "number") holder[last] = now * 2 ** (random.below(40) - 20);
  else if (how === 3 && Array.isArray(now)) holder[last] = [...now, ...structuredClone(now)];
  else holder[last] = random.pick(strange)();
  return copy;
}

const firstSeed = Number(process.env["TILEWRIGHT_SEED"] ?? 1);
const rounds = takesAll ? 4000 : 60;
let device: Device;

beforeAll(async () => {
  device = await open("emulator", { memoryLimit: 2 ** 24, threads: 1, limits: { stepLimit: 2e4 } });
});

afterAll(() => {
  device.dispose();
});

/** Makes changes and looks at what is not a code. */
async function tell(attempt: (random: Random) => unknown): Promise<void> {
  const counts = { taken: 0, refused: 0 };
  for (let seed = firstSeed; seed < firstSeed + rounds; seed += 1) {
    try {
      await attempt(new Random(seed));
      counts.taken += 1;
    } catch (error) {
      if (!(error instanceof TilewrightError))
        throw new Error(`seed ${seed}: an error without a code`, { cause: error });
      counts.refused += 1;
    }
  }
  expect(counts.refused, "changes that are refused").toBeGreaterThan(rounds / 10);
  expect(counts.taken, "changes that do no harm").toBeGreaterThan(0);
}

const vector = fromNumbers(
  f32,
  [100],
  Array.from({ length: 100 }, (_, at) => at),
);
const table = fromNumbers(
  bf16,
  [32, 32],
  Array.from({ length: 1024 }, (_, at) => at),
);

test("manifests of compiled kernels", { timeout: 600_000 }, async () => {
  const kernels = [
    { ...compileAhead(axpy), given: { x: vector, y: vector, alpha: 2 } },
    { ...compileAhead(transpose), given: { x: table } },
  ];
  await tell(async (random) => {
    const { ptx, manifest, given } = random.pick(kernels);
    const data: unknown = JSON.parse(
      textOf(changed(JSON.parse(JSON.stringify(manifest)) as Json, random)),
    );
    await device.run(kernelFromCompiled(data, ptx), given as never);
  });
});

test("tuning files", { timeout: 600_000 }, async () => {
  const line = {
    op: "matmul",
    variant: "",
    key: "00",
    gpu: "emulator",
    target: "sm_90a",
    driver: "CUDA 13.0",
    bucket: { m: 64, n: 64, k: 64 },
    choice: { rows: 64, columns: 64, depth: 64, stages: 2 },
    us: 10,
    spread: 0.01,
    rounds: 15,
  };
  await tell((random) => {
    const rows = [changed(line, random), line].map(textOf);
    const text = TuningTable.start + rows.join("\n") + "\n";
    const read = TuningTable.parse(text, "tuning");
    TuningTable.parse(read.text, "again");
    TuningTable.union([read, read]).best(line, line.driver);
  });
});
