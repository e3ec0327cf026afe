/** Codes of the IR's text form: TW25xx. */
import { registerCodes } from "./entry.ts";

export const textCodes = registerCodes({
  TW2501: {
    title: "character without meaning in IR text",
    cause: "The text holds a character that starts no word, number, value, string or sign.",
    example: "%1 = binary %0; %0 {fn = add} : f32",
    remedy: "remove the character, or put it inside a quoted string",
  },
  TW2502: {
    title: "malformed string in IR text",
    cause: "A quoted string is not closed on its line, or holds an escape that JSON does not know.",
    example: '%0 = block_index {axis = "i} : i32',
    remedy: 'close the string with " and escape it as JSON does',
  },
  TW2503: {
    title: "IR text has something else here",
    cause: "The text does not follow the grammar at this place.",
    example: "%2 = binary %0 %1 {fn = add} : f32",
    remedy: "write what is expected; the printer shows the form of every operation",
  },
  TW2504: {
    title: "unknown operation in IR text",
    cause: "The op table has no operation of this name.",
    example: "%1 = frobnicate %0 : f32",
    remedy: "use an operation listed in docs/operations.md",
  },
  TW2505: {
    title: "value used before its definition in IR text",
    cause:
      "No operation before this one, and no parameter of a region around it, defines the value.",
    example: "%1 = unary %7 {fn = neg} : f32",
    remedy: "define the value earlier in the same region or in one around it",
  },
  TW2506: {
    title: "name defined twice in IR text",
    cause: "A value, dimension or kernel of this name is already in sight.",
    example: "%0 = thread_index : i32\n%0 = thread_index : i32",
    remedy: "give the second one another name",
  },
  TW2507: {
    title: "unknown dimension in IR text",
    cause: "A size names a dimension that the kernel's header does not list.",
    example: 'kernel @k grid [] threads [main] (input %0 "x": ref<gmem, f32, [n]>) { yield }',
    remedy: "list the dimension in the header: `dimensions [n]`",
  },
  TW2508: {
    title: "operand, attribute or region missing or too many in IR text",
    cause: "An operation lacks one of its parts, repeats one, or has one its kind does not know.",
    example: "%1 = unary %0 : f32",
    remedy: "write each required part once; docs/operations.md lists them",
  },
  TW2509: {
    title: "written type is not the inferred one in IR text",
    cause:
      "The types after the colon, or the number of results, differ from what the operands and attributes give.",
    example: "%2 = compare %0, %1 {predicate = lt} : f32",
    remedy: "write the inferred type, or correct the operands",
  },
  TW2510: {
    title: "unknown layout in IR text",
    cause: "A type names a register layout that the header of the placed kernel does not list.",
    example: "%3 = load %2 : tile<f32, [64], A>",
    remedy: 'list the layout in the header: `layouts [A = "(L0 L1 L2 L3 L4)"]`',
  },
  TW2511: {
    title: "unknown target in IR text",
    cause: "The header of a placed kernel names a target that is not known.",
    example: "kernel @k grid [] threads [main] target sm_1 shared 0 () { yield }",
    remedy: "name a known target",
  },
});
