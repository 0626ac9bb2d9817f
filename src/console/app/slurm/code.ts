/**
 * The editor (CodeMirror 6), in a shadow root: there its styles are constructed style sheets, which the policy of the pages
 * allows, where in the page itself they would be `<style>` elements, which it does not.
 */
import { defaultKeymap, history, historyKeymap } from '@codemirror/commands';
import { yaml } from '@codemirror/lang-yaml';
import { HighlightStyle, syntaxHighlighting } from '@codemirror/language';
import { unifiedMergeView } from '@codemirror/merge';
import { search, searchKeymap } from '@codemirror/search';
import {
  Compartment,
  EditorState,
  type Extension,
  StateEffect,
  StateField,
  type Text,
} from '@codemirror/state';
import {
  Decoration,
  type DecorationSet,
  EditorView,
  highlightActiveLine,
  highlightSpecialChars,
  keymap,
  lineNumbers,
  placeholder,
  WidgetType,
} from '@codemirror/view';
import { tags } from '@lezer/highlight';
import type { Fault } from './text.ts';

export interface CodeOptions {
  text: string;
  /** What it is, for screen readers. */
  label: string;
  isReadOnly: boolean;
  /** Shown while it is empty. */
  hint?: string;
  /** The differences from this are shown. */
  original?: string | undefined;
  /** Called as soon as something is typed. */
  onChange?: () => void;
  /** Ctrl/⌘ S. */
  onSave?: () => void;
}

export interface Code {
  text(): string;
  /** Replaces all of it; undo brings back what was there. */
  setText(text: string): void;
  setFaults(faults: readonly Fault[]): void;
  setOriginal(original: string | undefined): void;
  setReadOnly(isReadOnly: boolean): void;
  goTo(position: number): void;
  destroy(): void;
}

export function createCode(host: HTMLElement, options: CodeOptions): Code {
  const root = host.shadowRoot ?? host.attachShadow({ mode: 'open' });
  const [differences, writing] = [new Compartment(), new Compartment()];
  const view = new EditorView({
    root,
    parent: root,
    state: EditorState.create({
      doc: options.text,
      extensions: [
        ...extensionsOf(options),
        writing.of(EditorState.readOnly.of(options.isReadOnly)),
        differences.of(differencesFrom(options.original)),
      ],
    }),
  });
  return {
    text: () => view.state.doc.toString(),
    setText(insert) {
      view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert }, selection: { anchor: 0 } });
    },
    setFaults(faults) {
      view.dispatch({ effects: setFaults.of(faults) });
    },
    setOriginal(original) {
      view.dispatch({ effects: differences.reconfigure(differencesFrom(original)) });
    },
    setReadOnly(isReadOnly) {
      view.dispatch({ effects: writing.reconfigure(EditorState.readOnly.of(isReadOnly)) });
    },
    goTo(position) {
      const anchor = Math.max(0, Math.min(position, view.state.doc.length));
      view.dispatch({ selection: { anchor }, effects: EditorView.scrollIntoView(anchor, { y: 'center' }) });
      view.focus();
    },
    destroy: () => view.destroy(),
  };
}

function extensionsOf({ label, hint, onChange, onSave }: CodeOptions): Extension[] {
  const save = () => {
    onSave?.();
    return true;
  };
  return [
    lineNumbers(),
    history(),
    highlightSpecialChars(),
    highlightActiveLine(),
    search({ top: true }),
    yaml(),
    syntaxHighlighting(colours),
    EditorView.lineWrapping,
    // Tab is not ours: it leaves the editor, as it leaves every field.
    keymap.of([
      { key: 'Mod-s', preventDefault: true, run: save },
      ...defaultKeymap,
      ...historyKeymap,
      ...searchKeymap,
    ]),
    EditorView.domEventHandlers({ beforeinput: typeOverSelection }),
    EditorView.contentAttributes.of({ 'aria-label': label, spellcheck: 'false' }),
    hint === undefined ? [] : placeholder(hint),
    EditorView.updateListener.of(({ docChanged }) => {
      if (docChanged) onChange?.();
    }),
    faultField,
    theme,
  ];
}

/**
 * Typing over a selection of several lines is done here: left to the browser, it would put inline styles on what it joins, which
 * the policy refuses, and reports.
 */
function typeOverSelection(event: InputEvent, view: EditorView): boolean {
  const { data, inputType, isComposing } = event;
  const { state } = view;
  const isTyped = inputType === 'insertText' && data !== null && !isComposing;
  if (!isTyped || state.readOnly || state.selection.main.empty) return false;
  event.preventDefault();
  const change = state.replaceSelection(data);
  view.dispatch(change, { scrollIntoView: true, userEvent: 'input.type' });
  return true;
}

function differencesFrom(original: string | undefined): Extension {
  if (original === undefined) return [];
  return unifiedMergeView({
    original,
    mergeControls: false,
    collapseUnchanged: { margin: 3, minSize: 8 },
    // A text without anything in common is shown as such, rather than looked at for long.
    diffConfig: { scanLimit: 500, timeout: 200 },
  });
}

const setFaults = StateEffect.define<readonly Fault[]>();

const faultField = StateField.define<DecorationSet>({
  create: () => Decoration.none,
  update(shown, { changes, effects, state }) {
    const faults = effects.find((effect) => effect.is(setFaults));
    return faults ? decorationsOf(faults.value as readonly Fault[], state.doc) : shown.map(changes);
  },
  provide: (field) => EditorView.decorations.from(field),
});

function decorationsOf(faults: readonly Fault[], doc: Text): DecorationSet {
  const ranges = faults.flatMap(({ from, to, message }) => {
    const at = Math.min(from, doc.length);
    const line = doc.lineAt(at);
    const end = Math.min(Math.max(to, at), line.to);
    return [
      ...(end > at ? [Decoration.mark({ class: 'fault' }).range(at, end)] : []),
      Decoration.widget({ widget: new Message(message), block: true, side: 1 }).range(line.to),
    ];
  });
  return Decoration.set(ranges, true);
}

/** What is wrong, below its line. */
class Message extends WidgetType {
  readonly #text: string;

  constructor(text: string) {
    super();
    this.#text = text;
  }

  override eq(other: Message): boolean {
    return other.#text === this.#text;
  }

  override toDOM(): HTMLElement {
    const element = document.createElement('div');
    element.className = 'message';
    element.textContent = this.#text;
    return element;
  }
}

const colours = HighlightStyle.define([
  { tag: [tags.propertyName, tags.definition(tags.propertyName)], color: 'var(--accent)', fontWeight: '600' },
  { tag: tags.comment, color: 'var(--soft)', fontStyle: 'italic' },
  { tag: [tags.keyword, tags.atom, tags.number, tags.meta], color: 'var(--warn)' },
]);

const theme = EditorView.theme({
  '&': {
    maxHeight: '62vh',
    color: 'var(--text)',
    backgroundColor: 'var(--field)',
    border: '1px solid var(--edge)',
    borderRadius: '8px',
    fontSize: '0.87rem',
    overflow: 'hidden',
  },
  '&.cm-focused': { outline: '3px solid var(--ring)', outlineOffset: '1px' },
  '.cm-scroller': { fontFamily: 'var(--mono)', lineHeight: '1.5', minHeight: '9rem' },
  '.cm-content': { caretColor: 'var(--text)', padding: '0.5rem 0' },
  '.cm-gutters': {
    backgroundColor: 'var(--card)',
    color: 'var(--soft)',
    borderRight: '1px solid var(--line)',
  },
  '.cm-activeLine': { backgroundColor: 'color-mix(in srgb, var(--tint) 45%, transparent)' },
  '.cm-placeholder': { color: 'var(--soft)' },
  '.fault': { textDecoration: 'underline wavy var(--bad)', textUnderlineOffset: '3px' },
  '.message': {
    padding: '0.1rem 0.7rem',
    color: 'var(--bad)',
    backgroundColor: 'var(--bad-tint)',
    borderLeft: '3px solid var(--bad)',
    fontFamily: 'system-ui, sans-serif',
    whiteSpace: 'normal',
    overflowWrap: 'anywhere',
  },
  '.cm-specialChar': { color: 'var(--bad)' },
  '.cm-changedLine, &.cm-merge-b .cm-changedLine': { backgroundColor: 'var(--good-tint)' },
  '.cm-inlineChangedLine': { backgroundColor: 'var(--good-tint)' },
  '.cm-changedText, &.cm-merge-b .cm-changedText': {
    background: 'none',
    textDecoration: 'underline var(--good) 2px',
    textUnderlineOffset: '3px',
  },
  '.cm-deletedChunk': { backgroundColor: 'var(--bad-tint)', paddingLeft: '6px' },
  '.cm-deletedChunk .cm-deletedText': { background: 'none', textDecoration: 'line-through var(--bad)' },
  '.cm-deletedChunk del, .cm-deletedChunk .cm-deletedLine': { textDecoration: 'none' },
  '.cm-collapsedLines': {
    color: 'var(--soft)',
    background: 'var(--tint)',
    fontFamily: 'system-ui, sans-serif',
  },
  '.cm-changeGutter': { width: '4px', paddingLeft: '0' },
  '.cm-changedLineGutter': { background: 'var(--good)' },
  '.cm-deletedLineGutter': { background: 'var(--bad)' },
  '.cm-panels': { backgroundColor: 'var(--card)', color: 'var(--text)', borderColor: 'var(--line)' },
  '.cm-panel.cm-search': { padding: '0.4rem 0.6rem', fontFamily: 'system-ui, sans-serif' },
  '.cm-textfield, .cm-button': {
    color: 'var(--text)',
    background: 'var(--field)',
    border: '1px solid var(--edge)',
    borderRadius: '6px',
  },
  '.cm-panel.cm-search [name=close]': { minWidth: '24px', minHeight: '24px', color: 'var(--text)' },
  '.cm-searchMatch': { backgroundColor: 'color-mix(in srgb, var(--warn) 35%, transparent)' },
});
