/**
 * Files that NumPy's and safetensors' own readers were asked about: what they refuse is refused with a code, and what they
 * read is read alike. test/fixtures/files/verdicts.json has each file (a character a byte, then so many bytes 1, 2, 3 …) and
 * what the reader made of it: nothing, or formats, shapes and bytes. Some were written for one rule, others changed at random.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { repositoryRoot } from "../../test/source-files.ts";
import { bf16, f8e5m2 } from "../formats/dtype.ts";
import { toElements } from "../formats/hostarray.ts";
import type { HostArray } from "../formats/hostarray.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import { openSafetensors, readNpy } from "./index.ts";

type NpyVerdict = readonly [type: string, shape: readonly number[], start: string];
type SafetensorsVerdict = readonly [name: string, dtype: string, shape: readonly number[]];

interface Verdicts {
  readonly npy: readonly (readonly [string, number, NpyVerdict | "other" | null])[];
  readonly safetensorsFiles: readonly (readonly [
    string,
    number,
    readonly SafetensorsVerdict[] | null,
  ])[];
}

const verdicts = JSON.parse(
  readFileSync(join(repositoryRoot, "test/fixtures/files/verdicts.json"), "utf8"),
) as Verdicts;

function bytesOf(start: string, count: number): Uint8Array {
  const data = Array.from({ length: count }, (_, i) => i + 1);
  return Uint8Array.from([...Buffer.from(start, "latin1"), ...data]);
}

async function outcome<T>(attempt: Promise<T>): Promise<T | string> {
  try {
    return await attempt;
  } catch (error) {
    if (error instanceof TilewrightError) return error.code;
    throw error;
  }
}

/**
 * Spellings that Python reads and NumPy never writes: strings of several parts, in three quotes or with escapes, long numbers
 * that are no decimals, and formats with a count, a leading zero or a space. They are refused.
 */
const unusual = /'''|' '|0x2L|\\|'f04'|\|1u1|'>i 2'/;

test("npy files, as NumPy reads them", async () => {
  const wrong: unknown[] = [];
  let read = 0;
  for (const [start, count, verdict] of verdicts.npy) {
    const type = verdict?.[0] ?? "";
    const opaque = type.endsWith("V1") ? f8e5m2 : bf16;
    const ours = await outcome(readNpy(bytesOf(start, count), { opaque }));
    if (typeof ours === "string") {
      if (verdict !== null && verdict !== "other" && !isWithoutFormat(type) && !unusual.test(start))
        wrong.push([start, verdict, ours]);
      continue;
    }
    if (verdict === null || verdict === "other") wrong.push([start, verdict, ours.shape]);
    else {
      read++;
      const [, extents, bytes] = verdict;
      const shape = /[c]\d/.test(type) ? [...extents, 2] : extents;
      if (ours.shape.join() !== shape.join() || firstBytes(ours, type) !== bytes)
        wrong.push([start, verdict, ours.shape, firstBytes(ours, type)]);
    }
  }
  expect(wrong).toEqual([]);
  expect(read).toBeGreaterThan(100);
});

/** Extended precision, and elements of no bytes. */
function isWithoutFormat(type: string): boolean {
  return /f16$|V0$/.test(type);
}

/** The first 16 bytes in the order of the file. */
function firstBytes(array: HostArray, type: string): string {
  const elements = toElements(array);
  const bytes = Buffer.from(
    new Uint8Array(elements.buffer, elements.byteOffset, elements.byteLength),
  );
  const unit = elements.BYTES_PER_ELEMENT;
  if (type.startsWith(">") && unit > 1)
    for (let at = 0; at < bytes.length; at += unit) bytes.subarray(at, at + unit).reverse();
  // NumPy keeps what a bool was stored as.
  const whole = type.endsWith("b1") ? Buffer.from(bytes.map((_, i) => i + 1)) : bytes;
  return whole.subarray(0, 16).toString("hex");
}

/** Types without a format here. */
const isForeign = (dtype: string): boolean => /^(I4$|F8_.*FNUZ)/.test(dtype);

test("safetensors files, as their own library reads them", async () => {
  const wrong: unknown[] = [];
  let read = 0;
  for (const [start, count, verdict] of verdicts.safetensorsFiles) {
    const ours = await outcome(openSafetensors(bytesOf(start, count)));
    if (typeof ours === "string") {
      // It also takes { "F32": null } for a type.
      const isSpecial = start.includes('{"F32":null}');
      if (verdict !== null && !verdict.some(([, dtype]) => isForeign(dtype)) && !isSpecial)
        wrong.push([start, verdict, ours]);
      continue;
    }
    read++;
    const found = [...ours.arrays]
      .map(([name, { shape }]): readonly [string, string] => [name, shape.join()])
      .sort(([left], [right]) => (left < right ? -1 : 1));
    const wanted = verdict?.map(([name, dtype, shape]) => [
      name,
      (dtype === "C64" ? [...shape, 2] : shape).join(),
    ]);
    if (JSON.stringify(found) !== JSON.stringify(wanted)) wrong.push([start, verdict, found]);
  }
  expect(wrong).toEqual([]);
  expect(read).toBeGreaterThan(50);
});
