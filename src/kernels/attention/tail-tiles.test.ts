/** Short tiles: how many there are, by a count of their own, and that kernels take every row once, whatever they are told. */
import { expect, test } from "vitest";
import { bf16, f8e4m3fn } from "../../formats/dtype.ts";
import { attention } from "./attention.ts";
import { shortDeal } from "./tail-tiles.ts";

const named = (b: number, s: number, h: number) => ({ b, s, t: s, h, kv: h, d: 128, e: 128 });
const sizes = (b: number, s: number, h: number) => ({ ...named(b, s, h), ends: 0 });

test("the last round is one of short tiles where that is done sooner", () => {
  // 20 · 64 whole tiles and 2 · 64 short ones: 10 whole ones and a short one for the busiest of 132, where 22 · 64 would be 11 rounds.
  const many = shortDeal(sizes(4, 4096, 16), 132);
  expect(many).toMatchObject({ whole: 20, tiles: 64 * 22 });
  expect(many.time).toBeCloseTo(10.8, 10);
  // One round is done no sooner by more tiles than there are processors.
  expect(shortDeal(sizes(1, 132 * 192, 1), 132)).toMatchObject({ whole: 132, tiles: 132, time: 1 });
  // Few rows: as many short tiles as fit beside each other.
  expect(shortDeal(sizes(1, 1024, 1), 132)).toMatchObject({ whole: 0, tiles: 8, time: 0.8 });
  expect(shortDeal(sizes(1, 192, 132), 132)).toMatchObject({ whole: 1, tiles: 132, time: 1 });
});

test("kernels are told, and others know nothing of them", () => {
  const narrow = attention({ q: f8e4m3fn, k: f8e4m3fn, v: f8e4m3fn, out: bf16 });
  const told = (each: { readonly kernels: typeof narrow.kernels }) =>
    each
      .kernels(named(4, 4096, 16))
      .filter(({ name }) => name === "attention")
      .map(({ kernel }) => kernel.parameters.some(({ name }) => name === "whole"));
  expect(told(narrow)).toEqual([true]);
  const causal = attention({ q: f8e4m3fn, k: f8e4m3fn, v: f8e4m3fn, out: bf16, causal: true });
  expect(told(causal as unknown as typeof narrow)).toEqual([false]);
  const wide = attention({ q: bf16, k: bf16, v: bf16 });
  expect(told(wide as unknown as typeof narrow)).toEqual([false]);
});
