/**
 * Where wgmma finds the elements of an operand, against an H200. There shared memory held 16,384 f16
 * elements that say where they lie, B was the identity, and so D told for each element of A (64 × 16)
 * where it came from. A line of the file is one descriptor: major, swizzle, start, leading and stride
 * offset, base offset, and a digest of the places.
 */
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { gatherOperand } from "../../src/emulator/tensor-cores/descriptor.ts";
import type { Major, MatrixDescriptor } from "../../src/emulator/tensor-cores/descriptor.ts";

const lines = readFileSync(new URL("h200-descriptors.txt", import.meta.url), "utf8")
  .trim()
  .split("\n");
/** Shared memory began here: the first KiB is the system's. */
const base = 1024;
const count = 16384;

/** Elements that hold their own number, behind what the kernel does not see. */
const shared = new Uint8Array(
  Uint16Array.from({ length: base / 2 + 4 * count }, (_, index) => (index - base / 2) & (count - 1))
    .buffer,
);

function digestOf(descriptor: MatrixDescriptor, major: Major): string {
  const operand = new Uint16Array(
    gatherOperand(shared, descriptor, { major, rows: 64, rowBytes: 32 }).buffer,
  );
  const digest = operand.reduce((all, place) => Math.imul(all ^ place, 0x01000193), 0x811c9dc5);
  return (digest >>> 0).toString(16).padStart(8, "0");
}

test("every descriptor leads to the elements that it leads to on an H200", () => {
  expect(lines.length).toBe(136);
  for (const line of lines) {
    const [major, swizzle, start, leading, stride, baseOffset, digest] = line.split(" ");
    const descriptor = {
      start: base + Number(start),
      leading: Number(leading),
      stride: Number(stride),
      baseOffset: Number(baseOffset),
      swizzle: Number(swizzle) as MatrixDescriptor["swizzle"],
    };
    expect(digestOf(descriptor, major as Major), line).toBe(digest);
  }
});
