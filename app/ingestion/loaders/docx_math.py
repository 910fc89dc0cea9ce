"""Write Office math on one line: fractions, powers, roots and sums as a person types them."""

from lxml import etree

from app.ingestion.loaders.docx_package import M

_PROPERTIES = "Pr"


def linear(element: etree._Element) -> str:
    """Return a formula's text."""
    if not isinstance(element.tag, str) or not element.tag.startswith(M):
        return ""
    name = element.tag[len(M) :]
    if name == "t":
        return element.text or ""
    if name.endswith(_PROPERTIES):
        return ""
    shape = _SHAPES.get(name)
    return shape(element) if shape else _inside(element)


def _inside(element: etree._Element) -> str:
    return "".join(map(linear, element))


def _part(element: etree._Element, name: str) -> str:
    found = element.find(M + name)
    return _inside(found) if found is not None else ""


def _grouped(text: str) -> str:
    return text if len(text) <= 1 or text.isalnum() else f"({text})"


def _fraction(element: etree._Element) -> str:
    return f"{_grouped(_part(element, 'num'))}/{_grouped(_part(element, 'den'))}"


def _scripts(element: etree._Element) -> str:
    below, above = _part(element, "sub"), _part(element, "sup")
    return _part(element, "e") + (f"_{_grouped(below)}" if below else "") + (f"^{_grouped(above)}" if above else "")


def _radical(element: etree._Element) -> str:
    degree = _part(element, "deg")
    return (f"{degree}√" if degree else "√") + _grouped(_part(element, "e"))


def _property(element: etree._Element, name: str, default: str) -> str:
    found = element.find(f"{M}{etree.QName(element).localname}Pr/{M}{name}")
    return default if found is None else found.get(M + "val", default)


def _large_operator(element: etree._Element) -> str:
    below, above = _part(element, "sub"), _part(element, "sup")
    limits = (f"_{_grouped(below)}" if below else "") + (f"^{_grouped(above)}" if above else "")
    return f"{_property(element, 'chr', '∫')}{limits} {_part(element, 'e')}"


def _delimited(element: etree._Element) -> str:
    separator = _property(element, "sepChr", "|")
    inside = separator.join(map(_inside, element.iterchildren(M + "e")))
    return _property(element, "begChr", "(") + inside + _property(element, "endChr", ")")


def _function(element: etree._Element) -> str:
    return f"{_part(element, 'fName')} {_part(element, 'e')}"


def _matrix(element: etree._Element) -> str:
    return "; ".join(", ".join(map(_inside, row)) for row in element.iterchildren(M + "mr"))


def _array(element: etree._Element) -> str:
    return "; ".join(map(_inside, element.iterchildren(M + "e")))


def _limit(element: etree._Element) -> str:
    return f"{_part(element, 'e')}_{_grouped(_part(element, 'lim'))}"


_SHAPES = {
    "f": _fraction,
    "sSub": _scripts,
    "sSup": _scripts,
    "sSubSup": _scripts,
    "sPre": _scripts,
    "rad": _radical,
    "nary": _large_operator,
    "d": _delimited,
    "func": _function,
    "m": _matrix,
    "eqArr": _array,
    "limLow": _limit,
    "limUpp": _limit,
}
