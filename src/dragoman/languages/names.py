"""Names of languages in 13 languages and in the language itself, as headings of tables have them.

    code_named("Deutsch")               # "de"
    code_named("Chinese (Simplified)")  # "zh-Hans"

The names are those of Unicode's CLDR, of the languages in ``known``, and some that people also use.
"""

from __future__ import annotations

import functools
import re

from dragoman.languages.composition import compose

NAMES = {
    "af": "Afrikaans|afrikáans|africâner|африкаанс|南非荷兰语|アフリカーンス語|아프리칸스어|Afrikaanca",
    "ar": "Arabic|Arabisch|arabe|árabe|arabo|арабский|arabski|阿拉伯语|アラビア語|아랍어|Arapça|العربية",
    "as": (
        "Assamese|Assamesisch|assamais|asamés|assamês|Assamees|ассамский|asamski|阿萨姆语|アッサム語|아삼어|"
        "Assamca|অসমীয়া"
    ),
    "ast": (
        "Asturian|Asturisch|asturien|asturiano|астурийский|asturyjski|阿斯图里亚斯语|アストゥリアス語|"
        "아스투리아어|Asturyasça|asturianu"
    ),
    "az": (
        "Azerbaijani|Aserbaidschanisch|azerbaïdjanais|azerbaiyano|azerbaigiano|azerbaijano|Azerbeidzjaans|"
        "азербайджанский|azerbejdżański|阿塞拜疆语|アゼルバイジャン語|아제르바이잔어|Azerbaycan dili|azərbaycan"
    ),
    "be": (
        "Belarusian|Belarussisch|biélorusse|bielorruso|bielorusso|bielorrusso|белорусский|białoruski|白俄罗斯语|"
        "ベラルーシ語|벨라루스어|Belarusça|беларуская"
    ),
    "bg": (
        "Bulgarian|Bulgarisch|bulgare|búlgaro|bulgaro|Bulgaars|болгарский|bułgarski|保加利亚语|ブルガリア語|"
        "불가리아어|Bulgarca|български"
    ),
    "bn": (
        "Bengali|Bangla|Bengalisch|bengalí|bengalese|Bengaals|бенгальский|bengalski|孟加拉语|ベンガル語|벵골어|"
        "Bengalce|বাংলা"
    ),
    "bs": (
        "Bosnian|Bosnisch|bosniaque|bosnio|bosniaco|bósnio|боснийский|bośniacki|波斯尼亚语|ボスニア語|보스니아어|"
        "Boşnakça|bosanski"
    ),
    "ca": (
        "Catalan|Katalanisch|catalán|catalano|catalão|Catalaans|каталанский|kataloński|加泰罗尼亚语|カタロニア語|"
        "카탈로니아어|Katalanca|català"
    ),
    "cs": (
        "Czech|Tschechisch|tchèque|checo|ceco|tcheco|Tsjechisch|чешский|czeski|捷克语|チェコ語|체코어|Çekçe|čeština"
    ),
    "cy": (
        "Welsh|Walisisch|gallois|galés|gallese|galês|валлийский|walijski|威尔士语|ウェールズ語|웨일스어|Galce|Cymraeg"
    ),
    "da": (
        "Danish|Dänisch|danois|danés|danese|dinamarquês|Deens|датский|duński|丹麦语|デンマーク語|덴마크어|Danca|dansk"
    ),
    "de": "German|Deutsch|allemand|alemán|tedesco|alemão|Duits|немецкий|niemiecki|德语|ドイツ語|독일어|Almanca|独語",
    "el": (
        "Greek|Griechisch|grec|griego|greco|grego|Grieks|греческий|grecki|希腊语|ギリシャ語|그리스어|Yunanca|"
        "Ελληνικά|Modern Greek"
    ),
    "en": "English|Englisch|anglais|inglés|inglese|inglês|Engels|английский|angielski|英语|英語|영어|İngilizce|영문",
    "eo": "Esperanto|espéranto|эсперанто|世界语|エスペラント語|에스페란토어",
    "es": (
        "Spanish|Spanisch|espagnol|español|spagnolo|espanhol|Spaans|испанский|hiszpański|西班牙语|スペイン語|"
        "스페인어|İspanyolca|Castilian|castellano"
    ),
    "et": (
        "Estonian|Estnisch|estonien|estonio|estone|estoniano|Estisch|эстонский|estoński|爱沙尼亚语|エストニア語|"
        "에스토니아어|Estonca|eesti"
    ),
    "eu": "Basque|Baskisch|euskera|basco|баскский|baskijski|巴斯克语|バスク語|바스크어|Baskça|euskara",
    "fa": (
        "Persian|Persisch|persan|persa|persiano|Perzisch|персидский|perski|波斯语|ペルシア語|페르시아어|Farsça|"
        "فارسی|Farsi"
    ),
    "fi": (
        "Finnish|Finnisch|finnois|finés|finlandese|finlandês|Fins|финский|fiński|芬兰语|フィンランド語|핀란드어|"
        "Fince|suomi"
    ),
    "fil": ("Filipino|filippino|Filipijns|филиппинский|filipiński|菲律宾语|フィリピノ語|필리핀어|Filipince|Tagalog"),
    "fr": (
        "French|Französisch|français|francés|francese|francês|Frans|французский|francuski|法语|フランス語|"
        "프랑스어|Fransızca|仏語"
    ),
    "ga": (
        "Irish|Irisch|irlandais|irlandés|irlandese|irlandês|Iers|ирландский|irlandzki|爱尔兰语|アイルランド語|"
        "아일랜드어|İrlandaca|Gaeilge"
    ),
    "gl": (
        "Galician|Galicisch|galicien|gallego|galiziano|galego|галисийский|galicyjski|加利西亚语|ガリシア語|"
        "갈리시아어|Galiçyaca"
    ),
    "gu": (
        "Gujarati|goudjarati|guyaratí|guzerate|гуджарати|gudżarati|古吉拉特语|グジャラート語|구자라트어|"
        "Güceratça|ગુજરાતી"
    ),
    "he": (
        "Hebrew|Hebräisch|hébreu|hebreo|ebraico|hebraico|Hebreeuws|иврит|hebrajski|希伯来语|ヘブライ語|히브리어|"
        "İbranice|עברית|Ivrit"
    ),
    "hi": "Hindi|híndi|хинди|印地语|ヒンディー語|힌디어|Hintçe|हिन्दी",
    "hr": (
        "Croatian|Kroatisch|croate|croata|croato|хорватский|chorwacki|克罗地亚语|クロアチア語|크로아티아어|克羅埃西亞語|"
        "Hırvatça|hrvatski"
    ),
    "hu": (
        "Hungarian|Ungarisch|hongrois|húngaro|ungherese|Hongaars|венгерский|węgierski|匈牙利语|ハンガリー語|"
        "헝가리어|Macarca|magyar"
    ),
    "hy": (
        "Armenian|Armenisch|arménien|armenio|armeno|armênio|Armeens|армянский|ormiański|亚美尼亚语|アルメニア語|"
        "아르메니아어|Ermenice|հայերեն"
    ),
    "id": (
        "Indonesian|Indonesisch|indonésien|indonesio|indonesiano|indonésio|индонезийский|indonezyjski|"
        "印度尼西亚语|インドネシア語|인도네시아어|Endonezce|Indonesia|印尼语"
    ),
    "is": (
        "Icelandic|Isländisch|islandais|islandés|islandese|islandês|IJslands|исландский|islandzki|冰岛语|"
        "アイスランド語|아이슬란드어|İzlandaca|íslenska"
    ),
    "it": (
        "Italian|Italienisch|italien|italiano|Italiaans|итальянский|włoski|意大利语|イタリア語|이탈리아어|İtalyanca|義大利語|意语"
    ),
    "ja": (
        "Japanese|Japanisch|japonais|japonés|giapponese|japonês|Japans|японский|japoński|日语|日本語|일본어|Japonca|和文|일문"
    ),
    "ka": (
        "Georgian|Georgisch|géorgien|georgiano|грузинский|gruziński|格鲁吉亚语|ジョージア語|조지아어|Gürcüce|ქართული"
    ),
    "kk": (
        "Kazakh|Kasachisch|kazajo|kazako|cazaque|Kazachs|казахский|kazachski|哈萨克语|カザフ語|카자흐어|Kazakça|"
        "қазақ тілі"
    ),
    "km": "Khmer|jemer|кхмерский|khmerski|高棉语|クメール語|크메르어|Khmer dili|ខ្មែរ|Cambodian|柬埔寨语",
    "kn": "Kannada|canarés|canarim|каннада|卡纳达语|カンナダ語|칸나다어|Kannada dili|ಕನ್ನಡ",
    "ko": (
        "Korean|Koreanisch|coréen|coreano|Koreaans|корейский|koreański|韩语|韓国語|한국어|Korece|한국말|韩国语|"
        "朝鲜语|국문|한글"
    ),
    "ky": (
        "Kyrgyz|Kirgisisch|kirghize|kirguís|kirghiso|quirguiz|Kirgizisch|киргизский|kirgiski|柯尔克孜语|"
        "キルギス語|키르기스어|Kırgızca|кыргызча"
    ),
    "la": "Latin|Latein|latín|latino|latim|Latijn|латинский|łaciński|拉丁语|ラテン語|라틴어|Latince|Latina",
    "lo": "Lao|Laotisch|laosiano|Laotiaans|лаосский|laotański|老挝语|ラオ語|라오어|Lao dili|ລາວ|Laotian|寮語",
    "lt": (
        "Lithuanian|Litauisch|lituanien|lituano|Litouws|литовский|litewski|立陶宛语|リトアニア語|리투아니아어|"
        "Litvanca|lietuvių"
    ),
    "lv": (
        "Latvian|Lettisch|letton|letón|lettone|letão|Lets|латышский|łotewski|拉脱维亚语|ラトビア語|라트비아어|"
        "Letonca|latviešu"
    ),
    "mk": (
        "Macedonian|Mazedonisch|macédonien|macedonio|macedone|macedônio|Macedonisch|македонский|macedoński|"
        "马其顿语|マケドニア語|마케도니아어|Makedonca|македонски"
    ),
    "ml": (
        "Malayalam|malayálam|malaiala|малаялам|malajalam|马拉雅拉姆语|マラヤーラム語|말라얄람어|Malayalam dili|മലയാളം"
    ),
    "mn": (
        "Mongolian|Mongolisch|mongol|mongolo|Mongools|монгольский|mongolski|蒙古语|モンゴル語|몽골어|Moğolca|монгол"
    ),
    "mr": "Marathi|maratí|marati|маратхи|马拉地语|マラーティー語|마라티어|Marathi dili|मराठी",
    "ms": (
        "Malay|Malaiisch|malais|malayo|malese|malaio|Maleis|малайский|malajski|马来语|マレー語|말레이어|Malayca|Melayu"
    ),
    "mt": (
        "Maltese|Maltesisch|maltais|maltés|maltês|Maltees|мальтийский|maltański|马耳他语|マルタ語|몰타어|Maltaca|Malti"
    ),
    "my": (
        "Burmese|Birmanisch|birman|birmano|birmanês|Birmaans|бирманский|birmański|缅甸语|ミャンマー語|버마어|"
        "Birman dili|မြန်မာ|Myanmar"
    ),
    "nb": (
        "Norwegian Bokmål|Norwegisch (Bokmål)|norvégien bokmål|noruego bokmal|norvegese bokmål|bokmål norueguês|"
        "Noors - Bokmål|норвежский букмол|norweski (bokmål)|书面挪威语|ノルウェー語(ブークモール)|"
        "노르웨이어(보크말)|Norveççe Bokmål|norsk bokmål|Bokmål"
    ),
    "ne": (
        "Nepali|Nepalesisch|népalais|nepalí|nepalese|nepalês|Nepalees|непальский|nepalski|尼泊尔语|ネパール語|"
        "네팔어|Nepalce|नेपाली"
    ),
    "nl": (
        "Dutch|Niederländisch|néerlandais|neerlandés|olandese|holandês|Nederlands|нидерландский|niderlandzki|"
        "荷兰语|オランダ語|네덜란드어|Felemenkçe"
    ),
    "nn": (
        "Norwegian Nynorsk|Norwegisch (Nynorsk)|norvégien nynorsk|noruego nynorsk|norvegese nynorsk|"
        "nynorsk norueguês|Noors - Nynorsk|нюнорск|norweski (nynorsk)|挪威尼诺斯克语|ノルウェー語(ニーノシュク)|"
        "노르웨이어(니노르스크)|Norveççe Nynorsk|norsk nynorsk|Nynorsk"
    ),
    "no": (
        "Norwegian|Norwegisch|norvégien|noruego|norvegese|norueguês|Noors|норвежский|norweski|挪威语|"
        "ノルウェー語|노르웨이어|Norveççe|norsk"
    ),
    "or": "Odia|Oriya|oriá|ория|orija|奥里亚语|オディア語|오리야어|Oriya dili|ଓଡ଼ିଆ",
    "pa": "Punjabi|pendjabi|punyabí|panjabi|панджаби|pendżabski|旁遮普语|パンジャブ語|펀잡어|Pencapça|ਪੰਜਾਬੀ",
    "pl": ("Polish|Polnisch|polonais|polaco|polacco|polonês|Pools|польский|polski|波兰语|ポーランド語|폴란드어|Lehçe"),
    "ps": ("Pashto|Paschtu|pachto|pastún|Pasjtoe|пушту|paszto|普什图语|パシュトゥー語|파슈토어|Peştuca|پښتو|Pushto"),
    "pt": (
        "Portuguese|Portugiesisch|portugais|portugués|portoghese|português|Portugees|португальский|portugalski|"
        "葡萄牙语|ポルトガル語|포르투갈어|Portekizce|葡语"
    ),
    "ro": (
        "Romanian|Rumänisch|roumain|rumano|rumeno|romeno|Roemeens|румынский|rumuński|罗马尼亚语|ルーマニア語|"
        "루마니아어|Rumence|română|Moldovan"
    ),
    "ru": "Russian|Russisch|russe|ruso|russo|русский|rosyjski|俄语|ロシア語|러시아어|Rusça|俄罗斯语|露語",
    "sa": (
        "Sanskrit|sánscrito|sanscrito|sânscrito|Sanskriet|санскрит|sanskryt|梵语|サンスクリット語|산스크리트어|"
        "संस्कृत भाषा"
    ),
    "sk": (
        "Slovak|Slowakisch|slovaque|eslovaco|slovacco|Slowaaks|словацкий|słowacki|斯洛伐克语|スロバキア語|"
        "슬로바키아어|Slovakça|slovenčina"
    ),
    "sl": (
        "Slovenian|Slowenisch|slovène|esloveno|sloveno|Sloveens|словенский|słoweński|斯洛文尼亚语|スロベニア語|"
        "슬로베니아어|Slovence|斯洛維尼亞語|slovenščina"
    ),
    "sq": (
        "Albanian|Albanisch|albanais|albanés|albanese|albanês|Albanees|албанский|albański|阿尔巴尼亚语|"
        "アルバニア語|알바니아어|Arnavutça|shqip"
    ),
    "sr": (
        "Serbian|Serbisch|serbe|serbio|serbo|sérvio|Servisch|сербский|serbski|塞尔维亚语|セルビア語|세르비아어|"
        "Sırpça|српски"
    ),
    "sv": (
        "Swedish|Schwedisch|suédois|sueco|svedese|Zweeds|шведский|szwedzki|瑞典语|スウェーデン語|스웨덴어|"
        "İsveççe|svenska"
    ),
    "sw": ("Swahili|Suaheli|suajili|suaíli|суахили|suahili|斯瓦希里语|スワヒリ語|스와힐리어|Svahili dili|Kiswahili"),
    "ta": "Tamil|tamoul|tâmil|тамильский|tamilski|泰米尔语|タミル語|타밀어|Tamilce|தமிழ்",
    "te": "Telugu|télougou|télugo|телугу|泰卢固语|テルグ語|텔루구어|Telugu dili|తెలుగు",
    "th": "Thai|Thailändisch|thaï|tailandés|thailandese|tailandês|тайский|tajski|泰语|タイ語|태국어|Tayca|ไทย",
    "tr": "Turkish|Türkisch|turc|turco|Turks|турецкий|turecki|土耳其语|トルコ語|튀르키예어|Türkçe",
    "ug": (
        "Uyghur|Uigurisch|ouïghour|uigur|uiguro|Oeigoers|уйгурский|ujgurski|维吾尔语|ウイグル語|위구르어|Uygurca|"
        "ئۇيغۇرچە|Uighur"
    ),
    "uk": (
        "Ukrainian|Ukrainisch|ukrainien|ucraniano|ucraino|Oekraïens|украинский|ukraiński|乌克兰语|ウクライナ語|"
        "우크라이나어|Ukraynaca|українська"
    ),
    "ur": "Urdu|ourdou|урду|乌尔都语|ウルドゥー語|우르두어|Urduca|اردو",
    "uz": (
        "Uzbek|Usbekisch|ouzbek|uzbeko|uzbeco|uzbeque|Oezbeeks|узбекский|uzbecki|乌兹别克语|ウズベク語|"
        "우즈베크어|Özbekçe|o‘zbek"
    ),
    "vi": (
        "Vietnamese|Vietnamesisch|vietnamien|vietnamita|Vietnamees|вьетнамский|wietnamski|越南语|ベトナム語|"
        "베트남어|Vietnamca|Tiếng Việt|越语"
    ),
    "yi": "Yiddish|Jiddisch|yidis|iídiche|идиш|jidysz|意第绪语|イディッシュ語|이디시어|Yidiş|ייִדיש",
    "zh": (
        "Chinese|Chinesisch|chinois|chino|cinese|chinês|Chinees|китайский|chiński|中文|中国語|중국어|Çince|"
        "Mandarin|Mandarin Chinese|汉语|漢語|中國語|华语|國語|普通话|普通話|중문"
    ),
}
"""Names by language code, with a bar between them."""

_ENDINGS = "语語文"
"""Endings of names of languages in Chinese: who knows one form of a name knows the others."""
_TRADITIONAL = str.maketrans(
    "韩兰萨图亚罗尔麦腊爱宾来岛鲁纳达挝脱维马顿缅书诺奥卢乌兹别绪汉华鲜",
    "韓蘭薩圖亞羅爾麥臘愛賓來島魯納達撾脫維馬頓緬書諾奧盧烏茲別緒漢華鮮",
)

VARIANTS = {
    "simplified": "Hans", "mainland": "Hans", "简体": "Hans", "简体字": "Hans", "簡體": "Hans", "簡体": "Hans",
    "簡体字": "Hans", "간체": "Hans", "traditional": "Hant", "繁體": "Hant", "繁体": "Hant", "繁体字": "Hant",
    "正體": "Hant", "正体": "Hant", "번체": "Hant",
    "us": "US", "american": "US", "united states": "US", "uk": "GB", "gb": "GB", "british": "GB",
    "united kingdom": "GB", "brazil": "BR", "brazilian": "BR", "brasil": "BR", "latin": "Latn", "cyrillic": "Cyrl",
}  # fmt: skip
"""Scripts and regions that people put next to a language, in brackets or before it."""


@functools.cache
def _codes() -> dict[str, str]:
    """Return the code of each name, in the form of ``_plain``."""
    return {_plain(form): code for code, names in NAMES.items() for name in names.split("|") for form in _forms(name)}


def _forms(name: str) -> list[str]:
    """Return a name in all the forms that Chinese has for it, as 韩语, 韓語, 韩文 and 韓文; any other by itself."""
    if name[-1] not in _ENDINGS:
        return [name]
    return [stem + end for stem in (name[:-1], name[:-1].translate(_TRADITIONAL)) for end in _ENDINGS]


def _plain(name: str) -> str:
    """Return a name in the form in which names are compared: composed, no capitals, single spaces, one before "("."""
    name = compose(name).replace("（", "(").replace("）", ")").replace("(", " (")
    return " ".join(name.casefold().split())


def code_named(name: str) -> str | None:
    """Return the code of a language by its name, with the script or region next to it; None for any other text."""
    text, codes = _plain(name), _codes()
    if code := codes.get(text):
        return code
    if (match := re.fullmatch(r"([^()]+) \(([^()]+)\)", text)) and (code := codes.get(match[1])):
        first = re.split("[,，、]", match[2])[0].strip()
        variant = VARIANTS.get(first) or VARIANTS.get(first.removesuffix(" han"))
        return f"{code}-{variant}" if variant else code
    for variant, tag in VARIANTS.items():
        space = " " if variant.isascii() else ""
        for language in (text.removeprefix(variant + space), text.removesuffix(space + variant)):
            if language != text and (code := codes.get(language.strip())):
                return f"{code}-{tag}"
    return None
