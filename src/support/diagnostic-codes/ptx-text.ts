/** Codes of PTX text: TW71xx. */
import { registerCodes } from "./entry.ts";

export const ptxTextCodes = registerCodes({
  TW7101: {
    title: "PTX text that does not end what it starts",
    cause: "A comment, a string or a debug section is still open at the end of the text or line.",
    example: '.file 1 "kernel.cu',
    remedy: 'close it: */ for a comment, " for a string, } for a section',
  },
  TW7102: {
    title: "PTX text has something else here",
    cause: "The text does not follow PTX's grammar at this place.",
    example: "add.s32 %r1, %r2 %r3;",
    remedy: "write what is expected",
  },
  TW7103: {
    title: "PTX number without a value",
    cause:
      "A literal has no digits, too many of them or ones its base does not have, or a constant expression has no value, such as a division by zero.",
    example: "mov.b32 %r1, 0x;",
    remedy:
      "write an integer of at most 64 bits, or a float as 0f and 8 or 0d and 16 hexadecimal digits",
  },
  TW7104: {
    title: "PTX name that nothing declares",
    cause: "No register, variable, label, parameter or function of this name is in sight.",
    example: "add.s32 %r1, %r2, %undeclared;",
    remedy: "declare it, in this block or one around it",
  },
  TW7105: {
    title: "PTX name declared twice",
    cause: "The same block, or the module, already declares this name.",
    example: ".reg .b32 %r1;\n.reg .b64 %r1;",
    remedy: "give the second one another name, or put it into a block of its own",
  },
  TW7106: {
    title: "unsupported PTX",
    cause: "This is PTX, or may be, but not a part of it that tilewright reads.",
    example: ".global .texref image;",
    remedy: "use what PTX for sm_80 to sm_90a needs: no textures, no 32-bit addresses",
  },
  TW7107: {
    title: "PTX instruction with other modifiers",
    cause:
      "The instruction has no form with these modifiers: one is missing, or does not go with the others.",
    example: "tcgen05.ld.sync.aligned.16x256b.x64.b32 {%r0, %r1}, [%r9];",
    remedy: "write the modifiers that are expected",
  },
  TW7108: {
    title: "PTX instruction with other operands",
    cause: "The instruction's form takes operands of other kinds, widths or numbers.",
    example: "tcgen05.ld.sync.aligned.32x32b.x4.b32 {%r0, %r1}, [%r9];",
    remedy: "write the operand that is expected",
  },
  TW7109: {
    title: "PTX instruction that the target or version lacks",
    cause:
      "GPUs of the module's target, or its version of PTX, do not have this form of the instruction.",
    example: ".target sm_120a\n… tcgen05.wait::ld.sync.aligned;",
    remedy: "compile for a target that has it, or raise .version",
  },
  TW7110: {
    title: "PTX function of blocks and of pairs of blocks",
    cause:
      "All tcgen05 instructions of a function have one .cta_group: blocks work alone, or in pairs.",
    example:
      "tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;\ntcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned;",
    remedy: "write the same .cta_group everywhere in the function",
  },
});
