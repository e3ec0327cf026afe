import { describe, expect, test } from "vitest";
import { instructionText, printPtx } from "../printer.ts";
import type { Instruction, PtxFunction, PtxModule, Statement, Variable } from "../module.ts";
import { parsePtx } from "./index.ts";

const header = ".version 8.0\n.target sm_90a\n.address_size 64\n";

function parseBody(body: string): readonly Statement[] {
  const module = parsePtx(`${header}.entry k (.param .u64 p, .param .u32 n) {${body}}`);
  return functionsOf(module)[0]?.body ?? [];
}

function functionsOf(module: PtxModule): readonly PtxFunction[] {
  return module.declarations.filter((one) => one.kind === "function");
}

function variablesOf(text: string): readonly Variable[] {
  const { declarations } = parsePtx(header + text);
  return declarations.filter((one) => one.kind === "variable");
}

function instructionsOf(body: string): readonly Instruction[] {
  return parseBody(body).filter((one) => one.kind === "instruction");
}

const registers = ".reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .pred %p<4>, q; .reg .v4 .f32 %v;";

/** What the one instruction of a body is printed as. */
function printed(instruction: string): string {
  const [only] = instructionsOf(registers + instruction);
  return only === undefined ? "" : instructionText(only);
}

describe("operands", () => {
  test.each([
    ["add.s32 %r1, %r2, %r3;"],
    ["@%p1 add.s32 %r1, %r2, -5;"],
    ["@!q bra.uni done; done:", "@!q bra.uni done;"],
    ["ld.global.v4.b32 {%r1, _, %r2, %r3}, [%rd1+16];"],
    ["ld.global.b32 %r1, [ %rd1 + 0 ];", "ld.global.b32 %r1, [%rd1];"],
    ["ld.global.b32 %r1, [%rd1-4];", "ld.global.b32 %r1, [%rd1+-4];"],
    ["ld.global.b32 %r1, [%rd1+-4];"],
    ["ld.global.b32 %r1, [%rd1+4*2+WARP_SZ];", "ld.global.b32 %r1, [%rd1+40];"],
    ["ld.param.u32 %r1, [n];"],
    ["ld.shared.b32 %r1, [1024];"],
    ["mov.u64 %rd1, p+8;"],
    ["mov.u32 %r1, %tid.x;"],
    ["mov.b64 %rd1, {%r1, %r2};"],
    ["mov.f32 %v.x, %v.w;"],
    ["shfl.sync.bfly.b32 %r1|%p1, %r2, 16, 31, -1;"],
    ["elect.sync _|%p1, -1;"],
    ["setp.lt.and.s32 %p1|%p2, %r1, %r2, !%p3;"],
    ["vadd.s32.u32.s32 %r1, %r2.b0, %r3.h1;"],
    ["ret;"],
    ["mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r1], %r2;"],
    [
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1, {%r2, 0}], [%r3];",
    ],
    ["ld.global.L2::128B.b32 %r1, [%rd1];"],
    ["add .s32 %r1, %r2, %r3;", "add.s32 %r1, %r2, %r3;"],
    ["mul.f32 %v.x, %v.x, 0f3F800000;"],
    ["mov.b32 %r1, WARP_SZ;", "mov.b32 %r1, 32;"],
    ["call.uni (%r1), p, (%r2, %r3), n;"],
    ["call p;"],
    ["call (%r1), p, ();"],
  ])("%s", (text, expected = text) => {
    expect(printed(text)).toBe(expected);
  });

  test("registers are one object each, whatever names them", () => {
    const [first, second] = instructionsOf(
      ".reg .b32 %r<3>; add.s32 %r1, %r1, %r2; ld.b32 %r2, [%r1];",
    );
    expect(first?.operands[0]).toBe(first?.operands[1]);
    expect(second?.operands[0]).toBe(first?.operands[2]);
    expect(first?.operands[0]).toEqual({ kind: "register", name: "%r1", type: "b32" });
  });

  test("a block's register hides the one around it", () => {
    const [outer, block, after] = parseBody(
      ".reg .b32 a; mov.b32 a, 1; { .reg .b64 a; mov.b64 a, 2; } mov.b32 a, 3;",
    );
    if (outer?.kind !== "instruction" || block?.kind !== "block" || after?.kind !== "instruction")
      throw new Error("unexpected statements");
    const [inner] = block.body;
    if (inner?.kind !== "instruction") throw new Error("unexpected statement");
    expect(inner.operands[0]).toMatchObject({ name: "a", type: "b64" });
    expect(outer.operands[0]).toMatchObject({ name: "a", type: "b32" });
    expect(after.operands[0]).toBe(outer.operands[0]);
  });
});

test("a block's variable hides the register around it", () => {
  const [block] = parseBody(
    ".reg .b32 place, %r1; { .shared .b32 place; mov.u32 %r1, place; }",
  ).filter((one) => one.kind === "block");
  const [move] = block?.body.filter((one) => one.kind === "instruction") ?? [];
  expect(move?.operands.map(({ kind }) => kind)).toEqual(["register", "symbol"]);
});

describe("numbers", () => {
  test.each<[string, number | bigint]>([
    ["0", 0],
    ["255", 255],
    ["0xFF", 255],
    ["0377", 255],
    ["0b11111111", 255],
    ["255U", 255],
    ["-1", -1],
    ["4294967295", 4294967295],
    ["0xFFFFFFFFFFFFFFFF", 0xffffffffffffffffn],
    ["-9223372036854775808", 1n << 63n],
    ["(1 << 4) | 3", 19],
    ["2 + 3 * 4 - 10 / 4", 12],
    ["(2 + 3) * 4 % 7", 6],
    ["7 > 3 ? 10 : 20", 10],
    ["3 >= 4 || 2 != 2", 0],
    ["!0 && 5 == 5", 1],
    ["~0 & 0xF0 ^ 0x10", 0xe0],
    ["-1 >> 60", -1],
    ["(.u64)-1 >> 60", 15],
    ["1 - 2U", 0xffffffffffffffffn],
  ])("%s is %d", (text, value) => {
    expect(instructionsOf(`.reg .b64 %rd<2>; mov.b64 %rd1, ${text};`)[0]?.operands[1]).toEqual({
      kind: "integer",
      value,
    });
  });

  test.each<[string, number, number | bigint]>([
    ["0f3F800000", 32, 0x3f800000],
    ["0F7f800000", 32, 0x7f800000],
    ["0d3FF8000000000000", 64, 0x3ff8000000000000n],
    ["1.5", 64, 0x3ff8000000000000n],
    ["15e-1", 64, 0x3ff8000000000000n],
    ["1.0 + 0.25 * 2", 64, 0x3ff8000000000000n],
    ["-1.5", 64, 0xbff8000000000000n],
  ])("%s is a float of %d bits", (text, width, bits) => {
    expect(instructionsOf(`.reg .b64 %rd<2>; mov.f64 %rd1, ${text};`)[0]?.operands[1]).toEqual({
      kind: "float",
      width,
      bits,
    });
  });
});

describe("variables", () => {
  test("alignment, vector, arrays, linkage", () => {
    const text =
      ".visible .global .align 16 .v4 .f32 table[8];\n.extern .shared .align 128 .b8 dynamic[];";
    expect(variablesOf(text)).toMatchObject([
      { space: "global", name: "table", type: "f32", vector: 4, count: 8, linkage: "visible" },
      { space: "shared", name: "dynamic", count: 0, alignment: 128, linkage: "extern" },
    ]);
  });

  test("several in one declaration, several dimensions", () => {
    expect(variablesOf(".global .b32 a, b[2][3];")).toMatchObject([
      { name: "a", count: undefined },
      { name: "b", count: 6 },
    ]);
  });

  test("initial values: nested, addresses, bytes of addresses, counted by them", () => {
    const [, table, pointers] = variablesOf(
      ".global .b32 x[3]; .const .s32 t[] = {{1, -2}, {3, 4}}; .global .u64 g[3] = {generic(x)+4, x, 0xFF00(x)};",
    );
    expect(table).toMatchObject({ count: 4 });
    expect(table?.initial?.map((value) => "value" in value && value.value)).toEqual([1, -2, 3, 4]);
    expect(pointers?.initial).toEqual([
      { kind: "symbol", name: "x", offset: 4, generic: true },
      { kind: "symbol", name: "x", offset: 0 },
      { kind: "symbol", name: "x", offset: 0, mask: 0xff00 },
    ]);
  });

  test("vectors that their values count", () => {
    expect(variablesOf(".global .v2 .u32 pairs[] = {1, 2, 3, 4, 5, 6};")).toMatchObject([
      { name: "pairs", vector: 2, count: 3 },
    ]);
  });

  test("managed memory and pointer parameters", () => {
    const [managed] = variablesOf(".global .attribute(.managed) .align 4 .u32 shared_by_all;");
    expect(managed).toMatchObject({ attribute: ".managed", alignment: 4 });
    const module = parsePtx(`${header}.entry k (.param .u64 .ptr .global .align 16 x) { ret; }`);
    expect(functionsOf(module)[0]?.parameters[0]?.pointer).toEqual({
      space: "global",
      alignment: 16,
    });
  });
});

describe("functions", () => {
  test("declaration, definition, results, directives", () => {
    const module = parsePtx(`${header}
      .func (.param .b32 result) half (.param .b32 value);
      .extern .func stop () .noreturn;
      .visible .entry k (.param .align 64 .b8 map[128]) .reqntid 128, 1, 1 .minnctapersm 2 { ret; }
      .weak .func (.param .b32 result) half (.param .b32 value) { ret; }`);
    expect(functionsOf(module)).toMatchObject([
      { name: "half", entry: false, results: [{ name: "result" }] },
      { name: "stop", linkage: "extern", directives: [{ name: "noreturn", values: [] }] },
      {
        name: "k",
        entry: true,
        linkage: "visible",
        parameters: [{ name: "map", type: "b8", count: 128, alignment: 64 }],
        directives: [
          { name: "reqntid", values: [128, 1, 1] },
          { name: "minnctapersm", values: [2] },
        ],
      },
      { name: "half", linkage: "weak", body: [{ opcode: "ret" }] },
    ]);
  });

  test("labels, targets, prototypes, pragmas", () => {
    const body = parseBody(
      '.reg .b32 %r<2>; .reg .b64 %rd<2>; a: b: .pragma "nounroll"; t: .branchtargets a, b; brx.idx %r1, t; c : .callprototype (.param .b32 _) _ (.param .b64 _); call (p), %rd1, (n), c;',
    );
    expect(body).toMatchObject([
      { kind: "label", name: "a" },
      { kind: "label", name: "b" },
      { kind: "pragma", text: "nounroll" },
      { kind: "targets", name: "t", directive: "branchtargets", labels: ["a", "b"] },
      { kind: "instruction", opcode: "brx.idx" },
      { kind: "prototype", name: "c", results: [{ type: "b32" }], parameters: [{ type: "b64" }] },
      { kind: "instruction", opcode: "call" },
    ]);
  });

  test("the same label in two blocks", () => {
    const block = "{ again: @%p0 bra again; }";
    expect(parseBody(`.reg .pred %p<1>; ${block} ${block}`)).toHaveLength(2);
  });
});

describe("modules", () => {
  test("source positions, with the call that was inlined", () => {
    const module = parsePtx(`${header}.entry k () {
      .loc 1 12 5
      ret;
      .loc 2 40 7, function_name $name+3, inlined_at 1 13 2
      ret;
    }
    .file 1 "a.cu"
    .file 2 "include" "b.h", 1700000000, 99
    .section .debug_str {
$name: .b8 97,0
    }`);
    expect(module.files).toEqual(["a.cu", "include/b.h"]);
    expect(module.sections).toMatchObject([{ name: ".debug_str" }]);
    const positions = functionsOf(module)[0]?.body?.map((one) => "position" in one && one.position);
    expect(positions).toEqual([
      { file: 1, line: 12, column: 5 },
      {
        file: 2,
        line: 40,
        column: 7,
        inlined: { name: "$name", offset: 3, at: { file: 1, line: 13, column: 2 } },
      },
    ]);
  });

  test("instructions know their line of the text", () => {
    const module = parsePtx(
      `${header}.entry k () {\n// a comment\n\n  ret; /* two\nlines */ ret;\n}`,
    );
    expect(functionsOf(module)[0]?.body).toMatchObject([{ line: 7 }, { line: 8 }]);
  });

  test("target options", () => {
    const module = parsePtx(".version 9.0\n.target sm_90a, debug\n.address_size 64\n");
    expect(module).toMatchObject({ version: "9.0", target: "sm_90a", targetOptions: ["debug"] });
    expect(printPtx(module)).toContain(".target sm_90a, debug\n");
  });

  test("what is printed reads back as the same module", () => {
    const text = `${header}
      .visible .const .align 8 .b8 table[4] = {1, 2, 3, 4};
      .global .align 8 .u64 pointer = generic(table);
      .func (.param .b32 result) twice (.param .b32 value) {
        .reg .b32 %r<3>;
        ld.param.b32 %r1, [value];
        add.s32 %r2, %r1, %r1;
        st.param.b32 [result], %r2;
        ret;
      }
      .visible .entry k (.param .u64 .ptr .global .align 4 out, .param .f32 x)
      .maxntid 64, 1, 1
      {
        .reg .b32 %r<4>; .reg .b64 %rd<3>; .reg .pred %p<2>; .reg .v2 .b32 %v;
        .shared .align 16 .b8 tile[64];
        .loc 1 3 4
        ld.param.u64 %rd1, [out];
        mov.b32 %r1, 3;
        { .reg .b32 temp; .param .b32 param0; st.param.b32 [param0], %r1; .param .b32 retval0;
          call.uni (retval0), twice, (param0); ld.param.b32 %r2, [retval0]; }
        { .reg .pred %p1; setp.eq.s32 %p1, %r2, 6; @%p1 bra skip; mov.b32 %v.x, 4; skip: }
        st.global.b32 [%rd1], %v.x;
        ret;
      }
      .file 1 "a.cu"
      .section .debug_str {
$name: .b8 97,0
      }`;
    const once = parsePtx(text);
    const again = parsePtx(printPtx(once));
    expect(withoutLines(again)).toEqual(withoutLines(once));
    expect(printPtx(again)).toBe(printPtx(once));
  });
});

/** A module as plain data, less the lines of the text it came from. */
function withoutLines(module: PtxModule): unknown {
  return JSON.parse(
    JSON.stringify(module, (key, value: unknown) => {
      if (key === "line" || key === "text") return undefined;
      return typeof value === "bigint" ? String(value) : value;
    }),
  );
}
