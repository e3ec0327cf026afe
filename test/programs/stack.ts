/** Memory that lanes take from their stacks while they run, each as much as it needs. */
import { Kernel } from "./kernel.ts";
import type { Program } from "./program.ts";
import { operandStream } from "./values.ts";

const group = "stack";

interface Loop {
  readonly kernel: Kernel;
  readonly count: string;
}

/** Writes words of a stretch of local memory and sums them from behind. */
function useWords({ kernel, count }: Loop, address: string, salt: number): string {
  const [at, value, sum] = kernel.registers(32, 3) as [string, string, string];
  const [place, step] = kernel.registers(64, 2) as [string, string];
  const [more] = kernel.registers(1, 1) as [string];
  const [fill, add] = [kernel.label(), kernel.label()];
  kernel.line(
    `mov.u32 ${at}, 0;`,
    `${fill}:`,
    `mad.lo.u32 ${value}, ${at}, 2654435761, %i;`,
    `add.u32 ${value}, ${value}, ${salt};`,
    `mul.wide.u32 ${step}, ${at}, 4;`,
    `add.u64 ${place}, ${address}, ${step};`,
    `st.local.u32 [${place}], ${value};`,
    `add.u32 ${at}, ${at}, 1;`,
    `setp.lt.u32 ${more}, ${at}, ${count};`,
    `@${more} bra ${fill};`,
    `mov.u32 ${sum}, 0;`,
    `${add}:`,
    `sub.u32 ${at}, ${at}, 1;`,
    `mul.wide.u32 ${step}, ${at}, 4;`,
    `add.u64 ${place}, ${address}, ${step};`,
    `ld.local.u32 ${value}, [${place}];`,
    `mad.lo.u32 ${sum}, ${sum}, 31, ${value};`,
    `setp.gt.u32 ${more}, ${at}, 0;`,
    `@${more} bra ${add};`,
  );
  return sum;
}

/** Each lane takes some words, some more, gives the latter back and takes others. */
function taken(): Program {
  const kernel = new Kernel({ name: "stack_taken", group });
  const [count] = kernel.registers(32, 1) as [string];
  const [bytes, first, second, third, top] = kernel.registers(64, 5) as string[];
  for (const opcode of ["alloca.u64", "stacksave.u64", "stackrestore.u64"]) kernel.covers(opcode);
  kernel.line(
    `and.b32 ${count}, %t, 31;`,
    `add.u32 ${count}, ${count}, 1;`,
    `mul.wide.u32 ${bytes}, ${count}, 4;`,
    `alloca.u64 ${first}, ${bytes}, 16;`,
  );
  const loop = { kernel, count };
  kernel.store("the first", useWords(loop, first ?? "", 7), 32);
  kernel.line(`stacksave.u64 ${top};`, `alloca.u64 ${second}, ${bytes};`);
  kernel.store("the second", useWords(loop, second ?? "", 9), 32);
  kernel.line(`stackrestore.u64 ${top};`, `alloca.u64 ${third}, 256, 64;`);
  kernel.store("the third", useWords(loop, third ?? "", 11), 32);
  const words = kernel.registers(32, 2) as [string, string];
  kernel.line(`ld.local.u32 ${words[0]}, [${first}];`, `cvt.u32.u64 ${words[1]}, ${third};`);
  kernel.store("what the first held", words[0], 32);
  kernel.line(`and.b32 ${words[1]}, ${words[1]}, 63;`);
  kernel.store("the alignment of the third", words[1], 32);
  return kernel.program();
}

/** A function that takes memory, called over and over by a loop of lanes that end one by one. */
function inFunctions(): Program {
  const name = "stack_functions";
  const kernel = new Kernel({ name, group });
  kernel.before(`.func (.param .b32 ${name}_result) ${name}_weigh (.param .b32 ${name}_count)
{
  .reg .b32 %r<4>; .reg .b64 %d<4>; .reg .pred %p;
  ld.param.b32 %r0, [${name}_count];
  mul.wide.u32 %d0, %r0, 8;
  alloca.u64 %d1, %d0, 8;
  cvta.local.u64 %d2, %d1;
  mul.wide.u32 %d3, %r0, %r0;
  st.u64 [%d2], %d3;
  ld.u32 %r1, [%d2];
  add.u32 %r1, %r1, 5;
  st.param.b32 [${name}_result], %r1;
  ret;
}
`);
  const stream = kernel.stream("u32@0", 4, () => operandStream("u32", 0, kernel.count));
  const total = kernel.load(stream);
  const [turn, weight] = kernel.registers(32, 2) as [string, string];
  const [more] = kernel.registers(1, 1) as [string];
  const again = kernel.label();
  kernel.covers("alloca.u64");
  kernel.line(
    `and.b32 ${turn}, %t, 7;`,
    `add.u32 ${turn}, ${turn}, 1;`,
    `${again}:`,
    "{",
    ".param .b32 given; .param .b32 back;",
    `st.param.b32 [given], ${turn};`,
    `call.uni (back), ${name}_weigh, (given);`,
    `ld.param.b32 ${weight}, [back];`,
    "}",
    `mad.lo.u32 ${total}, ${total}, 17, ${weight};`,
    `sub.u32 ${turn}, ${turn}, 1;`,
    `setp.gt.u32 ${more}, ${turn}, 0;`,
    `@${more} bra ${again};`,
  );
  kernel.store("weights", total, 32);
  return kernel.program();
}

export function stackPrograms(): readonly Program[] {
  return [taken(), inFunctions()];
}
