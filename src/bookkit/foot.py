"""A Sphinx extension: links to pages in the foot, which is one text for pages in folders of different depth.

In ``extra_footer`` of ``_config.yml`` a page is written ``href="doc:book/glossary"``.
"""

import re

LINK = re.compile(r'href="doc:([\w/-]+)"')


def linked(foot, pathto):
    """The foot of one page.

    Args:
        foot: its text.
        pathto: Sphinx's function from a page's name to the address that leads there.
    """
    return LINK.sub(lambda match: f'href="{pathto(match[1])}"', foot)


def _on_page(app, pagename, templatename, context, doctree):
    if foot := context.get("theme_extra_footer"):
        context["theme_extra_footer"] = linked(foot, context["pathto"])


def setup(app):
    """Called by Sphinx."""
    app.connect("html-page-context", _on_page)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
