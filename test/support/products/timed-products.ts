/**
 * Times of products of bf16 on an H200, a line for each shape, which `bench/gpu/untuned.ts` writes, and which `scripts/fit-products` and tests read:
 *
 *   {"sizes":[64,1616,2304],"b":"kn","us":{"1x64t split-k 7":5.73,"2x64 tiles 8":6.1,…}}
 *
 * A configuration is its consumers and columns, `t` where A and B are swapped, `p` for pairs of blocks, its schedule and its stages; or a kernel's
 * name and its settings.
 */
import { readFileSync } from "node:fs";
import type { MatmulConfiguration } from "../../../src/kernels/matmul/configuration.ts";

export interface TimedProduct {
  readonly sizes: readonly [number, number, number];
  /** How b lies. */
  readonly b: "kn" | "nk";
  /** Microseconds of configurations. */
  readonly us: { readonly [configuration: string]: number };
}

export function timedText(configuration: MatmulConfiguration): string {
  if (configuration.kernel !== "persistent")
    return [
      configuration.kernel,
      ...Object.entries(configuration).flatMap(([name, value]) =>
        name === "kernel" ? [] : `${name}=${String(value)}`,
      ),
    ].join(" ");
  const { consumers, columns, swapAB, cluster, schedule, stages } = configuration;
  return `${consumers}x${columns}${swapAB ? "t" : ""}${cluster > 1 ? "p" : ""} ${schedule} ${stages}`;
}

/** The configuration that a text is of. */
export function timedConfiguration(text: string): MatmulConfiguration {
  const tiles = /^(\d)x(\d+)(t?)(p?) ([a-z-]+) (\d+)$/u.exec(text);
  if (tiles !== null) {
    const [, consumers, columns, swapAB, pair, schedule, stages] = tiles;
    return {
      ...{ kernel: "persistent", consumers: Number(consumers), stages: Number(stages) },
      ...{ schedule, columns: Number(columns), swapAB: swapAB === "t" },
      cluster: pair === "p" ? 2 : 1,
    } as MatmulConfiguration;
  }
  const [kernel, ...settings] = text.split(" ");
  const given = settings
    .map((each) => each.split("="))
    .map(([name, value]) => [name, Number(value)]);
  return { kernel, ...Object.fromEntries(given) } as MatmulConfiguration;
}

export function timedLine(product: TimedProduct): string {
  return `${JSON.stringify(product)}\n`;
}

export function readTimedProducts(): readonly TimedProduct[] {
  return readFileSync(new URL("h200-random.jsonl", import.meta.url), "utf8")
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as TimedProduct);
}

/** Whether nothing is fitted to a shape, a tenth of all: what is chosen for these tells what is chosen for others. */
export function isHeldOut({ sizes: [m, n, k], b }: TimedProduct): boolean {
  let mixed = b === "nk" ? 1 : 0;
  for (const each of [m, n, k]) mixed = Math.imul(mixed ^ each, 0x9e3779b1) ^ (mixed >>> 13);
  return ((mixed ^ (mixed >>> 16)) >>> 0) % 10 === 0;
}
