/** What answers a question about a finished run, by the question's name. */
import type { QuestionName, Questions } from "../../protocol.ts";
import type { FinishedGraph, FinishedRun } from "../finished.ts";

export type Answer<N extends QuestionName> = (
  run: FinishedRun | FinishedGraph,
  asks: Questions[N]["asks"],
) => Questions[N]["gives"] | Promise<Questions[N]["gives"]>;

export type Answers = { readonly [N in QuestionName]: Answer<N> };
