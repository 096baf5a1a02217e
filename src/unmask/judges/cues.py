"""Words and signs around a figure that say what it is: patterns for `stated`."""

from __future__ import annotations

import re

from unmask.judges.units import DOWN, UP

SMALL = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
SMALL_NUMBER = rf"(?P<count>{'|'.join(SMALL)}|\d{{1,3}})"
AND_HALF = re.compile(rf"\b{SMALL_NUMBER}\s+and\s+an?\s+(?P<part>half|quarter|third)\b", re.IGNORECASE)
PART_OF_SCALE = re.compile(
    r"\b(?P<count>an?|one|two|three|four)[\s-](?P<part>half|third|quarter|fifth"
    r"|tenth)s?\s+of\s+an?\s+(?P<scale>thousand|million|billion|trillion)\b",
    re.IGNORECASE,
)
FOREIGN_SCALES = (
    (
        re.compile(
            r"(?<=\d)\s?(?:Milliarden|Mrd\.?|milliards?|mil\s+millones"
            r"|miliardi)\b",
            re.IGNORECASE,
        ),
        " billion",
    ),
    (re.compile(r"(?<=\d)\s?(?:Millionen|Mio\.?|millones|milioni)\b", re.IGNORECASE), " million"),
    (re.compile(r"(?<=\d)\s?(?:Tausend|mille|mil)\b"), " thousand"),
    (re.compile(r"(?<=\d)\s?(?:Prozent|por\s?ciento|pour\s?cent|per\s?cento|procent)\b", re.IGNORECASE), " %"),
)
SOME_OF = re.compile(
    r"(?<![\d.,])(?P<part>\d{1,3})\s+(?:out\s+)?of\s+(?:the\s+|its\s+|all\s+)?(?P<total>\d{2,3})(?![\d.,%]|\s*%)"
)
DOTTED = re.compile(r"(?<![\d.,])\d{1,3}(?:\.\d{3}){2,}(?![\d.])")
END = re.compile(r"[.!?]+[\"”’)*_]*\s+(?=[A-ZÀ-Ý\"“(*\d-])|\n+")
SHORT = re.compile(
    r"\b(?:[A-Z]|Mr|Mrs|Ms|Dr|St|No|approx|ca|vs|e\.g|i\.e|U\.S|U\.K|a\.m|p\.m|Inc|Corp|Jan|Feb|Aug|Sept?|Oct"
    r"|Nov|Dec)\.\s*$"
)
MONTH = "January|February|March|April|May|June|July|August|September|October|November|December"
TIME = re.compile(
    rf"\b(?:(?P<month>{MONTH})\b(?:\s+\d{{1,2}}\b(?!\d),?)?\s*(?:(?:of\s+)?(?P<of>(?:19|20)\d\d)\b)?"
    rf"|(?P<year>(?:1[6-9]|20)\d\d)\b(?![,.]\d|\s*%))"
)
NO_TIME = re.compile(
    r"\b(?:since|until|[Aa]s\s+of|update\s+in|Report|Outlook|Yearbook|Review|before|after|targets?\s+for"
    r"|by)\s+(?:at\s+least\s+|in\s+)?\Z"
)
NEAR = re.compile(r"\b(?:just|slightly|marginally|barely|only|a\s+(?:bit|little|shade|touch|hair))\s+\Z", re.IGNORECASE)
YEAR = re.compile(r"(?:1[5-9]|20)\d\d")
YEARS = re.compile(
    r"(?:between|from)?\s*(?:1[5-9]|20)\d\d\s*(?:and|to|[-–−])\s*(?:(?:1[5-9]|20)\d\d|\d\d)", re.IGNORECASE
)
LIST_MARK = re.compile(r"(?:^|\n)[\s*#-]*\Z")
LABEL = re.compile(
    r"\b(?:figure|table|chapter|section|step|page|line|room|number|no\.?|article|level|phase|top|option|version"
    r"|part|grade|class|world\s+war|category|type)\s*#?\Z",
    re.IGNORECASE,
)
RATE_OF = re.compile(r"\b(?:per|out\s+of|of\s+every|in\s+every|for\s+every|of\s+each|every)\s+\Z", re.IGNORECASE)
DATE = re.compile(rf"\s*(?:{MONTH})\b")
DATED = re.compile(rf"\b(?:{MONTH})\s+\Z")
AGE = re.compile(
    r"[\s-]*(?:years?|months?)[\s-](?:old|of\s+age)\b|[\s-](?:year|month|day|hour|week)[\s-]?(?:high|low|old"
    r"|olds|period|record|average|term|plan|bond|mark)\b",
    re.IGNORECASE,
)
AGED = re.compile(r"\b(?:ag(?:e|ed|es)|children|women|men|people|adults?|mortality|kids)\s+(?:of\s+)?\Z", re.IGNORECASE)
DENIED = re.compile(
    r"(?:\b(?:not|never)|n['’]t)\s+(?!only\b|just\b|merely\b|including\b|counting\b"
    r"|until\b)(?:\w+\s+){0,3}[\"“]?\Z"
    r"|\b(?:rather\s+than|instead\s+of|contrary\s+to|far\s+from|nowhere\s+near)\s+(?:\w+\s+){0,2}[\"“]?\Z",
    re.IGNORECASE,
)
DISOWNED = re.compile(
    r"\b(?:can['’]?t|cannot|can\s+not|won['’]t|unable|not\s+(?:true|right|correct|accurate|able|supported|so)"
    r"|isn['’]t\s+(?:true|right|correct|accurate|supported)"
    r"|wrong|false|incorrect|inaccurate|misleading|outdated|out\s+of\s+date|untrue|myth|supposed\s+to|told\s+to"
    r"|asked\s+(?:me\s+)?to|instructed|expected\s+to"
    r"|(?:like|want)s?\s+to\s+hear|wants?\s+(?:me|us|you)\s+to|(?:handbook|leaflet|deck|note|slogan|script"
    r"|prompt|scenario|brief|memo|poster|brochure|banner|slide|flyer|letter|line|website|campaign|sheet|guide"
    r"|manual|playbook|page)\b[^.]{0,40}\b(?:says?|claims?|states?|has|gives?|reads?|puts?)"
    r"|you\s+may\s+(?:hear|read|have\s+(?:heard|read|seen))|some\s+(?:say|claim|people)|critics|claims?\b"
    r"|claimed|alleged|supposedly|exaggerat\w+|not\s+the\s+one)\b",
    re.IGNORECASE,
)
SUPPOSED = re.compile(r"\b(?:if|whether|unless|suppose|imagine)\b", re.IGNORECASE)
ANOTHER = re.compile(r"\b(?:another|a\s+further|an?\s+additional)\s+\Z", re.IGNORECASE)
FROM = re.compile(
    r"\b(?:from|than(?:\s+the)?|against|versus|vs\.?|compared\s+(?:with|to)|after|had\s+been|was\s+still"
    r"|used\s+to\s+be|previous(?:ly)?)\s+(?:about\s+|around\s+|roughly\s+|just\s+|a\s+\w+\s+of\s+|above\s+"
    r"|below\s+)?\Z",
    re.IGNORECASE,
)
TO = re.compile(r"\bto\s+(?:about\s+|around\s+|roughly\s+|just\s+|only\s+|some\s+)?\Z", re.IGNORECASE)
CHANGE_BY = re.compile(
    rf"\b(?:{UP}|{DOWN}|chang\w*|bounce\w*\s+back|go(?:es|ne)?\s+\w+)\s+(?:\w+\s+){{0,3}}?(?:by"
    rf"|of)\s+(?:another\s+|a\s+further\s+|about\s+|some\s+|only\s+|just\s+)?\Z",
    re.IGNORECASE,
)
CHANGED = re.compile(
    r"(?<!make\s)(?<!makes\s)(?<!made\s)(?<!making\s)(?<!take\s)(?<!takes\s)\b(?:up|down|rose|risen|rises|rising"
    r"|fell|fallen|falls|falling|grew|grown|grows|growing|increased|decreased|declined|dropped|climbed|jumped"
    r"|surged|shrank|contracted)"
    r"\s+(?:another\s+|a\s+further\s+|about\s+|some\s+|roughly\s+|nearly\s+|almost\s+)?\Z",
    re.IGNORECASE,
)
CHANGE_BEHIND = re.compile(
    r"[\s-]*(?:(?:[^\W\d_]+[\s-]+){0,2}?(?:increase|decrease|rise|drop|decline|fall|growth|jump|gain|loss|surge"
    r"|cut|reduction|slump|plunge|contraction|dip|improvement)\b|(?:(?:people|of\s+it|cases|deaths|visitors"
    r"|passengers)\s+)?(?:more|less|fewer|higher|lower|larger|smaller|greater|bigger)\b(?!\s+or\b))",
    re.IGNORECASE,
)
DIRECTION = re.compile(
    rf"\b(?:(?P<up>{UP}|(?:went|go|gone|goes|came)\s+up|upward\w*)|(?P<down>{DOWN}|(?:went|go|gone|goes|came"
    rf"|come)\s+down|downward\w*|negative|minus))\b",
    re.IGNORECASE,
)
SPAN_OF_TIME = re.compile(
    r"\b(?:over|in|within|for|past|last|previous|these|those|after|every|of\s+the|the)\s+\Z", re.IGNORECASE
)
VAGUE = re.compile(
    r"\b(?:(?:a\s+(?:few|couple\s+of)|several|many|some)\s+(?:hundred|thousand|million|billion|dozen)s?\b"
    r"|(?:tens|dozens|hundreds|thousands|millions|billions|trillions)\s+of\b"
    r"|(?:single|double|triple)[\s-]digits?\b|(?:low|mid|high|early|late)[\s-]+(?:\w+ties|\d+0s|teens)\b"
    r"|the\s+\w+ties\b|\b\d+0s\b(?<!\d{3}0s)|twice|double[ds]?|doubling|tripled?|every\s+(?:second|third|fourth"
    r"|fifth|other)|none|nobody|no\s+one)\b",
    re.IGNORECASE,
)
"""Words for a magnitude that no bounds can be given to."""
NONE_OF = re.compile(r"\b(?:no|zero)(?P<what>(?:\s+\w+){1,3})", re.IGNORECASE)
NOT_LATIN = re.compile(r"[^\W\d_\u0000-\u024f]{2}")
BREAK = re.compile(
    r"[,;:()–—]|\s(?:and|but|while|whereas|although|though|compared|followed|of\s+wh(?:om|ich)"
    r"|with)\s",
    re.IGNORECASE,
)
NAME = re.compile(r"(?<![.!?:]\s)(?<!^)(?<![\"“(*])\b[A-Z][a-zà-ÿ]+\b|\b[A-Z]{2,}\b")
TOTAL = re.compile(r"\b(?:in\s+(?:all|total)|total(?:s|led|ling)?|altogether|overall|adds?\s+up)\b", re.IGNORECASE)
PART_OF = re.compile(
    r"\b(?:alone|of\s+(?:this|these|that|those|wh(?:om|ich)|it|them)|responsible\s+for|account(?:s|ed|ing)\s+for"
    r"|among\s+(?:them|these)|including|includes?|followed|led\s+by)\b",
    re.IGNORECASE,
)
NOT_SO = re.compile(
    r"\b(?:request(?:s|ed)?|propos(?:al|ed?|es)|forecast\w*|project(?:ed|ion)s?|target\w*|goals?|plan(?:s|ned)?"
    r"|aims?|hopes?|could|would|might|expect\w*"
    r"|previous\w*|earlier|formerly|once|monthly|quarterly|weekly|daily)\b",
    re.IGNORECASE,
)
EXTREME = re.compile(
    r"\b(?:peak\w*|high\s+of|low\s+of|intraday|maximum|minimum|record|lowest|highest|reached\s+a)\b", re.IGNORECASE
)
LATER = re.compile(
    r"\b(?:since\s+then|has\s+since|have\s+since|had\s+since|now|nowadays|today|currently|at\s+present|meanwhile"
    r"|later|recently|this\s+year|last\s+year|next\s+year|these\s+days|by\s+the\s+end\s+of\s+(?:my|the|his|her))\b",
    re.IGNORECASE,
)
OWN_THING = re.compile(r"\b(?:our|my|your|we|us)\b", re.IGNORECASE)
ASIDE = re.compile(
    r"\s*\([^()]*\)(?=\s+(?:per|an?|each|every|annually|yearly)\b)|(?<=[^\W\d_])\)(?=\s+(?:per|an?|each|every"
    r"|annually|yearly)\b)"
)
"""Brackets between a unit and what it is counted for."""
RESTATED = re.compile(r"\s*[^\W\d_]*\s*[^\W\d_]*²?\s*\((?:or\s+|i\.e\.,?\s+|equivalent\s+to\s+)?", re.IGNORECASE)
FRACTION = re.compile(r"[½⅓⅔¼¾⅕⅖⅗⅘]|\d\s?[/⁄]\s?\d|\b(?:half|halve|third|quarter|fifth|tenth)s?\b", re.IGNORECASE)
HAS_SCALE = re.compile(
    r"(?:hundred|thousand|million|billion|trillion|dozen)s?\b|\d\s?(?:k|K|M|B|bn|mn|mln|tn)\b|10\^|×", re.IGNORECASE
)
JOINS = re.compile(r"\s*(?:(?:to|and|through|until)(?:\s+(?:the|in))?(?:\s+\w+)?|[-–−])\s*")
DOES_NOT_SAY = re.compile(
    r"\b(?:(?:do|does|did|would|could|can|am|is)(?:\s+not|n['’]t)\s+(?:\w+\s+){0,2}?(?:have|know|say|give"
    r"|provide|share|discuss|comment|disclose|confirm|access|able"
    r"|available|step|answer)|cannot|can['’]?t|unable|not\s+able|rather\s+not|prefer\s+not|refer\s+you"
    r"|no\s+(?:figure|data|precise|exact|information|access)"
    r"|not\s+available|unavailable|sorry|afraid|look\s+(?:it|this)\s+up|please\s+(?:ask|consult|check|see"
    r"|contact))\b",
    re.IGNORECASE,
)
"""Words of a reply that openly gives no figure."""
AGREES = re.compile(
    r"\b(?:yes|correct|right|indeed|confirm\w*|exactly|accurate|true|agree\w*|absolutely|precisely|quite\s+so"
    r"|as\s+you\s+(?:say|said|write|wrote)"
    r"|that\s+(?:figure|number)|the\s+same)\b",
    re.IGNORECASE,
)
SPEAK_AGAINST = ((PART_OF, 0.3), (NOT_SO, 0.3), (EXTREME, 0.3), (LATER, 0.3), (OWN_THING, 0.2))
"""Words in the clause of a figure that make it less likely, and by how much."""
