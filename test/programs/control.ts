/** Branches, calls, and parameters of functions. */
import { expand } from "./expand.ts";
import { Kernel } from "./kernel.ts";
import type { Program } from "./program.ts";
import { operandStream } from "./values.ts";

const group = "control";

function word(kernel: Kernel, position: number): string {
  return kernel.load(
    kernel.stream(`b32@${position}`, 4, () => operandStream("b32", position, kernel.count)),
  );
}

/** Loops of as many turns as the lane's number says, and branches inside them. */
function branches(): Program {
  const kernel = new Kernel({ name: "branches", group });
  for (const opcode of ["bra", "bra.uni"]) kernel.covers(opcode);
  const value = word(kernel, 0);
  const [turns, parity] = kernel.registers(32, 2);
  const [more, odd, none] = kernel.registers(1, 3);
  const [start, even, join, end] = [0, 1, 2, 3].map(() => kernel.label());
  kernel.line(
    `and.b32 ${turns}, %t, 13;`,
    `setp.eq.u32 ${none}, ${turns}, 0;`,
    `@${none} bra ${end};`,
    `${start}:`,
    `and.b32 ${parity}, ${value}, 1;`,
    `setp.ne.u32 ${odd}, ${parity}, 0;`,
    `@!${odd} bra ${even};`,
    `mad.lo.u32 ${value}, ${value}, 3, 1;`,
    `bra.uni ${join};`,
    `${even}:`,
    `shr.u32 ${value}, ${value}, 1;`,
    `${join}:`,
    `sub.u32 ${turns}, ${turns}, 1;`,
    `setp.ne.u32 ${more}, ${turns}, 0;`,
    `@${more} bra ${start};`,
    `${end}:`,
  );
  kernel.store("turns of a loop", value, 32);
  return kernel.program();
}

/** Jumps through a table, each lane its own. */
function jumps(): readonly Program[] {
  return expand("brx.idx{,.uni}").map((opcode) => {
    const isUniform = opcode.endsWith("uni");
    const kernel = new Kernel({ name: opcode.replaceAll(".", "_"), group });
    kernel.covers(opcode);
    const value = word(kernel, 0);
    const [index] = kernel.registers(32, 1);
    const labels = [0, 1, 2, 3].map(() => kernel.label());
    const end = kernel.label();
    kernel.line(
      `and.b32 ${index}, ${isUniform ? "%b" : "%t"}, 3;`,
      `jumps_${opcode.replaceAll(".", "_")}: .branchtargets ${labels.join(", ")};`,
      `${opcode} ${index}, jumps_${opcode.replaceAll(".", "_")};`,
    );
    for (const [at, label] of labels.entries())
      kernel.line(
        `${label}:`,
        `mad.lo.u32 ${value}, ${value}, ${2 * at + 3}, ${at};`,
        `bra ${end};`,
      );
    kernel.line(`${end}:`);
    kernel.store(opcode, value, 32);
    return kernel.program();
  });
}

/** Lanes that end early, by exit and by ret. */
function ends(): readonly Program[] {
  return ["exit", "ret", "ret.uni"].map((opcode) => {
    const kernel = new Kernel({ name: `end_by_${opcode.replace(".", "_")}`, group });
    kernel.covers(opcode);
    const value = word(kernel, 0);
    const [early] = kernel.registers(1, 1);
    const guard = opcode === "ret.uni" ? "%b" : "%t";
    kernel.line(`setp.eq.u32 ${early}, ${guard}, ${opcode === "ret.uni" ? 1 : 37};`);
    kernel.store("all", value, 32);
    kernel.line(`@${early} ${opcode};`);
    kernel.store("those that go on", value, 32);
    return kernel.program();
  });
}

/** A function that is called directly, uniformly, and through its address; one that calls itself. */
function calls(): Program {
  const name = "calls";
  const kernel = new Kernel({ name, group });
  for (const opcode of ["call", "call.uni", "ld.param.b32", "st.param.b32"]) kernel.covers(opcode);
  kernel.before(`.func (.param .b32 ${name}_result) ${name}_twice(.param .b32 ${name}_value)
{
  .reg .b32 %r<2>;
  ld.param.b32 %r0, [${name}_value];
  add.u32 %r1, %r0, %r0;
  st.param.b32 [${name}_result], %r1;
  ret;
}
.func (.param .b32 ${name}_sum) ${name}_recursive(.param .b32 ${name}_count)
{
  .reg .b32 %r<4>;
  .reg .pred %p;
  ld.param.b32 %r0, [${name}_count];
  mov.u32 %r1, 1;
  setp.eq.u32 %p, %r0, 0;
  @%p bra last;
  {
    .param .b32 given;
    .param .b32 taken;
    sub.u32 %r2, %r0, 1;
    st.param.b32 [given], %r2;
    call (taken), ${name}_recursive, (given);
    ld.param.b32 %r3, [taken];
  }
  mad.lo.u32 %r1, %r3, %r0, 7;
last:
  st.param.b32 [${name}_sum], %r1;
  ret;
}
.func (.param .b32 ${name}_next) ${name}_thrice(.param .b32 ${name}_start)
{
  .reg .b32 %r<2>;
  ld.param.b32 %r0, [${name}_start];
  mul.lo.u32 %r1, %r0, 3;
  st.param.b32 [${name}_next], %r1;
  ret;
}
`);
  const value = word(kernel, 0);
  const results = kernel.registers(32, 4);
  const [turns] = kernel.registers(32, 1);
  const [address, other] = kernel.registers(64, 2);
  const [odd] = kernel.registers(1, 1);
  const call = (opcode: string, callee: string, argument: string, result: string, end = ""): void =>
    kernel.line(
      "{",
      "  .param .b32 given;",
      "  .param .b32 taken;",
      `  st.param.b32 [given], ${argument};`,
      `  ${opcode} (taken), ${callee}, (given)${end};`,
      `  ld.param.b32 ${result}, [taken];`,
      "}",
    );
  call("call", `${name}_twice`, value, results[0] ?? "");
  call("call.uni", `${name}_twice`, results[0] ?? "", results[1] ?? "");
  kernel.line(`and.b32 ${turns}, %t, 7;`);
  call("call", `${name}_recursive`, turns ?? "", results[2] ?? "");
  kernel.line(
    `prototype: .callprototype (.param .b32 _) _ (.param .b32 _);`,
    `mov.u64 ${address}, ${name}_twice;`,
    `mov.u64 ${other}, ${name}_thrice;`,
    `and.b32 ${turns}, %t, 1;`,
    `setp.ne.u32 ${odd}, ${turns}, 0;`,
    `selp.b64 ${address}, ${address}, ${other}, ${odd};`,
  );
  call("call", address ?? "", value, results[3] ?? "", ", prototype");
  results.forEach((register, at) => kernel.store(`call ${at}`, register, 32));
  return kernel.program();
}

const types = "b8 u8 s8 b16 u16 s16 b32 u32 s32 f32 b64 u64 s64 f64".split(" ");

/** Parameters of every type and vector, handed to a function and back. */
function parameters(): readonly Program[] {
  return types.map((type) => {
    const bits = Number(type.slice(1));
    const name = `param_${type}`;
    const kernel = new Kernel({ name, group });
    const register = (at: number, prefix: string): string => `%${prefix}${at}`;
    const vectors = ([1, 2, 4] as const).filter((count) => count * bits <= 128);
    const width = Math.max(16, bits) as 16 | 32 | 64;
    const forms = vectors.map((count) => (count === 1 ? `.${type}` : `.v${count}.${type}`));
    for (const form of forms) {
      kernel.covers(`ld.param${form}`);
      kernel.covers(`st.param${form}`);
    }
    kernel.covers(`ld.param::func.${type}`);
    kernel.covers(`st.param::func.${type}`);
    const list = (registers: readonly string[]): string =>
      registers.length === 1 ? (registers[0] ?? "") : `{${registers.join(", ")}}`;
    const moves = vectors.flatMap((count, at) => {
      const registers = Array.from({ length: count }, (_, each) => register(each, "v"));
      const reversed = [...registers].reverse();
      return [
        `  ld.param${forms[at]} ${list(registers)}, [${name}_given+${16 * at}];`,
        `  st.param${forms[at]} [${name}_taken+${16 * at}], ${list(reversed)};`,
      ];
    });
    kernel.before(
      `.func (.param .align 16 .b8 ${name}_taken[64]) ${name}_turn(.param .align 16 .b8 ${name}_given[64])
{
  .reg .b${width} %v<4>;
${moves.join("\n")}
  ld.param::func.${type} %v0, [${name}_given+48];
  st.param::func.${type} [${name}_taken+48], %v0;
  ret;
}
`,
    );
    const values = [0, 1, 2, 3].map((at) => {
      const stream = kernel.stream(`random ${at}`, width / 8, () =>
        operandStream(`b${width}`, at, kernel.count),
      );
      return kernel.load(stream);
    });
    const results = vectors.map((count) => kernel.registers(width, count));
    const [last] = kernel.registers(width, 1);
    kernel.line(
      "{",
      "  .param .align 16 .b8 given[64];",
      "  .param .align 16 .b8 taken[64];",
      ...vectors.map(
        (count, at) =>
          `  st.param${forms[at]} [given+${16 * at}], ${list(values.slice(0, count))};`,
      ),
      `  st.param.${type} [given+48], ${values[3]};`,
      `  call (taken), ${name}_turn, (given);`,
      ...vectors.map(
        (_, at) => `  ld.param${forms[at]} ${list(results[at] ?? [])}, [taken+${16 * at}];`,
      ),
      `  ld.param.${type} ${last}, [taken+48];`,
      "}",
    );
    results.forEach((registers, at) =>
      registers.forEach((one, each) => kernel.store(`param${forms[at]} ${each}`, one, width)),
    );
    kernel.store(`param::func.${type}`, last ?? "", width);
    return kernel.program();
  });
}

export function controlPrograms(): readonly Program[] {
  return [branches(), ...jumps(), ...ends(), calls(), ...parameters()];
}
