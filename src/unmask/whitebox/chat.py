"""Between conversations and tokens: the chat template, where an answer ends, and the tokens an option begins with."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from unmask.errors import FatalModelError, RequestRefusedError
from unmask.records import Message, Role

_MARK = "unmask-marker-7f3a"
_OPENED = re.compile(r"<(think|thinking|reasoning)>\s*\Z")


class Chat:
    """A tokenizer with its chat template, and what was found out about the two. `context` is the longest sequence, in
    tokens, that the model was made for."""

    def __init__(self, tokenizer: Any, *, name: str, context: int = 4096) -> None:
        self.tokenizer, self.name, self.context = tokenizer, name, context
        self.folds = not self._carries_system_prompt(folded=False)
        """Whether the system prompt has to go into the user's turn, because the template has no place for it."""
        if self.folds and not self._carries_system_prompt(folded=True):
            raise FatalModelError(
                f"the chat template of {name} leaves out what it is given", advice="Use a model with a working template"
            )
        self._options: dict[tuple[str, ...], tuple[tuple[int, ...], ...]] = {}
        self._vocabulary: list[str] = []

    def render_prompt(
        self, messages: Sequence[Message], *, thinks: bool = True, settings: Mapping[str, Any] | None = None
    ) -> str:
        """The conversation as the model was trained to see it, up to where its answer begins. `settings` are variables
        of its template."""
        try:
            return self._render(messages, folded=self.folds, thinks=thinks, settings=settings)
        except Exception as error:  # templates are programs: jinja has its own errors, and they may raise any
            raise RequestRefusedError(
                f"{self.name}: the chat template refuses this conversation: {str(error) or type(error).__name__}"
            ) from None

    def encode(self, prompt: str) -> list[int]:
        ids: list[int] = self.tokenizer(prompt, add_special_tokens=False)["input_ids"]
        return ids

    def decode(self, tokens: Sequence[int], *, prompt: str) -> str:
        """An answer as text. A thought that the template itself opens belongs to the answer."""
        opened = _OPENED.search(prompt)
        written = self.tokenizer.decode(tokens, skip_special_tokens=True, clean_up_tokenization_spaces=False)
        return f"{opened.group().rstrip()}\n{written}" if opened else str(written)

    def stop_tokens(self, config: Any) -> set[int]:
        """Tokens that end an answer: as the model and the tokenizer say, and what the template puts after one."""
        tokens: set[int] = set()
        for source in (config, self.tokenizer):
            ids = getattr(source, "eos_token_id", None)
            tokens |= set(ids if isinstance(ids, list | tuple) else [] if ids is None else [ids])
        after = self.end_token()
        special = set(self.tokenizer.all_special_ids) | set(getattr(self.tokenizer, "added_tokens_decoder", {}))
        if after is not None and after in special:
            tokens.add(after)
        return tokens

    def end_token(self) -> int | None:
        """The token that the template puts after an answer, if it puts any."""
        turn = self._render([Message(Role.USER, "Hi"), Message(Role.ASSISTANT, _MARK)], folded=False, generate=False)
        after = self.encode(turn.rpartition(_MARK)[2])
        return after[0] if after else None

    def option_tokens(self, words: tuple[str, ...]) -> tuple[tuple[int, ...], ...]:
        """For each option the tokens that begin it, in any usual spelling, and begin no other."""
        if words in self._options:
            return self._options[words]
        if not self._vocabulary:
            every = [[token] for token in range(len(self.tokenizer))]
            self._vocabulary = self.tokenizer.batch_decode(every, clean_up_tokenization_spaces=False)
        spellings = [list_spellings(word, words) for word in words]
        heads = [{spelling[:end] for spelling in row for end in range(1, len(spelling) + 1)} for row in spellings]
        tokens_by_word: list[list[int]] = [[] for _ in words]
        for token, text in enumerate(self._vocabulary):
            head = text.lstrip()
            owners = [place for place, row in enumerate(heads) if head in row]
            if len(owners) == 1:
                tokens_by_word[owners[0]].append(token)
        self._options[words] = tuple(map(tuple, tokens_by_word))
        return self._options[words]

    def _carries_system_prompt(self, *, folded: bool) -> bool:
        """Whether a system prompt and a question both come out of the template."""
        asked = [Message(Role.SYSTEM, _MARK + "-system"), Message(Role.USER, _MARK + "-user")]
        try:
            shown = self._render(asked, folded=folded)
        except Exception:  # see `prompt`
            return False
        return all(message.content in shown for message in asked)

    def _render(
        self,
        messages: Sequence[Message],
        *,
        folded: bool,
        generate: bool = True,
        thinks: bool = True,
        settings: Mapping[str, Any] | None = None,
    ) -> str:
        turns = list(messages)
        if folded:  # system prompts move to the front of the first user turn
            system = [message.content for message in messages if message.role == "system"]
            turns = [message for message in messages if message.role != "system"]
            first = next((place for place, turn in enumerate(turns) if turn.role == "user"), None)
            if system and first is not None:
                turns[first] = Message(Role.USER, "\n\n".join([*system, turns[first].content]))
        shown: str = self.tokenizer.apply_chat_template(
            [{"role": turn.role, "content": turn.content} for turn in turns],
            tokenize=False,
            add_generation_prompt=generate,
            **({} if thinks else {"enable_thinking": False}) | dict(settings or {}),
        )
        return shown


def list_spellings(word: str, words: tuple[str, ...]) -> tuple[str, ...]:
    """As given, `Capital` and `UPPER`: models prefer `Yes` to `yes`. Only as given where case is all that tells two
    options apart."""
    if len({candidate.casefold() for candidate in words}) < len(words):
        return (word,)
    return tuple(dict.fromkeys((word, word.capitalize(), word.upper())))
