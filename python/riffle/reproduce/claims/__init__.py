"""The table of claims, in the order of the page. Adding one is a file here and a line below."""

from riffle.reproduce.claim import Claim
from riffle.reproduce.claims import (
    dasgd_hidden,
    dasgd_scaling,
    ds_sync_models,
    ds_sync_racks,
    mg_wfbp_measured,
    mg_wfbp_scaling,
    no_accuracy_loss,
    rounded_accuracy,
    sesgd_lan,
    sesgd_wan,
    slow_host,
)

CLAIMS: dict[str, Claim] = {
    each.CLAIM.name: each.CLAIM
    for each in (
        sesgd_lan,
        sesgd_wan,
        no_accuracy_loss,
        ds_sync_racks,
        ds_sync_models,
        mg_wfbp_measured,
        mg_wfbp_scaling,
        dasgd_hidden,
        dasgd_scaling,
        rounded_accuracy,
        slow_host,
    )
}
