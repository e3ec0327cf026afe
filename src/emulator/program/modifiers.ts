/**
 * The modifiers that instructions have, besides types. Rules look for those that they know; what is left
 * over would change what the instruction means, and is refused.
 *
 *   add.rn.ftz.f32     known
 *   add.rounded.f32    TW8001: .rounded is no modifier of add
 */
import { OperandError } from "../thread-instructions/writer.ts";
import type { LaneInstruction } from "../thread-instructions/rule.ts";
import { productInstructions } from "../../targets/product-instructions.ts";

const rounding = "rn rz rm rp";
const compare = "eq ne lt le gt ge lo ls hi hs equ neu ltu leu gtu geu num nan and or xor ftz";
const blockScopes = "cta cluster gpu sys";
const sharedWindows = "shared shared::cta shared::cluster";
const eviction =
  "L1::evict_normal L1::evict_unchanged L1::evict_first L1::evict_last L1::no_allocate L2::evict_normal L2::evict_first L2::evict_last L2::cache_hint";
const accesses = `v2 v4 v8 global ${sharedWindows} local param param::func param::entry weak volatile relaxed mmio ${blockScopes} ${eviction}`;
const atomics = `global ${sharedWindows} add inc dec min max and or xor noftz v2 v4 v8 relaxed ${blockScopes} L2::cache_hint`;
const video = "add min max sat";
const packedVideo = "add sat";
const bits = "";
const collectors = ["a", "b0", "b1", "b2", "b3"]
  .flatMap((buffer) =>
    ["fill", "use", "lastuse", "discard"].map((use) => `collector::${buffer}::${use}`),
  )
  .join(" ");

/** By the root of the opcode, with spaces between. */
const known: { readonly [root: string]: string } = {
  abs: "ftz",
  activemask: "",
  add: `sat cc ftz ${rounding}`,
  addc: "cc",
  alloca: "",
  and: bits,
  applypriority: "L2::evict_normal global",
  atom: `${atomics} exch cas acquire release acq_rel`,
  bar: "warp sync arrive cta red popc and or",
  barrier: "sync aligned arrive cta red popc and or cluster release relaxed wait acquire",
  bfe: bits,
  bfi: bits,
  bfind: "shiftamt",
  bmsk: "clamp wrap",
  bra: "uni",
  brev: bits,
  brkpt: "",
  brx: "idx uni",
  call: "uni",
  clusterlaunchcontrol:
    "try_cancel query_cancel async shared::cta mbarrier::complete_tx::bytes multicast::cluster::all is_canceled get_first_ctaid get_first_ctaid::x get_first_ctaid::y get_first_ctaid::z v4",
  clz: bits,
  cnot: bits,
  copysign: "",
  cos: "approx ftz",
  cp: `async ca cg global ${sharedWindows} L2 L2::64B L2::128B L2::256B L2::cache_hint commit_group wait_group wait_all mbarrier arrive noinc bulk mbarrier::complete_tx::bytes multicast::cluster bulk_group reduce and or xor add inc dec min max noftz prefetch read tensor 1d 2d 3d 4d 5d tile im2col im2col_no_offs tile::gather4 tile::scatter4 cp_mask cta_group::1 cta_group::2`,
  createpolicy:
    "fractional L2::evict_last L2::evict_normal L2::evict_first L2::evict_unchanged range global cvt L2",
  cvt: `sat rni rzi rmi rpi ftz ${rounding} rna rs satfinite relu pack u4 s4 u2 s2`,
  cvta: `global ${sharedWindows} local const param param::entry to`,
  discard: "L2 global",
  div: `${rounding} ftz approx full`,
  dp2a: "lo hi",
  dp4a: "",
  elect: "sync",
  ex2: "approx ftz",
  exit: "",
  fence: `acquire release sc acq_rel ${blockScopes} sync_restrict::shared::cluster sync_restrict::shared::cta proxy alias async global shared::cta shared::cluster tensormap::generic async::generic mbarrier_init`,
  fma: `${rounding} sat ftz relu oob`,
  fns: bits,
  getctarank: "shared::cluster",
  griddepcontrol: "launch_dependents wait",
  isspacep: `global ${sharedWindows} local const param param::entry`,
  ld: `${accesses} nc const ca cg cs lu cv acquire L2::64B L2::128B L2::256B`,
  ldmatrix:
    "sync aligned m8n8 m8n16 m16n16 b8x16 b4x16_p64 b6x16_p32 x1 x2 x4 shared shared::cta trans",
  ldu: "global v2 v4",
  lg2: "approx ftz",
  lop3: "and or",
  mad: `lo hi wide sat cc ftz ${rounding}`,
  mad24: "lo hi sat",
  madc: "lo hi cc",
  mapa: "shared::cluster",
  match: "any all sync",
  max: "relu xorsign abs NaN ftz",
  mbarrier: `init shared shared::cta shared::cluster inval arrive arrive_drop release acquire relaxed cta cluster expect_tx complete_tx noComplete test_wait try_wait parity pending_count`,
  membar: "proxy alias cta gl sys",
  min: "relu xorsign abs NaN ftz",
  mma: `sync aligned row col e4m3 e5m2 e2m3 e3m2 e2m1 ue8m0 ue4m3 kind::f8f6f4 kind::mxf8f6f4 kind::mxf4 kind::mxf4nvf4 block_scale scale_vec::1X scale_vec::2X scale_vec::4X s4 u4 satfinite and popc xor ${rounding} sp sp::ordered_metadata`,
  mov: "",
  movmatrix: "sync aligned m8n8 trans",
  mul: `lo hi wide sat ftz ${rounding}`,
  mul24: "lo hi",
  nanosleep: "",
  neg: "ftz",
  not: bits,
  or: bits,
  pmevent: "mask",
  popc: bits,
  prefetch: "L1 L2 global local L2::evict_last L2::evict_normal tensormap param const",
  prefetchu: "L1",
  prmt: "f4e b4e rc8 ecl ecr rc16",
  rcp: `${rounding} ftz approx`,
  red: `${atomics} release async mbarrier::complete_tx::bytes`,
  redux: "sync add min max and or xor abs NaN",
  rem: "",
  ret: "uni",
  rsqrt: "approx ftz",
  sad: "",
  selp: "",
  set: compare,
  setmaxnreg: "inc dec sync aligned",
  setp: compare,
  shf: "l r clamp wrap",
  shfl: "sync up down bfly idx",
  shl: bits,
  shr: bits,
  sin: "approx ftz",
  slct: "ftz",
  sqrt: `${rounding} ftz approx`,
  st: `${accesses} release wb cg cs wt async mbarrier::complete_tx::bytes`,
  stackrestore: "",
  stacksave: "",
  stmatrix: "sync aligned m8n8 x1 x2 x4 shared shared::cta trans",
  sub: `sat cc ftz ${rounding}`,
  subc: "cc",
  szext: "clamp wrap",
  tanh: "approx",
  tcgen05: `alloc dealloc relinquish_alloc_permit ld red st wait::ld wait::st fence::before_thread_sync fence::after_thread_sync mma ws sp cp shift down commit cta_group::1 cta_group::2 sync aligned shared::cta shared::cluster 32x32b 16x64b 16x128b 16x256b 16x32bx2 x1 x2 x4 x8 x16 x32 x64 x128 pack::16b unpack::16b min max abs NaN kind::f16 kind::tf32 kind::f8f6f4 kind::i8 kind::mxf8f6f4 kind::mxf4 kind::mxf4nvf4 block_scale scale_vec::1X scale_vec::2X scale_vec::4X block16 block32 ashift ${collectors} 128x256b 128x128b 64x128b 32x128b 4x256b warpx2::02_13 warpx2::01_23 warpx4 b8x16 b4x16_p64 b6x16_p32 mbarrier::arrive::one multicast::cluster`,
  tensormap: `replace tile b1024 global shared::cta global_address global_stride global_dim box_dim element_stride rank elemtype interleave_layout swizzle_mode fill_mode cp_fenceproxy tensormap::generic release sync aligned ${blockScopes}`,
  testp: "finite infinite number notanumber normal subnormal",
  trap: "",
  vabsdiff: video,
  vabsdiff2: packedVideo,
  vabsdiff4: packedVideo,
  vadd: video,
  vadd2: packedVideo,
  vadd4: packedVideo,
  vavrg2: packedVideo,
  vavrg4: packedVideo,
  vmad: "shr7 shr15 sat po",
  vmax: video,
  vmax2: packedVideo,
  vmax4: packedVideo,
  vmin: video,
  vmin2: packedVideo,
  vmin4: packedVideo,
  vote: "sync all any uni ballot",
  vset: "eq ne lt le gt ge add min max",
  vset2: "eq ne lt le gt ge add",
  vset4: "eq ne lt le gt ge add",
  vshl: `clamp wrap ${video}`,
  vshr: `clamp wrap ${video}`,
  vsub: video,
  vsub2: packedVideo,
  vsub4: packedVideo,
  wgmma:
    "fence sync aligned commit_group wait_group mma_async e4m3 e5m2 satfinite and popc sp sp::ordered_metadata",
  wmma: `load store mma a b c d sync aligned row col global shared shared::cta s4 u4 satfinite and popc xor ${rounding}`,
  xor: bits,
};

/** The shape of a product of matrices. */
const shape = /^m\d+n\d+k\d+$/;
const withShapes: ReadonlySet<string> = new Set([
  "wmma",
  ...[productInstructions["mma.sync"], productInstructions.wgmma].map(({ root }) => root),
]);

const sets = new Map(
  Object.entries(known).map(([root, text]) => [root, new Set(text.split(" "))] as const),
);

export const modifierRoots: readonly string[] = Object.keys(known);

/** Refuses a modifier that the instruction does not have. */
export function requireKnownModifiers({ root, modifiers, types }: LaneInstruction): void {
  const allowed = sets.get(root);
  if (allowed === undefined) return;
  const unknown = modifiers.find(
    (modifier) =>
      !allowed.has(modifier) &&
      !types.includes(modifier) &&
      !(withShapes.has(root) && shape.test(modifier)),
  );
  if (unknown !== undefined) throw new OperandError(`.${unknown} is no modifier of ${root}`);
}
