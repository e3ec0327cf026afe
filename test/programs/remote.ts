/** Stores and reductions from registers into the next block of the cluster, which counts their bytes. */
import { clustered, meeting } from "./clusters.ts";
import type { Cluster } from "./clusters.ts";
import { expand } from "./expand.ts";
import type { Program, Slot } from "./program.ts";
import { operandStream } from "./values.ts";

const lanes = 64;

interface Exchange extends Cluster {
  /** The block's barrier and that of the next block, in their windows and as generic addresses. */
  readonly barrier: string;
  readonly remoteBarrier: string;
  readonly genericTile: string;
  readonly genericBarrier: string;
  phase: number;
}

/** Blocks with a barrier each, which the first lane arrives at. */
function exchange(name: string): Exchange {
  const cluster = clustered(name);
  const { kernel, remote, next, leader } = cluster;
  kernel.declare(`.shared .align 8 .b64 ${name}_barrier;`);
  const [barrier, remoteBarrier] = kernel.registers(32, 2) as [string, string];
  const [genericTile, genericBarrier] = kernel.registers(64, 2) as [string, string];
  kernel.line(
    `mov.u32 ${barrier}, ${name}_barrier;`,
    `mapa.shared::cluster.u32 ${remoteBarrier}, ${barrier}, ${next};`,
    `cvt.u64.u32 ${genericTile}, ${remote};`,
    `cvta.shared::cluster.u64 ${genericTile}, ${genericTile};`,
    `cvt.u64.u32 ${genericBarrier}, ${remoteBarrier};`,
    `cvta.shared::cluster.u64 ${genericBarrier}, ${genericBarrier};`,
    `@${leader} mbarrier.init.shared::cta.b64 [${barrier}], 1;`,
    `@${leader} fence.mbarrier_init.release.cluster;`,
  );
  return { ...cluster, barrier, remoteBarrier, genericTile, genericBarrier, phase: 0 };
}

/** Puts 16 bytes of the input into the lane's part of the tile. */
function prepare({ kernel, own }: Exchange): void {
  const offset = kernel.place(operandStream("b64", 1, 2 * kernel.count), 16);
  const words = kernel.registers(32, 4).join(", ");
  kernel.line(
    `ld.global.v4.b32 {${words}}, [%in16+${offset}];`,
    `st.shared.v4.b32 [${own}], {${words}};`,
  );
}

/** One instruction of every lane, the wait for it in the next block, and what it left there. */
function send(state: Exchange, opcode: string, values: string, bytes: number): void {
  const { kernel, own, remote, leader, barrier } = state;
  const isGeneric = !opcode.includes("shared::cluster");
  const target = isGeneric ? state.genericTile : remote;
  const signal = isGeneric ? state.genericBarrier : state.remoteBarrier;
  const [passed] = kernel.registers(1, 1) as [string];
  const words = kernel.registers(32, 4).join(", ");
  const again = kernel.label();
  kernel.covers(opcode);
  prepare(state);
  kernel.line(
    `@${leader} mbarrier.arrive.expect_tx.shared::cta.b64 _, [${barrier}], ${lanes * bytes};`,
    ...meeting,
    `${opcode} [${target}], ${values}, [${signal}];`,
    `${again}:`,
    `mbarrier.try_wait.parity.shared::cta.b64 ${passed}, [${barrier}], ${state.phase & 1};`,
    `@!${passed} bra ${again};`,
    `ld.shared.v4.b32 {${words}}, [${own}];`,
  );
  const offset = kernel.slot(opcode, Math.min(8, bytes) as Slot["elementBytes"], {
    bytes: 16 * kernel.count,
  });
  kernel.line(`st.global.v4.b32 [%out16+${offset}], {${words}};`, ...meeting);
  state.phase += 1;
}

function values({ kernel }: Exchange, bits: 32 | 64, count: number): string {
  const registers = Array.from({ length: count }, (_, at) =>
    kernel.load(
      kernel.stream(`b${bits}@${at}`, bits / 8, () =>
        operandStream(`b${bits}`, at % 2, kernel.count),
      ),
    ),
  );
  return count === 1 ? (registers[0] ?? "") : `{${registers.join(", ")}}`;
}

const bulk = "mbarrier::complete_tx::bytes";

function stores(): readonly Program[] {
  return ([32, 64] as const).map((bits) => {
    const state = exchange(`st_async_${bits}`);
    for (const vector of bits === 32 ? ["", "v2.", "v4."] : ["", "v2."])
      for (const opcode of expand(
        `st.async{,.weak}{,.shared::cluster}.${bulk}.${vector}{b${bits},u${bits},s${bits},f${bits}}`,
      )) {
        const count = vector === "" ? 1 : Number(vector[1]);
        send(state, opcode, values(state, bits, count), (count * bits) / 8);
      }
    return state.kernel.program();
  });
}

function reductions(): Program {
  const state = exchange("red_async");
  for (const opcode of expand(
    `red.async.relaxed.cluster{,.shared::cluster}.${bulk}.{add.{u32,s32,u64},{min,max}.{u32,s32},{inc,dec}.u32,{and,or,xor}.b32}`,
  )) {
    const bits = opcode.endsWith("64") ? 64 : 32;
    send(state, opcode, values(state, bits, 1), bits / 8);
  }
  return state.kernel.program();
}

export function remotePrograms(): readonly Program[] {
  return [...stores(), reductions()];
}
