/** Integer arithmetic and logic. */
import { Kernel } from "./kernel.ts";
import { lanePrograms, row } from "./lanes.ts";
import type { LaneRow } from "./lanes.ts";
import type { Program } from "./program.ts";
import { kindBits, operandStream } from "./values.ts";

const group = "integer";
const all = "{u16,s16,u32,s32,u64,s64}";

/** Programs by name. */
const tables: { readonly [name: string]: readonly LaneRow[] } = {
  integer_add: [row(`add.${all}`, "$ = $ $"), row("add.sat.s32", "$ = $ $")],
  integer_add_packed: [row("add.{u16x2,s16x2}", "$ = $ $")],
  integer_sub: [row(`sub.${all}`, "$ = $ $"), row("sub.sat.s32", "$ = $ $")],
  integer_mul_16: [row("mul.{lo,hi}.{u16,s16}", "$ = $ $"), row("mul.wide.{u16,s16}", "b32 = $ $")],
  integer_mul_32: [row("mul.{lo,hi}.{u32,s32}", "$ = $ $"), row("mul.wide.{u32,s32}", "b64 = $ $")],
  integer_mul_64: [row("mul.{lo,hi}.{u64,s64}", "$ = $ $")],
  integer_mul24: [row("mul24.{lo,hi}.{u32,s32}", "$ = $ $")],
  integer_mad_16: [
    row("mad.{lo,hi}.{u16,s16}", "$ = $ $ $"),
    row("mad.wide.{u16,s16}", "b32 = $ $ b32"),
  ],
  integer_mad_32: [
    row("mad.{lo,hi}.{u32,s32}", "$ = $ $ $"),
    row("mad.wide.{u32,s32}", "b64 = $ $ b64"),
    row("mad.hi.sat.s32", "$ = $ $ $"),
  ],
  integer_mad_64: [row("mad.{lo,hi}.{u64,s64}", "$ = $ $ $")],
  integer_mad24: [
    row("mad24.{lo,hi}.{u32,s32}", "$ = $ $ $"),
    row("mad24.hi.sat.s32", "$ = $ $ $"),
  ],
  integer_sad: [row(`sad.${all}`, "$ = $ $ $")],
  integer_div_16: [row("{div,rem}.{u16,s16}", "$ = $ nonzero16")],
  integer_div_32: [row("{div,rem}.{u32,s32}", "$ = $ nonzero32")],
  integer_div_64: [row("{div,rem}.{u64,s64}", "$ = $ nonzero64")],
  integer_abs: [row("abs.{s16,s32,s64}", "$ = $")],
  integer_neg: [row("neg.{s16,s32,s64}", "$ = $")],
  integer_min: [row(`min.${all}`, "$ = $ $"), row("min.relu.s32", "$ = $ $")],
  integer_max: [row(`max.${all}`, "$ = $ $"), row("max.relu.s32", "$ = $ $")],
  integer_min_packed: [row("min{.u16x2,.s16x2,.relu.s16x2}", "b32 = s16x2 s16x2")],
  integer_max_packed: [row("max{.u16x2,.s16x2,.relu.s16x2}", "b32 = s16x2 s16x2")],
  integer_dp4a: [row("dp4a.{u32,s32}.{u32,s32}", "b32 = b32 b32 b32")],
  integer_dp2a: [row("dp2a.{lo,hi}.{u32,s32}.{u32,s32}", "b32 = b32 b32 b32")],
  bits_logic: [
    row("{and,or,xor}.{b16,b32,b64}", "$ = $ $"),
    row("{not,cnot}.{b16,b32,b64}", "$ = $"),
  ],
  bits_predicates: [row("{and,or,xor}.pred", "p = p p"), row("{not,mov}.pred", "p = p")],
  bits_shl: [row("shl.{b16,b32,b64}", "$ = $ shift")],
  bits_shr: [row("shr.{b16,b32,b64,u16,u32,u64,s16,s32,s64}", "$ = $ shift")],
  bits_shift_constant: [
    ...[0, 1, 15, 16, 31, 32, 63, 64].flatMap((count) => [
      row("shl.{b16,b32,b64}", `$ = $ #${count}`),
      row("shr.{u16,s32,s64}", `$ = $ #${count}`),
    ]),
  ],
  bits_funnel: [row("shf.{l,r}.{clamp,wrap}.b32", "$ = $ $ shift")],
  bits_prmt: [row("prmt.b32{,.f4e,.b4e,.rc8,.ecl,.ecr,.rc16}", "b32 = b32 b32 b32")],
  bits_prmt_constant: [
    ...["0x5410", "0x7632", "0x3210", "0x0123", "0x4444", "0xba98", "0x8d51", "0x6420"].map(
      (pick) => row("prmt.b32", `b32 = b32 b32 #${pick}`),
    ),
  ],
  bits_bfe: [row("bfe.{u32,s32,u64,s64}", "$ = $ shift shift")],
  bits_bfi: [row("bfi.{b32,b64}", "$ = $ $ shift shift")],
  bits_bfind: [row("bfind{,.shiftamt}.{u32,s32,u64,s64}", "b32 = $")],
  bits_count: [row("{popc,clz}.{b32,b64}", "b32 = $"), row("brev.{b32,b64}", "$ = $")],
  bits_fns: [row("fns.b32", "b32 = b32 lane shift"), row("fns.b32", "b32 = b32 lane #-3")],
  bits_extend: [row("szext.{clamp,wrap}.{u32,s32}", "$ = $ shift")],
  bits_mask: [row("bmsk.{clamp,wrap}.b32", "$ = shift shift")],
};

/** All 256 tables of lop3, 64 a program. */
function lookups(): readonly Program[] {
  return [0, 64, 128, 192]
    .map((start) => {
      const rows = Array.from({ length: 64 }, (_, at) =>
        row("lop3.b32", `b32 = b32 b32 b32 #0x${(start + at).toString(16)}`),
      );
      return lanePrograms(group, `bits_lop3_${start}`, rows, 64);
    })
    .flat();
}

/** lop3 that also tells whether the result is not zero, combined with a predicate. */
function lookupsWithPredicate(): Program {
  const kernel = new Kernel({ name: "bits_lop3_predicate", group });
  const operand = (kind: string, position: number): string =>
    kernel.load(
      kernel.stream(`${kind}@${position}`, 4, () => operandStream(kind, position, kernel.count)),
    );
  const [a, b, c] = [operand("b32", 0), operand("b32", 1), operand("b32", 2)];
  const [given] = kernel.registers(1, 1);
  const [bit] = kernel.registers(32, 1);
  kernel.line(`and.b32 ${bit}, ${c}, 1;`, `setp.ne.u32 ${given}, ${bit}, 0;`);
  for (const opcode of ["lop3.or.b32", "lop3.and.b32"])
    for (const table of ["0x80", "0x01", "0x96"]) {
      const [result] = kernel.registers(32, 1) as [string];
      const [holds, alone] = kernel.registers(1, 2) as [string, string];
      kernel.covers(opcode);
      kernel.line(
        `${opcode} ${result}|${holds}, ${a}, ${b}, ${c}, ${table}, ${given};`,
        `${opcode} _|${alone}, ${a}, ${b}, ${c}, ${table}, !${given};`,
      );
      kernel.store(`${opcode} ${table}`, result, 32);
      kernel.storePredicate(`${opcode} ${table} holds`, holds);
      kernel.storePredicate(`${opcode} ${table} alone`, alone);
    }
  return kernel.program();
}

/**
 * Sums of three words with carries between them: the first leaves a carry, the second takes and leaves
 * one, the third takes it.
 */
function carries(): readonly Program[] {
  return ["u32", "s32", "u64", "s64"].map((type) => {
    const bits = kindBits(type);
    const kernel = new Kernel({ name: `integer_carry_${type}`, group });
    const operand = (position: number): string =>
      kernel.load(
        kernel.stream(`${type}@${position}`, bits / 8, () =>
          operandStream(type, position, kernel.count),
        ),
      );
    const [a, b, c] = [operand(0), operand(1), operand(2)];
    const chains = [
      [`add.cc.${type}`, `addc.cc.${type}`, `addc.${type}`],
      [`sub.cc.${type}`, `subc.cc.${type}`, `subc.${type}`],
      [`mad.lo.cc.${type}`, `madc.hi.cc.${type}`, `madc.lo.${type}`],
      [`mad.hi.cc.${type}`, `madc.lo.cc.${type}`, `madc.hi.${type}`],
    ];
    for (const chain of chains) {
      const results = kernel.registers(bits, 3);
      for (const [at, opcode] of chain.entries()) {
        const sources = opcode.startsWith("m") ? [a, b, c] : at === 1 ? [b, c] : [a, b];
        kernel.covers(opcode);
        kernel.line(`${opcode} ${[results[at], ...sources].join(", ")};`);
      }
      for (const [at, opcode] of chain.entries()) kernel.store(opcode, results[at] ?? "", bits);
    }
    return kernel.program();
  });
}

export function integerPrograms(): readonly Program[] {
  return [
    ...Object.entries(tables).flatMap(([name, rows]) => lanePrograms(group, name, rows)),
    ...lookups(),
    lookupsWithPredicate(),
    ...carries(),
  ];
}
