"""The numbers of the provider's documentation, each in one place.

The service checks them before a push, the strict emulator checks them again, and the forms of the dashboard show them.
Where the reference of the API has no number, the comment names the source.
"""

# A profile
TITLE = 100  # characters: not in the reference; guides for business profiles name it
DESCRIPTION = 750  # characters: the provider's help for editing a profile
STORE_CODE = 59  # characters: "under 60" in the provider's help for spreadsheets
LABELS = 10  # entries: the provider's help for spreadsheets
LABEL = 255  # characters
ADDITIONAL_PHONES = 2
ADDITIONAL_CATEGORIES = 9  # not in the reference; the provider's help
ADDRESS_LINES = 5
PLACES = 20
SERVICE_DESCRIPTION = 300  # characters of a service that the category offers
LATITUDE, LONGITUDE = 90.0, 180.0  # degrees on each side of 0
NANOS = 999_999_999
OPENING_DATE_YEARS = 1  # ahead

# A local post: the provider's error messages
SUMMARY = 1500  # characters
EVENT_TITLE = 58  # characters
