// What the numbers rest on: the definition in words, and how the rates move under others.
"use strict";

// In a definition a take-over is so much speech or so many words; null words: seconds alone.
function definitionParts(d) {
  const words = d.turn_words === null || d.turn_words === undefined ? t("any_words") : `${t("or_more_than")} ${d.turn_words} ${t("words_or")} ${d.turn_han} ${t("han")}`;
  return [`${t("takeover")} ≥ ${d.turn_s} s`, `${t("holes")} ≤ ${d.pause_s} s`, words, `${t("margin")} ${d.margin_s} s`, `${t("detector")} ${d.speech_chance}`];
}

function definitionText(d) {
  const [turn, holes, words, ...rest] = definitionParts(d);
  return [`${turn} (${holes}) ${words}`, ...rest].join(" · ");
}

// Of another definition only what it changes.
function changedText(d) {
  const usual = definitionParts(data.statistics.definition);
  return definitionParts(d).filter((part, at) => part !== usual[at]).join(" · ");
}

const stated = () => `${t("definition")}: ${definitionText(data.statistics.definition)}.`;

function fillSensitivity() {
  const keys = METRIC_ORDER.filter((key) => data.sensitivity.some((row) => row.metric === key));
  // Without hesitation samples the primary endpoint has no row.
  const wanted = [$("sensitivity-metric").value, data.statistics.primary, keys[0]];
  const chosen = wanted.find((key) => keys.includes(key)) ?? "";
  $("sensitivity-metric").replaceChildren(...keys.map((key) => element("option", { value: key }, metricName(key))));
  $("sensitivity-metric").value = chosen;
}

// Differences to the stated definition; what does not move is left grey.
function sensitivityCell(row, show) {
  if (!row) return element("td", { class: "n" }, "–");
  const moved = row.definition === "stated" || row.shift === null ? "" : row.changed ? ` ${row.shift > 0 ? "+" : ""}${show(row.shift)} (${row.changed})` : " =";
  return element("td", { class: `n${row.definition !== "stated" && !row.changed ? " same" : ""}` }, show(row.value),
    element("b", {}, moved), " ", element("small", {}, `${interval(row, show)} n\u00a0${row.n}`));
}

function drawSensitivity() {
  $("sensitivity-box").hidden = !data.sensitivity.length;
  if (!data.sensitivity.length) return;
  fillSensitivity();
  const mine = data.sensitivity.filter((row) => row.metric === $("sensitivity-metric").value);
  const rate = mine.some(isRate);
  const show = (value) => rate ? percent(value, 1) : number(value, 3);
  const names = [...new Set(mine.map((row) => row.definition))];
  const denominators = [...new Set(mine.map((row) => row.denominator))].map(named).join(", ");
  $("sensitivity-hint").textContent = `${t("sensitivity_hint")} ${named("denominator")}: ${denominators}.`;
  $("sensitivity").replaceChildren(
    element("tr", {}, element("th", {}, t("definition")), element("th", {}, ""), ...shownModels.map((model) => element("th", { style: `color:${colourOf(model)}` }, model))),
    ...names.map((name) => {
      const cells = shownModels.map((model) => mine.find((row) => row.model === model && row.definition === name));
      const items = cells.map((row, at) => row && { ...row, colour: colourOf(shownModels[at]) });
      const ends = items.filter(Boolean).flatMap((row) => [row.low ?? row.value, row.high ?? row.value]);
      return element("tr", { class: name === "stated" ? "primary" : "" },
        element("th", { class: "metric" }, (name === "stated" ? definitionText : changedText)(mine.find((row) => row.definition === name)), ...(name === "stated" ? [element("small", {}, t("stated_here"))] : [])),
        element("td", {}, dots(items, rate ? 0 : Math.min(0, ...ends), rate ? 1 : Math.max(...ends))),
        ...cells.map((row) => sensitivityCell(row, show)));
    }));
}

// What people marked on label sheets, against each other and against our measurement.
function drawAgreement() {
  const found = data.agreement;
  $("agreement-box").hidden = !found;
  if (!found) return;
  $("agreement-hint").textContent = `${t("agreement_hint")} ${found.clips} ${t("clips")}${found.left_out ? ` (${found.left_out} ${t("left_out")})` : ""}. ${stated()}`;
  const rater = (name) => name === "measured" ? t("measured") : name;
  const range = (low, high, show) => low === null ? "" : `[${show(low)}, ${show(high)}]`;
  const seconds = (value) => `${number(value, 3)} s`;
  const cell = (value, show, low, high, n) => element("td", { class: "n" }, value === null ? "–" : show(value), " ", element("small", {}, `${range(low, high, show)}${n === undefined ? "" : ` n ${n}`}`));
  $("agreement").replaceChildren(
    element("tr", {}, ...[t("first"), t("second"), t("same_turn"), t("kappa"), t("onset_bias"), t("onset_size")].map((text) => element("th", {}, text))),
    ...found.turns.map((turn, at) => {
      const onset = found.onsets[at];
      return element("tr", {}, element("th", {}, rater(turn.first)), element("th", {}, rater(turn.second)),
        cell(turn.equal, percent, turn.equal_low, turn.equal_high, turn.n), cell(turn.kappa, number, turn.kappa_low, turn.kappa_high),
        cell(onset.bias_s, seconds, onset.low, onset.high, onset.n), element("td", { class: "n" }, onset.median_size_s === null ? "–" : seconds(onset.median_size_s)));
    }));
}
