"""The words of schedules, for strategies of your own: buckets, exchanges, when and how they merge.

from riffle import schedule

schedule.Exchange(0, [0, 1], payload="weight", start="bucket_stepped",
                  due=schedule.before_forward(), merge=schedule.replace())
"""

from riffle._core import (
    Bucket,
    CostModel,
    Due,
    Exchange,
    Merge,
    Option,
    Options,
    Program,
    Traits,
    after_step,
    before_forward,
    before_step,
    bucket_per_layer,
    correct,
    make_buckets,
    mix,
    one_bucket,
    outer,
    replace,
)

__all__ = [
    "Bucket",
    "CostModel",
    "Due",
    "Exchange",
    "Merge",
    "Option",
    "Options",
    "Program",
    "Traits",
    "after_step",
    "before_forward",
    "before_step",
    "bucket_per_layer",
    "correct",
    "make_buckets",
    "mix",
    "one_bucket",
    "outer",
    "replace",
]
