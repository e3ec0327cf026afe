/**
 * Which modifiers, operands, targets and versions of PTX instructions of newer GPUs take, as tables. The parser refuses what
 * no form describes, so that a mistake is found with its line, and not by an assembler on another machine. Instructions
 * that no table is about are taken as they are.
 *
 *   tcgen05.ld | sync aligned 16x128b x1/x2/x4/x8/x16/x32/x64 pack::16b? b32 | {d32*2N} [t]     a form
 *   tcgen05.ld.sync.aligned.16x128b.x2.b32 {%r0, %r1, %r2, %r3}, [%r9];                         fits it
 *   tcgen05.ld.sync.aligned.16x128b.x2.b32 {%r0, %r1}, [%r9];                                   TW7108: a vector of 4
 */
import type { DiagnosticCode } from "../../support/diagnostics.ts";
import { productInstructions } from "../../targets/product-instructions.ts";
import type { Instruction, PtxModule } from "../module.ts";
import { operandText } from "../printer.ts";
import { isOlderPtx } from "../version.ts";
import { arithmeticForms } from "./arithmetic.ts";
import { copyForms } from "./copies.ts";
import { fitModifiers, readForms } from "./form.ts";
import type { Form, FormGroup, ModifierFit } from "./form.ts";
import { misfit } from "./operand-patterns.ts";
import { productForms } from "./products.ts";
import { isInSet } from "./targets.ts";
import { tensorMemoryForms } from "./tensor-memory.ts";

export interface FormProblem {
  readonly code: DiagnosticCode;
  readonly message: string;
  readonly expected: string;
  readonly found: string;
}

const groups: readonly FormGroup[] = [
  ...tensorMemoryForms,
  ...copyForms,
  ...arithmeticForms,
  ...productForms,
];

let readTable: ReadonlyMap<string, readonly Form[]> | undefined;

function table(): ReadonlyMap<string, readonly Form[]> {
  readTable ??= readForms(groups);
  return readTable;
}

const all = /./;
const hasPairs = /\.f32x2\b/;
const isWide = /\.(?:v8|v4\.[busf]64)\b/;
const isMixed = /\.f32\b.*\.b?f16$/;

/** By the root of an opcode, which of its opcodes the tables are about; `f32x2` of other roots is in none of them. */
const tabled: ReadonlyMap<string, RegExp> = new Map([
  ["tcgen05", all],
  ["clusterlaunchcontrol", all],
  [productInstructions.wgmma.root, all],
  ["redux", all],
  ["setmaxnreg", all],
  ["tensormap", /^tensormap\.replace\b/],
  ["cp", /^cp\.(?:reduce\.)?async\.bulk\b/],
  ["cvt", /\.(?:rs|e\dm\dx[24]|ue8m0x2)\b/],
  ["add", new RegExp(`${hasPairs.source}|${isMixed.source}`)],
  ["sub", new RegExp(`${hasPairs.source}|${isMixed.source}`)],
  ["fma", new RegExp(`${hasPairs.source}|${isMixed.source}`)],
  ["ld", isWide],
  ["st", isWide],
  ["mma", /\.(?:kind::|block_scale|scale_vec::)/],
  ["ldmatrix", /\.m(?:8n16|16n16)\b/],
  ["stmatrix", /\.m16n8\b/],
]);

/** Of three operands they are in the tables; of two as many as types are not. */
const extremes: ReadonlySet<string> = new Set(["min", "max"]);

function isTabled({ opcode, operands }: Instruction): boolean {
  const end = opcode.indexOf(".");
  if (end < 0) return false;
  const root = opcode.slice(0, end);
  if (extremes.has(root) && operands.length > 3) return true;
  return (tabled.get(root) ?? hasPairs).test(opcode);
}

interface Named {
  readonly name: string;
  readonly modifiers: readonly string[];
}

/** The longest start of the opcode that a table names. */
function nameOf(parts: readonly string[]): Named | undefined {
  for (let length = Math.min(parts.length, 5); length > 0; length--) {
    const name = parts.slice(0, length).join(".");
    if (table().has(name)) return { name, modifiers: parts.slice(length) };
  }
  return undefined;
}

interface Candidate {
  readonly form: Form;
  readonly fit: ModifierFit;
}

/** What forms say of an opcode: those that its modifiers fit, or why none do. */
type Candidates = readonly Candidate[] | FormProblem;

const knownCandidates = new Map<string, Candidates>();

function candidatesOf(opcode: string): Candidates {
  const known = knownCandidates.get(opcode);
  if (known !== undefined) return known;
  const found = findCandidates(opcode);
  // Texts of others have few opcodes, but nobody promises that.
  if (knownCandidates.size >= 10_000) knownCandidates.clear();
  knownCandidates.set(opcode, found);
  return found;
}

function findCandidates(opcode: string): Candidates {
  const parts = opcode.split(".");
  const [root = ""] = parts;
  const named = nameOf(parts);
  if (named === undefined) {
    const names = [...table().keys()].filter((name) => name.startsWith(`${root}.`));
    const others = names.length > 0 ? names : ["add", "sub", "mul", "fma"];
    return {
      code: "TW7107",
      message: `PTX has no ${opcode}`,
      expected: others.join(", "),
      found: opcode,
    };
  }
  const { name, modifiers } = named;
  const all = (table().get(name) ?? []).map((form) => ({
    form,
    fit: fitModifiers(form, modifiers),
  }));
  const fitting = all.filter(({ fit }) => fit.missing.length === 0 && fit.unknown.length === 0);
  return fitting.length > 0 ? fitting : modifierProblem(name, modifiers, all);
}

/** Says what is wrong by the form that fits best, and of several by the one that fits longest from the left. */
function modifierProblem(
  name: string,
  modifiers: readonly string[],
  all: readonly Candidate[],
): FormProblem {
  const distance = ({ fit: { missing, unknown } }: Candidate): number =>
    missing.length + unknown.length - (modifiers.indexOf(unknown[0] ?? "") + 1) / 100;
  const [nearest] = all.toSorted((left, right) => distance(left) - distance(right));
  const { missing, unknown } = nearest?.fit ?? { missing: [], unknown: [] };
  const [extra] = unknown;
  const [needed] = missing;
  const choices = needed?.choices.map((choice) => `.${choice}`).join(", ");
  const found = extra === undefined ? "none of them" : `.${extra}`;
  if (choices !== undefined)
    return {
      code: "TW7107",
      message: `${name} lacks ${choices.includes(",") ? `one of ${choices}` : choices}`,
      expected: choices,
      found,
    };
  return {
    code: "TW7107",
    message: `${name} has no .${extra ?? ""} beside its other modifiers`,
    expected: (nearest?.form.slots ?? [])
      .map(({ choices: each, optional }) => {
        const text = each.map((choice) => `.${choice}`).join("/");
        return optional ? `[${text}]` : text;
      })
      .join(" "),
    found,
  };
}

function dimensionsOf({ opcode }: Instruction): number {
  return Number(/\.([1-5])d(?:\.|$)/.exec(opcode)?.[1] ?? 1);
}

function operandProblem(
  { opcode, operands }: Instruction,
  name: string,
  tries: readonly { readonly candidate: Candidate; readonly wrong: ReturnType<typeof misfit> }[],
  dimensions: number,
): FormProblem {
  const progress = ({ wrong }: (typeof tries)[number]): number =>
    2 * (wrong?.operand ?? 0) + (wrong?.expected === undefined ? 0 : 1);
  const furthest = tries.reduce((best, each) => (progress(each) > progress(best) ? each : best));
  const { operand = 0, expected } = furthest.wrong ?? {};
  const given = operands[operand];
  const counts = { count: furthest.candidate.fit.count, dimensions };
  return {
    code: "TW7108",
    message:
      given === undefined
        ? `${name} lacks operands`
        : `operand ${operand + 1} of ${name} does not fit ${opcode}`,
    expected:
      expected === undefined
        ? `${operand} operands`
        : `${expected.optional ? "nothing or " : ""}${expected.expected(counts)}`,
    found: given === undefined ? `${operands.length} operands` : operandText(given),
  };
}

/** What is wrong with an instruction of a module; undefined where nothing is. */
export function checkForm(
  instruction: Instruction,
  { target, version }: Pick<PtxModule, "target" | "version">,
): FormProblem | undefined {
  if (!isTabled(instruction)) return undefined;
  const candidates = candidatesOf(instruction.opcode);
  if ("code" in candidates) return candidates;
  const dimensions = dimensionsOf(instruction);
  const tries = candidates.map((candidate) => {
    const counts = { count: candidate.fit.count, dimensions };
    return { candidate, wrong: misfit(candidate.form.operands, instruction.operands, counts) };
  });
  const fitting = tries.filter(({ wrong }) => wrong === undefined);
  const name = tries[0]?.candidate.form.name ?? instruction.opcode;
  if (fitting.length === 0) return operandProblem(instruction, name, tries, dimensions);
  const forms = fitting.map(({ candidate }) => candidate.form);
  const ofTarget = forms.filter(({ targets }) => isInSet(target, targets));
  if (ofTarget.length === 0)
    return {
      code: "TW7109",
      message: `${target} has no ${instruction.opcode}`,
      expected: [...new Set(forms.map(({ targets }) => targets.title))].join(", or "),
      found: target,
    };
  const since = ofTarget
    .map((form) => form.since)
    .reduce((least, each) => (isOlderPtx(each, least) ? each : least));
  if (!isOlderPtx(version, since)) return undefined;
  return {
    code: "TW7109",
    message: `PTX ${version} has no ${instruction.opcode}`,
    expected: `.version ${since} or later`,
    found: `.version ${version}`,
  };
}

/** Whether the instructions of a function agree in whether blocks work alone or in pairs. */
export class GroupCheck {
  #first: string | undefined;

  next({ opcode }: Instruction): FormProblem | undefined {
    const group = opcode.startsWith("tcgen05.") ? /cta_group::\d/.exec(opcode)?.[0] : undefined;
    if (group === undefined) return undefined;
    this.#first ??= group;
    if (group === this.#first) return undefined;
    return {
      code: "TW7110",
      message: `${opcode} in a function that has .${this.#first} before`,
      expected: `.${this.#first}`,
      found: `.${group}`,
    };
  }
}
