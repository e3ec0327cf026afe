/**
 * What programs may import, by the names they import it under. What most programs use is at hand; where one asks for more, the
 * whole module is loaded:
 *
 *   import { kernel, f32 } from "tilewright"        at hand
 *   import { compileAhead } from "tilewright"       loads the compiler
 */
import * as common from "../../../../src/index.ts?common";
import * as data from "../../../../examples/support/data.ts";
import * as roundoff from "../../../../examples/support/roundoff.ts";
import * as assert from "./assert.ts";
import { compareWithReference } from "../../../../src/testing/compare.ts";

export type ModuleExports = { readonly [name: string]: unknown };

export interface Importable {
  readonly atHand: ModuleExports;
  /** The module with everything that it exports; undefined where all of it is at hand. */
  readonly whole?: () => Promise<ModuleExports>;
}

export const compiler = () => import("./parts/compiler.ts");
export const cpu = () => import("../../../../src/cpu/device/open.ts");
export const programs = () => import("./parts/programs.ts");
const examples = () => import("./parts/examples.ts");

function later(whole: () => Promise<ModuleExports>): Importable {
  return { atHand: {}, whole };
}

/** The examples and their helpers go by the paths that examples import them under. */
export const importable: { readonly [specifier: string]: Importable } = {
  tilewright: { atHand: common, whole: async () => (await compiler()).library },
  "tilewright/testing": {
    atHand: { compareWithReference },
    whole: async () => (await compiler()).testing,
  },
  "node:assert/strict": { atHand: assert },
  "tilewright/emulator": later(async () => (await compiler()).emulator),
  "tilewright/files": later(async () => (await compiler()).files),
  "tilewright/arrays": later(async () => (await programs()).arrays),
  "tilewright/graph": later(async () => (await programs()).graph),
  "tilewright/kernels": later(async () => (await programs()).kernels),
  "./axpy.ts": later(async () => (await examples()).axpy),
  "./cluster.ts": later(async () => (await examples()).cluster),
  "./column-sum.ts": later(async () => (await examples()).columnSum),
  "./handoff.ts": later(async () => (await examples()).handoff),
  "./matmul.ts": later(async () => (await examples()).matmul),
  "./softmax.ts": later(async () => (await examples()).softmax),
  "./transpose.ts": later(async () => (await examples()).transpose),
  "./support/data.ts": { atHand: data },
  "./support/product.ts": later(async () => (await examples()).product),
  "./support/roundoff.ts": { atHand: roundoff },
};

/** What a program gets that imports these names; undefined: all of them. */
export async function moduleFor(
  { atHand, whole }: Importable,
  names: readonly string[] | undefined,
): Promise<ModuleExports> {
  const isEnough = names !== undefined && names.every((name) => name in atHand);
  return whole === undefined || isEnough ? atHand : whole();
}
