/**
 * Runs a few instructions on the emulator, a case a lane: `%i0`, `%i1` … hold the case's inputs, and what the
 * body leaves in `%o0`, `%o1` … is given back.
 */
import { EmulatedMemory, emulate } from "../../src/emulator/index.ts";
import { parsedModule } from "./parsed-modules.ts";
import { targets } from "../../src/targets/target.ts";

export type SlotType = "pred" | "b16" | "b32" | "b64";

export interface LaneProgram {
  readonly inputs: readonly SlotType[];
  readonly outputs: readonly SlotType[];
  readonly body: string;
  /** Of the module and the GPU. */
  readonly target?: keyof typeof targets;
}

function header(target: string): string {
  return `.version ${target === "sm_90a" ? "8.0" : "9.0"}\n.target ${target}\n.address_size 64\n`;
}

function loadText(type: SlotType, slot: number): string {
  if (type !== "pred") return `ld.global.${type} %i${slot}, [%from+${8 * slot}];`;
  return `ld.global.b32 %word, [%from+${8 * slot}]; setp.ne.b32 %i${slot}, %word, 0;`;
}

function storeText(type: SlotType, slot: number): string {
  if (type !== "pred") return `st.global.${type} [%to+${8 * slot}], %o${slot};`;
  return `selp.b32 %word, 1, 0, %o${slot}; st.global.b32 [%to+${8 * slot}], %word;`;
}

export function laneModuleText({ inputs, outputs, body, target = "sm_90a" }: LaneProgram): string {
  const declared = (prefix: string, types: readonly SlotType[]): string[] =>
    types.map((type, slot) => `.reg .${type} %${prefix}${slot};`);
  return [
    header(target),
    ".visible .entry lanes(.param .u64 in, .param .u64 out, .param .u32 count)",
    "{",
    ".reg .pred %past; .reg .b32 %word, %index, %size, %block, %own; .reg .b64 %from, %to, %wide;",
    ...declared("i", inputs),
    ...declared("o", outputs),
    "mov.u32 %block, %ctaid.x; mov.u32 %size, %ntid.x; mov.u32 %own, %tid.x;",
    "mad.lo.s32 %index, %block, %size, %own;",
    "ld.param.u32 %word, [count]; setp.ge.u32 %past, %index, %word; @%past bra $end;",
    `ld.param.u64 %from, [in]; mul.wide.u32 %wide, %index, ${8 * Math.max(1, inputs.length)}; add.s64 %from, %from, %wide;`,
    `ld.param.u64 %to, [out]; mul.wide.u32 %wide, %index, ${8 * outputs.length}; add.s64 %to, %to, %wide;`,
    ...inputs.map(loadText),
    body,
    ...outputs.map(storeText),
    "$end:",
    "ret;",
    "}",
  ].join("\n");
}

function addressBytes(address: number): Uint8Array {
  return new Uint8Array(new BigUint64Array([BigInt(address)]).buffer);
}

/** The outputs of every case, as unsigned bits. */
export function runLanes(
  program: LaneProgram,
  cases: readonly (readonly bigint[])[],
): readonly (readonly bigint[])[] {
  const module = parsedModule(laneModuleText(program));
  const inputSlots = Math.max(1, program.inputs.length);
  const outputSlots = program.outputs.length;
  const given = new BigUint64Array(cases.length * inputSlots);
  cases.forEach((values, row) =>
    values.forEach((value, slot) => {
      given[row * inputSlots + slot] = BigInt.asUintN(64, value);
    }),
  );
  const memory = new EmulatedMemory();
  const from = memory.allocate(given.byteLength, "in");
  const to = memory.allocate(8 * cases.length * outputSlots, "out");
  memory.write(from, new Uint8Array(given.buffer));
  memory.fill(to, 8 * cases.length * outputSlots, Uint8Array.of(0));
  const lanes = 128;
  const { findings } = emulate(
    module,
    {
      entry: "lanes",
      blocks: [Math.ceil(cases.length / lanes), 1, 1],
      threads: [lanes, 1, 1],
      sharedBytes: 0,
      parameters: [
        addressBytes(from),
        addressBytes(to),
        new Uint8Array(new Uint32Array([cases.length]).buffer),
      ],
    },
    memory,
    { target: targets[program.target ?? "sm_90a"] },
  );
  for (const finding of findings) throw finding;
  const bytes = memory.read(to, 8 * cases.length * outputSlots);
  const results = new BigUint64Array(bytes.buffer);
  return cases.map((_, row) =>
    Array.from({ length: outputSlots }, (__, slot) => results[row * outputSlots + slot] ?? 0n),
  );
}

/** Bits of floats. */
const scratch = new DataView(new ArrayBuffer(8));

export function singleBits(value: number): bigint {
  scratch.setFloat32(0, value);
  return BigInt(scratch.getUint32(0));
}

export function singleValue(bits: bigint): number {
  scratch.setUint32(0, Number(BigInt.asUintN(32, bits)));
  return scratch.getFloat32(0);
}

export function doubleBits(value: number): bigint {
  scratch.setFloat64(0, value);
  return scratch.getBigUint64(0);
}

export function doubleValue(bits: bigint): number {
  scratch.setBigUint64(0, BigInt.asUintN(64, bits));
  return scratch.getFloat64(0);
}
