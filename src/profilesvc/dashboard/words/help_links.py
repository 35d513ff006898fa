"""The guide of each page: the section of docs/dashboard.md that explains it."""

GUIDE = "/guides/docs/dashboard.html"
# (section of the navigation, tab of a site): heading of the guide and its fragment.
_SECTIONS = {
    ("Sites", ""): ("Sites", "sites"),
    ("Sites", "Overview"): ("A site", "a-site"),
    ("Sites", "Profile"): ("Edit the profile", "edit-the-profile"),
    ("Sites", "Events"): ("Events of a site", "events-of-a-site"),
    ("Sites", "Posts"): ("Posts", "posts"),
    ("Sites", "Reviews"): ("Reviews", "reviews"),
    ("Keys", ""): ("Keys", "keys"),
    ("Connections", ""): ("Connections", "connections"),
    ("Alerts", ""): ("Alerts", "alerts"),
    ("Webhooks", ""): ("Webhooks", "webhooks"),
    ("Audit", ""): ("Audit", "audit"),
    ("Plan and usage", ""): ("Plan and usage", "plan-and-usage"),
    ("Account", ""): ("Account", "account"),
}
FRAGMENTS = dict(_SECTIONS.values())


def guide_url(section: str, tab: str = "") -> str:
    """Return the URL of the guide of a page: of its tab, else of its section, else the start of the guide."""
    heading = _SECTIONS.get((section, tab)) or _SECTIONS.get((section, ""))
    return f"{GUIDE}#{heading[1]}" if heading else GUIDE
