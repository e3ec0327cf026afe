/**
 * What every conversion gives: the one table that `convert.ts` follows and docs/numbers.md prints.
 *
 * A conversion's rule depends on the classes of its two formats. Where the target is a float the
 * format adds its own: which way ties go, and what becomes of numbers it cannot hold.
 */
import type { DType, FloatName } from "./dtype.ts";
import { isFloat } from "./dtype.ts";
import { floatFormats } from "./floats.ts";
import type { FloatFormat, Overflow, Rounding } from "./floats.ts";
import { markdownTable } from "../support/markdown.ts";

export type NumberClass = "float" | "integer" | "bool";

export interface ConversionRule {
  readonly rounding: "once, to the nearest" | "toward zero" | "exact";
  /** What a number outside the target's range becomes. */
  readonly overflow: "as the target says" | "saturate" | "wrap" | "none";
  readonly nan: "as the target says" | "0" | "true" | "none";
  readonly zero: "keeps its sign" | "+0" | "0" | "false" | "none";
  readonly note: string;
}

export function numberClass(dtype: DType): NumberClass {
  if (isFloat(dtype)) return "float";
  return dtype.kind === "bool" ? "bool" : "integer";
}

export const conversionRules: {
  readonly [From in NumberClass]: { readonly [To in NumberClass]: ConversionRule };
} = Object.freeze({
  float: {
    float: {
      rounding: "once, to the nearest",
      overflow: "as the target says",
      nan: "as the target says",
      zero: "keeps its sign",
      note: "infinities as the target says",
    },
    integer: {
      rounding: "toward zero",
      overflow: "saturate",
      nan: "0",
      zero: "0",
      note: "infinities saturate",
    },
    bool: {
      rounding: "exact",
      overflow: "none",
      nan: "true",
      zero: "false",
      note: "whether it differs from zero",
    },
  },
  integer: {
    float: {
      rounding: "once, to the nearest",
      overflow: "as the target says",
      nan: "none",
      zero: "+0",
      note: "64-bit integers too are rounded once",
    },
    integer: {
      rounding: "exact",
      overflow: "wrap",
      nan: "none",
      zero: "0",
      note: "low bits, read with the target's sign; signed numbers widen with their sign",
    },
    bool: {
      rounding: "exact",
      overflow: "none",
      nan: "none",
      zero: "false",
      note: "whether it differs from zero",
    },
  },
  bool: {
    float: {
      rounding: "exact",
      overflow: "none",
      nan: "none",
      zero: "+0",
      note: "false is 0, true is 1",
    },
    integer: {
      rounding: "exact",
      overflow: "none",
      nan: "none",
      zero: "0",
      note: "false is 0, true is 1",
    },
    bool: { rounding: "exact", overflow: "none", nan: "none", zero: "false", note: "unchanged" },
  },
});

/** What a conversion lets its caller choose. */
export interface ConversionChoices {
  readonly roundings: readonly Rounding[];
  readonly overflows: readonly Overflow[];
}

const directed = ["nearest", "zero", "down", "up"] as const;

/** Where the target is a float: what PTX has instructions for, or short sequences of them. */
const floatChoices: { readonly [N in FloatName]: ConversionChoices } = {
  f64: { roundings: directed, overflows: ["unit"] },
  f32: { roundings: directed, overflows: ["unit"] },
  tf32: { roundings: ["nearest", "away", "zero", "down", "up"], overflows: ["saturate", "unit"] },
  f16: { roundings: directed, overflows: ["saturate", "unit"] },
  bf16: { roundings: directed, overflows: ["saturate", "unit"] },
  f8e4m3fn: { roundings: ["nearest"], overflows: ["saturate", "nan"] },
  f8e5m2: { roundings: ["nearest"], overflows: ["saturate", "nan"] },
  f8e8m0fnu: { roundings: directed, overflows: ["nan"] },
  f6e2m3fn: { roundings: ["nearest"], overflows: ["saturate"] },
  f6e3m2fn: { roundings: ["nearest"], overflows: ["saturate"] },
  f4e2m1fn: { roundings: ["nearest"], overflows: ["saturate"] },
};

/** The options that a conversion takes. */
export function conversionChoices(from: DType, to: DType): ConversionChoices {
  if (from.kind === "bool" || to.kind === "bool") return { roundings: [], overflows: [] };
  if (!isFloat(to)) return { roundings: isFloat(from) ? directed : [], overflows: ["saturate"] };
  const { roundings, overflows } = floatChoices[to.name];
  return isFloat(from)
    ? { roundings, overflows }
    : { roundings, overflows: overflows.filter((overflow) => overflow !== "unit") };
}

const hexadecimal = (code: number): string => `0x${code.toString(16)}`;

const overflowTexts: { readonly [K in FloatFormat["overflow"]]: (format: FloatFormat) => string } =
  {
    infinity: () => "infinity",
    chosen: ({ maxFinite }) => `±${maxFinite}; NaN with \`overflow: "nan"\`; infinities too`,
    saturate: ({ maxFinite }) => `±${maxFinite}, infinities too`,
    nan: () => "NaN, infinity too",
  };

function describeZero(format: FloatFormat): string {
  if (format.hasZero) return "zero, with its sign";
  const least = describeLeast(format);
  return `NaN, negative numbers too; positive numbers below ${least} become ${least}`;
}

/** Numbers of a few digits as they are, others by their exponent. */
function describeGreatest({ mantissaBits, bias, maxFinite }: FloatFormat): string {
  if (maxFinite < 2 ** 17) return String(maxFinite);
  return mantissaBits === 0 ? `2^${bias}` : `(2 - 2^-${mantissaBits}) · 2^${bias}`;
}

/** Formats with a zero have subnormals below the exponent of their least normal number. */
function describeLeast({ mantissaBits, bias, hasZero }: FloatFormat): string {
  return hasZero ? `2^${1 - bias - mantissaBits}` : `2^-${bias}`;
}

const floatEntries = Object.entries(floatFormats) as readonly (readonly [FloatName, FloatFormat])[];

/** The Markdown table of the float formats. */
export function renderFloatTable(): string {
  return markdownTable(
    [
      "format",
      "sign",
      "exponent",
      "mantissa",
      "bias",
      "largest",
      "smallest positive",
      "infinity",
      "NaN made",
    ],
    floatEntries.map(([name, format]) => [
      name,
      format.signed ? "1" : "0",
      String(format.exponentBits),
      String(format.mantissaBits),
      String(format.bias),
      describeGreatest(format),
      describeLeast(format),
      format.hasInfinity ? "yes" : "no",
      format.nan === undefined ? "none" : hexadecimal(format.nan),
    ]),
  );
}

/** The Markdown tables of `conversionRules` and of what each float target adds to them. */
export function renderConversionTable(): string {
  const classes = markdownTable(
    ["from", "to", "rounding", "overflow", "NaN", "zero", "note"],
    Object.entries(conversionRules).flatMap(([from, targets]) =>
      Object.entries(targets).map(([to, rule]) => [
        from,
        to,
        rule.rounding,
        rule.overflow,
        rule.nan,
        rule.zero,
        rule.note,
      ]),
    ),
  );
  const targets = markdownTable(
    ["float target", "ties", "overflow", "NaN", "zero"],
    floatEntries.map(([name, format]) => [
      name,
      format.ties,
      overflowTexts[format.overflow](format),
      format.nan === undefined ? "-0" : `NaN (${hexadecimal(format.nan)})`,
      describeZero(format),
    ]),
  );
  return `${classes}\n\n${targets}`;
}

/** The Markdown table of `conversionChoices`. */
export function renderChoiceTable(): string {
  // What integers become has no part of a unit.
  const words = (list: readonly string[]): string =>
    list.map((word) => `\`${word}\`${word === "unit" ? " (of floats)" : ""}`).join(" ");
  const rows = Object.entries(floatChoices).map(([name, { roundings, overflows }]) => [
    "float, integer",
    name,
    words(roundings),
    words(overflows),
  ]);
  return markdownTable(
    ["from", "to", "`rounding`", "`overflow`"],
    [
      ["float", "integer", words(directed), words(["saturate"])],
      ["integer", "integer", "", words(["saturate"])],
      ...rows,
    ],
  );
}
