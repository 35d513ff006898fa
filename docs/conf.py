"""The static site: notebooks as they were executed, the guides, the API and the client's reference. Works offline."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "profilesvc"
author = "the profilesvc maintainers"
copyright = "2026, the profilesvc maintainers"  # noqa: A001  Sphinx's name

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinxcontrib.mermaid", "openapi_reference"]
root_doc = "docs/index"
include_patterns = ["docs/*.md", "notebooks/*.ipynb", "SECURITY.md", "CHANGELOG.md"]

nb_execution_mode = "off"  # the outputs are those that CI compared
nb_merge_streams = True
nb_render_markdown_format = "myst"
myst_enable_extensions = ["colon_fence"]
myst_fence_as_directive = ["mermaid"]
myst_heading_anchors = 3
# The lab shows the same twice: as HTML, and as plain text for where there is none.
nb_mime_priority_overrides = [("html", "text/vnd.mermaid", None)]

autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_format = "short"

html_theme = "furo"
html_title = "profilesvc"
html_static_path = ["_static"]
html_js_files = ["mermaid.min.js"]
mermaid_use_local = "mermaid.mjs"
mermaid_d3_zoom = False
mermaid_include_elk = False
html_show_sourcelink = False
