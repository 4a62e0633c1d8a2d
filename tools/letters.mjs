// Which letters does a reader take for the same? This writes src/muniment/repository/index/letters.txt ("make letters").
//
// The source is the root collation of CLDR, which Node.js carries as part of ICU (Unicode licence v3): letters with
// equal primary weights are the same. EXTRA says what readers take for the same besides. Two kinds of characters are kept
// apart although their primary weights are equal, because they make other words: the signs of Indic and other scripts that
// Unicode calls alphabetic, such as the anusvara, and the voicing and the size of kana.
// A line of the table is a word, a tab, and code points in hexadecimal: "drop" names characters that leave no trace,
// "mark" marks that count as letters although the engine takes them for punctuation, and any other line begins with the
// letter for which its characters stand. Each line's code points are in order, and a hyphen stands between the ends of a range.
// After a change of the table, raise FORMAT in index/tantivy/fields.py: the order of "mark" is part of the index.

const CLDR = "48";
if (process.versions.cldr.split(".")[0] !== CLDR) {
  console.error(`This needs a Node.js with CLDR ${CLDR}: npx --package=node@20.20.2 -- node tools/letters.mjs`);
  process.exit(1);
}

const EXTRA = {
  "'": "\u02bb\u02bc\u05f3\u07f4\u07f5\ua78b\ua78c",
  ",": "\u066c",
  ".": "\u066b",
  "ا": "أإآٱ",
  "ي": "یى",
  "ك": "ک",
  "ه": "ةہۀۂ",
};
for (const script of [0x900, 0x980, 0xa00, 0xa80, 0xb00, 0xc00, 0xc80, 0xd00]) EXTRA[String.fromCodePoint(script + 2)] = String.fromCodePoint(script + 1);
for (let kana = 0x30a1; kana <= 0x30f6; kana++) EXTRA[String.fromCodePoint(kana - 0x60)] = String.fromCodePoint(kana);
const KEPT = new Set(["\u200b", "\u200c"]); // These separate words.
const SIGNS = /(?=\p{Alphabetic})(?!\p{Script=Arabic}|\p{Script=Hebrew}|\p{Script=Syriac}|\p{Script=Inherited}|\p{Script=Cyrillic})\p{M}/u;
const collator = new Intl.Collator("und", { sensitivity: "base" });
const same = (one, other) => collator.compare(one, other) === 0;

const drop = new Set();
const mark = [];
const alike = new Map(); // from a character to the letter for which it stands
const letters = [];
for (let code = 0x80; code < 0xe0200; code++) {
  if (code >= 0x3400 && code < 0xa000) code = 0xa000; // Chinese characters, and further below Korean syllables
  if (code >= 0xac00 && code < 0xf900) code = 0xf900;
  if (code >= 0x17000 && code < 0x18d80) code = 0x18d80;
  if (code >= 0x20000 && code < 0xe0000) code = 0xe0000;
  const one = String.fromCodePoint(code);
  if (KEPT.has(one) || one.normalize("NFKC") !== one) continue; // never in a normal text
  if (/\p{Emoji_Modifier}/u.test(one)) drop.add(code);
  else if (/[\u3099\u309a\p{Script=Hiragana}\p{Script=Katakana}]/u.test(one)) continue;
  else if (/\p{M}|\p{Cf}|\p{Lm}/u.test(one) && same(one, "")) {
    if (!SIGNS.test(one)) drop.add(code);
  } else if (/\p{Nd}/u.test(one)) alike.set(one, String([..."0123456789"].findIndex((digit) => same(digit, one))));
  else if (/\p{M}/u.test(one) && !/\p{Alphabetic}/u.test(one)) mark.push(code);
  else if (/\p{L}|\p{M}/u.test(one) && !/\p{Script=Latin}|\p{Script=Hangul}|\p{Script=Han}/u.test(one)) letters.push(one);
}

const plain = (one) => [
  one.normalize("NFD") === one ? 0 : 1, /\p{Ll}|\p{Lo}/u.test(one) ? 0 : 1, /[ςךםןףץ]/u.test(one) ? 1 : 0, one.codePointAt(0),
];
const plainer = (one, other) => {
  const [a, b] = [plain(one), plain(other)];
  const at = a.findIndex((value, place) => value !== b[place]);
  return a[at] - b[at];
};
letters.sort(collator.compare);
for (let start = 0, end; start < letters.length; start = end) {
  for (end = start + 1; end < letters.length && same(letters[start], letters[end]); end++);
  const [first] = letters.slice(start, end).sort(plainer);
  for (const one of letters.slice(start, end)) {
    const letter = /\p{Lu}/u.test(one) && [...first.toUpperCase()].length === 1 ? first.toUpperCase() : first;
    if (letter !== one && letter.toLowerCase() !== one.toLowerCase()) alike.set(one, letter);
  }
}
for (const [letter, others] of Object.entries(EXTRA)) {
  for (const one of others) alike.set(one, letter);
  for (const [one, stands] of alike) if (others.includes(stands)) alike.set(one, letter);
}

const ranges = (codes) => {
  const parts = [];
  for (const code of [...codes].sort((a, b) => a - b)) {
    const last = parts.at(-1);
    if (last && last[1] === code - 1) last[1] = code;
    else parts.push([code, code]);
  }
  return parts.map(([low, high]) => low.toString(16) + (high > low ? "-" + high.toString(16) : "")).join(" ");
};
const lines = [`drop\t${ranges(drop)}`, `mark\t${ranges(mark)}`];
const groups = new Map();
for (const [one, letter] of alike) groups.set(letter, [...(groups.get(letter) ?? []), one.codePointAt(0)]);
for (const letter of [...groups.keys()].sort()) lines.push(`${letter}\t${ranges(groups.get(letter))}`);
console.log(lines.join("\n"));
console.error(`CLDR ${process.versions.cldr}: ${drop.size} dropped, ${mark.length} marks, ${alike.size} alike`);
