/**
 * A form of an instruction, read from a line of a table: name, modifiers, operands.
 *
 *   "tcgen05.commit | cta_group::1/cta_group::2 mbarrier::arrive::one shared::cluster? b64 | [s]"
 *    name             a choice                  must be there         may be there          see operand-patterns.ts
 *
 * Modifiers stand in any order but types and layouts, which mean the result first. `xN` is a choice of x1, x2, x4 … x128, and
 * lengths of vectors may be multiples of its number. `*` stands for any modifiers, or any operands.
 */
import { operandPattern } from "./operand-patterns.ts";
import type { OperandPattern } from "./operand-patterns.ts";
import { targetSets } from "./targets.ts";
import type { TargetSet, TargetSetName } from "./targets.ts";

/** Where one of several modifiers stands. */
export interface Slot {
  readonly choices: readonly string[];
  readonly optional: boolean;
  /** Types and layouts keep their order. */
  readonly ordered: boolean;
}

export interface Form {
  readonly name: string;
  /** Undefined where any modifiers, or operands, will do. */
  readonly slots: readonly Slot[] | undefined;
  readonly operands: readonly OperandPattern[] | undefined;
  readonly targets: TargetSet;
  /** The version of PTX that brought it. */
  readonly since: string;
}

/** Lines of forms that the same targets have had since the same version. */
export interface FormGroup {
  readonly targets: TargetSetName;
  readonly since: string;
  readonly forms: readonly string[];
}

const typePattern =
  /^(?:row|col|[usb]\d+|pred|f16|bf16|f32|f64|f16x2|bf16x2|f32x2|tf32|e\dm\d(?:x[24])?|ue8m0(?:x2)?|ue4m3|b\dx16(?:_p\d+)?)$/;

const words = (text: string): readonly string[] => text.split(" ").filter((word) => word !== "");

const counts = ["x1", "x2", "x4", "x8", "x16", "x32", "x64", "x128"];

function slot(text: string): Slot {
  const optional = text.endsWith("?");
  const choices = (optional ? text.slice(0, -1) : text)
    .split("/")
    .flatMap((choice) => (choice === "xN" ? counts : [choice]));
  return { choices, optional, ordered: choices.every((choice) => typePattern.test(choice)) };
}

function readForm(line: string, { targets, since }: FormGroup): Form {
  const [name = "", modifiers = "", operands = ""] = line.split("|");
  return {
    name: name.trim(),
    slots: modifiers.trim() === "*" ? undefined : words(modifiers).map(slot),
    operands: operands.trim() === "*" ? undefined : words(operands).map(operandPattern),
    targets: targetSets[targets],
    since,
  };
}

export function readForms(groups: readonly FormGroup[]): ReadonlyMap<string, readonly Form[]> {
  const byName = new Map<string, Form[]>();
  for (const group of groups)
    for (const line of group.forms) {
      const form = readForm(line, group);
      const known = byName.get(form.name);
      if (known === undefined) byName.set(form.name, [form]);
      else known.push(form);
    }
  return byName;
}

/** How modifiers fit a form. */
export interface ModifierFit {
  /** Slots that nothing fills. */
  readonly missing: readonly Slot[];
  /** Modifiers that no slot takes. */
  readonly unknown: readonly string[];
  /** The number of `xN`, 1 where there is none. */
  readonly count: number;
}

export function fitModifiers({ slots }: Form, modifiers: readonly string[]): ModifierFit {
  if (slots === undefined) return { missing: [], unknown: [], count: 1 };
  const rest: (string | undefined)[] = [...modifiers];
  const missing: Slot[] = [];
  let count = 1;
  let nextType = 0;
  for (const each of slots) {
    const start = each.ordered ? nextType : 0;
    const at = rest.findIndex(
      (word, place) => place >= start && word !== undefined && each.choices.includes(word),
    );
    if (at < 0) {
      if (!each.optional) missing.push(each);
      continue;
    }
    const taken = rest[at] ?? "";
    rest[at] = undefined;
    if (each.ordered) nextType = at + 1;
    else if (/^x\d+$/.test(taken)) count = Number(taken.slice(1));
  }
  return { missing, unknown: rest.filter((word) => word !== undefined), count };
}
