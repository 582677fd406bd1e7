"""The embedded corpus: what it promises of its splits, and what each phenomenon looks like in both languages."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from dragoman.data import phrasebook
from dragoman.data.phrasebook import derivation, lexicon
from dragoman.data.phrasebook.chinese import chinese
from dragoman.data.phrasebook.english import english
from dragoman.data.phrasebook.german import german
from dragoman.data.phrasebook.grammar import And, Clause, NounPhrase, Sentence
from dragoman.errors import ConfigError

NOUN = {noun.en: noun for noun in (*lexicon.NOUNS, *lexicon.MASSES)}
QUALITY = {quality.en: quality for quality in lexicon.ADJECTIVES}
VERB = {
    verb.en: verb
    for verb in (
        *lexicon.TRANSITIVE, *lexicon.INTRANSITIVE, *lexicon.GIVING, *lexicon.SAYING, *lexicon.TRYING, lexicon.GO
    )
}  # fmt: skip
PLACE = {place[0]: place for place in lexicon.PLACES}
GOAL = {goal[0]: goal for goal in lexicon.GOALS}
TODAY, YESTERDAY, TOMORROW = lexicon.TIMES["pres"][0], lexicon.TIMES["past"][0], lexicon.TIMES["fut"][0]
OFTEN = lexicon.FREQUENCIES[0]


def np(words: str, relative: Clause | None = None) -> NounPhrase:
    """``the old man``, ``three red books``, ``tea``, ``she``: a phrase from its English words."""
    if words in lexicon.PRONOUNS or words in ("who", "what"):
        return NounPhrase(None, "pronoun", pronoun=words)
    parts = words.split()
    plurals = {noun.en_plural: noun for noun in lexicon.NOUNS}
    last = parts.pop()
    plural, noun = last in plurals and last not in NOUN, NOUN.get(last) or plurals[last]
    quality = QUALITY.get(parts[-1]) if parts else None
    if quality:
        parts.pop()
    determiner = parts[0] if parts else "bare"
    number = next((n for n in range(2, 100) if lexicon.english_number(n) == determiner), 0)
    determiner = "count" if number else {"an": "a", "these": "this"}.get(determiner, determiner)
    return NounPhrase(noun, determiner, plural, number, quality, relative)


def say(
    subject: str | NounPhrase | And | None, verb: str, thing: str | NounPhrase | None = None, **more: object
) -> Clause:
    who = np(subject) if isinstance(subject, str) else subject
    what = np(thing) if isinstance(thing, str) else thing
    return Clause(who, VERB[verb], object=what, **more)  # type: ignore[arg-type]


def be(subject: str, quality: str, **more: object) -> Clause:
    return Clause(np(subject), None, adjective=QUALITY[quality], **more)  # type: ignore[arg-type]


def stated(main: Clause) -> Sentence:
    return Sentence("statement", main)


CASES = [
    (stated(say("the man", "buy", "an apple")), "The man buys an apple.", "Der Mann kauft einen Apfel.", "那个男人买一个苹果。"),
    (stated(say("I", "read", "the interesting book")), "I read the interesting book.",
     "Ich lese das interessante Buch.", "我读那本有趣的书。"),
    (stated(say("she", "wear", "a red dress")), "She wears a red dress.", "Sie trägt ein rotes Kleid.", "她穿一条红色的裙子。"),
    (stated(say("we", "drink", "cold milk")), "We drink cold milk.", "Wir trinken kalte Milch.", "我们喝冷的牛奶。"),
    (stated(say("he", "drink", "hot tea", tense="past")), "He drank hot tea.", "Er hat heißen Tee getrunken.", "他喝了热的茶。"),
    (stated(say("the girl", "help", "the boy")), "The girl helps the boy.", "Das Mädchen hilft dem Jungen.", "那个女孩帮助那个男孩。"),
    (stated(say("the nurse", "thank", "two tired doctors")), "The nurse thanks two tired doctors.",
     "Die Krankenschwester dankt zwei müden Ärzten.", "那位护士感谢两位疲倦的医生。"),
    (stated(say("my friend", "see", "his student")), "My friend sees his student.", "Mein Freund sieht seinen Studenten.",
     "我的朋友看见他的学生。"),
    (stated(say("the farmer", "open", "the door")), "The farmer opens the door.", "Der Bauer macht die Tür auf.", "那个农民打开那扇门。"),
    (stated(say("the farmer", "open", "the door", tense="past")), "The farmer opened the door.",
     "Der Bauer hat die Tür aufgemacht.", "那个农民打开了那扇门。"),
    (stated(say("the farmer", "close", "the doors", tense="fut")), "The farmer will close the doors.",
     "Der Bauer wird die Türen zumachen.", "那个农民会关上那些门。"),
    (stated(say("I", "call", "the neighbour", tense="past")), "I called the neighbour.",
     "Ich habe den Nachbarn angerufen.", "我给那个邻居打了电话。"),
    (stated(say("the child", "get up", tense="past")), "The child got up.", "Das Kind ist aufgestanden.", "那个孩子起床了。"),
    (stated(say("the child", "get up")), "The child gets up.", "Das Kind steht auf.", "那个孩子起床。"),
    (stated(say("she", "go", goal=GOAL["to the station"], tense="past", time=YESTERDAY)),
     "She went to the station yesterday.", "Sie ist gestern zum Bahnhof gegangen.", "她昨天去了车站。"),
    (stated(say("she", "go", goal=GOAL["to school"], tense="want")), "She wants to go to school.",
     "Sie will in die Schule gehen.", "她想去学校。"),
    (stated(say("the man", "buy", "three red bicycles", tense="past", time=YESTERDAY, fronted=True)),
     "Yesterday the man bought three red bicycles.", "Gestern hat der Mann drei rote Fahrräder gekauft.",
     "昨天那个男人买了三辆红色的自行车。"),
    (stated(say("the man", "buy", "a car", negated=True)), "The man does not buy a car.", "Der Mann kauft kein Auto.",
     "那个男人不买汽车。"),
    (stated(say("the man", "buy", "a new car", negated=True, tense="past")), "The man did not buy a new car.",
     "Der Mann hat kein neues Auto gekauft.", "那个男人没有买新的汽车。"),
    (stated(say("the man", "repair", "the clock", negated=True, tense="past")), "The man did not repair the clock.",
     "Der Mann hat die Uhr nicht repariert.", "那个男人没有修理那个钟。"),
    (stated(say("they", "work", negated=True, place=PLACE["in the garden"])), "They do not work in the garden.",
     "Sie arbeiten nicht im Garten.", "他们不在花园里工作。"),
    (stated(say("I", "open", "the box", negated=True, tense="can")), "I cannot open the box.",
     "Ich kann die Kiste nicht aufmachen.", "我不能打开那个箱子。"),
    (stated(say("we", "dance", negated=True, tense="want")), "We do not want to dance.", "Wir wollen nicht tanzen.", "我们不想跳舞。"),
    (stated(say("the bakers", "sleep", frequency=OFTEN, place=PLACE["at home"])), "The bakers often sleep at home.",
     "Die Bäcker schlafen oft zu Hause.", "那些面包师经常在家里睡觉。"),
    (stated(say("these children", "feed", "our horses")), "These children feed our horses.",
     "Diese Kinder füttern unsere Pferde.", "这些孩子喂我们的马。"),
    (stated(say("I", "feed", "a small bird")), "I feed a small bird.", "Ich füttere einen kleinen Vogel.", "我喂一只小的鸟。"),
    (stated(say("some women", "sell", "eggs")), "Some women sell eggs.", "Einige Frauen verkaufen Eier.", "一些女人卖鸡蛋。"),
    (stated(say("the singer", "give", "an expensive coat", receiver=np("the children"))),
     "The singer gives the children an expensive coat.", "Die Sängerin gibt den Kindern einen teuren Mantel.",
     "那位歌手送那些孩子一件贵的大衣。"),
    (stated(say("the doctor", "show", "the picture", receiver=np("our friends"), tense="past")),
     "The doctor showed our friends the picture.", "Der Arzt hat unseren Freunden das Bild gezeigt.",
     "那位医生给我们的朋友看了那幅画。"),
    (stated(be("the houses", "beautiful", tense="past")), "The houses were beautiful.", "Die Häuser waren schön.", "那些房子很漂亮。"),
    (stated(be("his coat", "red", negated=True)), "His coat is not red.", "Sein Mantel ist nicht rot.", "他的大衣不是红色的。"),
    (stated(Clause(And(np("the man"), np("the woman")), VERB["sing"], time=TODAY)), "The man and the woman sing today.",
     "Der Mann und die Frau singen heute.", "那个男人和那个女人今天唱歌。"),
    (stated(say("she", "say", that_clause=say("the man", "open", "the window", time=TODAY))),
     "She says that the man opens the window today.", "Sie sagt, dass der Mann heute das Fenster aufmacht.",
     "她说那个男人今天打开那扇窗户。"),
    (stated(say("I", "know", negated=True, that_clause=say("they", "go", goal=GOAL["to the market"], tense="past"))),
     "I do not know that they went to the market.", "Ich weiß nicht, dass sie zum Markt gegangen sind.", "我不知道他们去了市场。"),
    (stated(say("the boy", "try", infinitive=say(None, "open", "the suitcase"))), "The boy tries to open the suitcase.",
     "Der Junge versucht, den Koffer aufzumachen.", "那个男孩试着打开那个手提箱。"),
    (stated(say("he", "forget", tense="past", infinitive=say(None, "help", "the grandmother"))),
     "He forgot to help the grandmother.", "Er hat vergessen, der Großmutter zu helfen.", "他忘记了帮助那位奶奶。"),
    (Sentence("because", say("the boy", "laugh"), say("the dog", "play", tense="past")),
     "The boy laughs because the dog played.", "Der Junge lacht, weil der Hund gespielt hat.", "因为那只狗玩了，所以那个男孩笑。"),
    (Sentence("if", say("we", "shop", tense="fut"), be("the shirts", "cheap")), "If the shirts are cheap, we will shop.",
     "Wenn die Hemden billig sind, werden wir einkaufen.", "如果那些衬衫很便宜，我们就会购物。"),
    (Sentence("polar", say("the woman", "find", "the key", tense="past")), "Did the woman find the key?",
     "Hat die Frau den Schlüssel gefunden?", "那个女人找到了那把钥匙吗？"),
    (Sentence("polar", be("these eggs", "fresh")), "Are these eggs fresh?", "Sind diese Eier frisch?", "这些鸡蛋很新鲜吗？"),
    (Sentence("polar", say("he", "sing", tense="can")), "Can he sing?", "Kann er singen?", "他能唱歌吗？"),
    (Sentence("who", say("who", "pick up", "the children")), "Who picks up the children?", "Wer holt die Kinder ab?",
     "谁接那些孩子？"),
    (Sentence("what", say("the baker", "buy", "what", time=TOMORROW, tense="fut")), "What will the baker buy tomorrow?",
     "Was wird der Bäcker morgen kaufen?", "那位面包师明天会买什么？"),
    (Sentence("where", say("the cat", "sleep")), "Where does the cat sleep?", "Wo schläft die Katze?", "那只猫在哪里睡觉？"),
    (Sentence("when", say("we", "get up", tense="fut")), "When will we get up?",
     "Wann werden wir aufstehen?", "我们什么时候会起床？"),
    (Sentence("why", say("the girls", "cry")), "Why do the girls cry?", "Warum weinen die Mädchen?", "那些女孩为什么哭？"),
    (stated(Clause(np("the man", say(None, "sell", "apples", gap="subject")), VERB["sleep"])),
     "The man who sells apples sleeps.", "Der Mann, der Äpfel verkauft, schläft.", "卖苹果的那个男人睡觉。"),
    (stated(say("I", "read", np("the book", say("the teacher", "write", gap="object", tense="past")), tense="want")),
     "I want to read the book that the teacher wrote.", "Ich will das Buch lesen, das der Lehrer geschrieben hat.",
     "我想读那位老师写的那本书。"),
    (stated(say("we", "visit", np("the neighbours", say("the boys", "help", gap="object")))),
     "We visit the neighbours whom the boys help.", "Wir besuchen die Nachbarn, denen die Jungen helfen.",
     "我们拜访那些男孩帮助的那些邻居。"),
    (stated(Clause(np("the lamp", say("she", "see", gap="object")), None, adjective=QUALITY["expensive"])),
     "The lamp that she sees is expensive.", "Die Lampe, die sie sieht, ist teuer.", "她看见的那盏灯很贵。"),
]  # fmt: skip


@pytest.fixture(scope="module")
def train() -> list[tuple[str, str]]:
    """The first 60,000 pairs to train on, by which two tests look for what must not be there."""
    return list(phrasebook.pairs(60_000))


@pytest.fixture(scope="module")
def held_out() -> list[tuple[str, str]]:
    return list(phrasebook.pairs(6000, split="held_out"))


@pytest.mark.parametrize(("sentence", "en", "de", "zh"), CASES, ids=[case[1] for case in CASES])
def test_each_phenomenon_reads_as_a_native_would_write_it(sentence: Sentence, en: str, de: str, zh: str) -> None:
    assert english(sentence) == en
    assert german(sentence) == de
    assert chinese(sentence) == zh


def test_a_pair_is_a_function_of_seed_and_index() -> None:
    some = list(phrasebook.pairs(20, seed=5, start=100))
    assert some == [phrasebook.pair(i, seed=5) for i in range(100, 120)]
    assert some != list(phrasebook.pairs(20, seed=6, start=100))
    assert [phrasebook.pair(7, seed=5, tgt_lang="zh")[0]] == [phrasebook.pair(7, seed=5)[0]]


def test_pairs_are_the_same_in_every_process() -> None:
    program = (
        "import hashlib; from dragoman.data import phrasebook as p;"
        "print(hashlib.sha256(repr([list(p.pairs(300, tgt_lang=l, split=s)) for l in p.LANGUAGES for s in p.SPLITS])"
        ".encode()).hexdigest())"
    )
    digests = {
        subprocess.run(
            [sys.executable, "-c", program], env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout.strip()
        for seed in ("1", "2")
    }
    here = [
        list(phrasebook.pairs(300, tgt_lang=lang, split=split)) for lang in ("de", "zh") for split in phrasebook.SPLITS
    ]
    assert digests == {hashlib.sha256(repr(here).encode()).hexdigest().encode()}


def test_the_first_pairs_are_what_they_have_always_been() -> None:
    """A change of these is a change of the corpus: every figure measured on it would have to be measured again."""
    assert phrasebook.pair(0) == PINNED[0]
    assert phrasebook.pair(1, tgt_lang="zh", split="deeper") == PINNED[1]
    assert phrasebook.pair(2, seed=3, split="held_out") == PINNED[2]


@pytest.mark.parametrize("tgt_lang", phrasebook.LANGUAGES)
def test_the_same_source_always_has_the_same_target(tgt_lang: str) -> None:
    seen: dict[str, str] = {}
    for split in phrasebook.SPLITS:
        for seed in (0, 1):
            for source, target in phrasebook.pairs(3000, seed=seed, tgt_lang=tgt_lang, split=split):
                assert seen.setdefault(source, target) == target


def test_no_two_meanings_share_an_english_verb_form() -> None:
    forms = [form for verb in VERB.values() for form in {verb.en, verb.en_third, verb.en_past}]
    assert len(forms) == len(set(forms))
    spoken_of_the_past = [verb for verb in VERB.values() if derivation.unambiguous_tense(verb, "past") == "past"]
    assert not [verb.en for verb in spoken_of_the_past if verb.en_past in (verb.en, verb.en_third)]
    assert len(spoken_of_the_past) == len(VERB) - 1  # all but "read"
    nouns = [form for noun in lexicon.NOUNS for form in (noun.en, noun.en_plural)]
    assert len(nouns) == len(set(nouns))


def test_held_out_sentences_and_combinations_never_occur_in_train(
    train: list[tuple[str, str]], held_out: list[tuple[str, str]]
) -> None:
    assert not {source for source, _ in train} & {source for source, _ in held_out}
    assert 0.03 < len(derivation.RESERVED) / len(derivation.COMBINATIONS) < 0.09
    words = {word for source, _ in train[:30_000] for word in re.findall(r"[\w-]+", source.lower())}
    assert not {word for source, _ in held_out[:2000] for word in re.findall(r"[\w-]+", source.lower())} - words
    targets = {word for _, target in train for word in re.findall(r"\w+", target.lower())}
    assert not {word for _, target in held_out[:2000] for word in re.findall(r"\w+", target.lower())} - targets


def test_a_reserved_adjective_and_noun_meet_in_held_out_only(
    train: list[tuple[str, str]], held_out: list[tuple[str, str]]
) -> None:
    nouns = {noun.en: noun for noun in lexicon.NOUNS}
    first, second = next(p for p in sorted(derivation.RESERVED) if p[0] in QUALITY and p[1] in nouns)
    phrases = (f"{first} {second}", f"{first} {nouns[second].en_plural}")
    assert not any(phrase in source for phrase in phrases for source, _ in train)
    assert any(phrase in source for phrase in phrases for source, _ in held_out)


def test_deeper_is_nested_exactly_one_level_deeper_than_train() -> None:
    assert max(derivation.derive(i, 0, "train").depth for i in range(3000)) == 2
    assert {derivation.derive(i, 0, "train").depth for i in range(3000)} == {0, 1, 2}
    assert {derivation.derive(i, 0, "deeper").depth for i in range(500)} == {3}


@pytest.mark.parametrize("split", phrasebook.SPLITS)
def test_sentences_are_tidy(split: str) -> None:
    for source, target in phrasebook.pairs(3000, split=split, seed=9):
        for text in (source, target):
            assert re.fullmatch(r"[A-ZÄÖÜ][^.?]*[.?]", text), text
            assert not re.search(r"  | [,.?]|,,|,[.?]|\bNone\b|poss|bare", text), text
    for _, target in phrasebook.pairs(3000, split=split, seed=9, tgt_lang="zh"):
        assert re.fullmatch(r"[\u4e00-\u9fff，]+[。？]", target), target


def test_numbers_and_ordinals_in_words() -> None:
    assert [lexicon.english_number(n) for n in (2, 13, 20, 21, 99)] == [
        "two",
        "thirteen",
        "twenty",
        "twenty-one",
        "ninety-nine",
    ]
    assert [lexicon.german_number(n) for n in (2, 16, 17, 21, 30, 66)] == [
        "zwei", "sechzehn", "siebzehn", "einundzwanzig", "dreißig", "sechsundsechzig",
    ]  # fmt: skip
    assert [lexicon.chinese_number(n) for n in (2, 10, 12, 20, 22, 99)] == [
        "二",
        "十",
        "十二",
        "二十",
        "二十二",
        "九十九",
    ]
    assert lexicon.chinese_count(2) == "两"
    assert [lexicon.english_ordinal(n) for n in (1, 2, 3, 5, 8, 9, 12, 20, 21, 23)] == [
        "first", "second", "third", "fifth", "eighth", "ninth", "twelfth", "twentieth", "twenty-first", "twenty-third",
    ]  # fmt: skip
    assert [lexicon.german_ordinal(n) for n in (1, 2, 3, 7, 8, 19, 20, 28)] == [
        "ersten", "zweiten", "dritten", "siebten", "achten", "neunzehnten", "zwanzigsten", "achtundzwanzigsten",
    ]  # fmt: skip


def test_unknown_languages_and_splits_are_named_with_the_known_ones() -> None:
    with pytest.raises(ConfigError, match="de or zh"):
        phrasebook.pair(0, tgt_lang="fr")
    with pytest.raises(ConfigError, match="train, held_out, deeper"):
        next(phrasebook.pairs(1, split="test"))


def test_write_makes_two_files_line_by_line(tmp_path: Path) -> None:
    phrasebook.write(50, tmp_path / "a.en", tmp_path / "a.de", seed=2)
    sides = [(tmp_path / name).read_bytes().decode().split("\n")[:-1] for name in ("a.en", "a.de")]
    assert list(zip(*sides, strict=True)) == list(phrasebook.pairs(50, seed=2))


PINNED = [
    (
        "This child sends our singer a blue umbrella.",
        "Dieses Kind schickt unserer Sängerin einen blauen Regenschirm.",
    ),
    (
        "If the bakers who find the bakers who cry do not clean clocks at school now, some teachers must close a box on Monday.",
        "如果找到哭的那些面包师的那些面包师现在不在学校里擦钟，一些老师星期一就必须关上一个箱子。",
    ),
    (
        "The sad girl does not want to go to the market because the happy woman and the friend do not know that some teachers give my grandmother the dress today.",
        "Das traurige Mädchen will nicht zum Markt gehen, weil die glückliche Frau und der Freund nicht wissen, dass einige Lehrer heute meiner Großmutter das Kleid geben.",
    ),
]
