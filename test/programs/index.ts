/**
 * PTX programs for the emulator, each about one instruction or a few, with the bytes that it must leave.
 *
 *   add.u32 of the edges of u32, by every thread      ──▶      words in memory, as an H200 left them
 */
import { atomicPrograms } from "./atomics.ts";
import { barrierPrograms } from "./barriers.ts";
import { clusterPrograms } from "./clusters.ts";
import { comparePrograms } from "./compare.ts";
import { controlPrograms } from "./control.ts";
import { convertPrograms } from "./convert.ts";
import { copyPrograms } from "./copies.ts";
import { floatPrograms } from "./float.ts";
import { im2colPrograms } from "./im2col.ts";
import { integerPrograms } from "./integer.ts";
import { mapPrograms } from "./maps.ts";
import { matrixPrograms } from "./matrices.ts";
import { mbarrierPrograms } from "./mbarriers.ts";
import { memoryPrograms } from "./memory.ts";
import { productPrograms } from "./products.ts";
import type { Program } from "./program.ts";
import { remotePrograms } from "./remote.ts";
import { sparsePrograms } from "./sparse.ts";
import { stackPrograms } from "./stack.ts";
import { tensorPrograms } from "./tensor.ts";
import { variantPrograms } from "./variants.ts";
import { videoPrograms } from "./video.ts";
import { warpPrograms } from "./warp.ts";
import { wgmmaPrograms } from "./wgmma.ts";

let programs: readonly Program[] | undefined;

/** Made once for all files that run some of them. */
export function allPrograms(): readonly Program[] {
  programs ??= makePrograms();
  return programs;
}

function makePrograms(): readonly Program[] {
  return [
    ...integerPrograms(),
    ...floatPrograms(),
    ...comparePrograms(),
    ...convertPrograms(),
    ...videoPrograms(),
    ...memoryPrograms(),
    ...atomicPrograms(),
    ...warpPrograms(),
    ...barrierPrograms(),
    ...mbarrierPrograms(),
    ...controlPrograms(),
    ...stackPrograms(),
    ...copyPrograms(),
    ...tensorPrograms(),
    ...mapPrograms(),
    ...im2colPrograms(),
    ...matrixPrograms(),
    ...productPrograms(),
    ...sparsePrograms(),
    ...wgmmaPrograms(),
    ...clusterPrograms(),
    ...remotePrograms(),
    ...variantPrograms(),
  ];
}
