import { describe, expect, test } from "vitest";
import {
  layoutOf,
  placesOf,
  randomShape,
  randomSpelling,
  shuffled,
  spellingOf,
  spellingText,
  volume,
} from "../../../test/layout-oracle.ts";
import type { Spelling } from "../../../test/layout-oracle.ts";
import { TilewrightError } from "../../support/diagnostics.ts";
import { Random } from "../../support/random.ts";
import {
  elementAt,
  elementTable,
  holders,
  padding,
  placeTable,
  samePlaces,
} from "./element-maps.ts";
import { specializeLayout } from "./expansion.ts";
import {
  atomExtents,
  fitsShape,
  registersPerLane,
  replicatedLayout,
  replication,
  sameLayout,
  splat,
} from "./register-layout.ts";
import { parseLayout } from "./parse-layout.ts";

function codeOf(action: () => unknown): string {
  try {
    action();
  } catch (error) {
    if (error instanceof TilewrightError) return error.code;
    throw error;
  }
  return "none";
}

describe("canonical text", () => {
  test.each([
    ["(L0 L1 R0)", "(L0 L1)"],
    ["(L0 R3 | R1 L1)", "(L0 R1 | R0 L1)"],
    ["( | L0)", "(L0)"],
    ["(R1 | R0)", "(R1 | R0)"],
    ["(R0 | R1)", "(R0 |)"],
    ["(R4|)", "(R0 |)"],
    ["flat(R0)", "()"],
    ["flat( R0 L0  R7 R9 )", "flat(R0 L0)"],
    ["(L0 | | W1)", "(L0 | | W1)"],
    ["(|)", "()"],
    [" splat ", "splat"],
    ["(L2 L3 L4 R1 W0 W1 | R0 L0 L1 R2 R3)", "(L2 L3 L4 R1 W0 W1 | R0 L0 L1)"],
  ])("%s is %s", (spelling, canonical) => {
    expect(parseLayout(spelling).text).toBe(canonical);
    expect(parseLayout(canonical).text).toBe(canonical);
  });

  test("bad texts and bits are refused", () => {
    for (const text of ["", "(", "(L0", "(L0 | X0)", "(L)", "flat", "flat(L0 | L1)", "((L0))"])
      expect(
        codeOf(() => parseLayout(text)),
        text,
      ).toBe("TW6001");
    for (const text of ["(L0 L0)", "(R1 | R1)", "(L5)", "(W5)", "flat(W0 W0)"])
      expect(
        codeOf(() => parseLayout(text)),
        text,
      ).toBe("TW6002");
  });

  test("a layout fits tiles with as many axes", () => {
    const layout = parseLayout("(L0 | R0 L1)");
    expect(fitsShape(layout, [4])).toBe(false);
    expect(fitsShape(layout, [4, 4])).toBe(true);
    expect(fitsShape(parseLayout("flat(L0)"), [])).toBe(true);
    expect(codeOf(() => elementTable(layout, [4]))).toBe("TW6003");
  });
});

/** The same map in other words: registers renamed, repetition and empty axes spelled out. */
function respell(random: Random, { kind, axes }: Spelling): Spelling {
  const count = axes.flat().filter((bit) => bit.startsWith("R")).length;
  const names = shuffled(
    random,
    Array.from({ length: 20 }, (_, index) => index),
  ).slice(0, count + 2);
  names.sort((left, right) => left - right);
  const old = axes.flat().filter((bit) => bit.startsWith("R"));
  old.sort((left, right) => Number(left.slice(1)) - Number(right.slice(1)));
  const renamed = axes.map((axis) =>
    axis.map((bit) => (bit.startsWith("R") ? `R${names[old.indexOf(bit)]}` : bit)),
  );
  const extra = names.slice(count, count + random.below(3)).map((name) => `R${name}`);
  renamed[renamed.length - 1] = [...(renamed.at(-1) ?? []), ...extra];
  return { kind, axes: kind === "axes" && random.below(2) === 0 ? [[], ...renamed] : renamed };
}

describe("random layouts", () => {
  test("two spellings of a map have one text, which parses to itself", () => {
    for (let seed = 0; seed < 500; seed += 1) {
      const random = new Random(seed);
      const spelling = randomSpelling(random, 3);
      const layout = layoutOf(spelling);
      const other = layoutOf(respell(random, spelling));
      expect(other.text, `seed ${seed}: ${spellingText(spelling)}`).toBe(layout.text);
      expect(sameLayout(parseLayout(layout.text), layout), `seed ${seed}`).toBe(true);
      expect(parseLayout(spellingText(spelling)).text, `seed ${seed}`).toBe(layout.text);
    }
  });

  test("a spelling and its canonical form agree where the spelled atom divides the tile", () => {
    for (let seed = 0; seed < 80; seed += 1) {
      const random = new Random(seed);
      const spelling = randomSpelling(random, 2, 2);
      const layout = layoutOf(spelling);
      const extents = spelling.axes.map((bits) => 2 ** bits.length * (1 + random.below(3)));
      const shape = spelling.kind === "flat" ? [1, ...extents] : [2, ...extents];
      const expected = placesOf(spelling, shape);
      const table = elementTable(layout, shape);
      expect([...table], `seed ${seed}: ${spellingText(spelling)}`).toEqual(
        expected.flat().map((element) => element ?? padding),
      );
    }
  });

  test("layouts of different text differ on some tile", () => {
    const layouts = new Map<string, ReturnType<typeof layoutOf>>();
    for (let seed = 0; seed < 60; seed += 1) {
      const random = new Random(seed);
      const threads = shuffled(random, ["L0", "L1", "W0"]).slice(0, random.below(3));
      const bits = shuffled(random, [...threads, ...["R0", "R1"].slice(random.below(3))]);
      const cut = random.below(bits.length + 1);
      const flat = random.below(3) === 0;
      const axes = flat ? [bits] : [bits.slice(0, cut), bits.slice(cut)];
      const layout = layoutOf({ kind: flat ? "flat" : "axes", axes });
      layouts.set(layout.text, layout);
    }
    const shapes = [
      [12, 24],
      [5, 7],
      [1, 12],
    ];
    const texts = new Map<string, string>();
    for (const layout of layouts.values()) {
      const places = shapes.map((shape) => elementTable(layout, shape).join()).join(";");
      expect(texts.get(places), layout.text).toBeUndefined();
      texts.set(places, layout.text);
    }
  });

  test("element maps follow the definition, padding included", () => {
    for (let seed = 0; seed < 60; seed += 1) {
      const random = new Random(seed);
      const layout = layoutOf(randomSpelling(random, 3));
      const shape = randomShape(random, Math.max(layout.axes.length, 1 + random.below(3)));
      const message = `seed ${seed}: ${layout.text} on [${shape.join(", ")}]`;
      const expected = placesOf(spellingOf(layout), shape);
      const registers = registersPerLane(layout, shape);
      expect(expected[0]?.length, message).toBe(registers);
      expect([...elementTable(layout, shape)], message).toEqual(
        expected.flat().map((element) => element ?? padding),
      );
      const places = placeTable(layout, shape);
      for (let sample = 0; sample < 8; sample += 1) {
        const thread = random.below(128);
        const register = random.below(registers);
        const holder = { warp: thread >> 5, lane: thread & 31, register };
        expect(elementAt(layout, shape, holder), message).toBe(expected[thread]?.[register]);
        const element = random.below(volume(shape));
        const all: { readonly warp: number; readonly lane: number; readonly register: number }[] =
          [];
        for (const [index, held] of expected.entries())
          for (let at = held.indexOf(element); at >= 0; at = held.indexOf(element, at + 1))
            all.push({ warp: index >> 5, lane: index & 31, register: at });
        expect(holders(layout, shape, element), message).toEqual(all);
        expect(all.length, message).toBe(replication(layout));
        const [first] = all;
        const place = ((first?.warp ?? 0) * 32 + (first?.lane ?? 0)) * registers;
        expect(places[element], message).toBe(place + (first?.register ?? 0));
      }
    }
  });

  test("specialized texts are equal exactly where the places are", () => {
    for (let seed = 0; seed < 80; seed += 1) {
      const random = new Random(seed);
      const shape = randomShape(random, 1 + random.below(2)).map((extent) => Math.min(extent, 12));
      const pool = ["L0", "L1", "R0", "R1", "R2"];
      const layouts = Array.from({ length: 24 }, () => {
        const bits = shuffled(random, pool).slice(0, random.below(6));
        if (random.below(3) === 0) return layoutOf({ kind: "flat", axes: [bits] });
        const cut = random.below(bits.length + 1);
        const axes = shape.length === 1 ? [bits] : [bits.slice(0, cut), bits.slice(cut)];
        return layoutOf({ kind: "axes", axes });
      });
      const texts = new Map<string, string>();
      const places = new Map<string, string>();
      for (const layout of layouts) {
        const special = specializeLayout(layout, shape);
        const table = `${registersPerLane(layout, shape)}:${elementTable(layout, shape).join()}`;
        const message = `seed ${seed}: ${layout.text} on [${shape.join(", ")}]`;
        if (!samePlaces(layout, special, shape)) expect.fail(`${message} is ${special.text}`);
        if ((texts.get(table) ?? special.text) !== special.text)
          expect.fail(`${message} is ${special.text} and ${texts.get(table)}`);
        if ((places.get(special.text) ?? table) !== table)
          expect.fail(`${message}: ${special.text} is also of other places`);
        texts.set(table, special.text);
        places.set(special.text, table);
      }
    }
  });
});

test("owners of nothing but zeros have one order", () => {
  const special = (text: string, shape: readonly number[]): string => {
    const layout = parseLayout(text);
    return layout.kind === "splat" ? text : specializeLayout(layout, shape).text;
  };
  expect(special("(L1 L0)", [1])).toBe(special("(L0 L1)", [1]));
  expect(special("(L2 | R0 L1)", [1, 2])).toBe(special("(L1 | R0 L2)", [1, 2]));
});

describe("splat and replication", () => {
  test("every lane holds a splat in one register", () => {
    expect(registersPerLane(splat, [64, 64])).toBe(1);
    expect(replication(splat)).toBe(128);
    expect(holders(splat, [4], 3)).toHaveLength(128);
    expect(elementAt(splat, [4], { warp: 3, lane: 31, register: 0 })).toBe(0);
    expect(elementAt(splat, [4], { warp: 0, lane: 0, register: 1 })).toBeUndefined();
    expect(samePlaces(splat, splat, [4])).toBe(true);
    expect(samePlaces(splat, replicatedLayout, [1])).toBe(false);
  });

  test("without bits every lane holds everything", () => {
    expect(registersPerLane(replicatedLayout, [3, 5])).toBe(15);
    expect(replication(replicatedLayout)).toBe(128);
    expect(atomExtents(replicatedLayout, [3, 5])).toEqual([1, 1]);
    expect(registersPerLane(replicatedLayout, [])).toBe(1);
  });
});
