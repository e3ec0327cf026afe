/** Exchanges between the lanes of a warp: by all of them, and by some that name each other. */
import { expand } from "./expand.ts";
import { Kernel } from "./kernel.ts";
import type { Program } from "./program.ts";
import { operandStream } from "./values.ts";

const group = "warp";

function operand(kernel: Kernel, kind: string, position: number, bytes = 4): string {
  return kernel.load(
    kernel.stream(`${kind}@${position}`, bytes, () => operandStream(kind, position, kernel.count)),
  );
}

/** Lane values that repeat, so that matches are found. */
function repeating(kernel: Kernel, bits: 32 | 64): string {
  const bytes = bits / 8;
  return kernel.load(
    kernel.stream(`repeating ${bits}`, bytes, () => {
      const few = operandStream(bits === 32 ? "b32" : "b64", 0, 4);
      return Uint8Array.from({ length: bytes * kernel.count }, (_, at) => {
        const lane = Math.floor(at / bytes);
        const pick = lane < 32 ? 2 : (lane * 7 + (lane >> 3)) & 3;
        return few[pick * bytes + (at % bytes)] ?? 0;
      });
    }),
  );
}

/** Lanes that take part: all, or those below 20 in a branch of their own. */
const parts = ["all", "some"] as const;

function inPart(kernel: Kernel, part: (typeof parts)[number], write: (mask: string) => void): void {
  if (part === "all") {
    write("0xffffffff");
    return;
  }
  const [lane] = kernel.registers(32, 1);
  const [outside] = kernel.registers(1, 1);
  const end = kernel.label();
  kernel.line(`mov.u32 ${lane}, %laneid;`, `setp.ge.u32 ${outside}, ${lane}, 20;`);
  kernel.line(`@${outside} bra ${end};`);
  write("0x000fffff");
  kernel.line(`${end}:`, "bar.warp.sync 0xffffffff;");
}

/** Clamp and segments: the whole warp, segments of 8 and of 2, and clamps inside. */
const bounds: { readonly [mode: string]: readonly number[] } = {
  up: [0, 0x1800, 0x1e00, 3],
  down: [31, 0x181f, 0x1e1f, 20],
  bfly: [31, 0x181f, 0x1e1f, 20],
  ["idx"]: [31, 0x181f, 0x1e1f, 20],
};

function shuffles(): readonly Program[] {
  return Object.entries(bounds).map(([mode, choices]) => {
    const kernel = new Kernel({ name: `shfl_${mode}`, group });
    const value = operand(kernel, "b32", 0);
    const distance = operand(kernel, "lane", 1);
    const opcode = `shfl.sync.${mode}.b32`;
    kernel.covers(opcode);
    for (const bound of choices) {
      const [result, other] = kernel.registers(32, 2);
      const [inside] = kernel.registers(1, 1);
      kernel.line(`${opcode} ${result}|${inside}, ${value}, ${distance}, ${bound}, -1;`);
      kernel.line(`${opcode} ${other}, ${value}, 5, ${bound}, 0xffffffff;`);
      kernel.store(`${opcode} bound ${bound}`, result ?? "", 32);
      kernel.storePredicate(`${opcode} bound ${bound} inside`, inside ?? "");
      kernel.store(`${opcode} bound ${bound} by 5`, other ?? "", 32);
    }
    inPart(kernel, "some", (mask) => {
      const [result] = kernel.registers(32, 1);
      // Sources among the lanes that take part.
      const bound = mode === "up" ? 0 : 3;
      kernel.line(`${opcode} ${result}, ${value}, 1, ${0x1c00 | bound}, ${mask};`);
      kernel.store(`${opcode} of some`, result ?? "", 32);
    });
    return kernel.program();
  });
}

function votes(): Program {
  const kernel = new Kernel({ name: "vote", group });
  const word = operand(kernel, "u32", 0);
  const bit = kernel.register(32);
  const [odd, same] = kernel.registers(1, 2);
  kernel.line(`and.b32 ${bit}, ${word}, 1;`, `setp.ne.u32 ${odd}, ${bit}, 0;`);
  kernel.line(`setp.lt.u32 ${same}, %t, 64;`);
  for (const part of parts)
    inPart(kernel, part, (mask) => {
      for (const source of [odd, same, `!${same}`]) {
        for (const opcode of expand("vote.sync.{all,any,uni}.pred")) {
          const [held] = kernel.registers(1, 1);
          kernel.covers(opcode);
          kernel.line(`${opcode} ${held}, ${source}, ${mask};`);
          kernel.storePredicate(`${opcode} ${part}`, held ?? "");
        }
        const [lanes] = kernel.registers(32, 1);
        kernel.covers("vote.sync.ballot.b32");
        kernel.line(`vote.sync.ballot.b32 ${lanes}, ${source}, ${mask};`);
        kernel.store(`vote.sync.ballot.b32 ${part}`, lanes ?? "", 32);
      }
    });
  return kernel.program();
}

function matches(): readonly Program[] {
  return ([32, 64] as const).map((bits) => {
    const kernel = new Kernel({ name: `match_b${bits}`, group });
    const value = repeating(kernel, bits);
    for (const part of parts)
      inPart(kernel, part, (mask) => {
        const [any, all, plain] = kernel.registers(32, 3);
        const [same] = kernel.registers(1, 1);
        kernel.covers(`match.any.sync.b${bits}`);
        kernel.covers(`match.all.sync.b${bits}`);
        kernel.line(`match.any.sync.b${bits} ${any}, ${value}, ${mask};`);
        kernel.line(`match.all.sync.b${bits} ${all}|${same}, ${value}, ${mask};`);
        kernel.line(`match.all.sync.b${bits} ${plain}, ${value}, ${mask};`);
        kernel.store(`match.any.sync.b${bits} ${part}`, any ?? "", 32);
        kernel.store(`match.all.sync.b${bits} ${part}`, all ?? "", 32);
        kernel.store(`match.all.sync.b${bits} ${part} alone`, plain ?? "", 32);
        kernel.storePredicate(`match.all.sync.b${bits} ${part} same`, same ?? "");
      });
    return kernel.program();
  });
}

function reductions(): readonly Program[] {
  return expand("redux.sync.{add,min,max}.{u32,s32} redux.sync.{and,or,xor}.b32")
    .flatMap((text) => text.split(" "))
    .filter((opcode, at, all) => all.indexOf(opcode) === at)
    .map((opcode) => {
      const name = opcode.replaceAll(".", "_");
      const kernel = new Kernel({ name, group });
      const value = operand(kernel, "b32", 0);
      const other = operand(kernel, "b32", 1);
      kernel.covers(opcode);
      for (const part of parts)
        inPart(kernel, part, (mask) => {
          for (const source of [value, other]) {
            const [result] = kernel.registers(32, 1);
            kernel.line(`${opcode} ${result}, ${source}, ${mask};`);
            kernel.store(`${opcode} ${part}`, result ?? "", 32);
          }
        });
      return kernel.program();
    });
}

/** Who is chosen, who runs, and lanes that wait for each other. */
function membership(): Program {
  const kernel = new Kernel({ name: "membership", group });
  for (const opcode of ["elect.sync", "activemask.b32", "bar.warp.sync"]) kernel.covers(opcode);
  for (const part of parts)
    inPart(kernel, part, (mask) => {
      const [leader, active, only] = kernel.registers(32, 3);
      const [chosen, alone] = kernel.registers(1, 2);
      kernel.line(`elect.sync ${leader}|${chosen}, ${mask};`, `elect.sync _|${alone}, ${mask};`);
      kernel.line(`bar.warp.sync ${mask};`, `activemask.b32 ${active};`);
      kernel.store(`elect.sync ${part}`, leader ?? "", 32);
      kernel.storePredicate(`elect.sync ${part} chosen`, chosen ?? "");
      kernel.storePredicate(`elect.sync ${part} alone`, alone ?? "");
      kernel.store(`activemask.b32 ${part}`, active ?? "", 32);
      kernel.line(`mov.u32 ${only}, %lanemask_lt;`);
    });
  return kernel.program();
}

const laneRegisters = [
  "laneid",
  "lanemask_eq",
  "lanemask_le",
  "lanemask_lt",
  "lanemask_ge",
  "lanemask_gt",
  "tid.x",
  "tid.y",
  "tid.z",
  "ntid.x",
  "ntid.y",
  "ntid.z",
  "ctaid.x",
  "ctaid.y",
  "ctaid.z",
  "nctaid.x",
  "nctaid.y",
  "nctaid.z",
  "clusterid.x",
  "nclusterid.x",
  "cluster_ctaid.x",
  "cluster_nctaid.x",
  "cluster_ctarank",
  "cluster_nctarank",
  "is_explicit_cluster",
];

/** Special registers whose values a program can rely on. */
function specialRegisters(): readonly Program[] {
  return [1, 2].map((cluster) => {
    const kernel = new Kernel({
      name: `special_registers_${cluster}`,
      group,
      cluster,
      blocks: 4,
      threads: 64,
    });
    for (const name of laneRegisters) {
      const isPredicate = name === "is_explicit_cluster";
      if (isPredicate) {
        const [held] = kernel.registers(1, 1);
        kernel.line(`mov.pred ${held}, %${name};`);
        kernel.storePredicate(`%${name}`, held ?? "");
        continue;
      }
      const [word] = kernel.registers(32, 1);
      kernel.covers("mov.u32");
      kernel.line(`mov.u32 ${word}, %${name};`);
      kernel.store(`%${name}`, word ?? "", 32);
    }
    return kernel.program();
  });
}

export function warpPrograms(): readonly Program[] {
  return [
    ...shuffles(),
    votes(),
    ...matches(),
    ...reductions(),
    membership(),
    ...specialRegisters(),
  ];
}
