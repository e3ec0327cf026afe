/**
 * The wait for copies that our compiler puts at the end of a kernel, so that no block ends while TMA reads its shared memory.
 * Whatever the kernel has not waited for by itself goes through the commit in front of it:
 *
 *   @%p1 cp.async.bulk.commit_group;            the user's, which one lane executes
 *   …
 *   cp.async.bulk.commit_group;                 the compiler's, which all lanes do
 *   cp.async.bulk.wait_group.read 0;
 *   ret;
 */
import type { Instruction } from "../../ptx/module.ts";
import type { Program } from "./program.ts";

const commit = "cp.async.bulk.commit_group";
const wait = "cp.async.bulk.wait_group.read";

const known = new WeakMap<Program, { readonly instruction: Instruction | undefined }>();

/** The commit in front of that wait; undefined where the kernel has none. */
export function lastCommitOf(program: Program): Instruction | undefined {
  let found = known.get(program);
  if (found === undefined) known.set(program, (found = { instruction: find(program) }));
  return found.instruction;
}

function find({ entry }: Program): Instruction | undefined {
  const { body = [] } = entry.declaration;
  const instructions = body.filter((statement) => statement.kind === "instruction");
  const at = instructions.findLastIndex(
    ({ opcode, guard }, position) =>
      opcode === commit && guard === undefined && instructions[position + 1]?.opcode === wait,
  );
  const after = instructions.slice(at + 2);
  const end = after.find(({ opcode }) => !opcode.startsWith("barrier.cluster."));
  return at < 0 || end?.opcode !== "ret" ? undefined : instructions[at];
}
