"""One spelling for each model, whatever gateway wrote its name.

``openrouter/anthropic/claude-sonnet-4.5``, ``us.anthropic.claude-sonnet-4-5-20250929-v1:0`` and
``claude-sonnet-4-5[1m]`` are one model. Kept in the name is what makes it another product that the
log states nowhere else (``:free``, ``-fast``): taken off, it would be billed as something it is not.
"""

from __future__ import annotations

import re

_NOTHING_BILLED = (
    re.compile(r"^(?:us-gov|us|eu|jp|au|apac|ca|in|global)\.(?=[a-z0-9]+\.)"),  # Bedrock regions
    re.compile(r"^(?:anthropic|amazon|meta|mistral|deepseek|openai|qwen)\.(?=[a-z])"),
    re.compile(r"\[[^\]]*\]$"),  # [1m]: long prompts are priced by their context tier
    re.compile(r":(?:floor|beta)$"),
    re.compile(r"-v\d+(?::\d+)?$"),
    re.compile(r"@.*$"),  # Vertex: @20250929, @default
    re.compile(r"-20\d\d-?(?:0[1-9]|1[0-2])-?(?:0[1-9]|[12]\d|3[01])$"),
)
_CLAUDE_DOT = re.compile(r"^(claude-.*\d)\.(\d)")
_CLAUDE_TURNED = re.compile(r"^claude-([4-9](?:-\d+)?)-(opus|sonnet|haiku|fable)(?=-|$)")
_OTHERS_DASH = re.compile(r"^((?:gpt|gemini)-\d)-(\d)(?=-|$)")
_NOT_IN_A_NAME = re.compile(r"[\s=*@\x00]+")


def normalise_model(raw: str) -> str:
    """Return the canonical name of a model; the same for every spelling, and for its own result.

    Empty text stays empty. The result never holds what the one-line form of a team reserves.
    """
    name = raw.strip().lower().rsplit("/", 1)[-1]
    before = None
    while name != before:
        before = name
        for pattern in _NOTHING_BILLED:
            name = pattern.sub("", name)
    name = _CLAUDE_DOT.sub(r"\1-\2", name)
    name = _CLAUDE_TURNED.sub(r"claude-\2-\1", name)
    name = _OTHERS_DASH.sub(r"\1.\2", name)
    return _NOT_IN_A_NAME.sub("-", name)
