// Syntax colours for the languages that panes show.
//
// A language is one regular expression whose named groups are the kinds of tokens; other text has no
// colour.  This is done in the page, so that the document does not grow.

/** @import { Line, Word } from "./types.d.ts" */

const words = (/** @type {string} */ text) => `\\b(?:${text.trim().replace(/\s+/g, "|")})\\b`;

const NUMBER = "\\b(?:0[xXfd][\\da-fA-F.]+(?:[pP][-+]?\\d+)?|\\d[\\d_]*\\.?\\d*(?:[eE][-+]?\\d+)?)[fFuUlL]*\\b";
const STRING = "\"(?:\\\\.|[^\"\\\\])*\"|'(?:\\\\.|[^'\\\\])*'";
const CALLED = "\\b[A-Za-z_]\\w*(?=\\()";

const PYTHON = {
  comment: "#.*",
  string: `[rbfRBF]{0,2}(?:${STRING})`,
  keyword: words(`False None True and as assert async await break class continue def del elif else
    except finally for from global if import in is lambda nonlocal not or pass raise return try
    while with yield match case`),
  type: `@[\\w.]+|${words("self cls int float bool str tuple list dict set torch tl triton")}`,
  called: CALLED,
  number: NUMBER,
};

const CPP = {
  comment: "//.*",
  string: `#\\s*pragma .*|#\\s*include .*|${STRING}`,
  keyword: words(`alignas auto break case const constexpr continue default do else extern for if
    inline namespace noexcept operator return sizeof static struct switch template typedef typename
    union using while volatile restrict __restrict true false nullptr #define #if #endif`),
  type: `\\b\\w+_t\\b|${words(`void bool char short int long float double unsigned signed half
    bfloat16`)}`,
  called: `${CALLED}|\\b[a-z_]\\w*(?=<[\\w, ]+>\\()`,
  number: NUMBER,
};

const ASSEMBLY = {
  comment: "//.*|; *\\S.*|#.*|<[A-Za-z_][^>]*>",
  string: STRING,
  keyword: "^\\s*(?:[\\da-f]+:\\s+)?(?:@!?%\\w+\\s+)?[a-z][\\w.:]*(?=\\s|;|$)|^\\s*\\.[\\w.]+",
  type: "%[\\w.]+|" + words(`[xyz]mm\\d+ [re]?[abcd]x [re]?[sd]il? [re]?[bs]p r\\d+[dwb]? [wxvqsd]\\d+ k[0-7]
    [abcd]l`) + "|\\.[a-z]\\w*",
  called: words("BYTE WORD DWORD QWORD XMMWORD YMMWORD ZMMWORD PTR"),
  number: NUMBER,
};

const MLIR = {
  comment: "//.*|;.*|loc\\(.*",
  string: STRING,
  keyword: "\\b[a-z_]\\w*\\.[\\w.]+|" + words(`define declare attributes ret br call tail load store
    add sub mul fadd fsub fmul fdiv icmp fcmp select getelementptr extractvalue insertvalue phi
    bitcast zext sext trunc fptrunc fpext module public private`),
  type: "[!#][\\w.]+|\\btensor(?=<)|" + words("[if]\\d+ bf16 float double half ptr void index"),
  called: "@[\\w.$]+",
  number: `${NUMBER}|%[\\w.]+`,
};

/** @type {Record<string, RegExp>} */
const LANGUAGES = Object.fromEntries(Object.entries({
  python: PYTHON, triton: PYTHON, cpp: CPP, assembly: ASSEMBLY, mlir: MLIR,
}).map(([name, kinds]) => [name, new RegExp(
  Object.entries(kinds).map(([kind, words]) => `(?<${kind}>${words})`).join("|"), "g")]));

/** @type {Record<string, string[]>} */
const LONG = { python: ['"""', "'''"], triton: ['"""', "'''"], cpp: ["/*"] };
/** @type {Record<string, string>} */
const CLOSES = { "/*": "*/" };
const OPENS = /"""|'''|\/\*/g;

/**
 * The tokens of a line: `{words: [[kind, text], ...], open}`; kind is null for plain text.  `open` is
 * the opening delimiter of a string or comment that continues in the next line; the argument `open` is
 * that of the previous line.
 *
 * @param {string} line
 * @param {string} language
 * @param {string | null} open
 */
export function coloured(line, language, open = null) {
  /** @type {Word[]} */
  const found = [];
  const plain = (/** @type {string} */ text) => text && found.push(...matched(text, LANGUAGES[language]));
  let rest = line;
  while (rest) {
    if (open === null) {
      const at = firstOpening(rest, language);
      plain(rest.slice(0, at));
      rest = rest.slice(at);
      if (!rest) break;
      const opens = rest.startsWith("/*") ? "/*" : rest.slice(0, 3);
      open = opens;
      found.push([kindOf(opens), opens]);
      rest = rest.slice(opens.length);
    }
    const close = CLOSES[open] || open;
    const end = rest.indexOf(close);
    const inside = end < 0 ? rest : rest.slice(0, end + close.length);
    if (inside) found.push([kindOf(open), inside]);
    rest = rest.slice(inside.length);
    if (end >= 0) open = null;
    else break;
  }
  return { words: found, open };
}

const kindOf = (/** @type {string} */ open) => (open === "/*" ? "comment" : "string");

/**
 * The index where a multi-line string or comment begins; the length of the line if there is none.
 *
 * @param {string} text
 * @param {string} language
 */
function firstOpening(text, language) {
  const known = LONG[language] || [];
  for (const { 0: what, index } of text.matchAll(OPENS)) {
    const before = text.slice(0, index);
    if (known.includes(what) && !/#|\/\//.test(before)) return index;
  }
  return text.length;
}

/**
 * @param {string} text
 * @param {RegExp} language
 * @returns {Generator<Word>}
 */
function* matched(text, language) {
  let at = 0;
  for (const match of text.matchAll(language)) {
    const kinds = Object.entries(match.groups || {});
    const [kind] = kinds.find(([, words]) => words !== undefined) || [null];
    if (match.index > at) yield [null, text.slice(at, match.index)];
    yield [kind, match[0]];
    at = match.index + match[0].length;
  }
  if (at < text.length) yield [null, text.slice(at)];
}

/**
 * A function that calls `each` with the number and the coloured words of each line of a chunk of
 * `size` lines; null for a language without colours.
 *
 * @param {Line[]} lines
 * @param {number} size
 * @param {string} language
 * @returns {((chunk: number, each: (i: number, words: Word[]) => void) => void) | null}
 */
export function colourer(lines, size, language) {
  if (!LANGUAGES[language]) return null;
  /** @type {(string | null)[]} */
  const opened = [null];
  return (chunk, each) => {
    for (let known = opened.length; known <= chunk; known++) {
      opened.push(goThrough(lines.slice((known - 1) * size, known * size), language,
        opened[known - 1]));
    }
    goThrough(lines.slice(chunk * size, (chunk + 1) * size), language, opened[chunk], each);
  };
}

/**
 * Call `each` with the tokens of every line; returns the delimiter open after the last line.  Lines
 * of a diff are not consecutive, so strings and comments do not continue there.
 *
 * @param {Line[]} lines
 * @param {string} language
 * @param {string | null} open
 * @param {((i: number, words: Word[]) => void) | null} each
 */
function goThrough(lines, language, open, each = null) {
  lines.forEach(([text, , mark], i) => {
    const found = coloured(text, language, mark === undefined ? open : null);
    open = mark === undefined ? found.open : null;
    if (text && mark !== "@") each?.(i, found.words);
  });
  return open;
}
