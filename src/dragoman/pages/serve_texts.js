"use strict";
// Texts of the translation page, in English and Chinese.
const SAYS = {
  en: {
    from: "From", to: "To", swap: "Swap", "swap-help": "Swap the languages, and translate the translation back", share: "Copy link", shared: "Link copied",
    "share-help": "A link that opens this page with this text. The text stands behind the # of the link, which no server sees.",
    "open-document": "Document …", clear: "Clear", copy: "Copy", copied: "Copied", why: "What the model looked at",
    source: "Text to translate", result: "Translation", others: "Other translations",
    "others-help": "The number is the model's score: a log-probability per length. Closer to 0 is likelier; compare it only between these lines.", notes: "Notes", glossary: "Glossary",
    "glossary-help": "One term a line, such as: dog = Hündin, or dog -> Hündin. A term alone is kept as it is.",
    terms: (read, found) => `${read.toLocaleString("en")} ${read === 1 ? "term" : "terms"} read, ${found.toLocaleString("en")} found in the text.`,
    "line-choice": "Line to look at", long: (n) => `Lines of more than ${n} characters have no picture of their attention.`,
    key: "API key", "use-key": "Use", working: "translating …", detect: "Detect", other: "中文", dark: "Dark", light: "Light",
    placeholder: "Type or paste text", count: (n, most) => `${n.toLocaleString("en")} of ${most.toLocaleString("en")} characters`,
    sure: (word) => `Quality, estimated: ${{ good: "good", doubtful: "doubtful", poor: "poor" }[word]}`,
    "sure-help": "Estimated by the model, without a reference. Good: hardly a fault is expected. Doubtful: read it beside the source. Poor: do not rely on it.", detected: (name) => `${name}, it seems`,
    offline: "The server does not answer. Change the text to try again.", "offline-document": "The server does not answer. Choose the document again.",
    busy: (n) => `The server is busy. The page asks again in ${n} ${n === 1 ? "second" : "seconds"}.`, "unknown-key": "this API key is not known", line: (number) => `Line ${number}: `,
    "too-long": (n, most) => `${n.toLocaleString("en")} characters are more than the ${most.toLocaleString("en")} of one request: translate the text in parts, or as a document.`,
    problems: {}, refused: (message) => message, // the messages of the server are English
    proxy: (status) => ({
      413: "This is larger than a proxy in front of the server lets through.",
      502: "A proxy cannot reach the server. Try again later.", 503: "A proxy cannot reach the server. Try again later.",
      504: "A proxy in front of the server has not waited for its answer. Try again, or with less at a time.",
    }[status] || `A proxy in front of the server has answered in its place (status ${status}). Load the page again, or try again later.`),
    notes_of: {},
    document: "Document", choose: "Choose a document", left: "Left as it is",
    "document-help": "Drop one anywhere on this page, or choose it: Word, PowerPoint, OpenDocument, HTML, Markdown, subtitles, .po, XLIFF, tables (.csv), text. It keeps its shape.",
    set_lang: "Web page: write its new language", front_matter: "Markdown: translate title and description",
    line_length: "Subtitles: at most 42 columns a line", reading_speed: "Subtitles: name captions over 17 characters a second",
    columns: (name) => `Which column of ${name}?`, column: (number, name) => `column ${number}${name ? `: ${name}` : ""}`,
    first: (name, n) => `Only ${name} was taken, the first of ${n} files.`,
    reading: (name) => `Sending ${name} …`, waiting: (name) => `Translating ${name} …`,
    finished: (found, translated) => `${translated.toLocaleString("en")} of ${found.toLocaleString("en")} segments translated.`,
    save: (name) => `Save ${name}`, kept: (text, why) => `${why}: ${text}`,
  },
  zh: {
    from: "源语言", to: "目标语言", swap: "互换", "swap-help": "互换语言，并把译文译回去", share: "复制链接", shared: "链接已复制",
    "share-help": "打开链接即可看到这段文本。文本放在 # 之后，不会发送到任何服务器日志。",
    "open-document": "文档……", clear: "清空", copy: "复制", copied: "已复制", why: "模型看了哪里",
    source: "待译文本", result: "译文", others: "其他译文",
    "others-help": "数字是模型的得分（按长度归一的对数概率），越接近 0 越可能，只宜在这几行之间比较。", notes: "说明", glossary: "术语表",
    "glossary-help": "每行一个术语，例如：dog = 犬 或 dog -> 犬；只写术语则原样保留。",
    terms: (read, found) => `读入 ${read.toLocaleString("en")} 个术语，文中出现 ${found.toLocaleString("en")} 个。`,
    "line-choice": "查看哪一行", long: (n) => `超过 ${n} 个字符的行不显示注意力。`,
    key: "API 密钥", "use-key": "使用", working: "正在翻译……", detect: "自动检测", other: "English", dark: "深色", light: "浅色",
    placeholder: "输入或粘贴文本", count: (n, most) => `${n.toLocaleString("en")} / ${most.toLocaleString("en")} 字符`,
    sure: (word) => `预计质量：${{ good: "良好", doubtful: "存疑", poor: "较差" }[word]}`,
    "sure-help": "由模型估计，没有参考译文。良好：基本无误；存疑：请对照原文；较差：请勿直接使用。", detected: (name) => `似乎是${name}`,
    offline: "服务器没有响应。修改文本即可重试。", "offline-document": "服务器没有响应。请重新选择文档。",
    busy: (n) => `服务器繁忙。页面将在 ${n} 秒后重试。`, "unknown-key": "API 密钥不正确：请在页面下方重新填写。", line: (number) => `第 ${number} 行：`,
    "too-long": (n, most) => `共 ${n.toLocaleString("en")} 个字符，超过单次请求的上限 ${most.toLocaleString("en")}：请分段翻译，或作为文档上传。`,
    problems: {
      401: "需要 API 密钥：请在页面下方填写。", 403: "请求被拒绝：API 密钥不正确（请在页面下方重新填写），或代理没有传递 Host 头。", 404: "服务器上没有这份文档，请重新上传。",
      408: "上传太慢，服务器已中断，请重试。", 413: "内容超过服务器的上限。", 415: "服务器不支持这种格式。", 429: "服务器繁忙，请稍后再试。",
      500: "服务器内部错误。", 503: "服务器未能完成翻译，请重试；若仍失败，请联系管理员。", 507: "服务器存储空间已满，请稍后再试。",
    },
    refused: (message) => `服务器无法处理：${message}`,
    proxy: (status) => ({
      413: "内容超过服务器前的代理允许的大小。", 502: "代理无法连接服务器，请稍后再试。", 503: "代理无法连接服务器，请稍后再试。",
      504: "代理等待服务器超时：请重试，或减少每次的内容。",
    }[status] || `服务器前的代理代为返回了状态码 ${status}：请刷新页面，或稍后再试。`),
    notes_of: {
      unseen: (note) => `模型没见过的词：${note.words.join("、")}`,
      unknown: () => "原文含有模型不认识的字符。",
      script: (note) => (note.left ? "模型没见过这种文字，译文只是猜测。" : "原文含有形近但属于其他文字的字母，模型读不懂。"),
      not_text: () => "原文看起来不是自然语言文本，而是时间码、标记或代码。",
      loop: (note) => repaired(note, "译文有重复"), copy: (note) => repaired(note, "译文照抄了原文"),
      empty: (note) => (note.left ? "没有译文，已保留原文。" : repaired(note, "译文为空")),
      long: (note) => repaired(note, "译文过长"), short: (note) => repaired(note, "译文有遗漏"),
      number: () => "有数字没有原样出现在译文里，请核对。", placeholder: () => "有网址、占位符等没有原样出现在译文里，请核对。",
      constraint: () => "未能满足术语表或用词要求。", alignment: () => "没有词对齐。",
      same_language: () => "原文已是目标语言，未翻译。", zero_shot: () => "模型没有学过这个语言方向。",
      memory: () => "内存不足，没有译文。", dropped: () => "翻译已取消。",
    },
    document: "文档", choose: "选择文档", left: "未翻译的部分",
    "document-help": "把文档拖到页面任意位置，或点击选择：Word、PowerPoint、OpenDocument、HTML、Markdown、字幕、.po、XLIFF、表格（.csv）、纯文本。译文保持原有格式。",
    set_lang: "网页：改写标明的语言", front_matter: "Markdown：翻译标题和描述",
    line_length: "字幕：每行最多 42 列", reading_speed: "字幕：指出每秒超过 17 个字符的字幕",
    columns: (name) => `翻译 ${name} 的哪一列？`, column: (number, name) => `第 ${number} 列${name ? `：${name}` : ""}`,
    first: (name, n) => `共 ${n} 个文件，只处理了第一个：${name}。`,
    reading: (name) => `正在上传 ${name}……`, waiting: (name) => `正在翻译 ${name}……`,
    finished: (found, translated) => `共 ${found.toLocaleString("en")} 个片段，已翻译 ${translated.toLocaleString("en")} 个。`,
    save: (name) => `保存 ${name}`, kept: (text, why) => `${why}：${text}`,
  },
};

/** A fault that the guard has noticed, and what became of it; of one that is left the kind is that of the first search. */
function repaired(note, what) {
  return note.left ? "译文有误（重复、照抄或遗漏），没有找到更好的译文，请对照原文。" : `${what}，已重新翻译。`;
}

/** Why a request failed, in the language of the page; message is the server's, which is English, or "" from a proxy. */
function problemIn(ui, status, message) {
  if (!message) return SAYS[ui].proxy(status);
  return SAYS[ui].problems[status] || SAYS[ui].refused(message);
}

/** A note on a translation, in the language of the page. */
function noteIn(ui, note) {
  const own = SAYS[ui].notes_of[note.kind];
  const [number] = (note.line || "").match(/\d+/) || [];
  return (number ? SAYS[ui].line(number) : "") + (own ? own(note) : note.text);
}
