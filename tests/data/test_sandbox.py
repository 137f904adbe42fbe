"""Templates on a budget: what could take long or grow is refused before it does, whichever way it is written."""

import json
import tracemalloc
from contextlib import suppress

import jinja2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jinja2.sandbox import ImmutableSandboxedEnvironment

from gnomon.data.sandbox import BUDGET, LONGEST_TEMPLATE, OverBudget, Sandbox

MESSAGES = [{"role": "user", "content": "Hi"}]
DOUBLED = "{% set ns = namespace(x=[1]) %}{% for i in range(60) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}"


def render(template: str, budget: int = BUDGET, **given: object) -> str:
    return Sandbox(budget).load(template).render(messages=MESSAGES, **given)


HOSTILE = [
    "{{ 'a' * 10**10 }}",
    "{{ 10**10 * 'a' }}",
    "{{ ([0] * 10**10) | length }}",
    "{{ ('a' * 2000000000) | length }}",
    "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}",
    "{% for i in range(99999) %}{% for j in range(99999) if false %}{% endfor %}{% endfor %}",
    "{% for i in range(99999) %}" + "z" * 20000 + "{% endfor %}",
    "{% for i in range(99999) %}" + "{% set x = 1 %}" * 500 + "{% endfor %}",
    "{% for x in [[1]] recursive %}{{ loop([x] * 99999) }}{% endfor %}",
    "{% macro f(n) %}{% if n %}{{ f(n - 1) }}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(60) }}",
    "{% macro f(n) %}{{ f(n) }}{% endmacro %}{{ f(1) }}",
    "".join(f"{{% block b{n} %}}{{{{ self.b{n + 1}() }}}}{{{{ self.b{n + 1}() }}}}{{% endblock %}}" for n in range(40))
    + "{% block b40 %}x{% endblock %}",
    "{% set x %}" + "a" * 99 + "{% endset %}" + "{% set x %}{{ x }}{{ x }}{% endset %}" * 40,
    "{% set ns = namespace(x='a') %}{% for i in range(60) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}",
    "{% set ns = namespace(x='a') %}{% for i in range(60) %}{% set ns.x = ns.x + ns.x %}{% endfor %}",
    "{% set ns = namespace(x=[1]) %}{% for i in range(60) %}{% set ns.x = ns.x + ns.x %}{% endfor %}",
    "{% set ns = namespace(x=2) %}{% for i in range(60) %}{% set ns.x = ns.x * ns.x %}{% endfor %}",
    "{{ 10 ** 9999999 }}",
    "{{ 5 | round(-(10**9)) }}",
    "{{ 5.5 | round(10**9, 'floor') }}",
    "{{ 'a' | center(10**9) }}",
    "{{ 'a'.center(10**9) | length }}",
    "{{ 'a'.ljust(10**9) is defined }}",
    "{{ 'x'.zfill(10**9) }}",
    "{{ '\\t'.expandtabs(10**9) }}",
    "{{ 'a\\nb' | indent(10**9) }}",
    "{{ 'a\\nb' | indent('x' * 9999 * 999) }}",
    "{{ range(9999) | join('x' * 9999) }}",
    "{{ ('ab' * 9999).join(['a'] * 9999) | length }}",
    "{{ ('a' * 9999).replace('a', 'b' * 9999) | length }}",
    "{{ ('a' * 9999) | replace('a', 'b' * 9999) | length }}",
    "{{ ('a' * 9999) | replace('', 'b' * 9999) | length }}",
    "{{ '%1000000000d' | format(1) }}",
    "{{ '%1000000000d' % 1 }}",
    "{{ '{:1000000000}'.format(1) }}",
    "{{ '{:.1000000000f}'.format(1.0) }}",
    "{{ '%(a).1000000000d' % {'a': 1} }}",
    "{{ '%(a%b)1000000000d' % {'a%b': 1} }}",
    "{{ '%(a(b)c)01000000000ld' % {'a(b)c': 1} }}",
    "{{ ('{0}' * 9999).format('a' * 9999) | length }}",
    "{{ ('{a}' * 9999).format_map({'a': 'a' * 9999}) | length }}",
    "{{ ('%(a)s' * 9999) % {'a': 'a' * 9999} }}",
    "{{ ['a'] | map('center', 10**9) | list }}",
    "{{ range(99999) | map('string') | map('center', 9999) | list | length }}",
    "{% filter center(10**9) %}x{% endfilter %}",
    "{% autoescape 'a' | center(10**9) %}{% endautoescape %}",
    "{{ [1] | batch(10**9, 0) | list }}",
    "{{ [1] | slice(10**9) | list }}",
    "{{ ([[1] * 999] * 9999) | sum(start=[]) | length }}",
    "{{ (['a' * 50000] * 9999) | sort | length }}",
    "{{ messages | tojson(indent=10**9) }}",
    "{{ messages | tojson(indent='a' * 10**6) }}",
    "{{ ('a' * 20000).strip('b' * 20000 ~ 'a') }}",
    *(DOUBLED + use for use in ("{{ ns.x }}", "{{ ns }}", "{{ ns.x | tojson }}", "{{ ns.x == [ns.x] }}",
                                "{{ 'a' in ns.x }}", "{{ [ns.x, 1] | sort }}", "{{ '%s' % [ns.x] }}")),
    *("{% set x = 'a' * 50000 %}{% for i in range(99999) %}" + use + "{% endfor %}" for use in (
        "{% if x == x[1:] %}{% endif %}", "{% if 'b' in x %}{% endif %}", "{% set y = x.count('b') %}",
        "{% set y = x | upper | length %}", "{% set y = x[1:] | length %}", "{% if x is in [x ~ 'b'] %}{% endif %}",
        "{% set y = x | trim %}", "{% set y = x.split('b') %}", "{% set y = x < x ~ 'b' %}")),
]  # fmt: skip


@pytest.mark.parametrize("template", HOSTILE, ids=lambda template: template[-60:])
def test_no_way_of_writing_it_gets_round_the_budget(template: str) -> None:
    """Refused, and no more was there at once than a hundredth of the budget can write. (Less keeps this short.)"""
    budget = BUDGET // 100
    tracemalloc.start()
    try:
        with pytest.raises((OverBudget, RecursionError)):
            render(template, budget)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 64e6


@pytest.mark.parametrize(
    "template",
    ["{{ (5).to_bytes(10**9) }}", "{{ 'a'.encode() }}", "{{ 'a'.translate({97: 'b'}) }}", "{{ messages.append(1) }}",
     "{{ messages[0].update({}) }}", "{{ (messages | map('upper')).send(1) }}", "{{ ''.__class__.__mro__ }}",
     "{{ cycler.__init__.__globals__ }}", "{{ lipsum(10**6) }}", "{{ 'a' | urlize }}", "{{ self.__init__() }}",
     "{{ '{:{}}'.format(1, 10**9) }}",
     "{{ '{:{}00000000}'.format(1, 9) }}", "{{ '%.*f' % (10**9, 1.0) }}",
     "{{ '{x:{w}}'.format_map({'x': 1, 'w': 10**9}) }}",
     "{{ strftime_now('%Y' * 9999) }}",
     "{% include messages[0].content %}", "{{ '{a.__class__}'.format(a=1)[0] }}",
     "x" * (LONGEST_TEMPLATE + 1)],
    ids=lambda template: template[:50],
)  # fmt: skip
def test_what_no_conversation_needs_cannot_be_called(template: str) -> None:
    with suppress(jinja2.TemplateError, TypeError):
        assert render(template) == ""


WRITTEN = {
    "{{ 'a' * 3 ~ 1 }}{{ [1, 'b'] }}{{ none }}{{ nothing }}": "aaa1[1, 'b']None",
    "{% for a in 'ab' %}{{ loop.index }}{{ a }}{% if loop.last %}!{% endif %}{% endfor %}": "1a2b!",
    "{% for k, v in {'a': 1}.items() %}{{ k }}{{ v }}{% endfor %}{{ {'a': 1}.get('b', 2) }}": "a12",
    "{% for i in range(9) if i is odd %}{{ i }}{% else %}none{% endfor %}": "1357",
    "{% for m in messages recursive %}{{ m.content or loop(m.x) }}{% endfor %}": "Hi",
    "{% macro f(a, b='x') %}{{ a ~ b }}{% endmacro %}{{ f(1) }}{{ f(2, b=3) }}": "1x23",
    "{% macro f() %}[{{ caller() }}]{% endmacro %}{% call f() %}in{% endcall %}": "[in]",
    "{% set ns = namespace(n=0) %}{% for i in [1, 2] %}{% set ns.n = ns.n + i %}{% endfor %}{{ ns.n }}": "3",
    "{{ messages[::-1][0].content[1:] }}{{ messages | map(attribute='role') | join(',') | upper }}": "iUSER",
    "{{ messages | selectattr('role', 'equalto', 'user') | list | length }}{{ 3 > 2 >= 2 != 1 }}": "1True",
    "{{ '%d %s 2024123456' % (1700000000, 'x') }}{{ '%s%%' | format(5) }}": "1700000000 x 20241234565%",
    "{{ '{}'.format(1700000000) }}{{ '{\"a\": {\"b\": %s}}' % 'x' }}": '1700000000{"a": {"b": x}}',
    "{{ ' a '.strip() + 'b,c'.split(',')[-1] }}{{ '%s-%03d' % ('x', 7) }}{{ '{}:{:>3}'.format(1, 2) }}": "acx-0071:  2",
    "{{ 'a' in 'abc' and 'x' not in ['y'] }}{{ 'a\\nb' | indent(2) }}{{ 'x' | replace('x', 'y') }}": "Truea\n  by",
    "{% set t %}{{ 1 }}{% endset %}{{ t }}{% filter upper %}q{% endfilter %}{{ 7 // 2 }}{{ 7 % 4 }}": "1Q33",
    "{{ cycler('a', 'b').next() }}{{ dict(a=1).a }}{% with x = 1 %}{{ x }}{% endwith %}{{ 'ab' | first }}": "a11a",
    "{% for i in [1, 2] %}{% if i == 1 %}{% continue %}{% endif %}{{ i }}{% break %}{% endfor %}": "2",
}  # fmt: skip


@pytest.mark.parametrize("template", WRITTEN)
def test_what_templates_do_is_done_as_jinja_does_it(template: str) -> None:
    plain = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"])
    assert render(template) == WRITTEN[template] == plain.from_string(template).render(messages=MESSAGES)


def test_what_the_model_wrote_may_be_marked_and_keeps_its_own_names() -> None:
    body = "{% generation %}{% set y = 1 %}{{ m.content }}!{% endgeneration %}{{ y is defined }}"
    template = f"{{% for m in messages %}}{body}{{% endfor %}}"
    assert render(template) == "Hi!False"


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
        max_leaves=8,
    ),
    st.booleans(),
    st.booleans(),
    st.sampled_from([None, 0, 2, "\t"]),
    st.sampled_from([None, [",", ":"]]),
)
@settings(max_examples=50, deadline=None)
def test_tojson_takes_what_transformers_templates_give_it(value, ascii, sort, indent, separators) -> None:
    settings = {"ensure_ascii": ascii, "sort_keys": sort, "indent": indent, "separators": separators}
    written = render("{{ v | tojson(**s) }}", v=value, s=settings)
    assert written == json.dumps(value, **settings)
    assert render("{{ v | tojson }}", v=value) == json.dumps(value, ensure_ascii=False)


@pytest.mark.parametrize("piece", ["%(", "%", "1", "%1", "{", "{a", "{:", "*", "%*", "\\\\", "(", "a", "-", "."])
def test_what_reads_a_format_string_looks_at_a_letter_a_bounded_number_of_times(piece: str) -> None:
    """Were it quadratic, a million letters would be minutes."""
    for pattern in (piece * 300_000, piece * 300_000 + "!", "%" + piece * 300_000, "{" + piece * 300_000):
        for braces in (True, False):
            with suppress(jinja2.TemplateError):
                Sandbox(10**12).formatted(pattern, ["x"], braces)


def test_the_work_of_a_conversation_grows_with_its_length_within_the_budget() -> None:
    template = (
        "{% for m in messages %}{% if m.role not in ['user', 'assistant'] %}{{ raise_exception('no') }}{% endif %}"
        "{{ '<|' + m.role + '|>' + m.content | trim + '<|end|>' }}{% if '</think>' in m.content %}"
        "{{ m.content.split('</think>')[-1].lstrip('\\n') }}{% endif %}{% endfor %}"
    )
    spent = []
    for length in (100, 200):
        sandbox = Sandbox()
        messages = [{"role": "user", "content": "word " * 20}] * length
        sandbox.load(template).render(messages=messages)
        spent.append(BUDGET - sandbox.left)
    assert 1.9 < spent[1] / spent[0] < 2.1
    assert spent[1] < BUDGET / 50
