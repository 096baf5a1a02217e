from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unmask.errors import FatalModelError, ModelError, RequestRefusedError, TransientModelError
from unmask.models.failures import ProviderProblem, exception_for, find_most_tokens, parse_problem, retry_after
from unmask.models.keys import Key, Target
from unmask.models.parameters import Adjustments, refusable_parameters, refused_parameter
from unmask.records import Message

KEY = Key("k-very-secret", "OPENAI_API_KEY")
TARGET = Target.build(
    "openai/gpt-x",
    url="https://api.example.org/v1",
    path="/chat/completions",
    key=KEY,
    variables=("UNMASK_API_KEY", "OPENAI_API_KEY"),
)


def raised(status: int, body: object = None, headers: dict[str, str] | None = None) -> ModelError:
    data = body if isinstance(body, bytes) else json.dumps(body if body is not None else {}).encode()
    return exception_for(parse_problem(status, data, headers or {}), TARGET)


def openai_error(message: str, **more: str) -> dict[str, object]:
    return {"error": {"message": message, **more}}


NO_DATABASE = openai_error("No connected db.", type="no_db_connection", code="400")
"""What the proxy of LiteLLM says of a wrong key where it has no database to look it up in."""


SPENT = "no credit or budget left"


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (401, openai_error("bad key"), "OPENAI_API_KEY"),
        (403, openai_error("You do not have access"), "OPENAI_API_KEY"),
        (407, openai_error("bad key"), "OPENAI_API_KEY"),
        (400, NO_DATABASE, "OPENAI_API_KEY"),
        *(
            (status, body, "serves 'gpt-x' and that https://api.example.org/v1/chat/completions is its path")
            for status, body in [
                (404, openai_error("no such route")),
                (404, {"detail": "Not Found"}),
                (405, {}),
                (400, openai_error("The model `gpt-x` does not exist", code="model_not_found")),
                (400, openai_error("gpt-x is not a valid model ID")),
                (400, openai_error("Model Not Exist")),
                (400, {"object": "error", "message": "model 'gpt-x' not found, try pulling it first", "code": 400}),
            ]
        ),
        (402, openai_error("Insufficient credits"), SPENT),
        (429, openai_error("You exceeded your current quota", code="insufficient_quota"), SPENT),
        (400, {"type": "error", "error": {"type": "x", "message": "Your credit balance is too low to access"}}, SPENT),
        (422, openai_error("Budget has been exceeded! Max budget: 1.0", type="budget_exceeded"), SPENT),
        (400, openai_error("ExceededBudget: User=default over budget. Spend=1.2, Budget=1.0"), SPENT),
        (429, openai_error("No deployments available - crossed budget: Exceeded budget for openai"), SPENT),
        (301, b"", "redirects"),
    ],
)
def test_what_no_other_request_can_mend_is_fatal(status, body, said):
    """A wrong key, model or path, an empty account, a redirect, after which a POST would lose its body: the run stops,
    and the message or the advice says what to look at."""
    error = raised(status, body)
    assert isinstance(error, FatalModelError)
    assert "openai/gpt-x" in str(error)
    assert said in f"{error} {error.advice}"


@pytest.mark.parametrize("status", [401, 403])
@pytest.mark.parametrize(
    "words",
    [
        "Your account has been flagged for violating our usage policies; access suspended",
        "Your account has been flagged for potential abuse",
        "Your access was terminated due to violation of our policies, please check your email",
        "access_terminated: usage policies",
        "account_deactivated",
        "Account example-1 was deactivated after a moderation review",
        "This organization has been disabled.",
        "Your organisation is suspended: usage guidelines",
        "The API key was revoked: flagged by an automatic scan",
        "Your IP address 192.0.2.7 has been blocked by our safety system",
    ],
)
def test_an_account_that_is_locked_is_fatal_and_no_filter(status, words):
    """Although it is often said in the words of a filter. The provider's words are shown."""
    error = raised(status, openai_error(words))
    assert isinstance(error, FatalModelError)
    assert words in str(error)
    assert "is locked" in (error.advice or "")


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (403, openai_error("Your chosen model requires moderation and your input was flagged")),
        (403, openai_error("The prompt was blocked: content_filter")),
        (403, openai_error("Access to this answer was blocked by the content policy")),
        (400, openai_error("Your account text was flagged: it says that an account was suspended")),
        (400, openai_error("The response was filtered", code="content_filter")),
        (400, openai_error("Your prompt was flagged as violating our usage policy.", code="invalid_prompt")),
        (400, openai_error("Content Exists Risk")),
    ],
)
def test_a_prompt_that_was_blocked_is_no_locked_account_and_no_wrong_key(status, body):
    """The next prompt may pass."""
    error = raised(status, body)
    assert isinstance(error, RequestRefusedError)
    assert error.may_be_all


def test_a_quota_that_refills_is_not_fatal():
    """Google says quota for a rate limit, and when to come back."""
    error = raised(429, openai_error("You exceeded your current quota. Please retry in 36.5s.", status="EXHAUSTED"))
    assert isinstance(error, TransientModelError)
    assert error.retry_after == 36.5


@pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 502, 503, 504, 520, 529])
def test_passing_trouble_is_transient(status):
    """Worth another try; overload asks for fewer requests at a time."""
    error = raised(status, openai_error("later"))
    assert isinstance(error, TransientModelError)
    assert error.throttled == (status in (429, 503, 529))
    assert not error.unreachable


@given(st.integers(300, 599), st.binary(max_size=400))
def test_any_answer_becomes_a_model_error(status, body):
    """Whatever a server sends, it is classified, on one line, without the key."""
    error = raised(status, body + b" k-very-secret")
    assert isinstance(error, ModelError)
    assert "k-very-secret" not in f"{error} {error.advice}"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=10),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["error", "detail", "message", "code", "param", "loc", "msg"]), inner, max_size=4
        )
    ),
    max_leaves=12,
)


@given(JSON)
def test_error_objects_of_any_shape_are_described(found):
    """No combination of the names providers use breaks the reading of an error."""
    assert isinstance(raised(400, found), ModelError)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (openai_error("one"), "one"),
        ({"error": "two"}, "two"),
        ({"message": "three"}, "three"),
        ({"detail": "four"}, "four"),
        ({"detail": [{"loc": ["body", "seed"], "msg": "five"}]}, "body.seed: five"),
        ([{"error": {"code": 400, "message": "six", "status": "INVALID"}}], "six"),
        ({"type": "error", "error": {"type": "overloaded_error", "message": "seven"}}, "seven"),
        ({"error": {"message": "Provider returned error", "metadata": {"raw": "eight"}}}, "eight"),
        (b"plain nine", "plain nine"),
        (b"<!DOCTYPE html><html><body>ten</body></html>", "an HTML page"),
    ],
)
def test_the_message_is_found_in_every_providers_shape(body, said):
    """Each of the shapes in use gives up its text."""
    assert said in str(raised(500, body))


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "nan"}, None),
        ({}, None),
    ],
)
def test_retry_after_in_numbers(headers, seconds):
    """Milliseconds win, nonsense is nothing."""
    assert retry_after(headers) == seconds


def test_retry_after_as_a_date_is_counted_by_the_servers_clock():
    """Twelve seconds after the server's own Date, however wrong our clock is."""
    start = datetime(2001, 1, 1, tzinfo=UTC)
    headers = {
        "retry-after": format_datetime(start + timedelta(seconds=12), usegmt=True),
        "date": format_datetime(start, usegmt=True),
    }
    assert retry_after(headers) == 12.0


@pytest.mark.parametrize(
    ("message", "seconds"),
    [
        ("Please try again in 20ms.", 0.02),
        ("Please try again in 1.5s.", 1.5),
        ("try again in 6m3s", 363.0),
        ("retry after 5 s", 5.0),
        ("try again later", None),
    ],
)
def test_a_wait_written_into_the_message_is_understood(message, seconds):
    """Some providers put it there and nowhere else."""
    assert parse_problem(429, json.dumps(openai_error(message)).encode(), {}).retry_after == seconds


SENT = frozenset({"temperature", "top_p", "seed", "n", "max_tokens", "response_format", "system"})


@pytest.mark.parametrize(
    ("problem", "name"),
    [
        (ProviderProblem(400, "Unsupported parameter: 'max_tokens' is not supported with this model. Use "
                      "'max_completion_tokens' instead.", "unsupported_parameter", "max_tokens"), "max_tokens"),
        (ProviderProblem(400, "Unsupported value: 'temperature' does not support 0 with this model. Only the"
                              " default (1) "
                      "value is supported.", "unsupported_value", "temperature"), "temperature"),
        (ProviderProblem(400, "`temperature` and `top_p` cannot both be specified for this model."), "top_p"),
        (ProviderProblem(400, "`temperature` is deprecated for this model."), "temperature"),
        (ProviderProblem(422, "body.seed: Extra inputs are not permitted"), "seed"),
        (ProviderProblem(400, "Unrecognized request argument supplied: seed"), "seed"),
        (ProviderProblem(400, "'n' : number must be at most 1", "", ""), "n"),
        (ProviderProblem(400, "Parameter 'n' is not supported"), "n"),
        (ProviderProblem(400, "This response_format type is unavailable now"), "response_format"),
        (ProviderProblem(400, "Invalid schema for json_schema 'answer'"), "response_format"),
        (ProviderProblem(400, "System role not supported"), "system"),
        (ProviderProblem(400, "Unsupported value: 'messages[0].role' does not support 'system' with this model.", "x",
                 "messages[0].role"), "system"),
        (ProviderProblem(400, "Developer instruction is not enabled for models/gemma"), "system"),
        (ProviderProblem(400, "'max_tokens' is too large: 1000. This model's maximum context length is 512"
                              " tokens"), None),
        (ProviderProblem(400, "messages must not be empty"), None),
        (ProviderProblem(500, "temperature is not supported"), None),
        (ProviderProblem(400, "The model does not support images"), None),
    ],
)  # fmt: skip
def test_refused_parameters_are_told_from_other_refusals(problem, name):
    """The providers' own sentences, each with the parameter it is about."""
    assert refused_parameter(problem, SENT) == name


@given(st.lists(st.sampled_from(sorted(SENT | {"max_completion_tokens"})), max_size=12))
def test_learning_ends(refusals):
    """A server that refuses whatever it is sent runs out of parameters to refuse."""
    adjustments = Adjustments()
    wanted = {
        "model": "x",
        "messages": (Message("system", "s"), Message("user", "u")),
        **dict.fromkeys(("temperature", "top_p", "seed", "n", "max_tokens", "response_format"), 1),
    }
    for name in refusals:
        payload, _ = adjustments.apply(wanted)
        if name in refusable_parameters(payload):
            adjustments.learn(name)
            assert name not in refusable_parameters(adjustments.apply(wanted)[0])


def test_half_an_emoji_in_an_error_becomes_a_sign_that_can_be_written():
    """A server that repeats a cut prompt; the escape is JSON, the half character it stands for is no text."""
    error = raised(400, b'{"error": {"message": "bad prompt: well \\ud83d", "code": "bad \\ude00"}}')
    assert str(error).endswith("bad prompt: well \ufffd")


@pytest.mark.parametrize(
    ("message", "most"),
    [
        ("max_tokens is too large: 16000. This model supports at most 4096 completion tokens, whereas you provided "
         "16000.", 4096),
        ("max_tokens: 16000 > 8192, which is the maximum allowed number of output tokens for "
         "claude-3-5-sonnet-20241022", 8192),
        ("`max_tokens` must be less than or equal to `8,192`, the maximum value for `max_tokens`", 8192),
        ("Invalid max_tokens value, the valid range of max_tokens is [1, 8192]", 8192),
        ("This model's maximum context length is 8192 tokens. However, you requested 16500 tokens (500 in the "
         "messages, 16000 in the completion). Please reduce the length of the messages or completion.", 7692),
        ("'max_tokens' or 'max_completion_tokens' is too large: 16000. This model's maximum context length is 8192 "
         "tokens and your request has 500 input tokens (16000 > 8192 - 500).", 7692),
        ("input length and `max_tokens` exceed context limit: 190000 + 16000 > 200000, decrease input length", 10_000),
        ("max_tokens is too large", 8000),
        ("prompt is too long: 208310 tokens > 200000 maximum", None),
        ("This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.", None),
        ("the request exceeds the available context size, try increasing it", None),
        ("Unsupported value: 'temperature' does not support 0.5 with this model", None),
    ],
)  # fmt: skip
def test_the_limit_of_a_reply_that_a_refusal_names_is_found(message: str, most: int | None):
    """In the words of the providers. What is too long by its prompt alone names none."""
    assert find_most_tokens(ProviderProblem(400, message), 16_000) == most
    assert find_most_tokens(ProviderProblem(500, message), 16_000) is None


def test_a_refused_request_without_key_says_which_variable_to_set():
    """Where no key was sent there is none to check."""
    bare = Target.build("openai/x", url="http://h/v1", path="/p", key=None, variables=("UNMASK_API_KEY", "O_KEY"))
    error = exception_for(ProviderProblem(401), bare)
    assert "O_KEY" in (error.advice or "")
