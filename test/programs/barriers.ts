/** Barriers of a block, fences, and what else only orders things. */
import { expand } from "./expand.ts";
import { Kernel } from "./kernel.ts";
import type { Program } from "./program.ts";
import { operandStream } from "./values.ts";

const group = "barriers";

/** A kernel with a tile of a word a lane, and registers with the lane's own place and another lane's. */
function tiled(name: string) {
  const kernel = new Kernel({ name, group });
  kernel.declare(`.shared .align 16 .b8 ${name}_tile[1024];`);
  const [own, other, value] = kernel.registers(32, 3) as [string, string, string];
  const word = kernel.load(kernel.stream("b32@0", 4, () => operandStream("b32", 0, kernel.count)));
  kernel.line(
    `mov.u32 ${value}, ${word};`,
    `mov.u32 ${own}, ${name}_tile;`,
    `xor.b32 ${other}, %t, 101;`,
    `mad.lo.u32 ${other}, ${other}, 4, ${own};`,
    `mad.lo.u32 ${own}, %t, 4, ${own};`,
  );
  return { kernel, own, other, value };
}

/** Every lane writes a word, meets the others by `barrier`, and reads another lane's. */
function exchange(name: string, barriers: readonly string[], opcodes: readonly string[]): Program {
  const { kernel, own, other, value } = tiled(name);
  for (const opcode of opcodes) kernel.covers(opcode);
  for (const barrier of barriers) {
    const [found] = kernel.registers(32, 1);
    kernel.line(
      `add.u32 ${value}, ${value}, 77;`,
      `st.shared.u32 [${own}], ${value};`,
      barrier,
      `ld.shared.u32 ${found}, [${other}];`,
      barrier,
    );
    kernel.store(barrier, found ?? "", 32);
  }
  return kernel.program();
}

/** The number of the barrier and of its lanes, as constants and in registers. */
function synchronising(): readonly Program[] {
  const names = expand("bar.sync bar.cta.sync barrier.sync barrier.cta.sync")
    .flatMap((text) => text.split(" "))
    .flatMap((opcode) => (opcode.startsWith("barrier") ? [opcode, `${opcode}.aligned`] : [opcode]));
  return names.map((opcode) =>
    exchange(
      opcode.replaceAll(".", "_"),
      [`${opcode} 0;`, `${opcode} 3;`, `${opcode} 5, 128;`, `${opcode} 15, 128;`],
      [opcode],
    ),
  );
}

/** Warps 0 and 1 only arrive, warps 2 and 3 wait for them and read what they wrote. */
function arriving(): readonly Program[] {
  const pairs = [
    ["bar.arrive", "bar.sync"],
    ["bar.cta.arrive", "bar.cta.sync"],
    ["barrier.arrive", "barrier.sync"],
    ["barrier.arrive.aligned", "barrier.sync.aligned"],
    ["barrier.cta.arrive", "barrier.cta.sync"],
    ["barrier.cta.arrive.aligned", "barrier.cta.sync.aligned"],
  ] as const;
  return pairs.map(([arrive, wait]) => {
    const { kernel, own, value } = tiled(arrive.replaceAll(".", "_"));
    kernel.covers(arrive);
    const [reader] = kernel.registers(1, 1);
    const [found] = kernel.registers(32, 1);
    const [read, end] = [kernel.label(), kernel.label()];
    kernel.line(
      `mov.u32 ${found}, 0;`,
      `setp.ge.u32 ${reader}, %t, 64;`,
      `@${reader} bra ${read};`,
      `st.shared.u32 [${own}], ${value};`,
      `${arrive} 4, 128;`,
      `bra ${end};`,
      `${read}:`,
      `${wait} 4, 128;`,
      `ld.shared.u32 ${found}, [${own}+-256];`,
      `${end}:`,
      "bar.sync 0;",
    );
    kernel.store(arrive, found ?? "", 32);
    return kernel.program();
  });
}

/** Barriers that also count or combine a predicate. */
function reducing(): readonly Program[] {
  const starts = ["bar.red", "bar.cta.red", "barrier.red", "barrier.cta.red"];
  return starts.flatMap((start) => {
    const alignments = start.startsWith("barrier") ? ["", ".aligned"] : [""];
    return alignments.map((aligned) => {
      const { kernel, value } = tiled(`${start}${aligned}`.replaceAll(".", "_"));
      const [held, first] = kernel.registers(1, 2);
      const bit = kernel.register(32);
      kernel.line(`and.b32 ${bit}, ${value}, 1;`, `setp.ne.u32 ${held}, ${bit}, 0;`);
      kernel.line(`setp.lt.u32 ${first}, %i, 128;`);
      for (const source of [held, first, `!${first}`])
        for (const place of ["1", "2, 128"]) {
          const [count] = kernel.registers(32, 1);
          const popc = `${start}.popc${aligned}.u32`;
          kernel.covers(popc);
          kernel.line(`${popc} ${count}, ${place}, ${source};`);
          kernel.store(popc, count ?? "", 32);
          for (const operation of ["and", "or"]) {
            const [result] = kernel.registers(1, 1);
            const opcode = `${start}.${operation}${aligned}.pred`;
            kernel.covers(opcode);
            kernel.line(`${opcode} ${result}, ${place}, ${source};`);
            kernel.storePredicate(opcode, result ?? "");
          }
        }
      return kernel.program();
    });
  });
}

const fences = [
  ...expand("membar.{cta,gl,sys}"),
  ...expand("fence{,.sc,.acq_rel}.{cta,cluster,gpu,sys}"),
  ...expand("fence.proxy.{alias,async,async.global,async.shared::cta,async.shared::cluster}"),
  ...expand("fence.proxy.tensormap::generic.release.{cta,cluster,gpu,sys}"),
  ...expand(
    "fence{,.proxy.async::generic}.{acquire.sync_restrict::shared::cluster,release.sync_restrict::shared::cta}.cluster",
  ),
  "fence.mbarrier_init.release.cluster",
];

/** These name the tensor map that others may have written. */
const mapFences = expand("fence.proxy.tensormap::generic.acquire.{cta,cluster,gpu,sys}");

function fencing(): Program {
  return exchange(
    "fences",
    [
      ...fences.map((fence) => `${fence}; bar.sync 0;`),
      ...mapFences.map((fence) => `${fence} [%in], 128; bar.sync 0;`),
    ],
    [...fences, ...mapFences],
  );
}

/** Pauses, and waits for an earlier grid where there is none. */
function others(): Program {
  const waits = [
    ...expand("griddepcontrol.{launch_dependents,wait}").map((opcode) => [opcode, ""] as const),
    ["nanosleep.u32", " 20"],
  ] as const;
  return exchange(
    "pauses",
    waits.map(([opcode, operand]) => `${opcode}${operand}; bar.sync 0;`),
    waits.map(([opcode]) => opcode),
  );
}

/** Warpgroups that exchange registers. */
function budgets(): Program {
  const name = "setmaxnreg";
  const kernel = new Kernel({ name, group, blocks: 1, threads: 384, minBlocks: 1 });
  const value = kernel.load(kernel.stream("b32@0", 4, () => operandStream("b32", 0, kernel.count)));
  const [second] = kernel.registers(1, 1);
  const [other, end] = [kernel.label(), kernel.label()];
  for (const opcode of expand("setmaxnreg.{inc,dec}.sync.aligned.u32")) kernel.covers(opcode);
  kernel.line(
    `setp.ge.u32 ${second}, %t, 128;`,
    `@${second} bra ${other};`,
    // Three warpgroups begin with 168 registers a thread.
    "setmaxnreg.dec.sync.aligned.u32 40;",
    `add.u32 ${value}, ${value}, 1;`,
    `bra ${end};`,
    `${other}:`,
    "setmaxnreg.inc.sync.aligned.u32 232;",
    `xor.b32 ${value}, ${value}, -1;`,
    `${end}:`,
  );
  kernel.store(name, value, 32);
  return kernel.program();
}

export function barrierPrograms(): readonly Program[] {
  return [...synchronising(), ...arriving(), ...reducing(), fencing(), others(), budgets()];
}
