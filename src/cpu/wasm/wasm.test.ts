/** Every opcode is one that the engine accepts, with the types of the table; numbers are written as the format has them. */
import { expect, test } from "vitest";
import { Bytes } from "./bytes.ts";
import type { ModuleParts } from "./module.ts";
import { controlCodes, writeModule, writeOpcode } from "./module.ts";
import { isRelaxed, opcodeNames, opcodes } from "./opcodes.ts";
import type { OpcodeName } from "./opcodes.ts";

const memory = { module: "env", name: "memory", minimum: 1, maximum: 1, shared: true };

/** A module with one function that is the instruction alone. */
function moduleOf(name: OpcodeName): Uint8Array<ArrayBuffer> {
  const opcode = opcodes[name];
  const parts: ModuleParts = {
    memory,
    imports: [],
    functions: [
      {
        name,
        exported: true,
        parameters: opcode.parameters,
        results: opcode.result === undefined ? [] : [opcode.result],
        locals: [],
        write: (code) => {
          opcode.parameters.forEach((_, index) => {
            code.byte(controlCodes["local.get"]);
            code.unsigned(index);
          });
          writeOpcode(code, opcode);
          if (opcode.bytes > 0) code.bytes([Math.log2(opcode.bytes), 0]);
          if (opcode.immediate === "shuffle") code.bytes(Array.from({ length: 16 }, () => 0));
          else if (opcode.lanes > 0) code.byte(opcode.lanes - 1);
          code.bytes(opcode.fixed);
        },
      },
    ],
  };
  return writeModule(parts);
}

const hasRelaxed = WebAssembly.validate(moduleOf("f32x4.relaxed_madd"));

test("the engine accepts every instruction, its relaxed ones where it has any", () => {
  const refused = opcodeNames.filter((name) => !WebAssembly.validate(moduleOf(name)));
  expect(refused.filter((name) => hasRelaxed || !isRelaxed(name))).toEqual([]);
});

test("no two names share a code", () => {
  const codes = opcodeNames.map((name) => `${opcodes[name].prefix} ${opcodes[name].code}`);
  expect(new Set(codes).size).toBe(codes.length);
});

test("numbers are written as the shortest LEB128", () => {
  const written = (write: (bytes: Bytes) => void) => {
    const bytes = new Bytes();
    write(bytes);
    return [...bytes.finish()];
  };
  expect(written((b) => b.unsigned(0))).toEqual([0]);
  expect(written((b) => b.unsigned(624485))).toEqual([0xe5, 0x8e, 0x26]);
  expect(written((b) => b.unsigned(2 ** 32 - 1))).toEqual([0xff, 0xff, 0xff, 0xff, 0x0f]);
  expect(written((b) => b.signed(63))).toEqual([63]);
  expect(written((b) => b.signed(64))).toEqual([0xc0, 0]);
  expect(written((b) => b.signed(-64))).toEqual([0x40]);
  expect(written((b) => b.signed(-123456))).toEqual([0xc0, 0xbb, 0x78]);
  expect(written((b) => b.signed64(-(2n ** 63n)))).toEqual([
    0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x7f,
  ]);
  expect(written((b) => b.sized(() => b.bytes([1, 2])))).toEqual([0x82, 0x80, 0x80, 0x80, 0, 1, 2]);
});
