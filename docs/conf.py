"""The static site: notebooks as they were executed, the guides, the API and the client's reference. Works offline."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "profilesvc"
author = "the profilesvc maintainers"
copyright = "2026, the profilesvc maintainers"  # noqa: A001  Sphinx's name

# `make docs` installs Mermaid from npm where that is possible; without it the diagrams stay text.
_DRAWN = (Path(__file__).parents[1] / "build/docs/static/mermaid.min.js").exists()
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx_copybutton", "sphinx_design", "openapi_reference", "tabs"]
root_doc = "docs/index"
include_patterns = ["docs/*.md", "notebooks/*.ipynb", "SECURITY.md", "CHANGELOG.md"]

nb_execution_mode = "off"  # the outputs are those that CI compared
nb_merge_streams = True
nb_render_markdown_format = "myst"
myst_enable_extensions = ["colon_fence"]
copybutton_selector = (
    "div.highlight-sh pre, div.highlight-php pre, div.highlight-python pre, div.highlight-ipython3 pre"
)
myst_heading_anchors = 3
suppress_warnings = []
# The lab shows the same twice: as HTML, and as plain text for where there is none.
nb_mime_priority_overrides = [("html", "text/vnd.mermaid", None)]

highlight_options = {"php": {"startinline": True}}  # parts of files have no `<?php`
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True  # as in the source, not `<built-in method random …>`
autodoc_typehints = "description"
autodoc_typehints_format = "short"

html_theme = "furo"
html_title = "profilesvc"
html_theme_options = {"navigation_with_keys": True}
html_static_path = ["_static"]
html_css_files = ["phone.css"]
html_js_files = ["stacked.js"]
if _DRAWN:
    extensions.append("sphinxcontrib.mermaid")
    myst_fence_as_directive = ["mermaid"]
    html_static_path.append("../build/docs/static")
    html_js_files.append("mermaid.min.js")
    mermaid_use_local = "mermaid.mjs"
    mermaid_d3_zoom = False
    mermaid_include_elk = False
else:
    suppress_warnings.append("misc.highlighting_failure")  # Pygments has no lexer for diagrams
html_extra_path = ["../build/plugin"]  # the zip file of the plugin
html_show_sourcelink = False
