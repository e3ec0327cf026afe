/**
 * The editor: CodeMirror with what the library's types say, and marks on lines.
 *
 *   line 12   a finding, or the other access of one
 *   line 30   marked: the cursor is there, or something of it was clicked in a view
 *
 * It is large, so it is loaded beside the page, and set up in steps that leave the page time to draw and to listen: the text
 * first, then its colours, then what helps with typing.
 */
import {
  autocompletion,
  closeBrackets,
  closeBracketsKeymap,
  completionKeymap,
} from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { javascript } from "@codemirror/lang-javascript";
import {
  bracketMatching,
  HighlightStyle,
  indentOnInput,
  syntaxHighlighting,
} from "@codemirror/language";
import { lintGutter, lintKeymap, setDiagnostics } from "@codemirror/lint";
import type { Diagnostic } from "@codemirror/lint";
import { highlightSelectionMatches, searchKeymap } from "@codemirror/search";
import {
  Compartment,
  EditorState,
  RangeSetBuilder,
  StateEffect,
  StateField,
} from "@codemirror/state";
import type { Extension } from "@codemirror/state";
import {
  Decoration,
  drawSelection,
  EditorView,
  highlightActiveLine,
  highlightActiveLineGutter,
  highlightSpecialChars,
  hoverTooltip,
  keymap,
  lineNumbers,
} from "@codemirror/view";
import type { DecorationSet } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import type { Language } from "../protocol.ts";
import type { LanguageClient, Problem } from "./language-client.ts";

export interface LineMarks {
  /** Lines of findings. */
  readonly found: readonly number[];
  /** The other lines that findings name. */
  readonly related: readonly number[];
  readonly marked: number | undefined;
}

const setMarks = StateEffect.define<LineMarks>();

const marksField = StateField.define<DecorationSet>({
  create: () => Decoration.none,
  update(marks, transaction) {
    for (const effect of transaction.effects)
      if (effect.is(setMarks)) return decorations(transaction.state, effect.value);
    return marks.map(transaction.changes);
  },
  provide: (field) => EditorView.decorations.from(field),
});

function decorations(state: EditorState, { found, related, marked }: LineMarks): DecorationSet {
  const builder = new RangeSetBuilder<Decoration>();
  for (let number = 1; number <= state.doc.lines; number += 1) {
    const names = [
      ...(found.includes(number)
        ? ["line-found"]
        : related.includes(number)
          ? ["line-related"]
          : []),
      ...(marked === number ? ["line-marked"] : []),
    ];
    if (names.length === 0) continue;
    const { from } = state.doc.line(number);
    builder.add(from, from, Decoration.line({ class: names.join(" ") }));
  }
  return builder.finish();
}

const colours = HighlightStyle.define([
  { tag: tags.keyword, color: "var(--code-keyword)" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--code-string)" },
  { tag: [tags.number, tags.bool, tags.null], color: "var(--code-number)" },
  { tag: tags.comment, color: "var(--code-comment)", fontStyle: "italic" },
  { tag: [tags.typeName, tags.className], color: "var(--code-type)" },
  {
    tag: [tags.function(tags.variableName), tags.function(tags.propertyName)],
    color: "var(--code-function)",
  },
]);

/** Milliseconds without a key before the types are asked about an edited program. */
const checkPause = 400;

export interface EditorOptions {
  readonly host: HTMLElement;
  readonly text: string;
  readonly language: Language;
  readonly client: LanguageClient;
  readonly changed: (text: string) => void;
  /** The cursor is on another line. */
  readonly moved: (line: number) => void;
  readonly run: () => void;
}

export class Editor {
  readonly #view: EditorView;
  readonly #client: LanguageClient;
  readonly #language = new Compartment();
  #written: Language;
  #line = 1;
  #checks = 0;
  #pause: ReturnType<typeof setTimeout> | undefined;
  #silent = false;

  constructor(options: EditorOptions) {
    this.#client = options.client;
    this.#written = options.language;
    this.#view = new EditorView({
      parent: options.host,
      state: EditorState.create({ doc: options.text, extensions: this.#plain(options) }),
    });
    // TypeScript is large; nobody who only looks needs it.
    this.#view.contentDOM.addEventListener("focus", () => {
      this.#checkLater();
    });
    void this.#complete(options);
  }

  get text(): string {
    return this.#view.state.doc.toString();
  }

  /** Replaces the program, without telling that it has changed. */
  setText(text: string, language: Language): void {
    this.#silent = true;
    this.#written = language;
    this.#view.dispatch({
      changes: { from: 0, to: this.#view.state.doc.length, insert: text },
      effects: this.#language.reconfigure(languageOf(language)),
      selection: { anchor: 0 },
    });
    this.#silent = false;
    this.#view.scrollDOM.scrollTop = 0;
    this.#view.dispatch(setDiagnostics(this.#view.state, []));
  }

  mark(marks: LineMarks): void {
    this.#view.dispatch({ effects: setMarks.of(marks) });
  }

  /** Shows a line. */
  reveal(line: number): void {
    const { doc } = this.#view.state;
    if (line < 1 || line > doc.lines) return;
    const { from } = doc.line(line);
    this.#view.dispatch({ effects: EditorView.scrollIntoView(from, { y: "center" }) });
  }

  /** Scrolls so that a line is near the top. */
  showFrom(line: number): void {
    const { doc } = this.#view.state;
    const { from } = doc.line(Math.max(1, Math.min(doc.lines, line)));
    this.#view.dispatch({ effects: EditorView.scrollIntoView(from, { y: "start" }) });
  }

  /** Asks the types about the text, once nobody types and the run that an edit has started is likely over. */
  #checkLater(): void {
    clearTimeout(this.#pause);
    this.#pause = setTimeout(() => void this.#check(), checkPause);
  }

  async #check(): Promise<void> {
    const turn = ++this.#checks;
    const problems = await this.#client.problems(this.text);
    if (turn !== this.#checks) return;
    const { state } = this.#view;
    const diagnostics = problems.map((problem) => diagnosticOf(problem, state));
    this.#view.dispatch(setDiagnostics(this.#view.state, diagnostics));
  }

  /** Adds what the text can be read without, a step at a time. */
  async #complete({ client }: EditorOptions): Promise<void> {
    const steps: readonly (() => Extension)[] = [
      () => [syntaxHighlighting(colours), this.#language.of(languageOf(this.#written))],
      () => [drawSelection(), highlightActiveLine(), highlightActiveLineGutter(), lintGutter()],
      () => typingHelp(client),
    ];
    for (const step of steps) {
      await new Promise((resolve) => setTimeout(resolve));
      this.#view.dispatch({ effects: StateEffect.appendConfig.of(step()) });
    }
  }

  /** What shows the text and hears of changes. */
  #plain({ changed, moved, run }: EditorOptions): Extension {
    return [
      lineNumbers(),
      history(),
      marksField,
      keymap.of([{ key: "Mod-Enter", run: () => (run(), true) }]),
      EditorView.contentAttributes.of({
        "aria-label": "Program",
        spellcheck: "false",
        tabindex: "0",
      }),
      EditorView.updateListener.of(({ docChanged, selectionSet, state }) => {
        if (docChanged && !this.#silent) {
          changed(state.doc.toString());
          this.#checkLater();
        }
        const line = state.doc.lineAt(state.selection.main.head).number;
        if (selectionSet && line !== this.#line && !this.#silent) {
          this.#line = line;
          moved(line);
        }
      }),
    ];
  }
}

function typingHelp(client: LanguageClient): Extension {
  return [
    highlightSpecialChars(),
    indentOnInput(),
    bracketMatching(),
    closeBrackets(),
    highlightSelectionMatches(),
    autocompletion({ override: [(context) => client.completions(context)] }),
    hoverTooltip((view, position) => client.hover(view.state.doc.toString(), position)),
    keymap.of([
      // Escape first, then Tab, leaves the editor for whoever has no mouse.
      indentWithTab,
      ...closeBracketsKeymap,
      ...defaultKeymap,
      ...searchKeymap,
      ...historyKeymap,
      ...completionKeymap,
      ...lintKeymap,
    ]),
  ];
}

function languageOf(language: Language): Extension {
  return language === "typescript" ? javascript({ typescript: true }) : [];
}

function diagnosticOf({ from, to, message, severity }: Problem, { doc }: EditorState): Diagnostic {
  return { from: Math.min(from, doc.length), to: Math.min(to, doc.length), message, severity };
}
