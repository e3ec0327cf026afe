/** Relaxed SIMD: what each engine may do in its own way. A module that holds one of them is refused whole where the engine knows none. */
import { plain } from "./opcode.ts";

export const relaxedOpcodes = {
  "i8x16.relaxed_swizzle": plain(0xfd, 0x100, "vv:v"),
  "i32x4.relaxed_trunc_f32x4_s": plain(0xfd, 0x101, "v:v"),
  "i32x4.relaxed_trunc_f32x4_u": plain(0xfd, 0x102, "v:v"),
  "i32x4.relaxed_trunc_f64x2_s_zero": plain(0xfd, 0x103, "v:v"),
  "i32x4.relaxed_trunc_f64x2_u_zero": plain(0xfd, 0x104, "v:v"),
  "f32x4.relaxed_madd": plain(0xfd, 0x105, "vvv:v"),
  "f32x4.relaxed_nmadd": plain(0xfd, 0x106, "vvv:v"),
  "f64x2.relaxed_madd": plain(0xfd, 0x107, "vvv:v"),
  "f64x2.relaxed_nmadd": plain(0xfd, 0x108, "vvv:v"),
  "i8x16.relaxed_laneselect": plain(0xfd, 0x109, "vvv:v"),
  "i16x8.relaxed_laneselect": plain(0xfd, 0x10a, "vvv:v"),
  "i32x4.relaxed_laneselect": plain(0xfd, 0x10b, "vvv:v"),
  "i64x2.relaxed_laneselect": plain(0xfd, 0x10c, "vvv:v"),
  "f32x4.relaxed_min": plain(0xfd, 0x10d, "vv:v"),
  "f32x4.relaxed_max": plain(0xfd, 0x10e, "vv:v"),
  "f64x2.relaxed_min": plain(0xfd, 0x10f, "vv:v"),
  "f64x2.relaxed_max": plain(0xfd, 0x110, "vv:v"),
  "i16x8.relaxed_q15mulr_s": plain(0xfd, 0x111, "vv:v"),
  "i16x8.relaxed_dot_i8x16_i7x16_s": plain(0xfd, 0x112, "vv:v"),
  "i32x4.relaxed_dot_i8x16_i7x16_add_s": plain(0xfd, 0x113, "vvv:v"),
} as const;
