/**
 * What an H200 gave for each program, as digests in `h200.json`. A digest of what was run stands beside that
 * of the result, so that a program that has changed since is known to want another run:
 *
 *   "bits_bfe_s32": "5d0c0f0b1c6a7f10 91b2e3a4c5d6e7f8"
 *                    text and operands  exact bytes of the output
 */
import { readFileSync } from "node:fs";
import { digest, exactBytes } from "./compare-bytes.ts";
import type { Program } from "./program.ts";

/** The content of `h200.json`. */
export interface Measurements {
  /** The GPU, its driver and the day. */
  readonly machine: string;
  readonly programs: { readonly [name: string]: string };
}

function programDigest({
  text,
  blocks,
  threads: lanes,
  cluster,
  sharedBytes,
  input,
  maps,
}: Program): string {
  const shape = JSON.stringify({ text, blocks, lanes, cluster, sharedBytes, maps });
  return `${digest(new TextEncoder().encode(shape))}${digest(input)}`;
}

/** The entry of a program that gave this output. */
export function measurement(program: Program, output: Uint8Array): string {
  return `${programDigest(program)} ${digest(exactBytes(program, output))}`;
}

/** Why an output is not what the hardware gave; undefined where it is. */
export function difference(
  { programs }: Measurements,
  program: Program,
  output: Uint8Array,
): string | undefined {
  const [measured, expected] = programs[program.name]?.split(" ") ?? [];
  const [current, found] = measurement(program, output).split(" ");
  if (measured !== current)
    return "this form of the program has not been run on an H200: see hardware/main.ts";
  return expected === found ? undefined : "an H200 gives other bytes";
}

export function readMeasurements(): Measurements {
  return JSON.parse(readFileSync(new URL("h200.json", import.meta.url), "utf8")) as Measurements;
}
