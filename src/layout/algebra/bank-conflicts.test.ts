import { describe, expect, test } from "vitest";
import {
  layoutOf,
  placesOf,
  randomSpelling,
  spellingOf,
  volume,
} from "../../../test/layout-oracle.ts";
import { Random } from "../../support/random.ts";
import { bankConflicts, phasesOf, planAccesses, wavefrontsOf } from "./bank-conflicts.ts";
import { blockedLayout, namedLayouts } from "./named-layouts.ts";
import { splat } from "./register-layout.ts";
import { byteOffset, sharedLayout, swizzles } from "./shared-layout.ts";
import { sliceView, transposeView, wholeView } from "./shared-view.ts";

const { wgmma, wgmmaTransposed, tmemNative } = namedLayouts;

describe("worked examples", () => {
  const accumulator = (swizzle: number) =>
    bankConflicts(wgmma, wholeView(sharedLayout({ swizzle }), [64, 64], 16), 4);

  test("accumulator pairs into rows of 128 bytes", () => {
    expect(accumulator(0)).toEqual({ instructions: 64, wavefronts: 512, ideal: 64 });
    expect(accumulator(32)).toEqual({ instructions: 64, wavefronts: 256, ideal: 64 });
    expect(accumulator(64)).toEqual({ instructions: 64, wavefronts: 128, ideal: 64 });
    expect(accumulator(128)).toEqual({ instructions: 64, wavefronts: 64, ideal: 64 });
  });

  test("rows of 16 bytes a thread go through four phases", () => {
    const rows = blockedLayout({ vector: 8, lanes: [4, 8], warps: [4, 1] });
    const plain = wholeView(sharedLayout({}), [64, 64], 16);
    expect(bankConflicts(rows, plain, 16)).toEqual({ instructions: 16, wavefronts: 64, ideal: 64 });
    const columns = blockedLayout({ vector: 8, lanes: [32, 1], warps: [2, 2] });
    // Eight lanes of a phase hold eight rows, all in the same four banks.
    expect(bankConflicts(columns, plain, 16)).toEqual({
      instructions: 16,
      wavefronts: 512,
      ideal: 64,
    });
    const swizzled = wholeView(sharedLayout({ swizzle: 128 }), [64, 64], 16);
    expect(bankConflicts(columns, swizzled, 16)?.wavefronts).toBe(64);
  });

  test("a lane a row: 128-byte rows all start in bank 0", () => {
    const view = wholeView(sharedLayout({}), [128, 32], 32);
    expect(bankConflicts(tmemNative, view, 4)).toEqual({
      instructions: 128,
      wavefronts: 32 * 128,
      ideal: 128,
    });
  });

  test("lanes that read the same word share it", () => {
    const column = wholeView(sharedLayout({}), [64], 32);
    const use = bankConflicts(namedLayouts.wgmmaRow, column, 4);
    expect(use).toEqual({ instructions: 8, wavefronts: 8, ideal: 8 });
  });

  test("vectors must lie side by side in memory", () => {
    const plain = wholeView(sharedLayout({}), [64, 64], 16);
    const turned = transposeView(plain, [1, 0]);
    expect(bankConflicts(wgmma, plain, 8)).toBeUndefined();
    expect(bankConflicts(wgmma, turned, 4)).toBeUndefined();
    expect(bankConflicts(wgmma, turned, 2)).toBeDefined();
    expect(bankConflicts(wgmmaTransposed, turned, 4)).toBeDefined();
    expect(bankConflicts(wgmma, plain, 1)).toBeUndefined();
    expect(bankConflicts(wgmma, plain, 32)).toBeUndefined();
    expect(bankConflicts(splat, plain, 4)).toBeUndefined();
    const packed = wholeView(sharedLayout({}), [64, 64], 4);
    expect(planAccesses(wgmma, packed, 1)?.[0]?.registers).toEqual([0, 1]);
  });

  test("vectors must be aligned in every lane", () => {
    const rows = blockedLayout({ vector: 4, lanes: [4, 1], warps: [1, 1] });
    // Rows of 24 bytes: that of lane 1 begins in the middle of 16 bytes.
    const window = sliceView(wholeView(sharedLayout({}), [4, 6], 32), [0, 0], [4, 4]);
    expect(bankConflicts(rows, window, 16)).toBeUndefined();
    expect(bankConflicts(rows, window, 8)?.instructions).toBe(8);
  });
});

test("single elements against brute force", () => {
  for (let seed = 0; seed < 40; seed += 1) {
    const random = new Random(seed);
    const layout = layoutOf(randomSpelling(random, 2, 2));
    const shape = [random.pick([8, 12, 16]), random.pick([8, 16, 6])];
    const bits = random.pick([8, 16, 32]);
    const shared = sharedLayout({ swizzle: random.pick(swizzles) });
    const places = placesOf(spellingOf(layout), shape);
    const words = Array.from({ length: volume(shape) }, (_, element) =>
      Math.floor(byteOffset(shared, shape, bits, element) / 4),
    );
    let instructions = 0;
    let wavefronts = 0;
    for (let warp = 0; warp < 4; warp += 1) {
      for (let register = 0; register < (places[0]?.length ?? 0); register += 1) {
        const needed = new Set<number>();
        for (let lane = 0; lane < 32; lane += 1) {
          const element = places[warp * 32 + lane]?.[register];
          if (element === undefined) continue;
          needed.add(words[element] ?? -1);
        }
        if (needed.size === 0) continue;
        const counts = Array.from(
          { length: 32 },
          (_, bank) => [...needed].filter((word) => word % 32 === bank).length,
        );
        instructions += 1;
        wavefronts += Math.max(...counts);
      }
    }
    const found = bankConflicts(layout, wholeView(shared, shape, bits), bits / 8);
    const message = `seed ${seed}: ${layout.text} on [${shape.join(", ")}], ${shared.text}`;
    expect(found, message).toEqual({ instructions, wavefronts, ideal: instructions });
  }
});

test("vectors of views against the accesses one by one", () => {
  const found = { vectors: 0, refused: 0 };
  for (let seed = 0; seed < 160; seed += 1) {
    const random = new Random(seed);
    const layout = layoutOf(randomSpelling(random, 2, 3));
    const order = random.pick([[], [1, 0]]);
    const tile = random.pick([[], [4, 4], [2, 8]]);
    const shared = sharedLayout({ order, tile, swizzle: random.pick(swizzles) });
    const whole = wholeView(shared, [2, 16, 32], random.pick([4, 8, 16, 32]));
    const rows = random.pick([8, 16, 12]);
    const slice = sliceView(whole, [random.below(2), 16 - rows, 16], [1, rows, 16], [0]);
    const view = random.below(2) === 0 ? slice : transposeView(slice, [1, 0]);
    const vectorBytes = random.pick([1, 2, 4, 8, 16]);
    const accesses = planAccesses(layout, view, vectorBytes);
    const phases = accesses?.flatMap(({ bytes }) => phasesOf(bytes, vectorBytes));
    const busy = phases?.filter((words) => words.length > 0) ?? [];
    const expected = accesses && {
      instructions: accesses.length,
      wavefronts: busy.reduce((sum, words) => sum + wavefrontsOf(words), 0),
      ideal: busy.length,
    };
    const message = `seed ${seed}: ${layout.text}, ${shared.text}, ${rows} rows, ${vectorBytes} bytes`;
    expect(bankConflicts(layout, view, vectorBytes), message).toEqual(expected);
    if (expected === undefined) found.refused += 1;
    else if (vectorBytes * 8 > view.bits) found.vectors += 1;
  }
  expect(Math.min(found.vectors, found.refused)).toBeGreaterThan(15);
});

test("an access moves each lane's vector whole", () => {
  for (let seed = 0; seed < 40; seed += 1) {
    const random = new Random(seed);
    const layout = layoutOf(randomSpelling(random, 2, 3));
    const shape = [8, 16];
    const bits = random.pick([8, 16, 32]);
    const shared = sharedLayout({ swizzle: random.pick(swizzles) });
    const vectorBytes = random.pick([2, 4, 8]);
    const bytes = Array.from({ length: volume(shape) }, (_, element) =>
      byteOffset(shared, shape, bits, element),
    );
    const places = placesOf(spellingOf(layout), shape);
    for (const access of planAccesses(layout, wholeView(shared, shape, bits), vectorBytes) ?? []) {
      const wrong = access.bytes.findIndex((start, lane) => {
        const held = access.registers.map(
          (register) => places[access.warp * 32 + lane]?.[register],
        );
        const expected = held.map((_, index) => (start < 0 ? -1 : start + (index * bits) / 8));
        const found = held.map((element) => (element === undefined ? -1 : bytes[element]));
        return found.join() !== expected.join() || (start >= 0 && start % vectorBytes !== 0);
      });
      expect(wrong, `seed ${seed}: ${layout.text}, warp ${access.warp}`).toBe(-1);
    }
  }
});
