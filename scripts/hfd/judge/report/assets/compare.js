// Cards, the table of metrics by model, and the differences between two models.
"use strict";
const data = HFD.data;
const isBlackBox = (model) => Boolean(data.made_of[model]?.black_box);
// Samples that ran side by side share their times: these are in no table and no chart of times.
const hasOwnTimes = (model) => !(data.made_of[model]?.sessions > 1);
// Closed services stand in a group of their own, after the models whose weights are known.
const ran = data.models.filter((model) => data.made_of[model]).sort((a, b) => isBlackBox(a) - isBlackBox(b));
const shownModels = ran.length ? ran : data.models;
const colourOf = (model) => MODEL_COLOURS[data.models.indexOf(model) % MODEL_COLOURS.length];
// "[low, high]", or nothing where a single cluster gives no interval.
const interval = (row, show) => row.low === null ? "" : `[${show(row.low)}, ${show(row.high)}]`;
const percent = (value, digits = 0) => `${(100 * value).toFixed(digits)} %`;
const isRate = (row) => row.statistic === "rate";
const shortHash = (text) => text && text.length > 24 ? `${text.slice(0, 12)}…` : text;

// Cards ------------------------------------------------------------------------------------------
function estimate(model, metric, statistic, denominator) {
  return data.metrics.find((row) => row.by === "all" && row.model === model && row.metric === metric &&
    row.statistic === statistic && row.denominator === denominator);
}

function headline(model, key) {
  const rate = key !== "h9_response_s";
  const found = rate ? estimate(model, key, "rate", "strict") : estimate(model, key, "median", "scored");
  const value = !found ? "–" : rate ? percent(found.value) : `${number(found.value)} s`;
  const range = found ? interval(found, rate ? percent : number) : "";
  return element("div", { class: "headline", title: metricHelp(key) },
    element("b", {}, value), element("span", {}, found ? `${range} n ${found.n}` : ""),
    element("span", { class: "name" }, `${metricName(key)}${rate ? ` · ${t("strict_short")}` : ` · ${t("median")}`}`));
}

function statusCounts(model) {
  const counts = data.coverage[model];
  const shown = Object.entries(counts).filter(([key, n]) => key !== "expected" && n);
  return `${counts.expected} ${named("expected")}: ${shown.map(([key, n]) => `${n} ${named(key)}`).join(", ")}`;
}

// What a model shows against itself (repeat_probe): below that no difference says anything.
function noiseOf(model) {
  const repeat = data.reruns[model]?.repeat, unbound = data.reruns[model]?.unbound?.repeat;
  if (!repeat) return unbound ? reasonText(unbound) : t("no_noise");
  const floor = repeat.floors[data.statistics.primary];
  return [`${t("flips")} ${percent(repeat.flip_rate ?? 0)}`, repeat.onset_spread_s === null ? "" : `${t("onset_spread")} ${number(repeat.onset_spread_s)} s`,
    floor === undefined ? "" : `${metricName(data.statistics.primary)} ± ${percent(floor)}`, `${repeat.samples} × ${repeat.runs}`].filter(Boolean).join(" · ");
}

function rerunsOf(model) {
  const probes = data.reruns[model] ?? {}, out = [];
  for (const kind of ["pause", "cache", "neighbour"]) {
    const found = Object.values(probes[kind] ?? {});
    if (found.length) out.push(`${named(kind)} ${found.filter((one) => one.equal && one.other_equal !== false).length}/${found.length} ${t("unchanged")}`);
  }
  const seen = Object.values(probes.vision ?? {});
  for (const way of ["frozen", "swapped"]) if (seen.length) out.push(`${named(`${way} frames`)}: ${seen.filter((one) => one[`${way}_changes_text`]).length}/${seen.length} ${t("answers_change")}`);
  const jitter = Object.values(probes.jitter ?? {});
  if (jitter.length) out.push(`${named("jitter")} ${jitter.filter((one) => one.equal).length}/${jitter.length} ${t("unchanged")}`);
  for (const kind of ["spoken", "shown"]) {
    const one = probes.canary?.[kind];
    if (one) out.push(`${t(`canary_${kind}`)} ${one.right}/${one.n} (${t("chance")} ${percent(one.chance)})${probes.canary.of_these_results ? "" : ` ${t("canary_other")}`}`);
  }
  const again = ["pause", "cache", "neighbour", "vision", "jitter"].flatMap((kind) => Object.values(probes[kind] ?? {}));
  if (again.length) out.push(`${t("as_delivered")} ${again.filter((one) => one.as_delivered).length}/${again.length}`);
  for (const [kind, why] of Object.entries(probes.unbound ?? {})) if (kind !== "repeat") out.push(`${named(kind)}: ${reasonText(why)}`);
  return out.join(" · ") || "–";
}

function drawCards() {
  const keys = [...new Set([data.statistics.primary, "h5_hold_failure", "h9_response_s"])];
  const cards = ran.map((model) => {
    const card = data.made_of[model], verdicts = Object.values(data.rules[model]);
    const count = (status) => verdicts.filter((verdict) => verdict.status === status).length;
    const facts = [
      [t("weights"), card.weights.map(shortHash).join(" / ") || "–"], [t("numbers"), card.dtypes.join(" / ") || "–"],
      [t("hardware"), card.hardware.join(" / ")], [t("clock_name"), `${card.clock.join(" / ")}${card.turn_taking.length ? ` · ${card.turn_taking.join(" / ")}` : ""}${card.full_duplex.length ? ` · ${card.full_duplex.join(" / ")}` : ""}`],
      [t("voice"), card.voice_origin.map(named).join(" / ")], [t("dates"), [...new Set(card.made.map((text) => text.slice(0, 10)))].join(" – ")],
      ...(card.sessions > 1 ? [[t("sessions"), `${card.sessions}: ${t("shared")}`]] : []),
      [t("load"), card.busy ? `${card.busy} ${t("of")} ${card.results} ${t("busy")}` : t("quiet")],
      [t("noise"), noiseOf(model)], [t("reruns"), rerunsOf(model)],
      [t("versions"), Object.entries(card.versions).map(([name, version]) => `${name} ${version}`).join(", ") || "–"],
    ];
    return element("article", { class: "model-card", style: `border-top-color:${colourOf(model)}`, "data-model": model },
      element("h3", {}, model, element("span", {}, card.identity.join(" / "))),
      element("div", { class: "headlines" }, ...keys.map((key) => headline(model, key))),
      element("p", { class: "audit" }, ...[["pass", "✓"], ["fail", "✗"], ["not_evidenced", "?"]].map(([status, mark]) =>
        element("span", { class: count(status) ? status : "none" }, `${mark} ${count(status)} ${named(status)}`))),
      element("p", { class: "hint" }, statusCounts(model)),
      element("dl", {}, ...facts.filter(([name, value]) => value !== "–" || name === t("weights")).map(([name, value]) => element("div", {}, element("dt", {}, name), element("dd", {}, value)))),
      element("details", {}, element("summary", {}, t("settings")), element("pre", {}, JSON.stringify(card.settings, null, 1))));
  });
  const known = ran.filter((model) => !isBlackBox(model)).length;
  if (known < ran.length) cards.splice(known, 0, element("h3", { class: "card-group" }, t("black_boxes")));
  $("cards").replaceChildren(...cards);
  const never = data.models.filter((model) => !data.made_of[model]);
  $("never").hidden = !never.length;
  if (never.length) {
    $("never").querySelector("summary").textContent = `${never.length} ${t("never")}: ${never.join(", ")}`;
    $("never").querySelector("p").replaceChildren(...never.flatMap((model) => [`${model}: ${statusCounts(model)}`, element("br")]));
  }
}

// Metrics by model -------------------------------------------------------------------------------
// A dot with its interval on an axis from low to high; inline SVG, so that it prints and needs no library.
function dots(items, low, high) {
  const span = high - low || 1, height = 6 + 9 * items.length;
  const x = (value) => 4 + 152 * (Math.min(Math.max(value, low), high) - low) / span;
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", `0 0 160 ${height}`);
  svg.setAttribute("class", "dots");
  svg.setAttribute("aria-hidden", "true");
  const add = (tag, attributes) => {
    const node = document.createElementNS(svg.namespaceURI, tag);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    svg.append(node);
  };
  if (low < 0 && high > 0) add("line", { x1: x(0), x2: x(0), y1: 0, y2: height, class: "zero" });
  items.forEach((item, at) => {
    if (!item) return;
    const y = 7 + 9 * at;
    if (item.low !== null) add("line", { x1: x(item.low), x2: x(item.high), y1: y, y2: y, stroke: item.colour, "stroke-width": 2 });
    add("circle", { cx: x(item.value), cy: y, r: 3.4, fill: item.colour });
  });
  return svg;
}

function metricRows(by, stratum, denominator) {
  const mine = data.metrics.filter((row) => row.by === by && row.stratum === stratum);
  const keys = METRIC_ORDER.filter((key) => mine.some((row) => row.metric === key));
  return keys.map((key) => {
    const statistic = mine.some((row) => row.metric === key && isRate(row)) ? "rate" : "median";
    return { key, statistic, cells: shownModels.map((model) => {
      const found = (wanted, what = statistic) => mine.find((row) => row.model === model && row.metric === key && row.statistic === what && row.denominator === wanted);
      const row = found(denominator) ?? found("scored");
      return row && { ...row, p90: found("scored", "p90")?.value, best: row.denominator === "strict" ? found("best")?.value : undefined };
    }) };
  });
}

function metricCell(row, statistic) {
  if (!row) return element("td", { class: "n" }, "–");
  const show = (value) => statistic === "rate" ? percent(value) : number(value);
  const mark = statistic === "rate" && row.denominator === "scored" && $("strict").checked ? "*" : "";
  const tail = row.best !== undefined ? ` · ${t("best")} ${show(row.best)}` : row.p90 === undefined ? "" : ` · ${t("p90")} ${number(row.p90)}`;
  return element("td", { class: "n" }, `${show(row.value)}${mark} `, element("small", {}, `${interval(row, show)} n\u00a0${row.n}${tail}`));
}

function drawMetrics() {
  const [by, stratum] = ($("stratum").value || "all:all").split(/:(.*)/s);
  const rowsOf = metricRows(by, stratum, $("strict").checked ? "strict" : "scored");
  const out = [element("tr", {}, element("th", {}, t("metric")), element("th", {}, ""), ...shownModels.map((model) => element("th", { style: `color:${colourOf(model)}` }, model)))];
  const known = shownModels.filter((model) => !isBlackBox(model)).length;
  if (known < shownModels.length) {
    out.unshift(element("tr", { class: "model-groups" }, element("th", { colspan: known + 2 }, ""), element("th", { colspan: shownModels.length - known }, t("black_boxes"))));
  }
  for (const [better, title] of [["low", "low_good"], ["high", "high_good"], [null, "neutral"]]) {
    const group = rowsOf.filter((row) => METRICS[row.key][0] === better);
    if (!group.length) continue;
    out.push(element("tr", { class: "group" }, element("th", { colspan: shownModels.length + 2 }, t(title))));
    for (const { key, statistic, cells } of group) {
      const items = cells.map((row, at) => row && { ...row, colour: colourOf(shownModels[at]) });
      const shown = items.filter(Boolean), rate = statistic === "rate";
      const low = rate ? 0 : Math.min(0, ...shown.map((one) => one.low ?? one.value)), high = rate ? 1 : Math.max(...shown.map((one) => one.high ?? one.value));
      out.push(element("tr", {}, element("th", { class: "metric" }, element("span", {}, `${metricName(key)}${rate ? "" : ` · ${t(statistic)}`}`), element("small", {}, metricHelp(key))),
        element("td", {}, dots(items, low, high)), ...cells.map((row) => metricCell(row, statistic))));
    }
  }
  $("dots-hint").textContent = `${t("dots_hint")} ${stated()}`;
  $("metrics").replaceChildren(...out);
}

// Differences ------------------------------------------------------------------------------------
function drawPaired() {
  const pairs = [...new Set(data.paired.map((row) => `${row.first} − ${row.second}`))];
  $("paired-box").hidden = !pairs.length;
  if (!pairs.length) return;
  const chosen = pairs.includes($("pair").value) ? $("pair").value : pairs[0];
  $("pair").replaceChildren(...pairs.map((name) => element("option", { value: name }, name)));
  $("pair").value = chosen;
  const s = data.statistics;
  $("paired-hint").textContent = `${t("paired_hint")} ${metricName(s.primary)}. ${t("clustered")}: ${s.clustered_by.join(", ")}. ${stated()}`;
  const mine = data.paired.filter((row) => `${row.first} − ${row.second}` === chosen)
    .sort((a, b) => (b.family === "primary") - (a.family === "primary"));
  const show = (row, value) => value === null || value === undefined ? "–" : row.discordant !== undefined && row.discordant !== null ? percent(value, 1) : number(value, 3);
  $("paired").replaceChildren(
    element("tr", {}, ...[t("metric"), named("denominator"), "n", t("first"), t("second"), t("difference"), "", t("p_holm"), t("detectable")].map((text) => element("th", {}, text))),
    ...mine.map((row) => {
      const rate = row.discordant !== undefined && row.discordant !== null;
      const reach = rate ? 1 : Math.max(Math.abs(row.low), Math.abs(row.high), Math.abs(row.difference)) || 1;
      const item = { ...row, value: row.difference, colour: row.p_holm < 0.05 && !row.grey ? css("--link") : css("--soft") };
      return element("tr", { class: [row.family, row.grey ? "grey" : "", row.p_holm < 0.05 && !row.grey ? "found" : ""].join(" ") },
        element("th", { class: "metric" }, METRICS[row.metric] ? metricName(row.metric) : row.label, ...(row.family === "primary" ? [element("small", {}, t("primary"))] : [])),
        element("td", {}, named(row.denominator)), element("td", { class: "n" }, String(row.n)),
        element("td", { class: "n" }, show(row, row.first_value)), element("td", { class: "n" }, show(row, row.second_value)),
        element("td", { class: "n" }, `${show(row, row.difference)} `, element("small", {}, `${interval(row, (value) => show(row, value))}${typeof row.lost_low === "number" ? ` · ${t("lost_bounds")} ${show(row, row.lost_low)} … ${show(row, row.lost_high)}` : ""}`)),
        element("td", {}, dots([item], -reach, reach)),
        element("td", { class: "n" }, row.p_holm < 0.001 ? "< 0.001" : number(row.p_holm, 3)),
        element("td", { class: "n" }, rate ? (row.detectable === null ? "–" : percent(row.detectable)) : ""));
    }));
}

// Measurement card ---------------------------------------------------------------------------------
function drawMeasurements() {
  const known = shownModels.filter((model) => data.cards[model]);
  $("card-box").hidden = !known.length;
  const spread = (value, digits = 3) => !value ? "" : value.share !== undefined ? `${percent(value.share)} (${value.n})`
    : `${number(value.p50, digits)} / ${number(value.p95, digits)} / ${number(value.max, digits)} (${value.n})`;
  const growth = (value) => value ? `${number(value.value)} ${interval(value, number)} (${value.n})` : "";
  const lines = [
    ["card_block", (card) => card.audio_block_s.join(" / ")], ["card_frames", (card) => spread(card.frames_per_s, 2)],
    ["card_context", (card) => spread(card.context_tokens, 0)], ["card_rtf", (card) => spread(card.real_time_factor)],
    ["card_buffer", (card) => spread(card.playback_buffer_s)], ["card_chunk", (card) => spread(card.chunk_s)], ["card_rtt", (card) => spread(card.network_rtt_ms, 0)],
    ["card_lag", (card) => spread(card.transport.lag_s)], ["card_growth", (card) => growth(card.inference.growth)],
    ...Object.keys(LATENCY_WORDS).map((key) => [key, (card) => spread(card.latencies_s[key])]),
    ...["holds_in_the_pause", "stops_when_interrupted_s", "answers_anew_when_interrupted", "resumes_its_old_answer_when_interrupted", "falls_silent_when_interrupted", "answers_the_question", "speaks_unasked"].map((key) => [key, (card) => spread(card.interaction[key], 2)]),
  ];
  const words = (key) => CARD_WORDS[key] ?? LATENCY_WORDS[key];
  $("card").replaceChildren(
    element("tr", {}, element("th", {}, ""), ...known.map((model) => element("th", { style: `color:${colourOf(model)}` }, model, " ", element("a", { href: fileUrl(`card_${model}.md`) }, "card.md")))),
    ...lines.map(([key, value]) => element("tr", {}, element("th", { class: "metric" }, words(key)[isChinese() ? 1 : 0], element("small", {}, words(key)[isChinese() ? 3 : 2] ?? "")),
      ...known.map((model) => {
        const [shown, n] = value(data.cards[model]).split(/ (?=\()/);
        return element("td", { class: "n" }, shown, ...(n ? [" ", element("small", {}, n)] : []));
      }))));
}

function fillStrata() {
  const found = [...new Set(data.metrics.map((row) => `${row.by}:${row.stratum}`))];
  const label = (name) => { const [by, part] = name.split(/:(.*)/s); return by === "all" ? t("all_samples") : `${named(by)}: ${named(part)}`; };
  const chosen = $("stratum").value || "all:all";
  $("stratum").replaceChildren(...found.map((name) => element("option", { value: name }, label(name))));
  $("stratum").value = found.includes(chosen) ? chosen : "all:all";
}
