// What metrics and rules mean, where they stand, in both languages.
"use strict";
// key: [better ("low", "high", null), English, Chinese, English explanation, Chinese explanation]
const METRICS = {
  h1_gap_takeover: ["low", "H1 takes the turn in the gap", "H1 停顿中抢话", "A take-over (at least 1 s of speech, or more than 3 words or 6 Chinese characters) begins while the user hesitates.", "用户犹豫停顿时开始抢话（语音不短于 1 秒，或多于 3 个词、6 个汉字）。"],
  h2_prefix_barge_in: ["low", "H2 barges in on the prefix", "H2 抢断前缀", "A take-over begins while the user says the unfinished question.", "用户说未完的第一问时开始抢话。"],
  h3_correction_barge_in: ["low", "H3 barges in on the correction", "H3 抢断改口", "A take-over begins while the user says the corrected question (up to 0.25 s before its end).", "用户说改口的问题时开始抢话（结束前 0.25 秒除外）。"],
  h5_hold_failure: ["low", "H5 does not hold (H1, H2 or H3)", "H5 未能保持倾听", "Any of H1, H2, H3.", "H1、H2、H3 任一发生。"],
  h8_no_yield: ["low", "H8 does not yield within 2 s", "H8 2 秒内不让出", "It speaks when the correction begins, and goes on for more than 2 s.", "改口开始时仍在说话，且超过 2 秒不停。"],
  h10_spanning: ["low", "H10 speaks across the question's end", "H10 说话跨过提问结束", "A turn began before the question's end and goes on over it.", "一段语音在提问结束前开始并跨过结束点。"],
  h11_responded: ["high", "H11 responds before the file ends", "H11 在文件结束前应答", "An answer begins after the question and before the file ends.", "提问之后、文件结束之前开始应答。"],
  h11_late: ["low", "H11 responds late", "H11 应答迟到", "The answer begins only after the file has ended.", "文件结束后才开始应答。"],
  h18_abrupt_end: ["low", "H18 ends abruptly", "H18 突然截断", "The last 30 ms before silence are almost as loud as the rest: cut off rather than ended.", "静音前最后 30 毫秒仍接近最响：像被切断而不是说完。"],
  fdb_tor_whole: ["low", "FDB take-over over the whole file", "FDB 全文件抢话", "As Full-Duplex-Bench counts: first to last speech of the file at least 1 s, or more than 3 words.", "按 Full-Duplex-Bench 口径：文件内首末语音相距至少 1 秒，或多于 3 个词。"],
  mtr_pause: ["low", "MTR take-over in the pause + 1 s", "MTR 停顿及其后 1 秒抢话", "A take-over from the pause to 1 s after it.", "从停顿开始到其后 1 秒之间抢话。"],
  fdb_pause_tor: ["low", "Full-Duplex-Bench pause take-over", "Full-Duplex-Bench 停顿抢话", "As its authors count over the recording's own length: words that span at least 1 s, or more than 3 words.", "按其作者口径，只计录音本身的时长：首末词跨度不短于 1 秒，或多于 3 个词。"],
  fdb_interruption_tor: ["high", "Full-Duplex-Bench take-over after an interruption", "Full-Duplex-Bench 打断后接话", "The same, from the interruption's end to the recording's.", "同上，从打断结束到录音结束。"],
  wait_held: ["high", "Holds while it should wait", "应等待时保持安静", "No speech in the seconds in which the set's clip asks to wait (HumDial pause, Easy-Turn incomplete + 3 s).", "在该集要求等待的时段内没有语音（HumDial 停顿；Easy-Turn 未完句及其后 3 秒）。"],
  fdb_latency_s: ["low", "Full-Duplex-Bench latency, s", "Full-Duplex-Bench 延迟（秒）", "From the interruption's end to the first word after it; early answers count as 0.", "从打断结束到其后首个词；过早的回答记为 0。"],
  h9_response_s: ["low", "H9 response latency, s", "H9 应答延迟（秒）", "From the end of the question to the first voice of the answer; answers that began too early have none.", "从提问结束到应答首个语音；抢答的样本没有此值。"],
  "h9_response_s:rank": ["high", "H9 quicker in so many more pairs", "H9 更快的配对多出比例", "Share of pairs in which the first is quicker minus the share in which the second is; no answer is the slowest.", "前者更快的配对比例减去后者更快的比例；无应答视为最慢。"],
  h9_settled_s: ["low", "H9 settled start, s", "H9 稳定起点（秒）", "The same; where speech spans the question's end, the first turn that begins after it.", "同上；语音跨过提问结束时，取其后开始的第一段。"],
  h12_first_text_s: ["low", "H12 first text, s", "H12 首个文字（秒）", "First text after the question's end.", "提问结束后的首个文字。"],
  h13_first_audio_s: ["low", "H13 first audio packet, s", "H13 首个音频包（秒）", "First audio packet after the question's end: its arrival, not when it is heard.", "提问结束后的首个音频包：到达时刻，不是听到的时刻。"],
  h14_text_to_audio_s: ["low", "H14 text to audio, s", "H14 文字到音频（秒）", "From the first text to the first packet after it.", "从首个文字到其后的首个音频包。"],
  h6_overlap_s: ["low", "H6 overlap with the user, s", "H6 与用户重叠（秒）", "Speech over the user's speech.", "与用户语音重叠的时长。"],
  fdb_overlap_s: ["low", "FDB overlap of turns, s", "FDB 重叠（秒）", "As Full-Duplex-Bench 1.5 counts: the model's speech joined over holes up to 0.5 s, the user's up to 0.6 s.", "按 Full-Duplex-Bench 1.5 口径：模型语音间断 0.5 秒内、用户 0.6 秒内相连。"],
  h6_overlap_ratio: ["low", "H6 overlap, share of the user's speech", "H6 重叠占用户语音比例", "The same as a share of what the user says.", "同上，占用户语音的比例。"],
  h7_gap_speech_s: ["low", "H7 speech in the gap, s", "H7 停顿中的语音（秒）", "Speech while the user hesitates, backchannels included.", "用户停顿时的语音，含附和。"],
  h8_yield_s: ["low", "H8 time to yield, s", "H8 让出用时（秒）", "If it speaks when the correction begins: how long it goes on.", "改口开始时若在说话：还要说多久。"],
  h15_underrun_s: ["low", "H15 playback underrun, s", "H15 播放断流（秒）", "Seconds for which a running turn had nothing to play.", "一轮语音中无可播放的秒数。"],
  h16_rtf_compute: ["low", "H16 compute per second of speech", "H16 每秒语音的计算", "Measured compute per second of the model's own speech; empty on the arrival clock.", "每秒模型语音的实测计算时间；到达时钟下为空。"],
  h16_rtf_stream: ["low", "H16 stream time per second of speech", "H16 每秒语音的流时间", "Last packet's time per second of speech; includes waiting.", "末个音频包时刻与语音时长之比；含等待。"],
  h17_saved_minus_delivered_s: [null, "H17 saved minus delivered, s", "H17 保存减交付（秒）", "Sound in the wav outside the delivered chunks.", "wav 中不属于交付音频块的声音。"],
  h20_wer: ["low", "H20 word error rate of the voice", "H20 语音词错误率", "What a recogniser heard against the text (English).", "识别结果与文字对比（英文）。"],
  h21_han_per_s: [null, "H21 Chinese characters per second", "H21 每秒汉字数", "Speaking rate of Chinese answers.", "中文应答语速。"],
  h22_stale_share: ["low", "H22 words of the abandoned question", "H22 弃问词占比", "A proxy, never a headline: share of the answer's telling words that come from the question that was broken off.", "仅为参考：应答中来自被放弃问题的词所占比例。"],
};
const RULES_ZH = {
  A1: "喂入的是否正是交付的文件，而非旧版？", A2: "文件之后是否没有再补任何东西？", A3: "输入是否按时间逐单元发送？", A4: "时间是否前后一致、与时钟相符？",
  A5: "输出是否只依赖已发送的输入？", A6: "改变 T 之后的输入，是否不影响 T 之前的输出？", A7: "是否没有离线整段生成的痕迹？", A8: "语音是否不是按固定延迟摆放？",
  A9: "每块语音是否在到达之后、上一块结束之后播放？", A10: "wav 能否由记录逐位重建？", A11: "声音是否如声明来自模型自己？", A12: "上下文是否没有被裁剪？",
  A13: "全部样本是否同一模型、未量化？", A14: "是否每个样本都有完整、互不重复的结果？", A15: "听到的是否就是写出的文字？", A16: "各文件所述是否一致？", A17: "每个单元是在历史之上增量计算，而非全部重算？",
};
// key: [English, Chinese, English boundary, Chinese boundary]
const CARD_WORDS = {
  card_block: ["input block, s", "输入音频块（秒）"], card_frames: ["video frames taken per second", "每秒取用画面数"], card_context: ["context at the end, tokens", "结束时上下文（词元）"],
  card_rtf: ["real-time factor", "实时系数", "compute / media, virtual clock", "计算 / 媒体，虚拟时钟"], card_buffer: ["playback buffer, s", "播放缓冲（秒）", "arrival of a chunk -> its place in the queue", "音频块到达 -> 其播放位置"],
  card_chunk: ["output chunk, s", "输出音频块（秒）"], card_rtt: ["network round trip, ms", "网络往返（毫秒）"],
  card_lag: ["transport: lag of input, s", "传输：输入滞后（秒）", "end of a unit -> sent", "单元结束 -> 发送"],
  card_growth: ["inference: growth with the past", "推理：随历史增长", "slope of log cost over log past: 0 incremental, 1 computed anew", "对数代价对对数历史的斜率：0 为增量，1 为全部重算"],
  holds_in_the_pause: ["interaction: holds in the pause", "交互：停顿中保持倾听"], stops_when_interrupted_s: ["interaction: seconds until silent when interrupted", "交互：被打断后静音用时（秒）"],
  answers_anew_when_interrupted: ["interaction: answers anew after an interruption", "交互：被打断后重新作答", "share of the answers that were heard when the correction began", "占改口开始时正在播放的应答"],
  resumes_its_old_answer_when_interrupted: ["interaction: resumes its old answer", "交互：被打断后续说旧答案", "half of what it says then, or more, in runs of three words of the old answer", "其后所说有一半以上是旧答案中连续三词以上的片段"],
  falls_silent_when_interrupted: ["interaction: says nothing more", "交互：被打断后不再说话"],
  answers_the_question: ["interaction: answers the question", "交互：回答问题"], speaks_unasked: ["interaction: speaks where nothing is asked", "交互：无提问时开口"],
};
const LATENCY_WORDS = {
  unit: ["latency: cost of one unit, s", "延迟：单个单元（秒）", "compute of one input unit without output", "无输出的单个输入单元的计算"],
  unit_to_text: ["latency: last input to first text, s", "延迟：末个输入到首个文字（秒）", "end of the unit it depends on -> first text after the question", "所依据单元结束 -> 提问后首个文字"],
  codec: ["latency: last input to first codec token", "延迟：末个输入到首个 codec", "not in the trace", "记录中没有"],
  unit_to_audio: ["latency: input received to first playable sound, s", "延迟：收到输入到首个可播放音频（秒）", "unit given over -> first chunk after the question", "单元交付 -> 提问后首个音频块"],
  user_to_user: ["latency: user to user, s", "延迟：用户到用户（秒）", "end of the user's last word -> first voice (H9); with the network only on the arrival clock", "用户话音结束 -> 首个语音（H9）；仅到达时钟含网络"],
  first_text: ["latency: question to first text, s", "延迟：提问到首个文字（秒）", "H12", "H12"], first_audio: ["latency: question to first sound, s", "延迟：提问到首个声音（秒）", "H13", "H13"],
};
const METRIC_ORDER = Object.keys(METRICS);
const metricName = (key) => METRICS[key] ? METRICS[key][isChinese() ? 2 : 1] : key;
const metricHelp = (key) => METRICS[key]?.[isChinese() ? 4 : 3] ?? "";
