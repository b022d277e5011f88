// Cuts growing Markdown into blocks: all but the last are settled and never looked at again. Pure.
import { Lexer } from "marked";

const OPTIONS = { gfm: true, breaks: true, async: false };

/** The fence that opens a code block, or null when it is an indented one. */
function openingFence(raw) {
  return /^ {0,3}(`{3,}|~{3,})/.exec(raw)?.[1] ?? null;
}

function isClosed(raw, fence) {
  const closing = new RegExp(`\\n {0,3}\\${fence[0]}{${fence.length},}[ \\t]*\\n*$`);
  return closing.test(raw);
}

/** The code of a fence that is still open, without a closing line that is only half typed. */
export function openCode(raw) {
  const fence = openingFence(raw);
  const lineEnd = raw.indexOf("\n");
  if (lineEnd < 0) return "";
  return raw.slice(lineEnd + 1).replace(new RegExp(`(^|\\n) {0,3}\\${fence[0]}{1,${fence.length}}$`), "");
}

/** The first word after the opening fence. */
export function languageOf(raw) {
  return /^ {0,3}(?:`{3,}|~{3,})[ \t]*([\w#+.-]*)[^\n]*\n/.exec(raw)?.[1].toLowerCase() ?? "";
}

/** The tokens of a piece of Markdown; `links` holds link definitions and gains those found here. */
export function lex(text, links = Object.create(null)) {
  const lexer = new Lexer(OPTIONS);
  lexer.tokens.links = links;
  return lexer.lex(text);
}

/**
 * The blocks of `text`: `[{ raw, tokens, open, settled }]`. `settled` blocks can no longer change,
 * whatever follows; `open` is a code fence without its end. With `final` every block is settled.
 */
export function splitBlocks(text, final, links) {
  const blocks = [];
  for (const token of lex(text, links)) {
    if (token.type === "space" && blocks.length) blocks.at(-1).raw += token.raw;
    else blocks.push({ raw: token.raw, tokens: [token], open: false, settled: true });
  }
  const last = blocks.at(-1);
  if (last) {
    const [token] = last.tokens;
    const fence = token.type === "code" ? openingFence(token.raw) : null;
    const closed = fence !== null && isClosed(token.raw, fence);
    last.open = fence !== null && !closed && !final;
    last.settled = final || (closed && text.endsWith("\n"));
  }
  return blocks;
}

/**
 * Ends what is still being written, so that it does not flicker: a lone opening mark is hidden, an open
 * one is closed, and a link whose address is half typed shows its words only.
 */
export function mend(raw) {
  let text = raw
    .replace(/\n {0,3}(`{1,2}|~{1,2})$/, "")
    .replace(/(^|\s)(\*{1,3}|_{1,3}|~{1,2}|`{1,2})$/, "$1");
  text = text.replace(/!?\[([^\]\n]*)\]\([^)\n]*$/, "$1");
  const ticks = text.match(/`+/g)?.filter((run) => run.length === 1).length ?? 0;
  if (ticks % 2) return `${text}\``;
  const bold = text.replace(/`[^`]*`/g, "").match(/\*\*/g)?.length ?? 0;
  return bold % 2 ? `${text.replace(/\*$/, "")}**` : text;
}
