/** Barriers in shared memory. Their bits are opaque: what is compared is whether waits pass, and counts. */
import { expand } from "./expand.ts";
import { Kernel } from "./kernel.ts";
import type { Program } from "./program.ts";
import { operandStream } from "./values.ts";

const group = "mbarriers";

interface Barrier {
  readonly kernel: Kernel;
  /** Addresses in shared memory, and generic ones. */
  readonly near: string;
  readonly far: string;
  /** Whether the lane is the first of its block. */
  readonly leader: string;
}

/** A barrier for `count` arrivals, set up by the first lane. */
function withBarrier(name: string, count: number, lanes = 128): Barrier {
  const kernel = new Kernel({ name, group, threads: lanes, blocks: 2 });
  kernel.declare(`.shared .align 8 .b64 ${name}_barrier;`);
  const [near] = kernel.registers(32, 1) as [string];
  const [far] = kernel.registers(64, 1) as [string];
  const [leader] = kernel.registers(1, 1) as [string];
  kernel.line(
    `mov.u32 ${near}, ${name}_barrier;`,
    `mov.u64 ${far}, ${name}_barrier;`,
    `cvta.shared.u64 ${far}, ${far};`,
    `setp.eq.u32 ${leader}, %t, 0;`,
    `@${leader} mbarrier.init.shared::cta.b64 [${near}], ${count};`,
    "bar.sync 0;",
  );
  return { kernel, near, far, leader };
}

function addressOf({ near, far }: Barrier, opcode: string): string {
  return opcode.includes("shared") ? near : far;
}

/** Sets the barrier up anew for another count. */
function renew({ kernel, near, leader }: Barrier, count: number): void {
  kernel.line(
    "bar.sync 0;",
    `@${leader} mbarrier.inval.shared::cta.b64 [${near}];`,
    `@${leader} mbarrier.init.shared::cta.b64 [${near}], ${count};`,
    "bar.sync 0;",
  );
}

/** init and inval in all spaces, and what a fresh barrier says. */
function initialising(): Program {
  const barrier = withBarrier("mbarrier_init", 3);
  const { kernel, leader } = barrier;
  for (const space of ["", ".shared", ".shared::cta"]) {
    const address = addressOf(barrier, space);
    kernel.covers(`mbarrier.init${space}.b64`);
    kernel.covers(`mbarrier.inval${space}.b64`);
    kernel.line(
      "bar.sync 0;",
      `@${leader} mbarrier.inval${space}.b64 [${address}];`,
      `@${leader} mbarrier.init${space}.b64 [${address}], 5;`,
      "bar.sync 0;",
    );
    for (const parity of [0, 1]) {
      const [passed] = kernel.registers(1, 1);
      kernel.line(`mbarrier.test_wait.parity${space}.b64 ${passed}, [${address}], ${parity};`);
      kernel.storePredicate(`test_wait.parity${space} ${parity} of a fresh barrier`, passed ?? "");
    }
  }
  return kernel.program();
}

const ordered = "{,.release.cta,.release.cluster,.relaxed.cta,.relaxed.cluster}";
const spaces = "{,.shared,.shared::cta}";

/** The state before an arrival tells how many were pending. */
function pending({ kernel }: Barrier, label: string, token: string): void {
  const [count] = kernel.registers(32, 1);
  kernel.covers("mbarrier.pending_count.b64");
  kernel.line(`mbarrier.pending_count.b64 ${count}, ${token};`);
  kernel.store(`pending count of ${label}`, count ?? "", 32);
}

/** Whether a wait passes, by token and by parity. */
function outcome(barrier: Barrier, label: string, token: string, parity: number): void {
  const { kernel, near } = barrier;
  const [byToken, byParity] = kernel.registers(1, 2);
  kernel.line(
    `mbarrier.test_wait.shared::cta.b64 ${byToken}, [${near}], ${token};`,
    `mbarrier.test_wait.parity.shared::cta.b64 ${byParity}, [${near}], ${parity};`,
  );
  kernel.storePredicate(`${label}: token`, byToken ?? "");
  kernel.storePredicate(`${label}: parity ${parity}`, byParity ?? "");
}

/**
 * A single lane arrives again and again, so that every state in between is decided: pending counts, and
 * whether waits for the phase pass.
 */
function arrivals(kind: "arrive" | "arrive_drop"): readonly Program[] {
  const opcodes = [
    ...expand(`mbarrier.${kind}${ordered}${spaces}.b64`),
    ...expand(`mbarrier.${kind}.noComplete{,.release.cta}${spaces}.b64`),
  ];
  return [0, 1].map((half) => {
    const barrier = withBarrier(`mbarrier_${kind}_${half}`, 1000, 1);
    const { kernel } = barrier;
    const chosen = opcodes.filter((_, at) => at % 2 === half);
    for (const opcode of chosen) {
      const address = addressOf(barrier, opcode);
      kernel.covers(opcode);
      for (const count of opcode.includes("noComplete") ? [", 2", ", 1"] : ["", ", 3"]) {
        const [token] = kernel.registers(64, 1) as [string];
        kernel.line(`${opcode} ${token}, [${address}]${count};`);
        pending(barrier, `${opcode}${count}`, token);
        outcome(barrier, `${opcode}${count}`, token, 0);
      }
    }
    return kernel.program();
  });
}

/** Arrivals that expect bytes, and bytes that come without a copy. */
function transactions(): Program {
  const barrier = withBarrier("mbarrier_transactions", 100, 1);
  const { kernel, near } = barrier;
  const arriving = expand(`mbarrier.{arrive,arrive_drop}.expect_tx${ordered}${spaces}.b64`);
  for (const opcode of arriving) {
    const [token] = kernel.registers(64, 1) as [string];
    kernel.covers(opcode);
    kernel.line(`${opcode} ${token}, [${addressOf(barrier, opcode)}], 48;`);
    kernel.line(`mbarrier.complete_tx.shared::cta.b64 [${near}], 48;`);
    pending(barrier, opcode, token);
  }
  const [token] = kernel.registers(64, 1) as [string];
  const plain = expand(
    "mbarrier.{expect_tx,complete_tx}{,.relaxed.cta,.relaxed.cluster}{,.shared,.shared::cta,.shared::cluster}.b64",
  );
  for (const opcode of plain) {
    kernel.covers(opcode);
    const isExpectation = opcode.includes("expect");
    const undo = isExpectation ? "complete_tx" : "expect_tx";
    const other = `mbarrier.${undo}.shared::cta.b64 [${near}], 32;`;
    const own = `${opcode} [${addressOf(barrier, opcode)}], 32;`;
    kernel.line(...(isExpectation ? [own, other] : [other, own]));
  }
  // What is left of the arrivals ends the phase.
  const left = 100 - arriving.length;
  kernel.line(`mbarrier.arrive.shared::cta.b64 ${token}, [${near}], ${left};`);
  outcome(barrier, "all arrived", token, 0);
  return kernel.program();
}

/** Three rounds of a barrier for all lanes of a block, by every form of waiting. */
function waiting(): readonly Program[] {
  const forms = [
    ...expand(
      `mbarrier.{test_wait,try_wait}{,.parity}{,.acquire.cta,.acquire.cluster,.relaxed.cta,.relaxed.cluster}${spaces}.b64`,
    ),
  ];
  const parts = [0, 1, 2, 3, 4, 5];
  return parts.map((part) => {
    const name = `mbarrier_wait_${part}`;
    const barrier = withBarrier(name, 128);
    const { kernel, near } = barrier;
    kernel.declare(`.shared .align 4 .b8 ${name}_tile[512];`);
    const value = kernel.load(
      kernel.stream("b32@0", 4, () => operandStream("b32", 0, kernel.count)),
    );
    const [own, other] = kernel.registers(32, 2);
    kernel.line(
      `mov.u32 ${own}, ${name}_tile;`,
      `xor.b32 ${other}, %t, 77;`,
      `mad.lo.u32 ${other}, ${other}, 4, ${own};`,
      `mad.lo.u32 ${own}, %t, 4, ${own};`,
    );
    forms
      .filter((_, at) => at % parts.length === part)
      .forEach((opcode, round) => {
        const [token] = kernel.registers(64, 1);
        const [found] = kernel.registers(32, 1);
        const [passed] = kernel.registers(1, 1);
        const again = kernel.label();
        const phase = opcode.includes("parity") ? `${round & 1}` : token;
        const hint = opcode.includes("try_wait") && round % 2 === 1 ? ", 1000" : "";
        kernel.covers(opcode);
        kernel.line(
          `add.u32 ${value}, ${value}, 19;`,
          `st.shared.u32 [${own}], ${value};`,
          `mbarrier.arrive.shared::cta.b64 ${token}, [${near}];`,
          `${again}:`,
          `${opcode} ${passed}, [${addressOf(barrier, opcode)}], ${phase}${hint};`,
          `@!${passed} bra ${again};`,
          // A relaxed wait orders nothing.
          ...(opcode.includes("relaxed") ? ["bar.sync 0;"] : []),
          `ld.shared.u32 ${found}, [${other}];`,
          "bar.sync 0;",
        );
        kernel.store(opcode, found ?? "", 32);
      });
    return kernel.program();
  });
}

/** cp.async that arrive when they are done. */
function copiesArrive(): Program {
  const name = "mbarrier_copies";
  const barrier = withBarrier(name, 32, 32);
  const { kernel, near } = barrier;
  kernel.declare(`.shared .align 16 .b8 ${name}_tile[512];`);
  const stream = kernel.stream("random 16", 16, () => operandStream("b64", 0, 2 * kernel.count));
  const [own, other] = kernel.registers(32, 2);
  kernel.line(
    `mov.u32 ${own}, ${name}_tile;`,
    `xor.b32 ${other}, %t, 13;`,
    `mad.lo.u32 ${other}, ${other}, 16, ${own};`,
    `mad.lo.u32 ${own}, %t, 16, ${own};`,
  );
  const opcodes = expand(`cp.async.mbarrier.arrive{,.noinc}${spaces}.b64`);
  opcodes.forEach((opcode, round) => {
    const found = kernel.registers(32, 4);
    const [passed] = kernel.registers(1, 1);
    const again = kernel.label();
    kernel.covers(opcode);
    kernel.line(
      `cp.async.ca.shared.global [${own}], ${kernel.element(stream)}, 16;`,
      `${opcode} [${addressOf(barrier, opcode)}];`,
      // Without noinc the copy's arrival comes on top of those that the barrier expects.
      ...(opcode.includes("noinc") ? [] : [`mbarrier.arrive.shared::cta.b64 _, [${near}];`]),
      `${again}:`,
      `mbarrier.try_wait.parity.shared::cta.b64 ${passed}, [${near}], ${round & 1};`,
      `@!${passed} bra ${again};`,
      `ld.shared.v4.b32 {${found.join(", ")}}, [${other}];`,
      "bar.sync 0;",
    );
    found.forEach((register, at) => kernel.store(`${opcode} word ${at}`, register, 32));
  });
  return kernel.program();
}

/** A barrier that is set up anew with other counts, up to the largest. */
function counts(): Program {
  const barrier = withBarrier("mbarrier_counts", 1, 1);
  const { kernel, near } = barrier;
  for (const count of [1, 2, 1048575]) {
    renew(barrier, count);
    const [token] = kernel.registers(64, 1) as [string];
    kernel.line(`mbarrier.arrive.shared::cta.b64 ${token}, [${near}];`);
    pending(barrier, `count ${count}`, token);
    outcome(barrier, `count ${count}`, token, 0);
  }
  return kernel.program();
}

export function mbarrierPrograms(): readonly Program[] {
  return [
    initialising(),
    ...arrivals("arrive"),
    ...arrivals("arrive_drop"),
    transactions(),
    ...waiting(),
    copiesArrive(),
    counts(),
  ];
}
