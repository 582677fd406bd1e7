"""Sentences in many scripts, from which tests learn subwords and which they then change in ways no reader sees."""

from __future__ import annotations

import random

SENTENCES = {
    "English": ["The old bridge was closed in 1974.", "She reads a letter by the window.", "Two boats left at 7:45."],
    "German": ["Die größte Straße führt übers Moor.", "Er hörte den Zug schon früh.", "Zwölf Männer grüßten höflich."],
    "Czech": ["Příští čtvrtek přijede můj děda.", "Žlutý kůň se pásl na louce.", "Řekl to tiše."],
    "Vietnamese": ["Bà ngoại nấu cơm rất ngon.", "Mưa lớn suốt đêm hôm qua.", "Chúng tôi đi chợ sớm."],
    "Greek": ["Η θάλασσα είναι ήσυχη σήμερα.", "Ο παππούς έφτιαξε ψωμί."],
    "Russian": ["Мой дед живёт у реки.", "Объявление висит на двери."],
    "Arabic": ["ذَهَبَ الوَلَدُ إلى السوق.", "الماء بارد في الصباح."],
    "Hebrew": ["הַיֶּלֶד קָרָא סֵפֶר.", "הבית ליד הים."],
    "Hindi": ["दादी ने बाज़ार से फल ख़रीदे।", "लड़का नदी के पास पढ़ता है।", "हम कल गाँव जाएँगे।"],
    "Bengali": ["বাড়ির পাশে একটি নদী আছে।", "সে ভোরে উঠে পড়ে।"],
    "Tamil": ["அம்மா கோவிலுக்குப் போனாள்.", "மழை மெல்ல பெய்தது."],
    "Thai": ["เด็กๆ กำลังเล่นน้ำในแม่น้ำ", "วันนี้อากาศร้อนมาก"],
    "Burmese": ["ကလေးက စာဖတ်နေတယ်။", "ရေက အေးတယ်။"],
    "Korean": ["할머니가 시장에서 사과를 샀다.", "우리는 강가에서 놀았다.", "비가 밤새 내렸다."],
    "Japanese": ["祖母は市場でりんごを買った。", "ガラスの窓が割れた。"],
    "Chinese": ["老桥在一九七四年关闭了。", "她在窗边读信。"],
}


def learning_lines(n: int = 500, seed: int = 5) -> list[str]:
    """Lines of words of one language each, drawn anew, so that subwords longer than a character are learned."""
    chance = random.Random(seed)
    words = [[word for line in lines for word in line.split()] for lines in SENTENCES.values()]
    return [" ".join(chance.choice(own) for _ in range(6)) for own in (chance.choice(words) for _ in range(n))]
