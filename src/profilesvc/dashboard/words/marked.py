"""The texts of templates as markup. Jinja's own functions cost a list of 50 sites two thirds more time to render."""

from functools import lru_cache
from typing import Any, cast

from jinja2 import Environment
from markupsafe import Markup

from profilesvc.language import texts


@lru_cache(8192)
def _markup(language: str, text: str) -> Markup:
    return Markup(texts.gettext(text))  # noqa: S704  texts of the code and of our catalogues


@lru_cache(8192)
def _plain(language: str, text: str) -> Markup:
    return Markup(texts.gettext(text).replace("%%", "%"))  # noqa: S704


def gettext(text: str, /, **values: object) -> Markup:
    """Return a text with its values, which are escaped."""
    return _markup(texts.language(), text) % values if values else _plain(texts.language(), text)


def ngettext(one: str, many: str, count: int, /, **values: object) -> Markup:
    """Return the form of a text for a number with its values, which are escaped."""
    values.setdefault("num", count)
    return Markup(texts.plural(one, many, count)) % values  # noqa: S704


def pgettext(context: str, text: str, /, **values: object) -> Markup:
    """Return a text that has another translation in other places."""
    return Markup(texts.pgettext(context, text)) % values  # noqa: S704


def install(environment: Environment) -> None:
    """Give an environment with the extension for translations our functions."""
    environment.policies["ext.i18n.trimmed"] = True
    cast(Any, environment).install_gettext_callables(texts.gettext, texts.plural, newstyle=True)
    environment.globals.update(N_=texts.N_, _=gettext, gettext=gettext, ngettext=ngettext, pgettext=pgettext)
