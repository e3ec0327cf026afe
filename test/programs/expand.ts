/**
 * Opcodes in short: braces hold alternatives, an empty one may be left out.
 *
 *   add{,.sat}.s32        add.s32, add.sat.s32
 *   mul.{lo,hi}.{u,s}32   mul.lo.u32, mul.lo.s32, mul.hi.u32, mul.hi.s32
 */
export function expand(template: string): readonly string[] {
  const open = template.indexOf("{");
  if (open < 0) return [template];
  const close = closing(template, open);
  const ends = expand(template.slice(close + 1));
  const start = template.slice(0, open);
  return alternatives(template.slice(open + 1, close))
    .flatMap(expand)
    .flatMap((middle) => ends.map((end) => `${start}${middle}${end}`));
}

function closing(template: string, open: number): number {
  let depth = 0;
  for (let at = open; at < template.length; at++) {
    if (template[at] === "{") depth += 1;
    if (template[at] === "}") depth -= 1;
    if (depth === 0) return at;
  }
  throw new Error(`a brace is not closed in ${template}`);
}

/** Parts between commas that stand outside of braces. */
function alternatives(text: string): readonly string[] {
  const parts: string[] = [];
  let depth = 0;
  let start = 0;
  for (let at = 0; at <= text.length; at++) {
    if (text[at] === "{") depth += 1;
    if (text[at] === "}") depth -= 1;
    if (at === text.length || (text[at] === "," && depth === 0)) {
      parts.push(text.slice(start, at));
      start = at + 1;
    }
  }
  return parts;
}
