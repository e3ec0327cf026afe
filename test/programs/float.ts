/**
 * Float arithmetic. Approximate instructions may be as far from the true result as PTX documents; the
 * emulator rounds the true result, so that its own distance is half a unit in the last place:
 *
 *   | instruction           | bound                                                    |
 *   |-----------------------|----------------------------------------------------------|
 *   | div.approx, div.full  | 2 units in the last place, divisors of 2⁻¹²⁶ to 2¹²⁶     |
 *   | rcp.approx            | 1 unit in the last place                                 |
 *   | sqrt.approx           | 2⁻²³ relative                                            |
 *   | rsqrt.approx          | 2⁻²²·⁹ relative                                          |
 *   | sin.approx, cos.approx| 2⁻²⁰·⁵ absolute, from −2π to 2π                          |
 *   | lg2.approx            | 2⁻²² absolute from 0.5 to 2, relative elsewhere          |
 *   | ex2.approx            | 2⁻²² relative; f16 2⁻⁹·⁹; bf16 2⁻⁷                       |
 *   | tanh.approx           | 2⁻¹¹ relative; f16 2⁻¹⁰·⁹⁸⁷ and bf16 2⁻⁸ absolute        |
 *   | …approx.ftz.f64       | 2⁻²⁰ relative: the upper word of the operand alone counts |
 */
import { lanePrograms, row } from "./lanes.ts";
import type { LaneRow } from "./lanes.ts";
import type { Check, FloatName, Program } from "./program.ts";

const group = "float";
const rounding = "{rn,rz,rm,rp}";

const fractionBits: { readonly [T in FloatName]: number } = { f16: 10, bf16: 7, f32: 23, f64: 52 };
const leastExponents: { readonly [T in FloatName]: number } = {
  f16: -14,
  bf16: -126,
  f32: -126,
  f64: -1022,
};

/** The distance to the next number of the format. */
function ulp(type: FloatName, value: number): number {
  const exponent = value === 0 ? -1100 : Math.floor(Math.log2(Math.abs(value)));
  return 2 ** (Math.max(exponent, leastExponents[type]) - fractionBits[type]);
}

/** Subnormal results are off by one more rounding. */
function relative(type: FloatName, bound: number): Check {
  const least = 2 ** leastExponents[type];
  return {
    kind: "close",
    type,
    tolerance: (value) =>
      bound * Math.abs(value) + ulp(type, value) / (Math.abs(value) < least ? 1 : 2),
  };
}

function absolute(type: FloatName, bound: number): Check {
  return { kind: "close", type, tolerance: (value) => bound + ulp(type, value) / 2 };
}

function units(type: FloatName, count: number): Check {
  return { kind: "close", type, tolerance: (value) => (count + 0.5) * ulp(type, value) };
}

const logarithm: Check = {
  kind: "close",
  type: "f32",
  tolerance: (value) =>
    2 ** -22 * (Math.abs(value) < 1 ? 1 : Math.abs(value)) + ulp("f32", value) / 2,
};

/** Sums, products and fused products of f32 in every rounding. */
function roundings(
  root: string,
  operands: string,
): { readonly [name: string]: readonly LaneRow[] } {
  const isFused = root === "fma" || root === "mad";
  const choices = isFused ? ".{rn,rz,rm,rp}" : "{,.rn,.rz,.rm,.rp}";
  return {
    [`float_${root}_f32`]: [row(`${root}${choices}.f32`, operands)],
    [`float_${root}_f32_ftz`]: [row(`${root}${choices}.ftz.f32`, operands)],
    [`float_${root}_f32_sat`]: [row(`${root}${choices}{,.ftz}.sat.f32`, operands)],
    [`float_${root}_f64`]: [row(`${root}${choices}.f64`, operands)],
  };
}

const halfTypes = ["f16", "f16x2", "bf16", "bf16x2"] as const;

function halfName(type: (typeof halfTypes)[number]): FloatName {
  return type.startsWith("bf16") ? "bf16" : "f16";
}

/** Sums and products of the narrow types; f16 alone flushes and saturates. */
function halves(): { readonly [name: string]: readonly LaneRow[] } {
  const found: { [name: string]: readonly LaneRow[] } = {};
  for (const type of halfTypes) {
    const flags = halfName(type) === "f16" ? "{,.ftz}{,.sat}" : "";
    const flush = halfName(type) === "f16" ? "{,.ftz}" : "";
    for (const root of ["add", "sub", "mul"])
      found[`half_${root}_${type}`] = [row(`${root}{,.rn}${flags}.${type}`, "$ = $ $")];
    found[`half_fma_${type}`] = [
      row(`fma.rn${flags}.${type}`, "$ = $ $ $"),
      row(`fma.rn${flush}.relu.${type}`, "$ = $ $ $"),
    ];
    // Operands that a tensor copy filled in for elements outside make the product zero.
    found[`half_fma_oob_${type}`] = [row(`fma.rn.oob{,.relu}.${type}`, "$ = outside$ outside$ $")];
    found[`half_sign_${type}`] = [row(`{neg,abs}${flush}.${type}`, "$ = $")];
    for (const root of ["min", "max"])
      found[`half_${root}_${type}`] = [
        row(`${root}${flush}{,.NaN}{,.xorsign.abs}.${type}`, "$ = $ $"),
      ];
  }
  return found;
}

/** Results at the border of what `.ftz` flushes. */
const flushTables: { readonly [name: string]: readonly LaneRow[] } = {
  float_flush_mul: [row("mul{,.rn,.rz,.rm,.rp}.ftz{,.sat}.f32", "$ = factorf32 leastf32")],
  float_flush_fma: [
    row("fma.{rn,rz,rm,rp}.ftz{,.sat}.f32", "$ = factorf32 leastf32 signedZero32"),
    row("fma.{rn,rz,rm,rp}.ftz.f32", "$ = factorf32 leastf32 leastf32"),
  ],
  float_flush_div: [row("div.{rn,rz,rm,rp}.ftz.f32", "$ = leastf32 factorf32")],
  half_flush_mul: [row("mul{,.rn}.ftz{,.sat}.f16", "$ = factorf16 leastf16")],
  half_flush_fma: [row("fma.rn.ftz{,.sat,.relu}.f16", "$ = factorf16 leastf16 signedZero16")],
};

const exactTables: { readonly [name: string]: readonly LaneRow[] } = {
  ...roundings("add", "$ = $ $"),
  ...roundings("sub", "$ = $ $"),
  ...roundings("mul", "$ = $ $"),
  ...roundings("fma", "$ = $ $ $"),
  ...roundings("mad", "$ = $ $ $"),
  ...halves(),
  float_div_f32: [row(`div.${rounding}{,.ftz}.f32`, "$ = $ $")],
  float_div_f64: [row(`div.${rounding}.f64`, "$ = $ $")],
  float_rcp_f32: [row(`rcp.${rounding}{,.ftz}.f32`, "$ = $")],
  float_rcp_f64: [row(`rcp.${rounding}.f64`, "$ = $")],
  float_sqrt_f32: [row(`sqrt.${rounding}{,.ftz}.f32`, "$ = $")],
  float_sqrt_f64: [row(`sqrt.${rounding}.f64`, "$ = $")],
  float_sign: [row("{neg,abs}{,.ftz}.f32", "$ = $"), row("{neg,abs}.f64", "$ = $")],
  float_min: [row("min{,.ftz}{,.NaN}{,.xorsign.abs}.f32", "$ = $ $"), row("min.f64", "$ = $ $")],
  float_max: [row("max{,.ftz}{,.NaN}{,.xorsign.abs}.f32", "$ = $ $"), row("max.f64", "$ = $ $")],
  float_copysign: [row("copysign.{f32,f64}", "$ = $ $")],
  float_testp: [
    row("testp.{finite,infinite,number,notanumber,normal,subnormal}.{f32,f64}", "p = $"),
  ],
};

const approximateTables: { readonly [name: string]: readonly LaneRow[] } = {
  approximate_div: [row("div.{approx,full}{,.ftz}.f32", "$ = moderate moderate", units("f32", 2))],
  approximate_rcp: [row("rcp.approx{,.ftz}.f32", "$ = $", units("f32", 1))],
  approximate_sqrt: [row("sqrt.approx{,.ftz}.f32", "$ = $", relative("f32", 2 ** -23))],
  approximate_rsqrt: [row("rsqrt.approx{,.ftz}.f32", "$ = $", relative("f32", 2 ** -22.9))],
  approximate_sin: [row("sin.approx{,.ftz}.f32", "f32 = angle", absolute("f32", 2 ** -20.5))],
  approximate_cos: [row("cos.approx{,.ftz}.f32", "f32 = angle", absolute("f32", 2 ** -20.5))],
  approximate_lg2: [row("lg2.approx{,.ftz}.f32", "$ = $", logarithm)],
  approximate_ex2: [row("ex2.approx{,.ftz}.f32", "$ = $", relative("f32", 2 ** -22))],
  approximate_tanh: [row("tanh.approx.f32", "$ = $", relative("f32", 2 ** -11))],
  approximate_wide: [
    row("{rcp,rsqrt}.approx.ftz.f64", "$ = $", relative("f64", 2 ** -20)),
    row("rsqrt.approx.f64", "$ = $", relative("f64", 2 ** -20)),
  ],
  approximate_tanh_half: [
    row("tanh.approx.{f16,f16x2}", "$ = $", absolute("f16", 2 ** -10.987)),
    row("tanh.approx.{bf16,bf16x2}", "$ = $", absolute("bf16", 2 ** -8)),
  ],
  approximate_ex2_half: [
    row("ex2.approx.{f16,f16x2}", "$ = $", relative("f16", 2 ** -9.9)),
    row("ex2.approx.ftz.{bf16,bf16x2}", "$ = $", relative("bf16", 2 ** -7)),
  ],
};

export function floatPrograms(): readonly Program[] {
  return Object.entries({ ...exactTables, ...flushTables, ...approximateTables }).flatMap(
    ([name, rows]) => lanePrograms(name.startsWith("half") ? "half" : group, name, rows),
  );
}
