"""Changes of several sites at once: a preview, and a result for each."""

from quart import Blueprint, Response, request

from profilesvc.api.html_forms import TEXTS
from profilesvc.dashboard import pages, problems
from profilesvc.dashboard.visits import Visit, form_key, view
from profilesvc.domain.errors import ServiceError, invalid
from profilesvc.language.texts import N_, Words
from profilesvc.services.drafts import several
from profilesvc.services.drafts.several import ACTS, Act
from profilesvc.services.insight import overview
from profilesvc.tokens.signer import random_id

blueprint = Blueprint("selected", __name__)

TITLES = Words({"sync": N_("Sync several sites"), "pause": N_("Deactivate keys"), "resume": N_("Reactivate keys")})
BUTTONS = Words(sync=N_("Sync them now"), pause=N_("Deactivate these keys"), resume=N_("Reactivate these keys"))
OBSTACLES = Words(
    no_key=N_("Nothing: it has no key."),
    paused=N_("Nothing: its keys are deactivated already."),
    not_paused=N_("Nothing: none of its keys is paused."),
    held=N_("Nothing: you cannot lift the reason why its keys are deactivated. See the page of the key."),
    sync_off=N_("Nothing: sync is off."),
    never_synced=N_("Nothing: its plugin has never sent a profile."),
    plan=N_("Nothing: your plan does not include sync."),
    unverified=N_("Nothing: the provider has not verified it."),
)


@view(blueprint, "/sites/selected")
async def preview(visit: Visit) -> Response:
    return await _preview(visit, _act(request.args.get("act", "")), request.args.getlist("site"))


@view(blueprint, "/sites/selected", "POST", TEXTS)
async def run(visit: Visit) -> Response:
    form = await request.form
    act, ids = _act(form.get("act", "")), form.getlist("site")
    once = form_key(form, act)
    try:
        sites = several.selected(await overview.sites(visit.services, visit.caller), ids)
    except ServiceError as error:
        return await _preview(visit, act, ids, error)
    outcomes = await several.run(visit.services, visit.caller, act, sites, once)
    return pages.page(
        "selected_done.html",
        visit=visit,
        act=act,
        title=TITLES[act],
        results=list(zip(sites, outcomes, strict=True)),
        rest=[site for site, one in zip(sites, outcomes, strict=True) if one.changes is None and one.error is None],
        failed=[site for site, one in zip(sites, outcomes, strict=True) if one.error is not None],
    )


def _act(name: str) -> Act:
    act_of_name = next((act for act in ACTS if act == name), None)
    if act_of_name is None:
        raise invalid("query", "act", f"must be one of {', '.join(ACTS)}")
    return act_of_name


async def _preview(visit: Visit, act: Act, ids: list[str], error: ServiceError | None = None) -> Response:
    sites = await overview.sites(visit.services, visit.caller)
    plans = []
    try:
        has_sync = visit.caller.plan.sync
        plans = [several.plan(act, site, plan_has_sync=has_sync) for site in several.selected(sites, ids)]
    except ServiceError as too_many:
        error = too_many
    return pages.page(
        "selected.html",
        visit=visit,
        problems=problems.from_error(error),
        act=act,
        title=TITLES[act],
        button=BUTTONS[act],
        obstacles=OBSTACLES,
        plans=plans,
        ready=[plan for plan in plans if plan.obstacle is None],
        once=random_id(visit.services.entropy),
    )
