// Every text colour of tokens.css is measured against every ground it stands on, in both themes.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

const css = readFileSync(new URL("../../gateway/static/css/tokens.css", import.meta.url), "utf8");
const code = readFileSync(new URL("../../gateway/static/css/prose.css", import.meta.url), "utf8");
const tokens = Object.fromEntries(
  [...css.matchAll(/--([\w-]+): light-dark\((#\w{6}), (#\w{6})\)/g)].map(([, name, light, dark]) => [
    name,
    { light, dark },
  ]),
);

function luminance(hex) {
  const [r, g, b] = [1, 3, 5]
    .map((at) => Number.parseInt(hex.slice(at, at + 2), 16) / 255)
    .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

function contrast(a, b) {
  const [high, low] = [luminance(a), luminance(b)].sort((x, y) => y - x);
  return (high + 0.05) / (low + 0.05);
}

const GROUNDS = ["paper", "raised", "sunken", "hover"];
const PAIRS = [
  ...["ink", "ink-2"].flatMap((ink) =>
    [...GROUNDS, "danger-soft", "warn-soft", "ok-soft", "accent-soft"].map((ground) => [ink, ground, 4.5]),
  ),
  ...["ink-3"].flatMap((ink) => ["paper", "raised", "sunken"].map((ground) => [ink, ground, 4.5])),
  ...["accent", "danger", "warn", "ok"].flatMap((ink) =>
    ["paper", "raised", `${ink}-soft`].map((ground) => [ink, ground, 4.5]),
  ),
  ["on-accent", "accent", 4.5],
  ["on-accent", "accent-strong", 4.5],
  ["on-danger", "danger", 4.5],
  ["control", "paper", 3],
  ["control", "raised", 3],
  ...[1, 2, 3, 4, 5, 6].map((n) => [`series-${n}`, "raised", 2.5]),
];

for (const theme of ["light", "dark"]) {
  test(`colours can be read in the ${theme} theme`, () => {
    const weak = PAIRS.map(([ink, ground, least]) => [
      ink,
      ground,
      least,
      contrast(tokens[ink][theme], tokens[ground][theme]),
    ]).filter(([, , least, found]) => found < least);
    assert.deepEqual(
      weak.map(([ink, ground, least, found]) => `${ink} on ${ground}: ${found.toFixed(2)} < ${least}`),
      [],
    );
  });

  test(`coloured code can be read in the ${theme} theme`, () => {
    const colours = [...code.matchAll(/color: light-dark\((#\w{6}), (#\w{6})\)/g)].map(
      ([, light, dark]) => ({ light, dark })[theme],
    );
    assert.ok(colours.length >= 5);
    assert.deepEqual(
      colours.filter((colour) => contrast(colour, tokens.sunken[theme]) < 4.5),
      [],
    );
  });
}
