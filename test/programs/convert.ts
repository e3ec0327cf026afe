/** Conversions between every two types. */
import { lanePrograms, row } from "./lanes.ts";
import type { LaneRow } from "./lanes.ts";
import type { Program } from "./program.ts";

const group = "convert";
const integers = ["u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64"] as const;
const rounding = "{rn,rz,rm,rp}";
const whole = "{rni,rzi,rmi,rpi}";

/** Bits of the register that holds a type; bytes are kept in registers of 16 bits. */
function widthOf(type: string): "b16" | "b32" | "b64" {
  if (type.endsWith("64")) return "b64";
  return type.endsWith("32") ? "b32" : "b16";
}

/** Whether every value of one type is one of the other: then there is nothing to saturate. */
function holds(to: string, from: string): boolean {
  const [toBits, fromBits] = [Number(to.slice(1)), Number(from.slice(1))];
  if (to[0] === from[0]) return toBits >= fromBits;
  return to.startsWith("s") && toBits > fromBits;
}

/** Of integers: cut, extended and saturated, and into registers wider than the type. */
function betweenIntegers(): readonly Program[] {
  return integers.flatMap((from) =>
    lanePrograms(
      group,
      `cvt_from_${from}`,
      integers.flatMap((to): readonly LaneRow[] => {
        const wider = widthOf(to) === "b64" ? [] : [row(`cvt.${to}.${from}`, `b64 = ${from}`)];
        const flags = holds(to, from) ? "" : "{,.sat}";
        return [row(`cvt${flags}.${to}.${from}`, `${widthOf(to)} = ${from}`), ...wider];
      }),
    ),
  );
}

/** Integers that a float converts to and from: bf16 leaves out bytes. */
function integersOf(float: string): readonly string[] {
  return float === "bf16" ? integers.slice(2) : integers;
}

function flagsOf(float: string): string {
  if (float === "bf16") return "";
  return float === "f32" ? "{,.ftz}{,.sat}" : "{,.sat}";
}

function toIntegers(): readonly Program[] {
  return ["f16", "bf16", "f32", "f64"].flatMap((from) =>
    lanePrograms(
      group,
      `cvt_from_${from}`,
      integersOf(from).map((to) =>
        row(`cvt.${whole}${flagsOf(from)}.${to}.${from}`, `${widthOf(to)} = ${from}`),
      ),
    ),
  );
}

function fromIntegers(): readonly Program[] {
  return ["f16", "bf16", "f32", "f64"].flatMap((to) =>
    lanePrograms(
      group,
      `cvt_to_${to}`,
      integersOf(to).map((from) =>
        row(`cvt.${rounding}${to === "bf16" ? "" : "{,.sat}"}.${to}.${from}`, `${to} = ${from}`),
      ),
    ),
  );
}

const betweenFloats: { readonly [name: string]: readonly LaneRow[] } = {
  cvt_f16_f16: [row(`cvt.${whole}{,.sat}.f16.f16`, "$ = $"), row("cvt.sat.f16.f16", "$ = $")],
  cvt_bf16_bf16: [row(`cvt.${whole}.bf16.bf16`, "$ = $")],
  cvt_f32_f32: [row(`cvt{,.rni,.rzi,.rmi,.rpi}{,.ftz}{,.sat}.f32.f32`, "$ = $")],
  cvt_f64_f64: [row(`cvt{,.rni,.rzi,.rmi,.rpi}{,.sat}.f64.f64`, "$ = $")],
  cvt_f32_f64: [row(`cvt.${rounding}{,.ftz}{,.sat}.f32.f64`, "f32 = $")],
  // Around the smallest normal number of f32, where it shows when .ftz flushes.
  cvt_flush_f32_f64: [row(`cvt.${rounding}.ftz{,.sat}.f32.f64`, "f32 = leastSingle")],
  cvt_f64_f32: [row("cvt{,.ftz}{,.sat}.f64.f32", "f64 = $")],
  cvt_f16_f32: [
    row(`cvt.${rounding}{,.ftz}{,.sat}.f16.f32`, "f16 = $"),
    row("cvt.{rn,rz}{,.relu}{,.satfinite}.f16.f32", "f16 = $"),
  ],
  cvt_f16_f64: [row(`cvt.${rounding}{,.sat}.f16.f64`, "f16 = $")],
  cvt_f32_f16: [row("cvt{,.ftz}{,.sat}.f32.f16", "f32 = $")],
  cvt_f64_f16: [row("cvt{,.sat}.f64.f16", "f64 = $")],
  cvt_bf16_f32: [
    row("cvt.{rn,rz,rm,rp}.bf16.f32", "bf16 = $"),
    row("cvt.{rn,rz}{,.relu}{,.satfinite}.bf16.f32", "bf16 = $"),
  ],
  cvt_bf16_f64: [row(`cvt.${rounding}.bf16.f64`, "bf16 = $")],
  cvt_bf16_f16: [row(`cvt.${rounding}.bf16.f16`, "bf16 = $")],
  cvt_f16_bf16: [row(`cvt.${rounding}.f16.bf16`, "f16 = $")],
  cvt_f32_bf16: [row("cvt{,.ftz}.f32.bf16", "f32 = $")],
  cvt_f64_bf16: [row("cvt.f64.bf16", "f64 = $")],
  cvt_f16x2_f32: [row("cvt.{rn,rz}{,.relu}{,.satfinite}.f16x2.f32", "b32 = f32 f32")],
  cvt_bf16x2_f32: [row("cvt.{rn,rz}{,.relu}{,.satfinite}.bf16x2.f32", "b32 = f32 f32")],
  cvt_tf32_f32: [
    row("cvt.rna{,.satfinite}.tf32.f32", "b32 = f32"),
    row("cvt.{rn,rz}{,.relu}.tf32.f32", "b32 = f32"),
  ],
  cvt_to_small: [
    row("cvt.rn.satfinite{,.relu}.{e4m3x2,e5m2x2}.f32", "b16 = f32 f32"),
    row("cvt.rn.satfinite{,.relu}.{e4m3x2,e5m2x2}.f16x2", "b16 = f16x2"),
  ],
  cvt_from_small: [row("cvt.rn{,.relu}.f16x2.{e4m3x2,e5m2x2}", "b32 = $")],
  cvt_pack: [
    row("cvt.pack.sat.{u16,s16}.s32", "b32 = s32 s32"),
    row("cvt.pack.sat.{u8,s8,u4,s4,u2,s2}.s32.b32", "b32 = s32 s32 b32"),
  ],
};

export function convertPrograms(): readonly Program[] {
  return [
    ...betweenIntegers(),
    ...toIntegers(),
    ...fromIntegers(),
    ...Object.entries(betweenFloats).flatMap(([name, rows]) => lanePrograms(group, name, rows)),
  ];
}
