"""Tokens out of a ``usage`` object, by kinds that do not overlap."""

from __future__ import annotations

from teamalloc.data.formats.values import Json, inner
from teamalloc.data.run import Tokens


def read_openai_usage(usage: Json) -> Tokens:
    """Tokens of one response from an OpenAI-like ``usage`` object (chat or responses API).

    The prompt includes what was read from and written to a cache, unless the total proves that
    they stand beside it.

    Raises:
        ValueError: a number is missing or wrong, or a part is larger than its whole.
    """
    chat = "prompt_tokens" in usage
    prompt = _count(usage, "prompt_tokens" if chat else "input_tokens")
    output = _count(usage, "completion_tokens" if chat else "output_tokens")
    if prompt is None or output is None:
        raise ValueError("it has no number of input or output tokens")
    details = inner(usage, "prompt_tokens_details" if chat else "input_tokens_details")
    output_details = inner(usage, "completion_tokens_details" if chat else "output_tokens_details")
    read = _first(_count(details, "cached_tokens"), _count(usage, "cache_read_input_tokens"))
    written = _first(
        _count(details, "cache_creation_tokens"),
        _count(details, "cache_write_tokens"),
        _count(usage, "cache_creation_input_tokens"),
    )
    written_1h = _first(
        _count(inner(details, "cache_creation_token_details"), "ephemeral_1h_input_tokens")
    )
    reasoning = _first(_count(output_details, "reasoning_tokens"))
    total = _count(usage, "total_tokens")
    if total is not None and reasoning and total == prompt + output + reasoning:
        output += reasoning
    cached = read + written
    beside = total == prompt + cached + output if total is not None else cached > prompt
    fresh = prompt if cached and beside else prompt - cached
    if fresh < 0 or written_1h > written:
        raise ValueError(f"{cached} cached tokens are more than the {prompt} of the prompt")
    return Tokens(fresh, read, written - written_1h, written_1h, output)


def _count(value: Json, key: str) -> int | None:
    """A number of tokens; None if it is not given."""
    number = value.get(key)
    if number is None:
        return None
    if isinstance(number, float) and number.is_integer():
        number = int(number)
    if isinstance(number, bool) or not isinstance(number, int) or number < 0:
        raise ValueError(f"{key} is {number!r}")
    return number


def _first(*counts: int | None) -> int:
    """The first count that is given; 0 if a provider lists none: it had nothing to count."""
    return next((count for count in counts if count is not None), 0)
