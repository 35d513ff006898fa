"""The API for notebooks: `open_lab`, `show`, and the views."""

from profilesvc.lab.cards import key_card, token_card
from profilesvc.lab.compare import comparison
from profilesvc.lab.consenting import connect_login
from profilesvc.lab.diagram import sequence
from profilesvc.lab.guard import NeedsControl
from profilesvc.lab.lab import Lab, open_lab
from profilesvc.lab.record import LabClosed
from profilesvc.lab.show import show
from profilesvc.lab.timeline import timeline

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
