/** Texts of small programs, of which the cases of rules are made. */

export function program(parameters: string, result: string, ...lines: readonly string[]): string {
  return [
    `func.func @main(${parameters}) -> (${result}) {`,
    ...lines.map((line) => `  ${line}`),
    "}",
  ].join("\n");
}

/** A program of one parameter and of lines, the last of which makes %r. */
export function of(type: string, result: string, ...lines: readonly string[]): string {
  return program(`%x: ${type}`, result, ...lines, `return %r : ${result}`);
}

export const five = "tensor<5xf32>";
export const wholes = "tensor<5xi32>";
export const bools = "tensor<5xi1>";
export const matrix = "tensor<3x4xf32>";
export const splat = (value: string, type: string): string =>
  `%c = stablehlo.constant dense<${value}> : ${type}`;
export const binary = (kind: string, type: string, value: string): string =>
  of(type, type, splat(value, type), `%r = stablehlo.${kind} %x, %c : ${type}`);
export const ofItself = (kind: string, type: string): string =>
  of(type, type, `%r = stablehlo.${kind} %x, %x : ${type}`);
export const twice = (kind: string, type: string): string =>
  of(type, type, `%0 = stablehlo.${kind} %x : ${type}`, `%r = stablehlo.${kind} %0 : ${type}`);
/** What moves elements of a constant whose elements are equal; the parameter goes along. */
export const ofSplat = (result: string, line: string): string =>
  program(
    `%x: ${five}`,
    `${five}, ${result}`,
    splat("3.0", matrix),
    `%r = ${line}`,
    `return %x, %r : ${five}, ${result}`,
  );

/** A region of one op of two scalars. */
export const region = (kind: string, element = "f32"): string =>
  `({ ^bb0(%a: tensor<${element}>, %b: tensor<${element}>): %s = stablehlo.${kind} %a, %b : tensor<${element}> stablehlo.return %s : tensor<${element}> })`;
export const lessThan = (element: string): string =>
  `({ ^bb0(%a: tensor<${element}>, %b: tensor<${element}>): %s = stablehlo.compare LT, %a, %b : (tensor<${element}>, tensor<${element}>) -> tensor<i1> stablehlo.return %s : tensor<i1> })`;

export const convolution = (
  element: string,
  operands: readonly [string, string],
  result: string,
  numbers: string,
  window = "",
  groups: { readonly batch?: number; readonly feature?: number } = {},
): string => {
  const [left, right] = operands.map((shape) => `tensor<${shape}x${element}>`);
  const out = `tensor<${result}x${element}>`;
  return program(
    `%x: ${left}, %w: ${right}`,
    out,
    `%r = stablehlo.convolution(%x, %w) dim_numbers = ${numbers}, window = {${window}} {batch_group_count = ${groups.batch ?? 1} : i64, feature_group_count = ${groups.feature ?? 1} : i64} : (${left}, ${right}) -> ${out}`,
    `return %r : ${out}`,
  );
};

export const rows =
  "scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>";
