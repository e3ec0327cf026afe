/**
 * Whether blocks of a program may tell each other something. Within a cluster they always may; here is about
 * the others. Blocks that do not communicate give the same wherever and whenever they run, so that threads
 * may share them; where two of them touch the same byte nevertheless, that is a race, which is noticed.
 *
 * | instruction                                                     | communicates             |
 * |-----------------------------------------------------------------|--------------------------|
 * | `atom`, `red`                                                   | but for `.shared`        |
 * | `ld`, `st` with `.volatile .relaxed .acquire .release .mmio`    | but for `.shared`, …     |
 * | `cp.reduce.async.bulk`                                          | into global memory       |
 * | `clusterlaunchcontrol`                                          | takes clusters           |
 * | reading `%clock` or `%globaltimer`                              | what runs first shows    |
 * | naming `vprintf`, `malloc` or `free`                            | the same                 |
 * | everything else: weak accesses, copies, barriers, fences        | no                       |
 */
import type { Instruction } from "../../ptx/module.ts";
import { accessKind } from "../thread-instructions/memory.ts";
import { semanticsOf } from "../checks/access-semantics.ts";
import { isOutsideFunction } from "./driver-functions.ts";
import type { Site } from "./program.ts";
import { visitSymbols } from "./variables.ts";

/** Memory that other clusters see, as far as an opcode tells. */
function isCommon(modifiers: readonly string[]): boolean {
  const kind = accessKind(modifiers);
  return kind === "global" || kind === "generic";
}

/** Names of what gives one block something else than the next, be it called, read or passed on. */
function isOrdered(name: string): boolean {
  // An assertion that fails ends the launch; until then it tells nobody anything.
  if (name === "__assertfail") return false;
  return /^%(?:clock|globaltimer)/.test(name) || isOutsideFunction(name);
}

function mentionsOrder({ operands }: Instruction): boolean {
  let found = false;
  for (const operand of operands)
    visitSymbols(operand, (name) => {
      if (isOrdered(name)) found = true;
    });
  return found;
}

function reducesIntoGlobal(modifiers: readonly string[]): boolean {
  const target = modifiers.find((modifier) => /^(?:global|shared)/.test(modifier));
  return modifiers[0] === "reduce" && target?.startsWith("shared") !== true;
}

function isCommunication(instruction: Instruction): boolean {
  const { opcode } = instruction;
  const [root, ...modifiers] = opcode.split(".");
  if (root === "clusterlaunchcontrol") return true;
  if (root === "cp") return reducesIntoGlobal(modifiers);
  const isAccess = root === "atom" || root === "red" || root === "ld" || root === "st";
  if (isAccess && semanticsOf(opcode).strong && isCommon(modifiers)) return true;
  return mentionsOrder(instruction);
}

export function communicates(sites: readonly Pick<Site, "instruction">[]): boolean {
  return sites.some(({ instruction }) => isCommunication(instruction));
}
