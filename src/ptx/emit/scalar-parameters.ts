/** Scalar arguments as the lone elements that rules work on. */
import type { DType } from "../../formats/dtype.ts";
import { integer } from "../operands.ts";
import type { EmitContext } from "./context.ts";
import type { ScalarValue } from "./values.ts";

/** Narrow formats come in a byte: bools become predicates, signed integers get their sign. */
export function scalarParameter(context: EmitContext, name: string, dtype: DType): ScalarValue {
  const { code } = context;
  const loaded = context.parameter({ kind: "scalar", name, dtype });
  return code.inPrologue(() => {
    if (dtype.kind === "bool") {
      const register = code.make("pred", "setp.ne.u32", loaded, integer(0));
      return { kind: "scalar", dtype, register };
    }
    if (dtype.bits > 8) return { kind: "scalar", dtype, register: loaded };
    const type = dtype.kind === "signed" ? "s32" : "u32";
    const register = code.make("b32", `bfe.${type}`, loaded, integer(0), integer(dtype.bits));
    return { kind: "scalar", dtype, register };
  });
}
