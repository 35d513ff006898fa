"""The API for notebooks: `open_lab`, `show`, and the views."""

from profilesvc.lab.consenting import connect_login
from profilesvc.lab.deployed.safeguard import NeedsControl
from profilesvc.lab.lab import Lab, open_lab
from profilesvc.lab.views.cards import key_card, token_card
from profilesvc.lab.views.compare import comparison
from profilesvc.lab.views.diagram import sequence
from profilesvc.lab.views.record import LabClosed
from profilesvc.lab.views.show import show
from profilesvc.lab.views.timeline import timeline

__all__ = [
    "Lab",
    "LabClosed",
    "NeedsControl",
    "comparison",
    "connect_login",
    "key_card",
    "open_lab",
    "sequence",
    "show",
    "timeline",
    "token_card",
]
