/** Questions to the TypeScript service, which is loaded when the first of them is asked. */
import type { CompletionContext, CompletionResult } from "@codemirror/autocomplete";
import type { Tooltip } from "@codemirror/view";

export interface Problem {
  readonly from: number;
  readonly to: number;
  readonly message: string;
  readonly severity: "error" | "warning" | "info";
}

export interface Suggestion {
  readonly label: string;
  readonly type: string;
  readonly detail: string;
}

/** What a service is asked, and what it gives. */
export interface ServiceQuestions {
  readonly problems: { readonly asks: Record<never, never>; readonly gives: readonly Problem[] };
  readonly completions: {
    readonly asks: { readonly position: number };
    readonly gives: readonly Suggestion[];
  };
  readonly hover: {
    readonly asks: { readonly position: number };
    readonly gives:
      | { readonly from: number; readonly to: number; readonly text: string; readonly note: string }
      | undefined;
  };
}

export type ServiceQuestionName = keyof ServiceQuestions;

export type LanguageState = "not loaded" | "loading" | "ready" | "failed";

export class LanguageClient {
  readonly #changed: (state: LanguageState) => void;
  #worker: Worker | undefined;
  #enabled = true;
  #asked = 0;
  readonly #waiting = new Map<number, (answer: never) => void>();

  constructor(changed: (state: LanguageState) => void) {
    this.#changed = changed;
  }

  /** Programs in other languages have no types to ask about. */
  enable(enabled: boolean): void {
    this.#enabled = enabled;
  }

  async problems(text: string): Promise<readonly Problem[]> {
    return (await this.#ask("problems", text, {})) ?? [];
  }

  async completions(context: CompletionContext): Promise<CompletionResult | null> {
    const word = context.matchBefore(/[\w$]*/);
    const afterDot = context.matchBefore(/\./) !== null;
    if (!context.explicit && !afterDot && (word === null || word.from === word.to)) return null;
    const text = context.state.doc.toString();
    const suggestions = await this.#ask("completions", text, { position: context.pos });
    if (suggestions === undefined || suggestions.length === 0) return null;
    const options = suggestions.map(({ label, type, detail }) => ({ label, type, detail }));
    return { from: word?.from ?? context.pos, options, validFor: /^[\w$]*$/ };
  }

  async hover(text: string, position: number): Promise<Tooltip | null> {
    const found = await this.#ask("hover", text, { position });
    if (found === undefined) return null;
    return {
      pos: found.from,
      end: found.to,
      create: () => {
        const dom = document.createElement("div");
        dom.className = "hover-type";
        const code = document.createElement("code");
        code.textContent = found.text;
        dom.append(code);
        if (found.note !== "") {
          const note = document.createElement("p");
          note.textContent = found.note;
          dom.append(note);
        }
        return { dom };
      },
    };
  }

  #ask<N extends ServiceQuestionName>(
    name: N,
    text: string,
    asks: ServiceQuestions[N]["asks"],
  ): Promise<ServiceQuestions[N]["gives"] | undefined> {
    if (!this.#enabled) return Promise.resolve(undefined);
    const worker = (this.#worker ??= this.#open());
    const id = this.#asked++;
    return new Promise((resolve) => {
      this.#waiting.set(id, resolve);
      worker.postMessage({ id, name, text, ...asks });
    });
  }

  #open(): Worker {
    const worker = new Worker("service.js");
    this.#changed("loading");
    worker.onmessage = ({
      data,
    }: MessageEvent<{ readonly id: number; readonly answer: never }>) => {
      this.#changed("ready");
      this.#waiting.get(data.id)?.(data.answer);
      this.#waiting.delete(data.id);
    };
    worker.onerror = () => {
      this.#changed("failed");
    };
    return worker;
  }
}
