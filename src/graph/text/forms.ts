/** The short forms of ops' text, by the table's names for them. */
import type { TextForm } from "../ops/schema.ts";
import type { FormRule } from "./form.ts";
import { callForm, compositeForm, customCallForm } from "./form-calls.ts";
import {
  arrowForm,
  compareForm,
  expectForm,
  expectTypesForm,
  functionForm,
  operandsForm,
  resultForm,
  selectForm,
  shortForm,
} from "./form-labelled.ts";
import { graphOpNames, isGraphOpKind } from "../ops/table.ts";
import { nearestName } from "../../support/options.ts";
import { convolutionForm, dotGeneralForm } from "./form-products.ts";
import { manualComputationForm, reduceForm, scanForm, whileForm } from "./form-regions.ts";
import {
  constantForm,
  expectConstForm,
  reducePrecisionForm,
  shardingForm,
  sliceForm,
  topKForm,
  tupleElementForm,
} from "./form-values.ts";

/** An op that text has in generic form alone. */
const genericForm: FormRule = {
  read(reader, name, position) {
    const isKnown = isGraphOpKind(name);
    const meant = isKnown ? undefined : nearestName(name, graphOpNames);
    const message = isKnown
      ? `${name} is read in generic form alone`
      : `${name} is no op that is known here`;
    return reader.scanner.fail("TW9009", meant ? `${message}; did you mean ${meant}?` : message, {
      position,
      expected: meant ?? `"${name}"(…)`,
      found: name,
      remedy: meant && `write ${meant}`,
    });
  },
  write: () => undefined,
};

export const formRules: { readonly [F in TextForm]: FormRule } = {
  generic: genericForm,
  foreign: genericForm,
  short: shortForm,
  function: functionForm,
  arrow: arrowForm,
  result: resultForm,
  operands: operandsForm,
  compare: compareForm,
  select: selectForm,
  constant: constantForm,
  slice: sliceForm,
  reduce_precision: reducePrecisionForm,
  dot_general: dotGeneralForm,
  convolution: convolutionForm,
  reduce: reduceForm,
  while: whileForm,
  call: callForm,
  custom_call: customCallForm,
  composite: compositeForm,
  get_tuple_element: tupleElementForm,
  top_k: topKForm,
  scan: scanForm,
  expect: expectForm,
  expect_types: expectTypesForm,
  expect_const: expectConstForm,
  manual_computation: manualComputationForm,
  sharding_constraint: shardingForm,
};
