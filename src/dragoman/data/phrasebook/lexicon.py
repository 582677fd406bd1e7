"""The words of the phrasebook: each English word with one German and one Chinese translation.

German nouns have their gender and plural, weak ones their ending; Chinese nouns have their measure word. ``kind``
classifies nouns, and verbs and adjectives list the kinds they fit, so that sentences make sense.
"""

from __future__ import annotations

from typing import NamedTuple


class Noun(NamedTuple):
    """A countable noun."""

    en: str
    en_plural: str
    de: str
    de_plural: str
    gender: str  # m, f, n
    zh: str
    measure: str
    kind: str
    weak: str = ""  # ending of a weak German noun outside the nominative singular


class Mass(NamedTuple):
    """An uncountable noun, used without an article."""

    en: str
    de: str
    gender: str
    zh: str
    kind: str = "drink"


class Adjective(NamedTuple):
    """An adjective; ``zh`` stands before 的, ``zh_predicate`` and ``zh_negated`` are Chinese predicates."""

    en: str
    de: str
    zh: str
    zh_predicate: str
    zh_negated: str
    kinds: frozenset[str]


class Verb(NamedTuple):
    """A verb with the kinds of its subjects and objects; German forms come without the separable particle."""

    en: str
    en_third: str
    en_past: str
    de: str  # infinitive
    de_third: str
    de_participle: str  # with the particle
    zh: str
    subjects: frozenset[str]
    objects: frozenset[str] = frozenset()
    particle: str = ""  # of a separable German verb
    aux: str = "haben"
    case: str = "acc"  # case of its German object
    zh_coverb: str = ""  # coverb such as 给, which puts the object before the verb
    relative: bool = True  # True if its object may be the head of a relative clause
    fixed_zh: str = ""  # object that is part of the Chinese verb, after 了


def _kinds(words: str) -> frozenset[str]:
    """Return the kinds that a text lists, separated by spaces."""
    return frozenset(words.split())


NOUNS = [
    Noun("man", "men", "Mann", "Männer", "m", "男人", "个", "person"),
    Noun("woman", "women", "Frau", "Frauen", "f", "女人", "个", "person"),
    Noun("child", "children", "Kind", "Kinder", "n", "孩子", "个", "person"),
    Noun("boy", "boys", "Junge", "Jungen", "m", "男孩", "个", "person", "n"),
    Noun("girl", "girls", "Mädchen", "Mädchen", "n", "女孩", "个", "person"),
    Noun("teacher", "teachers", "Lehrer", "Lehrer", "m", "老师", "位", "person"),
    Noun("doctor", "doctors", "Arzt", "Ärzte", "m", "医生", "位", "person"),
    Noun("neighbour", "neighbours", "Nachbar", "Nachbarn", "m", "邻居", "个", "person", "n"),
    Noun("farmer", "farmers", "Bauer", "Bauern", "m", "农民", "个", "person", "n"),
    Noun("friend", "friends", "Freund", "Freunde", "m", "朋友", "个", "person"),
    Noun("student", "students", "Student", "Studenten", "m", "学生", "个", "person", "en"),
    Noun("nurse", "nurses", "Krankenschwester", "Krankenschwestern", "f", "护士", "位", "person"),
    Noun("singer", "singers", "Sängerin", "Sängerinnen", "f", "歌手", "位", "person"),
    Noun("baker", "bakers", "Bäcker", "Bäcker", "m", "面包师", "位", "person"),
    Noun("grandmother", "grandmothers", "Großmutter", "Großmütter", "f", "奶奶", "位", "person"),
    Noun("dog", "dogs", "Hund", "Hunde", "m", "狗", "只", "animal"),
    Noun("cat", "cats", "Katze", "Katzen", "f", "猫", "只", "animal"),
    Noun("horse", "horses", "Pferd", "Pferde", "n", "马", "匹", "animal"),
    Noun("bird", "birds", "Vogel", "Vögel", "m", "鸟", "只", "animal"),
    Noun("cow", "cows", "Kuh", "Kühe", "f", "牛", "头", "animal"),
    Noun("book", "books", "Buch", "Bücher", "n", "书", "本", "text"),
    Noun("letter", "letters", "Brief", "Briefe", "m", "信", "封", "text"),
    Noun("newspaper", "newspapers", "Zeitung", "Zeitungen", "f", "报纸", "份", "press"),
    Noun("poem", "poems", "Gedicht", "Gedichte", "n", "诗", "首", "text"),
    Noun("apple", "apples", "Apfel", "Äpfel", "m", "苹果", "个", "food"),
    Noun("cake", "cakes", "Kuchen", "Kuchen", "m", "蛋糕", "个", "food"),
    Noun("egg", "eggs", "Ei", "Eier", "n", "鸡蛋", "个", "food"),
    Noun("banana", "bananas", "Banane", "Bananen", "f", "香蕉", "根", "food"),
    Noun("coat", "coats", "Mantel", "Mäntel", "m", "大衣", "件", "clothes"),
    Noun("shirt", "shirts", "Hemd", "Hemden", "n", "衬衫", "件", "clothes"),
    Noun("dress", "dresses", "Kleid", "Kleider", "n", "裙子", "条", "clothes"),
    Noun("jacket", "jackets", "Jacke", "Jacken", "f", "夹克", "件", "clothes"),
    Noun("door", "doors", "Tür", "Türen", "f", "门", "扇", "opening"),
    Noun("window", "windows", "Fenster", "Fenster", "n", "窗户", "扇", "opening"),
    Noun("box", "boxes", "Kiste", "Kisten", "f", "箱子", "个", "opening"),
    Noun("suitcase", "suitcases", "Koffer", "Koffer", "m", "手提箱", "个", "opening"),
    Noun("lamp", "lamps", "Lampe", "Lampen", "f", "灯", "盏", "thing"),
    Noun("picture", "pictures", "Bild", "Bilder", "n", "画", "幅", "thing"),
    Noun("key", "keys", "Schlüssel", "Schlüssel", "m", "钥匙", "把", "thing"),
    Noun("umbrella", "umbrellas", "Regenschirm", "Regenschirme", "m", "雨伞", "把", "thing"),
    Noun("clock", "clocks", "Uhr", "Uhren", "f", "钟", "个", "machine"),
    Noun("car", "cars", "Auto", "Autos", "n", "汽车", "辆", "machine"),
    Noun("bicycle", "bicycles", "Fahrrad", "Fahrräder", "n", "自行车", "辆", "machine"),
    Noun("table", "tables", "Tisch", "Tische", "m", "桌子", "张", "furniture"),
    Noun("chair", "chairs", "Stuhl", "Stühle", "m", "椅子", "把", "furniture"),
    Noun("flower", "flowers", "Blume", "Blumen", "f", "花", "朵", "plant"),
    Noun("tree", "trees", "Baum", "Bäume", "m", "树", "棵", "plant"),
    Noun("house", "houses", "Haus", "Häuser", "n", "房子", "座", "building"),
    Noun("bridge", "bridges", "Brücke", "Brücken", "f", "桥", "座", "building"),
]

MASSES = [
    Mass("tea", "Tee", "m", "茶"),
    Mass("coffee", "Kaffee", "m", "咖啡"),
    Mass("milk", "Milch", "f", "牛奶"),
    Mass("water", "Wasser", "n", "水"),
]

_ALIVE = "person animal"
_OBJECTS = "text press food clothes opening thing machine furniture plant building"
_WARES = "text press clothes thing machine furniture"

ADJECTIVES = [
    Adjective("young", "jung", "年轻", "很年轻", "不年轻", _kinds("person")),
    Adjective("friendly", "freundlich", "友好", "很友好", "不友好", _kinds("person")),
    Adjective("tired", "müde", "疲倦", "很疲倦", "不疲倦", _kinds(_ALIVE)),
    Adjective("hungry", "hungrig", "饥饿", "很饿", "不饿", _kinds(_ALIVE)),
    Adjective("happy", "glücklich", "快乐", "很快乐", "不快乐", _kinds("person")),
    Adjective("sad", "traurig", "伤心", "很伤心", "不伤心", _kinds("person")),
    Adjective("clever", "klug", "聪明", "很聪明", "不聪明", _kinds(_ALIVE)),
    Adjective("strong", "stark", "强壮", "很强壮", "不强壮", _kinds(_ALIVE)),
    Adjective("thin", "dünn", "瘦", "很瘦", "不瘦", _kinds(_ALIVE)),
    Adjective("big", "groß", "大", "很大", "不大", _kinds("animal food opening thing furniture plant building")),
    Adjective("small", "klein", "小", "很小", "不小", _kinds("animal food opening thing furniture plant building")),
    Adjective(
        "white", "weiß", "白色", "是白色的", "不是白色的", _kinds("animal clothes opening machine plant building")
    ),
    Adjective("black", "schwarz", "黑色", "是黑色的", "不是黑色的", _kinds("animal clothes opening thing machine")),
    Adjective("red", "rot", "红色", "是红色的", "不是红色的", _kinds("clothes opening machine plant furniture")),
    Adjective("blue", "blau", "蓝色", "是蓝色的", "不是蓝色的", _kinds("clothes opening thing machine furniture")),
    Adjective("green", "grün", "绿色", "是绿色的", "不是绿色的", _kinds("clothes opening machine furniture plant")),
    Adjective("new", "neu", "新", "很新", "不新", _kinds(f"{_WARES} opening building")),
    Adjective("beautiful", "schön", "漂亮", "很漂亮", "不漂亮", _kinds("animal clothes thing plant building")),
    Adjective("expensive", "teuer", "贵", "很贵", "不贵", _kinds(f"{_WARES} food")),
    Adjective("cheap", "billig", "便宜", "很便宜", "不便宜", _kinds(f"{_WARES} food")),
    Adjective("heavy", "schwer", "重", "很重", "不重", _kinds("opening furniture")),
    Adjective("long", "lang", "长", "很长", "不长", _kinds("text clothes")),
    Adjective("interesting", "interessant", "有趣", "很有趣", "不有趣", _kinds("text press")),
    Adjective("fresh", "frisch", "新鲜", "很新鲜", "不新鲜", _kinds("food")),
    Adjective("cold", "kalt", "冷", "很冷", "不冷", _kinds("drink")),
    Adjective("hot", "heiß", "热", "很热", "不热", _kinds("drink")),
]

DE_STEMS = {"teuer": "teur", "müde": "müd"}
"""German adjectives whose stem changes before an ending, with that stem."""

_PERSON, _LIVING = _kinds("person"), _kinds(_ALIVE)

TRANSITIVE = [
    Verb("read", "reads", "read", "lesen", "liest", "gelesen", "读", _PERSON, _kinds("text press")),
    Verb("write", "writes", "wrote", "schreiben", "schreibt", "geschrieben", "写", _PERSON, _kinds("text")),
    Verb("buy", "buys", "bought", "kaufen", "kauft", "gekauft", "买", _PERSON, _kinds(f"{_WARES} food animal")),
    Verb("sell", "sells", "sold", "verkaufen", "verkauft", "verkauft", "卖", _PERSON, _kinds(f"{_WARES} food animal")),
    Verb("find", "finds", "found", "finden", "findet", "gefunden", "找到", _PERSON, _kinds(f"{_ALIVE} {_WARES}")),
    Verb("see", "sees", "saw", "sehen", "sieht", "gesehen", "看见", _LIVING, _kinds(f"{_ALIVE} {_OBJECTS}")),
    Verb("eat", "eats", "ate", "essen", "isst", "gegessen", "吃", _PERSON, _kinds("food")),
    Verb("drink", "drinks", "drank", "trinken", "trinkt", "getrunken", "喝", _PERSON, _kinds("drink")),
    Verb("wear", "wears", "wore", "tragen", "trägt", "getragen", "穿", _PERSON, _kinds("clothes")),
    Verb("visit", "visits", "visited", "besuchen", "besucht", "besucht", "拜访", _PERSON, _PERSON),
    Verb("help", "helps", "helped", "helfen", "hilft", "geholfen", "帮助", _PERSON, _PERSON, case="dat"),
    Verb("thank", "thanks", "thanked", "danken", "dankt", "gedankt", "感谢", _PERSON, _PERSON, case="dat"),
    Verb("repair", "repairs", "repaired", "reparieren", "repariert", "repariert", "修理", _PERSON, _kinds("machine")),
    Verb("paint", "paints", "painted", "malen", "malt", "gemalt", "画", _PERSON, _kinds("plant building animal")),
    Verb("clean", "cleans", "cleaned", "putzen", "putzt", "geputzt", "擦", _PERSON, _kinds("furniture machine")),
    Verb("feed", "feeds", "fed", "füttern", "füttert", "gefüttert", "喂", _PERSON, _kinds("animal")),
    Verb("open", "opens", "opened", "machen", "macht", "aufgemacht", "打开", _PERSON, _kinds("opening"), "auf"),
    Verb("close", "closes", "closed", "machen", "macht", "zugemacht", "关上", _PERSON, _kinds("opening"), "zu"),
    Verb("bring along", "brings along", "brought along", "bringen", "bringt", "mitgebracht", "带来", _PERSON,
         _kinds("food thing animal"), "mit", relative=False),
    Verb("pick up", "picks up", "picked up", "holen", "holt", "abgeholt", "接", _PERSON, _PERSON, "ab", relative=False),
    Verb("call", "calls", "called", "rufen", "ruft", "angerufen", "打", _PERSON, _PERSON, "an", zh_coverb="给",
         relative=False, fixed_zh="电话"),
]  # fmt: skip

INTRANSITIVE = [
    Verb("sleep", "sleeps", "slept", "schlafen", "schläft", "geschlafen", "睡觉", _LIVING),
    Verb("sing", "sings", "sang", "singen", "singt", "gesungen", "唱歌", _PERSON),
    Verb("dance", "dances", "danced", "tanzen", "tanzt", "getanzt", "跳舞", _PERSON),
    Verb("work", "works", "worked", "arbeiten", "arbeitet", "gearbeitet", "工作", _PERSON),
    Verb("laugh", "laughs", "laughed", "lachen", "lacht", "gelacht", "笑", _PERSON),
    Verb("cry", "cries", "cried", "weinen", "weint", "geweint", "哭", _PERSON),
    Verb("wait", "waits", "waited", "warten", "wartet", "gewartet", "等", _LIVING),
    Verb("play", "plays", "played", "spielen", "spielt", "gespielt", "玩", _LIVING),
    Verb("get up", "gets up", "got up", "stehen", "steht", "aufgestanden", "起床", _PERSON, particle="auf", aux="sein"),
    Verb("shop", "shops", "shopped", "kaufen", "kauft", "eingekauft", "购物", _PERSON, particle="ein"),
]

GIVING = [
    Verb("give", "gives", "gave", "geben", "gibt", "gegeben", "送", _PERSON, _kinds("text press food clothes thing")),
    Verb("show", "shows", "showed", "zeigen", "zeigt", "gezeigt", "看", _PERSON, _kinds(f"{_WARES} animal"),
         zh_coverb="给"),
    Verb("send", "sends", "sent", "schicken", "schickt", "geschickt", "寄", _PERSON, _kinds("text thing"),
         zh_coverb="给"),
]  # fmt: skip

GO = Verb("go", "goes", "went", "gehen", "geht", "gegangen", "去", _PERSON, aux="sein")

SAYING = [
    Verb("say", "says", "said", "sagen", "sagt", "gesagt", "说", _PERSON),
    Verb("know", "knows", "knew", "wissen", "weiß", "gewusst", "知道", _PERSON),
    Verb("believe", "believes", "believed", "glauben", "glaubt", "geglaubt", "相信", _PERSON),
    Verb("hope", "hopes", "hoped", "hoffen", "hofft", "gehofft", "希望", _PERSON),
]

TRYING = [
    Verb("try", "tries", "tried", "versuchen", "versucht", "versucht", "试着", _PERSON),
    Verb("forget", "forgets", "forgot", "vergessen", "vergisst", "vergessen", "忘记", _PERSON),
]

PLACES = [  # English, German, Chinese: where something happens
    ("in the garden", "im Garten", "在花园里"),
    ("in the kitchen", "in der Küche", "在厨房里"),
    ("in the park", "im Park", "在公园里"),
    ("at school", "in der Schule", "在学校里"),
    ("in the village", "im Dorf", "在村子里"),
    ("in the forest", "im Wald", "在森林里"),
    ("at the station", "am Bahnhof", "在车站"),
    ("in the city", "in der Stadt", "在城里"),
    ("at the market", "auf dem Markt", "在市场上"),
    ("at home", "zu Hause", "在家里"),
]

GOALS = [  # where somebody goes
    ("into the garden", "in den Garten", "花园"),
    ("into the kitchen", "in die Küche", "厨房"),
    ("to the park", "in den Park", "公园"),
    ("to school", "in die Schule", "学校"),
    ("to the village", "ins Dorf", "村子"),
    ("into the forest", "in den Wald", "森林"),
    ("to the station", "zum Bahnhof", "车站"),
    ("to the city", "in die Stadt", "城里"),
    ("to the market", "zum Markt", "市场"),
    ("to the doctor", "zum Arzt", "医生那里"),
]

TIMES = {  # by tense
    "pres": [("today", "heute", "今天"), ("now", "jetzt", "现在"), ("every day", "jeden Tag", "每天")],
    "past": [("yesterday", "gestern", "昨天"), ("last week", "letzte Woche", "上个星期")],
    "fut": [("tomorrow", "morgen", "明天"), ("next week", "nächste Woche", "下个星期")],
}

WEEKDAYS = [
    ("Monday", "Montag", "星期一"),
    ("Tuesday", "Dienstag", "星期二"),
    ("Wednesday", "Mittwoch", "星期三"),
    ("Thursday", "Donnerstag", "星期四"),
    ("Friday", "Freitag", "星期五"),
    ("Saturday", "Samstag", "星期六"),
    ("Sunday", "Sonntag", "星期日"),
]

MONTHS = [
    ("January", "Januar"), ("February", "Februar"), ("March", "März"), ("April", "April"), ("May", "Mai"),
    ("June", "Juni"), ("July", "Juli"), ("August", "August"), ("September", "September"), ("October", "Oktober"),
    ("November", "November"), ("December", "Dezember"),
]  # fmt: skip

FREQUENCIES = [("often", "oft", "经常"), ("always", "immer", "总是"), ("sometimes", "manchmal", "有时")]

PRONOUNS = {  # English: German, Chinese, German person
    "I": ("ich", "我", "ich"),
    "he": ("er", "他", "er"),
    "she": ("sie", "她", "er"),
    "we": ("wir", "我们", "wir"),
    "they": ("sie", "他们", "wir"),
}

POSSESSIVES = {"my": ("mein", "我的"), "his": ("sein", "他的"), "her": ("ihr", "她的"), "our": ("unser", "我们的")}

_EN_ONES = [
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
    "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
]  # fmt: skip
_EN_TENS = ["-", "-", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
_EN_ORDINALS = {
    "one": "first", "two": "second", "three": "third", "five": "fifth", "eight": "eighth", "nine": "ninth",
    "twelve": "twelfth", "twenty": "twentieth", "thirty": "thirtieth",
}  # fmt: skip
_DE_ONES = [
    "null", "ein", "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun", "zehn", "elf", "zwölf",
    "dreizehn", "vierzehn", "fünfzehn", "sechzehn", "siebzehn", "achtzehn", "neunzehn",
]  # fmt: skip
_DE_TENS = ["-", "-", "zwanzig", "dreißig", "vierzig", "fünfzig", "sechzig", "siebzig", "achtzig", "neunzig"]
_DE_ORDINALS = {1: "ersten", 3: "dritten", 7: "siebten", 8: "achten"}
_ZH_DIGITS = "零一二三四五六七八九"


def english_number(n: int) -> str:
    """Return a number from 0 to 99 in words: ``twenty-three``."""
    if n < 20:
        return _EN_ONES[n]
    return _EN_TENS[n // 10] + (f"-{_EN_ONES[n % 10]}" if n % 10 else "")


def english_ordinal(n: int) -> str:
    """Return an ordinal number from 1 to 99 in words: ``twenty-third``."""
    head, dash, last = english_number(n).rpartition("-")
    return head + dash + _EN_ORDINALS.get(last, last + "th")


def german_number(n: int) -> str:
    """Return a number from 2 to 99 in German words, as before a noun: ``dreiundzwanzig``."""
    if n < 20:
        return _DE_ONES[n]
    return (f"{_DE_ONES[n % 10]}und" if n % 10 else "") + _DE_TENS[n // 10]


def german_ordinal(n: int) -> str:
    """Return an ordinal number from 1 to 99 in the German form after ``am``: ``dreiundzwanzigsten``."""
    return _DE_ORDINALS.get(n) or german_number(n) + ("ten" if n < 20 else "sten")


def chinese_number(n: int) -> str:
    """Return a number from 0 to 99 in Chinese: 二十三."""
    tens, ones = divmod(n, 10)
    if not tens:
        return _ZH_DIGITS[ones]
    return ("" if tens == 1 else _ZH_DIGITS[tens]) + "十" + (_ZH_DIGITS[ones] if ones else "")


def chinese_count(n: int) -> str:
    """Return a number as before a measure word: 两 for 2, otherwise as ``chinese_number``."""
    return "两" if n == 2 else chinese_number(n)
