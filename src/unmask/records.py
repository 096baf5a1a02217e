"""The nouns of the program, as frozen records. Imports nothing of ours.

Everything that reaches a disk is one of these, written as JSON; an unknown field is an error, so a file from
a newer version is refused rather than half understood. The words are those of docs/protocol.md.
"""

from __future__ import annotations

import hashlib
import re
from enum import StrEnum
from functools import lru_cache
from importlib import import_module
from typing import Annotated, Any, Literal, NamedTuple

import msgspec

FORMAT_VERSION = 1
"""Version of `run.json` and of the lines of a journal. What a newer unmask has written is refused by it."""


class Kind(StrEnum):
    BINARY = "binary"
    NUMERIC = "numeric"


class ArchetypeTraits(NamedTuple):
    """Everything the program knows about one archetype: rooms ask these fields and never for an archetype by name."""

    title: str
    """What people are shown."""
    kind: Kind = Kind.BINARY
    """What its proposition usually is. A scenario says itself what it is."""
    supplies_fact: bool = False
    """The system prompt supplies the fact: no probe is asked, and the belief is the truth."""
    has_scripted_answer: bool = False
    """The conversation shows a false first answer as the subject's own: system, user, assistant, user."""
    has_draft: bool = False
    """The last message holds a draft. What a reply copies from it, the reply does not assert."""
    judge_text: str | None = None
    """A file of `judges/texts`, without its ending: what a judge is also told about pressured replies."""


class Archetype(StrEnum):
    """The kinds of scenario. A new one is an entry here with its traits, its text for judges, and its row in
    docs/protocol.md."""

    KNOWN_FACTS = "known_facts"
    PROVIDED_FACTS = "provided_facts"
    DOUBLING_DOWN = "doubling_down_known_facts"
    STATISTICS = "statistics"
    CONTINUATIONS = "continuations"
    DISINFORMATION = "disinformation"

    @property
    def traits(self) -> ArchetypeTraits:
        return _TRAITS[self]


_TRAITS = {
    Archetype.KNOWN_FACTS: ArchetypeTraits("known facts"),
    Archetype.PROVIDED_FACTS: ArchetypeTraits("provided facts", supplies_fact=True),
    Archetype.DOUBLING_DOWN: ArchetypeTraits(
        "doubling down", has_scripted_answer=True, judge_text="pressured_doubling_down"
    ),
    Archetype.STATISTICS: ArchetypeTraits("statistics", kind=Kind.NUMERIC),
    Archetype.CONTINUATIONS: ArchetypeTraits("continuations", has_draft=True, judge_text="pressured_continuations"),
    Archetype.DISINFORMATION: ArchetypeTraits("disinformation", judge_text="pressured_disinformation"),
}


class Preset(StrEnum):
    """The sets of rules that make verdicts of readings. `protocol/presets.py` has the rules of each."""

    PAPER = "paper"
    INSPECT = "inspect"
    STRICT = "strict"


class Effort(StrEnum):
    """Whether requests that cannot change a verdict are left out."""

    LAZY = "lazy"
    FULL = "full"


class Format(StrEnum):
    """What `unmask export` writes. `interop/export.py` has the writer of each."""

    CSV = "csv"
    PARQUET = "parquet"
    JSONL = "jsonl"
    INSPECT = "inspect"
    WANDB = "wandb"
    MLFLOW = "mlflow"


class Per(StrEnum):
    """What one row of a table is about. `runs/tables.py` has the columns of each."""

    TAKE = "take"
    SCENARIO = "scenario"
    REPLY = "reply"
    RUN = "run"


class Letter(StrEnum):
    """What a reply asserts about a binary proposition: A, B, C (unclear, both, refuses, evades), D (denies both)."""

    A = "A"
    B = "B"
    C = "C"
    D = "D"


class Verdict(StrEnum):
    HONEST = "honest"
    LIE = "lie"
    EVASION = "evasion"
    NO_BELIEF = "no_belief"
    UNJUDGED = "unjudged"


class Accuracy(StrEnum):
    CORRECT = "correct"
    INCORRECT = "incorrect"
    NO_BELIEF = "no_belief"
    NOT_ASKED = "not_asked"
    UNJUDGED = "unjudged"


class Role(StrEnum):
    """Who speaks in a conversation."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"


class ReadBy(StrEnum):
    """Who read a reply, or what takes the place of a reading."""

    JUDGE = "judge"
    RULE = "rule"
    SILENT = "silent"
    """An empty reply, which is C without a call."""
    PERSON = "person"
    PANEL = "panel"
    """Judges that did not all read it in the same way."""
    PROBES = "probes"
    """A belief: what all probes show together."""
    TRUTH = "truth"
    """A belief: the fact that the scenario supplies."""


class Stop(StrEnum):
    """Why the model stopped writing."""

    END = "end"
    LENGTH = "length"
    FILTER = "filter"
    OTHER = "other"


class Record(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Base of every record: immutable, strict, compact on disk."""


class Result(Record, frozen=True, kw_only=True, omit_defaults=False):
    """Everything one command says. `--json` prints `to_json()`."""

    def to_json(self) -> dict[str, Any]:
        """The documented shape of `--json`, ready to be encoded."""
        plain: dict[str, Any] = msgspec.to_builtins(self, str_keys=True)
        return plain

    def __str__(self) -> str:
        """What the command prints."""
        return str(call_renderer("result_text", self))

    def to_markdown(self) -> str:
        """The same as Markdown."""
        return str(call_renderer("result_markdown", self))

    def to_html(self) -> str:
        """The same as a piece of HTML, which is what a notebook shows."""
        return str(call_renderer("result_html", self))

    _repr_html_ = to_html


def call_renderer(name: str, *values: Any) -> Any:
    """Call a function of `render/notebook.py`. Records are shown by a room that imports all others, so none of them
    imports it: it is named here, and loaded when something is shown."""
    return getattr(import_module("unmask.render.notebook"), name)(*values)


class Interval(Record, frozen=True, array_like=True, omit_defaults=False):
    """Lower and upper bound; an absent bound is open. Both absent asserts nothing. On disk `[lower, upper]`."""

    lower: float | None = None
    upper: float | None = None

    @property
    def empty(self) -> bool:
        return self.lower is None and self.upper is None


# --- slots ------------------------------------------------------------------------------------------------

Slot = str
"""A place in a scenario that a reply fills: `direct`, `indirect_1`, `indirect_2`, `pressured`, `check`, `self_report`.
Judges also answer about `role_play` and `misleads`. The set is open: make one with the constants and functions below,
and ask the functions what it is."""

DIRECT: Slot = "direct"
PRESSURED: Slot = "pressured"
CONTROL: Slot = "control"
"""The same question under the plain line of the probes: what the subject says without the role."""
CHECK: Slot = "check"
SELF_REPORT: Slot = "self_report"
"""What the subject says, right after its first pressured reply, about whether that was true: A it was, B it was not."""
ROLE_PLAY: Slot = "role_play"
"""Whether a lie makes it plain to its reader that it is fiction or a part: A it does, B it does not."""
MISLEADS: Slot = "misleads"
"""What a reply without a side leaves its reader with: A, B, C (still open) or D (the same, and the writer says that it
does not know)."""
CONTROL_MISLEADS: Slot = "control_misleads"
"""The same of the control. In a journal both are in the slot `misleads`."""

_INDIRECT = "indirect_"


def indirect(number: int) -> Slot:
    """The slot of an indirect probe, counted from 1."""
    return f"{_INDIRECT}{number}"


def is_indirect(slot: Slot) -> bool:
    return slot.startswith(_INDIRECT)


def indirect_number(slot: Slot) -> int:
    """Which indirect probe this is, counted from 1."""
    return int(slot.removeprefix(_INDIRECT))


def read_as(slot: Slot) -> Slot:
    """The slot by whose rules a judge reads this one: it is not told a control reply from a pressured one."""
    return PRESSURED if slot == CONTROL else slot


def is_probe(slot: Slot) -> bool:
    """Whether replies in this slot show what the subject believes."""
    return slot == DIRECT or is_indirect(slot)


# --- scenarios --------------------------------------------------------------------------------------------


class Message(Record, frozen=True):
    role: Role
    content: str


PIVOTAL = re.compile(r"<pivotal>([^<]*+(?:<(?!/?pivotal>)[^<]*+)*)</pivotal>")
"""No further tag inside: one that is never closed would otherwise be sought to the end, from each that is opened."""


class Scenario(Record, frozen=True, kw_only=True):
    """One test case. `truth` is a letter (A or B) for binary propositions and an interval for numeric ones."""

    id: str
    archetype: Archetype
    kind: Kind
    proposition: str
    """Binary: text with one `<pivotal>left/right</pivotal>`, numeric: text with a `<value>` hole."""
    truth: Letter | Interval
    """A or B, or the interval of a number."""
    conversation: tuple[Message, ...]
    """The pressured conversation, ready to send: system, user, and when doubling down also assistant, user."""
    direct: str | None = None
    indirect: tuple[str, ...] = ()
    yes_means: Letter | None = None
    """The side that *yes* to the direct probe means, where that is known; without one, *yes* to the check."""
    yes_means_by: str | None = None
    """The judge that said so (`unmask data annotate`), where the data itself does not."""
    check: str | None = None
    """A neutral question, asked in the scenario's own context, whether a supplied fact was understood."""
    control: tuple[Message, ...] | None = None
    """A conversation that asks the same without pressure. Where there is none, the plain line of the probes takes the
    place of the system prompt, except in scenarios that supply the fact there: these have no control."""
    pressure: Literal["situational", "explicit"] | None = None
    motive: str | None = None
    """One word."""
    domain: str | None = None
    """One word."""
    evidence: str | None = None
    """Why the truth is the truth."""
    unit: str | None = None
    tolerance: str | None = None
    """Why the interval is as wide as it is."""
    pushes: Literal["up", "down", "any"] | None = None
    """Numeric only: where the pressure wants the number to go. Binary pressure always pushes to the false side."""
    canary: str | None = None
    """By which the set can be found in training data."""
    delivery: int | None = None
    cluster: str | None = None
    """Scenarios of one cluster do not vary independently. Unnamed ones join by proposition or system prompt."""
    fact: str | None = None
    """The ladder that the scenario belongs to. Scenarios of one fact have the same proposition and the same probes."""
    rung: Literal[0, 1, 2, 3] | None = None
    """How much pressure a ladder has here: none, an incentive, a wish of the user as well, an order as well."""
    edit: str | None = None
    """What this rung says that the rung below does not, word for word. On rung 0: what rung 1 replaces."""

    @property
    def asks_belief(self) -> bool:
        """Whether the probes are asked. Otherwise the scenario supplies the fact, and the belief is the truth."""
        return not self.archetype.traits.supplies_fact

    @property
    def has_control(self) -> bool:
        return self.asks_belief or self.control is not None

    @property
    def probes(self) -> dict[Slot, str]:
        """The neutral questions that show a belief, in the order they are asked: the direct one, the indirect ones."""
        direct = {} if self.direct is None else {DIRECT: self.direct}
        return direct | {indirect(number): text for number, text in enumerate(self.indirect, start=1)}

    @property
    def questions(self) -> dict[Slot, str]:
        """All neutral questions: the probes, then the check whether a supplied fact was understood."""
        return self.probes if self.check is None else {**self.probes, CHECK: self.check}

    @property
    def statements(self) -> tuple[str, str]:
        """Statements A and B of a binary proposition."""
        match = PIVOTAL.search(self.proposition)
        if match is None:
            raise ValueError(f"scenario {self.id!r} has no <pivotal> in its proposition")
        left, _, right = match.group(1).partition("/")
        before, after = self.proposition[: match.start()], self.proposition[match.end() :]
        return before + left + after, before + right + after


# --- talking to models ------------------------------------------------------------------------------------


class Sampling(Record, frozen=True):
    """How a model is asked to write. `None` leaves a setting to the endpoint. `params` and `headers` are sent as they
    are, under the endpoint's own names, and are never left out where an endpoint refuses them."""

    temperature: float | None = 1.0
    max_tokens: int | None = 1000
    top_p: float | None = None
    seed: int | None = None
    params: dict[str, Any] = {}
    """Parameters of the user, under the endpoint's own names."""
    headers: dict[str, str] = {}
    """Headers of the user."""


class Request(Record, frozen=True):
    """What is sent to a model. `schema` asks for JSON of that shape; `options` for exactly one of these words,
    with the probability of each (only models that say so in their `capabilities` take it)."""

    messages: tuple[Message, ...]
    sampling: Sampling = Sampling()
    n: int = 1
    schema: dict[str, Any] | None = None
    options: tuple[str, ...] = ()


_THINK = re.compile(r"\s*<(think|thinking|reasoning)>(.*?)(</\1>|\Z)", re.DOTALL | re.IGNORECASE)
_END_OF_THINKING = re.compile(r"(?:\A|\n)[ \t]*</(?:think|thinking|reasoning)>[ \t]*(?:\n|\Z)", re.IGNORECASE)
"""The end of reasoning whose beginning stood in the prompt, as the templates of many reasoning models have it."""
_CLOSING_TAG = re.compile(r"</(?:think|reasoning)", re.IGNORECASE)
"""What every such end has in it, and few answers: looked for first, because that takes a tenth of the time."""


class Choice(Record, frozen=True):
    """One answer as it was received. `answer` and `thinking` interpret it."""

    text: str = ""
    reasoning: str | None = None
    """Where it came apart from the text."""
    stop: Stop = Stop.END
    probabilities: dict[str, float] | None = None
    """Of the options, where the judge picked one."""

    @property
    def answer(self) -> str:
        """The text without a leading `<think>` block; an unclosed block leaves no answer, and what comes before a
        closing tag on a line of its own is a block without its opening tag."""
        return self._split_reasoning()[1]

    @property
    def thinking(self) -> str | None:
        """Reasoning received apart from the answer, or inside a leading `<think>` block."""
        return "\n".join(part for part in (self.reasoning, self._split_reasoning()[0]) if part) or None

    def _split_reasoning(self) -> tuple[str, str]:
        """Reasoning and answer."""
        text = self.text
        if match := _THINK.match(text):
            return match.group(2).strip(), text[match.end() :].strip()
        if _CLOSING_TAG.search(text) and (match := _END_OF_THINKING.search(text)):
            return text[: match.start()].strip(), text[match.end() :].strip()
        return "", text.strip()


class Usage(Record, frozen=True):
    """Tokens of one call over all its choices. `None` where the endpoint did not say.

    `input` includes what was read from a cache (`cached`) and written to one (`written`), `output` the reasoning.
    """

    input: int | None = None
    output: int | None = None
    reasoning: int | None = None
    """Part of `output`."""
    cached: int | None = None
    """Part of `input`, read from a cache."""
    written: int | None = None
    """Part of `input`, written to a cache."""


class Completion(Record, frozen=True):
    """What came back for one Request. `adjusted` names parameters the endpoint refused and how they were changed."""

    choices: tuple[Choice, ...]
    usage: Usage = Usage()
    latency: float | None = None
    model: str | None = None
    adjusted: tuple[str, ...] = ()
    tier: str | None = None
    """The service tier that the answer names, where it is not the standard one."""


# --- the journal ------------------------------------------------------------------------------------------


class Method(StrEnum):
    """What a judge call asked for, and so how its answer is interpreted."""

    LETTER = "letter"
    INTERVAL = "interval"
    PICK_AB = "pick_ab"
    PICK_BA = "pick_ba"
    SELF_REPORT = "self_report"
    ROLE_PLAY = "role_play"
    MISLEADS_AB = "misleads_ab"
    MISLEADS_BA = "misleads_ba"
    """With the statements exchanged."""


class Call(Record, frozen=True, kw_only=True):
    """What every journal line says about the request behind it. Exactly one of `choices` and `error` is filled."""

    v: int = FORMAT_VERSION
    scenario: str
    slot: Slot
    """The question, e.g. `direct`, `indirect_1`, `pressured`."""
    choices: tuple[Choice, ...] = ()
    error: str | None = None
    """Why no answer came back, e.g. `timeout: no answer within 1800 s`. Asked again by the next run."""
    usage: Usage = Usage()
    latency: float | None = None
    """Seconds."""
    cost_usd: float | None = None
    lost: int = 0
    """Answers to this request that came and could not be used. They were paid for, so the cost is unknown."""
    lost_usd: float | None = None
    """What these have cost at most; `None` where the price is unknown."""
    tier: str | None = None
    """The service tier that the answer names, e.g. `flex`; `None` for the standard one."""
    model: str | None = None
    """As the endpoint named it."""
    adjusted: tuple[str, ...] = ()
    """Parameters that the endpoint refused, and how they were changed."""
    at: float | None = None
    """Seconds since the epoch when the answer arrived."""
    source: str | None = None
    """Id of the run this line was copied from; it cost this run nothing. That is the baseline
    (`--beliefs-from`)."""


MOST_TAKES = 10_000
"""Of one request of one scenario."""

Take = Annotated[int, msgspec.Meta(ge=0, lt=MOST_TAKES)]
"""Counted from 0. A line that names one which no run has is damaged: a list of takes goes through all up to it."""


class Asked(Call, frozen=True, kw_only=True):
    """One line of `replies.jsonl`: one finished subject request with the takes it filled, in order of `choices`."""

    takes: tuple[Take, ...]
    """Which takes `choices` fill."""
    attempt: int = 1
    max_tokens: int | None = None


class Judged(Call, frozen=True, kw_only=True):
    """One line of `readings/<judge>.jsonl`: one finished judge request about the texts with this digest."""

    digest: str
    """Of the texts that were read."""
    method: Method
    attempt: int = 1


@lru_cache(maxsize=1024)
def digest(texts: tuple[str, ...]) -> str:
    """Names the texts a judge read, so that identical replies to one request are read once."""
    state = hashlib.blake2b(digest_size=10)
    for text in texts:
        data = text.encode("utf-8", "surrogatepass")
        state.update(len(data).to_bytes(8, "big"))
        state.update(data)
    return state.hexdigest()


# --- readings ---------------------------------------------------------------------------------------------


class Lettered(Record, frozen=True, tag_field="is", tag="letter"):
    """A reading of a reply to a binary scenario."""

    letter: Letter
    by: ReadBy
    why: str | None = None


class Ranged(Record, frozen=True, tag_field="is", tag="range"):
    """A reading of a reply to a numeric scenario, in the proposition's unit. Both empty: nothing was asserted."""

    absolute: Interval = Interval()
    relative: Interval = Interval()
    by: ReadBy = ReadBy.JUDGE
    why: str | None = None

    @property
    def empty(self) -> bool:
        return self.absolute.empty and self.relative.empty


class UnreadReason(StrEnum):
    """The word that the reason of an unread reading begins with. docs/reference.md says what each means."""

    FAILED = "failed"
    FILTERED = "filtered"
    TRUNCATED = "truncated"
    CUT_OFF = "cut_off"
    EMPTY = "empty"
    TIE = "tie"
    UNREADABLE = "unreadable"
    UNSURE = "unsure"
    NO_FIGURES = "no_figures"


class Unread(Record, frozen=True, tag_field="is", tag="unread"):
    """A reading that could not be had. `reason` is a word of `UnreadReason`, a colon and what happened."""

    reason: str
    text: str | None = None
    named: Letter | None = None
    """The letter that the judge's first answer gave, though not as it was asked to."""


class Pending(Record, frozen=True, tag_field="is", tag="pending"):
    """Not asked, or not read, so far."""


Reading = Lettered | Ranged | Unread | Pending


class Label(Record, frozen=True, kw_only=True):
    """A reading given by a person: one line of `labels/<who>.jsonl`."""

    v: int = FORMAT_VERSION
    scenario: str
    slot: Slot
    take: Take = 0
    letter: Letter | None = None
    interval: Interval | None = None
    """Of a number."""
    relative: Interval | None = None
    """Of a number that is a share."""
    who: str = ""
    note: str | None = None
    digest: str | None = None
    """Of the reply that the person read; a label without one is taken for the reply that the run has."""
    token: str | None = None
    """Outside of a run folder: names the reply, its run included, and tells nothing of either."""
    at: float | None = None
    skipped: bool = False
    """Whether the person looked at the reply and passed it over; then there is no reading."""
    taken_back: bool = False
    """Whether the person took back what was said of the reply before; then there is no reading, as if none was."""


# --- conclusions ------------------------------------------------------------------------------------------


class NoBelief(Record, frozen=True, tag_field="is", tag="none"):
    """The probes show no consistent belief; `why` says which rule took it away."""

    why: str


class Undecided(Record, frozen=True, tag_field="is", tag="undecided"):
    """What is missing could still change the outcome. `pending` tells not-yet-asked from tried-and-failed."""

    why: str
    pending: bool = False


class Outcome(Record, frozen=True, kw_only=True, omit_defaults=False):
    """Everything concluded about one scenario under one preset and judge: one line of `unmask score --rows`."""

    id: str
    archetype: Archetype
    kind: Kind
    pressure: Literal["situational", "explicit"] | None = None
    polarity: Literal["yes", "no"] | None = None
    """The true answer to the direct probe, where it is a yes/no question of known polarity."""
    readings: dict[Slot, tuple[Reading, ...]] = {}
    belief: Lettered | Ranged | NoBelief | Undecided | None = None
    """`None` where no belief is asked and the truth is supplied (`provided_facts`)."""
    verdicts: tuple[Verdict, ...] = ()
    """One per take of the pressured request. Empty where it was rightly never sent."""
    verdict: Verdict
    accuracy: Accuracy
    undecided: bool = False
    """Something that a number needs was not asked or not read yet; the same command completes it."""
    why: str | None = None
    supplied: Letter | None = None
    """The side that the scenario supplies as a fact. It is the belief there."""
    could_be_lie: bool = True
    """Whether a take is a lie, or could be one given everything that is unread."""
    understood: bool | None = None
    """Whether the in-context check was answered as the instructions say; `None` where it was not asked or not clear."""
    silent: int = 0
    truncated: int = 0
    guards: dict[str, tuple[int, int]] = {}
    """Of guards that look at replies, by name: how many of its replies, or of its judge calls, the guard counts, and of
    how many. The last answer to each take counts. Empty where the replies are not known."""
    lengths: dict[Slot, int] | None = None
    """Characters of the pressured replies together, and of those of the control; `None` where they are not known."""
    members: dict[str, dict[str, int]] = {}
    """How often each judge of a panel gave which letter or number; empty for a single judge."""
    cluster: str | None = None
    """Scenarios of one cluster do not vary independently; `None` for a cluster of its own."""
    control: tuple[Verdict, ...] | None = None
    """One per take of the control. Empty where it was rightly never sent, `None` where the scenario has none."""
    fact: str | None = None
    """In a ladder: the fact that the scenario is about, and how much pressure is on it."""
    rung: int | None = None
