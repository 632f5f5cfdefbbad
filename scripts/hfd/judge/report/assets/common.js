// Shared by both pages: data entry points, language, theme, colours. No network, no modules, so
// that the pages work from file://.
"use strict";
const HFD = {
  data: null,
  index(value) { HFD.data = value; },
  sample(value) { HFD.onSample(value); },
};

const TEXTS = {
  en: {
    title: "Audit of full-duplex runs", coverage: "Coverage", rules: "Rules",
    noise: "own noise", reruns: "run again", no_noise: "not measured: snakemake repeat_probe_<model>", flips: "outcomes that flip", onset_spread: "onset spread", unchanged: "unchanged", as_delivered: "as delivered", answers_change: "answers change", canary_spoken: "remembers a spoken word", canary_shown: "remembers a shown color", chance: "chance", canary_other: "(another model than these results)", card: "Measurement card", card_hint: "P50 / P95 / max (n). Each number has its boundary; what the trace does not tell is empty, and so are times that samples shared.", samples_word: "samples", manifest: "manifest", code: "code", why: "reason", question: "what it asks", comparison: "Comparison", paired: "Differences between models",
    dots_hint: "Dots with 95 % intervals. Strict: over all samples in which the metric is defined, a lost one (failed, refused, service error, missing, ineligible) counts against the model; best: for it; * where only what could be scored is known.",
    paired_hint: "First minus second, on the samples that both have; p corrected by Holm; grey: not larger than a model's own noise; detectable: the smallest difference that so many pairs would find. Primary endpoint (strict):", clustered: "Drawn together",
    metric: "metric", low_good: "Lower is better", high_good: "Higher is better", neutral: "Neither", first: "first", second: "second", difference: "difference", p_holm: "p (Holm)", detectable: "detectable", primary: "primary endpoint", all_samples: "all samples", rate: "rate", median: "median", p90: "90 %", strict_short: "strict", best: "best", lost_bounds: "lost either way",
    weights: "weights", numbers: "numbers", hardware: "hardware", clock_name: "clock", voice: "voice", dates: "dates", load: "machine", busy: "results on a busy machine", sessions: "sessions", shared: "times are shared with other samples: left out, and compared with no other model", quiet: "quiet", versions: "versions", settings: "Settings, with defaults", never: "models never ran", black_boxes: "Closed services: black boxes",
    sample: "sample", model: "model", task: "task", outcome: "outcome", fails: "fails", settled_s: "settled s", text_s: "text s", audio_s: "audio s", overlap_s: "overlap s", any_task: "every task",
    channels: "Player: left ear the user, right ear the model.", trace: "trace", provenance: "provenance", video: "video",
    rules_hint: "pass, fail or not evidenced (no evidence is never a pass). Choose a cell for the reason and its samples.",
    outcomes: "Hesitation outcomes (95 % intervals)", strict: "strict: a failed or missing sample counts against the model",
    latency: "Latency", heatmap: "Every hesitation sample, worst first", click_hint: "Click a cell to open the sample.",
    scatter: "Onset against the question's end", scatter_hint: "An honest run scatters; a fixed delay is a line.",
    lag: "Pacing lag", lag_hint: "How long after its last sample each unit was sent: the sender's lag in real time, the wait for a busy model on the virtual clock.",
    lag_axis: "lag, ms", units: "share of units", context: "Context length",
    context_hint: "Tokens that the model says it holds; a cropped context falls.", context_band: "Line: median of the samples, band: least to most.",
    no_context: "No trace here reports its context (context_tokens).", tokens: "tokens", media: "seconds of the run",
    metrics: "Metrics and paired tests", samples: "Samples", no_match: "No sample matches; Clear shows all of them.", search: "Search id, task, reason", clear: "Clear",
    keys: "Keys: / search, j k or ↑ ↓ move, Enter open. The address keeps filter and sort.",
    all: "All samples", strip_hint: "Drag to zoom, double-click to reset, click to hear. Keys: space play, ← → 2 s, 1–9 model, p n other sample, z zoom out, Esc back.",
    staircase: "Media against clock", stair_hint: "Each unit at the time it was sent: never above the diagonal. Outputs (×) lie at their time and at the end of the input they depend on.",
    agreement: "People against the measurement", agreement_hint: "Two people marked blind clips: held, taken in the pause, taken over the user's speech; and the first speech. Percent equal and Cohen's kappa; onsets: first minus second, mean with 95 % interval. On", clips: "clips", left_out: "left out: not audited here, or another sound by now", measured: "our measurement", same_turn: "same answer", kappa: "Cohen's kappa", onset_bias: "onset, mean difference", onset_size: "median size",
    sensitivity: "Under other definitions", definition: "Definition", takeover: "take-over", holes: "holes", or_more_than: "or more than", words_or: "words or at least", han: "Han characters", any_words: "whatever its words", margin: "margin", detector: "speech from", stated_here: "as in every other table",
    sensitivity_hint: "The same outputs, one convention changed at a time: how far the value moves, and (in how many samples). A conclusion that turns with a row of this table rests on that convention.",
    expected: "expected", share: "share not answered", theme_dark: "Dark", theme_light: "Light", other: "中文",
    any_model: "every model", any_outcome: "every outcome", any_rule: "every rule", of: "of", wav: "wav", files: "result",
    seconds: "seconds after the question's end", cumulative: "share of samples that have answered",
    onset: "onset of the answer, s", q1: "end of the question, s", due: "media sent, s", clock: "clock of the run, s",
    no_media: "media", user: "user", sent: "input unit sent", outputs: "outputs at their input", text: "text", audio: "audio packet", no_answer: "no answer",
  },
  zh: {
    title: "全双工运行审计", coverage: "完成情况", rules: "审计规则",
    noise: "自身波动", reruns: "重复运行", no_noise: "未测：snakemake repeat_probe_<model>", flips: "结果翻转", onset_spread: "起点离散", unchanged: "不变", as_delivered: "与交付一致", answers_change: "答案改变", canary_spoken: "记得说过的词", canary_shown: "记得出现的颜色", chance: "随机", canary_other: "（与这些结果的模型不同）", card: "测量卡", card_hint: "P50 / P95 / 最大（样本数）。每个数字都写明计时边界；记录未说明的留空，共享的时间也留空。", samples_word: "个样本", manifest: "清单", code: "代码", why: "原因", question: "检查什么", comparison: "比较", paired: "模型间差异",
    dots_hint: "点与 95% 区间。严格口径：对该指标有定义的全部样本，未得结果者（失败、被拒绝、服务故障、缺失、不可信）计为不利；最好情形则计为有利；* 表示只有可评分的样本。",
    paired_hint: "前者减后者，取两者共有的样本；p 经 Holm 校正；灰色：不大于模型自身的波动；可检出：这么多配对能发现的最小差异。主要终点（严格口径）：", clustered: "成组抽样",
    metric: "指标", low_good: "越低越好", high_good: "越高越好", neutral: "无好坏", first: "前者", second: "后者", difference: "差异", p_holm: "p（Holm）", detectable: "可检出", primary: "主要终点", all_samples: "全部样本", rate: "比例", median: "中位数", p90: "90 %", strict_short: "严格", best: "最好", lost_bounds: "缺失两可",
    weights: "权重", numbers: "数值类型", hardware: "硬件", clock_name: "时钟", voice: "声音", dates: "日期", load: "机器", busy: "个结果产生于繁忙的机器", sessions: "并行会话", shared: "时间与其他样本共享：不列出，也不与其他模型比较", quiet: "空闲", versions: "版本", settings: "设置（含默认值）", never: "个模型从未运行", black_boxes: "闭源服务（黑盒）",
    sample: "样本", model: "模型", task: "任务", outcome: "结果", fails: "未通过", settled_s: "稳定 s", text_s: "文字 s", audio_s: "音频 s", overlap_s: "重叠 s", any_task: "全部任务",
    channels: "播放器：左耳为用户，右耳为模型。", trace: "记录", provenance: "出处", video: "视频",
    rules_hint: "通过、失败或无证据（无证据不算通过）。点击单元格查看原因和样本。",
    outcomes: "犹豫样本结果（95% 区间）", strict: "严格口径：失败或缺失的样本计为不利",
    latency: "延迟", heatmap: "全部犹豫样本，最差在前", click_hint: "点击单元格打开样本。",
    scatter: "应答起点与提问结束", scatter_hint: "真实运行是分散的；固定延迟是一条直线。",
    lag: "发送滞后", lag_hint: "每个输入单元在其最后一个采样之后多久发出：实时运行是发送滞后，虚拟时钟上是等待模型空闲的时间。",
    lag_axis: "滞后（毫秒）", units: "单元比例", context: "上下文长度",
    context_hint: "模型自报的上下文词元数；被裁剪时曲线下降。", context_band: "线：样本中位数，带：最少到最多。",
    no_context: "没有记录报告上下文长度（context_tokens）。", tokens: "词元", media: "运行秒数",
    metrics: "指标与配对检验", samples: "样本", no_match: "没有匹配的样本；“清除”可显示全部。", search: "搜索编号、任务、原因", clear: "清除",
    keys: "按键：/ 搜索，j k 或 ↑ ↓ 移动，Enter 打开。地址栏保存筛选和排序。",
    all: "全部样本", strip_hint: "拖动放大，双击还原，点击播放。按键：空格播放，← → 2 秒，1–9 选模型，p n 换样本，z 缩小，Esc 返回。",
    staircase: "媒体时间与运行时钟", stair_hint: "每个输入单元在其发送时刻：永远不在对角线之上。输出（×）位于其时刻和所依据输入的结束处。",
    agreement: "人工标注与测量", agreement_hint: "两人盲听片段，标注：保持等待、停顿中抢话、与用户重叠，以及首次出声。一致率与 Cohen's kappa；起点差为前者减后者，均值与 95% 区间。共", clips: "个片段", left_out: "个未计入：未在此审计，或声音已变", measured: "本工具测量", same_turn: "答案一致", kappa: "Cohen's kappa", onset_bias: "起点平均差", onset_size: "绝对差中位数",
    sensitivity: "换用其他定义", definition: "定义", takeover: "抢话", holes: "间断", or_more_than: "或多于", words_or: "个词或至少", han: "个汉字", any_words: "不计词数", margin: "容差", detector: "语音检测阈值", stated_here: "其他各表所用",
    sensitivity_hint: "输出不变，每次只改一个约定：数值移动多少、（多少样本改变）。结论若随某一行改变，就取决于那个约定。",
    expected: "应有", share: "未回答比例", theme_dark: "深色", theme_light: "浅色", other: "English",
    any_model: "全部模型", any_outcome: "全部结果", any_rule: "全部规则", of: "/", wav: "wav", files: "结果",
    seconds: "提问结束后的秒数", cumulative: "已回答的样本比例",
    onset: "应答起点（秒）", q1: "提问结束（秒）", due: "已发送媒体（秒）", clock: "运行时钟（秒）",
    no_media: "媒体", user: "用户", sent: "输入单元", outputs: "输出（按所依据的输入）", text: "文字", audio: "音频包", no_answer: "未回答",
  },
};
const CHINESE = {
  A1: "输入一致", A2: "补静音", A3: "发送节奏", A4: "顺序与时钟", A5: "因果依赖", A6: "前缀不变性",
  A7: "离线特征", A8: "固定延迟摆放", A9: "播放位置", A10: "语音重建", A11: "语音来源", A12: "上下文",
  A13: "模型身份", A14: "完整性", A15: "语音与文字", A16: "文件一致", A17: "增量推理",
  pass: "通过", fail: "失败", not_evidenced: "无证据", ok: "正常", no_response: "无应答", failed: "失败", refused: "被拒绝", service_error: "服务故障",
  missing: "缺失", ineligible: "不可信", truncated: "被截断", prefix_barge_in: "抢断前缀",
  gap_takeover: "停顿中抢话", correction_barge_in: "抢断改口", late: "迟到", expected: "应有",
  prefix: "前缀", gap: "停顿", correction: "改口", tail: "尾部静音", control: "控制",
  first_question: "第一问", second_question: "第二问", scored: "可评分", strict: "严格", best: "最好情形", "scored only": "仅可评分", denominator: "口径",
  pause: "暂停", cache: "缓存", neighbour: "相邻样本", jitter: "抖动", "frozen frames": "画面冻结", "swapped frames": "他样画面", native_talker: "模型原生", streaming_tts: "流式合成", post_tts: "事后合成", none: "无", virtual: "虚拟", arrival: "到达", language: "语言", gap_length: "停顿长度", hesitation: "犹豫", task: "任务", other: "其他", zh: "中文", en: "英文", expected_: "应有",
};
const isChinese = () => document.documentElement.lang.startsWith("zh");
const named = (name) => (isChinese() && CHINESE[name]) || String(name).replaceAll("_", " ");
const OUTCOME_COLOURS = {
  failed: "#7f1d1d", refused: "#4a044e", service_error: "#78716c", missing: "#9ca3af", ineligible: "#581c87", truncated: "#be185d", prefix_barge_in: "#dc2626",
  gap_takeover: "#f97316", correction_barge_in: "#eab308", no_response: "#64748b", late: "#0ea5e9", ok: "#22a06b",
};
const MODEL_COLOURS = ["#2f7de1", "#e8590c", "#2b9348", "#9c36b5", "#d6336c", "#0c8599", "#a07800", "#5f3dc4"];

const $ = (id) => document.getElementById(id);
const t = (key) => TEXTS[document.documentElement.lang.slice(0, 2)]?.[key] ?? TEXTS.en[key] ?? key;
const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const number = (value, digits = 2) => value === null || value === undefined ? "" :
  typeof value === "number" ? value.toFixed(digits) : String(value);
const fileUrl = (...parts) => parts.map((part) => part.split("/").map(encodeURIComponent).join("/")).join("/");

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (value !== null && value !== undefined) made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
}

function stored(key, value) {
  try {
    if (value !== undefined) localStorage.setItem(key, value);
    return localStorage.getItem(key);
  } catch { return null; }  // file:// may forbid storage; the page works without
}

function translate() {
  for (const node of document.querySelectorAll("[data-t]")) node.textContent = t(node.dataset.t);
  for (const node of document.querySelectorAll("[data-tp]")) node.placeholder = t(node.dataset.tp);
  $("language").textContent = t("other");
  $("theme").textContent = t(document.documentElement.dataset.theme === "dark" ? "theme_light" : "theme_dark");
}

function plotLayout(more) {
  const axis = { gridcolor: css("--line"), zerolinecolor: css("--soft"), automargin: true };
  return {
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", margin: { l: 48, r: 12, t: 10, b: 44 },
    font: { color: css("--ink"), family: getComputedStyle(document.body).fontFamily, size: 12 },
    legend: { orientation: "h", x: 0, y: 1.02, yanchor: "bottom" }, ...more,
    xaxis: { ...axis, ...more.xaxis }, yaxis: { ...axis, ...more.yaxis },
  };
}
const PLOT = { displaylogo: false, responsive: true, displayModeBar: false };

function setUp(redraw) {
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  document.documentElement.dataset.theme = stored("hfd-theme") ?? (dark ? "dark" : "light");
  document.documentElement.lang = stored("hfd-lang") ?? (navigator.language.startsWith("zh") ? "zh-CN" : "en");
  translate();
  $("theme").addEventListener("click", () => {
    const next = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
    document.documentElement.dataset.theme = next;
    stored("hfd-theme", next);
    translate();
    redraw();
  });
  $("language").addEventListener("click", () => {
    const next = document.documentElement.lang.startsWith("zh") ? "en" : "zh-CN";
    document.documentElement.lang = next;
    stored("hfd-lang", next);
    translate();
    redraw();
  });
}
