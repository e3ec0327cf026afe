/** What is called outside a program, and what stands for it. */
import type { GraphBuilder } from "../../infer/builder.ts";
import type { GraphModule, GraphOp, GraphValue } from "../../ops/node.ts";

export type Call = GraphOp<"stablehlo.custom_call">;

/** The results of a call, made by other ops; undefined where its operands or settings are none that it is known with. */
export type CallMeaning = (
  op: Call,
  builder: GraphBuilder,
  module: GraphModule,
) => readonly GraphValue[] | undefined;
