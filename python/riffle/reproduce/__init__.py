"""The verb `riffle reproduce`: published claims, each a file of `claims`, measured again.

A claim is data: cases (a setting and who runs in it), bars, and what is said about them. `cases`
knows the kinds of settings: races in the lab, simulations, trainings. `measure` runs what is not
yet in the record, `page` makes docs/results.md and its charts from the record.
"""
