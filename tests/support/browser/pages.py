"""Every page of the dashboard, for the tests that walk them; `{name}` is an id that the test creates."""

# name of the picture: path
PAGES = {
    "sites": "/dashboard",
    "sites-found": "/dashboard?q=harbour",
    "sites-nothing": "/dashboard?q=nothing",
    "selected": "/dashboard/sites/selected?act=sync&site=111&site=112",
    "site": "/dashboard/sites/111",
    "profile": "/dashboard/sites/111/profile",
    "events": "/dashboard/sites/111/events",
    "posts": "/dashboard/sites/111/posts",
    "posts-offer": "/dashboard/sites/111/posts?kind=OFFER",
    "post": "/dashboard/sites/111/posts/11101/edit",
    "calendar": "/dashboard/sites/111/calendar",
    "reviews": "/dashboard/sites/111/reviews",
    "templates": "/dashboard/templates",
    "many-posts": "/dashboard/posts/new?site=111",
    "keys": "/dashboard/keys",
    "key": "/dashboard/keys/{key}",
    "end-secret": "/dashboard/keys/{key}/end-secret",
    "revoke": "/dashboard/keys/{key}/revoke",
    "requests": "/dashboard/keys/{key}/requests",
    "connections": "/dashboard/connections",
    "connection": "/dashboard/connections/{connection}",
    "connect-link": "/dashboard/connections/link/{link}",
    "alerts": "/dashboard/alerts",
    "alert": "/dashboard/alerts/{alert}",
    "webhooks": "/dashboard/webhooks",
    "webhook": "/dashboard/webhooks/{webhook}",
    "delivery": "/dashboard/webhooks/{webhook}/deliveries/{delivery}",
    "mail": "/dashboard/mail",
    "audit": "/dashboard/audit",
    "audit-found": "/dashboard/audit?kind=webhooks",
    "plan": "/dashboard/plan",
    "account": "/dashboard/account",
    "account-delete": "/dashboard/account/delete",
    "calendar-of-all": "/dashboard/calendar",
    "drafts": "/dashboard/drafts",
    "patterns": "/dashboard/patterns",
    "missing": "/dashboard/nothing",
}
# Pages without a session.
PUBLIC = {
    "sign-in": "/dashboard/sign-in",
    "account-deleted": "/dashboard/account-deleted",
    "unsubscribe": "/dashboard/alerts/unsubscribe/{unsubscribe}",
    "confirm": "/dashboard/alerts/confirm/{confirm}",
}
# Pages of an account in which nothing was made.
EMPTY = (
    *("sites", "templates", "many-posts", "keys", "connections", "alerts", "webhooks", "audit", "plan", "account"),
    *("sites-nothing", "drafts", "calendar-of-all"),
)
# Rules that are not pages: downloads, parts of pages that scripts request, pictures, and redirects.
NO_PAGES = {
    "/dashboard/",
    "/dashboard/<path:missing>",
    "/dashboard/static/<name>",
    "/dashboard/logo",
    "/dashboard/photos/<name>",
    "/dashboard/badge/<badge>",
    "/dashboard/callback",
    "/dashboard/sign-in/start",
    "/dashboard/connections/start",
    "/dashboard/connections/callback",
    "/dashboard/connections/link/<link>/start",
    "/dashboard/keys/locations",
}
NO_PAGE_ENDS = ("/live", ".csv", ".json", ".zip")
