#include "schedule/overlap.h"

#include <fmt/format.h>

#include "riffle/error.h"

namespace riffle::schedule {

Overlap::Overlap(const Needs& needs, Mode mode)
    : needs_(needs),
      state_(mode == Mode::none || (!needs.per_bucket && !needs.postpones) ? State::off
             : mode == Mode::watched                                       ? State::watching
                                                                           : State::on),
      next_(state_),
      watched_steps_(mode == Mode::watched ? 0 : -1) {}

std::string Overlap::begin_step(std::string_view changed) {
  if (changed.empty() || state_ == State::off) {
    if (state_ == State::watching && ++watched_steps_ >= kWatched) next_ = State::on;
    return {};
  }
  if (state_ == State::on)
    usage_error(
        "the gradient of {} was changed after backward, when {} relied on it; clip with "
        "session.clip_grad_norm_, or pass overlap=False, or change gradients from the first step "
        "on",
        changed, needs_.postpones ? "its exchange" : "its update");
  state_ = next_ = State::off;
  return fmt::format(
      "the gradient of {} is changed between backward and the optimizer's step (clipping, "
      "scaling): {}",
      changed,
      needs_.postpones ? "updates are not left to the next forward"
                       : "updates are not made under backward");
}

void Overlap::clip(bool updated) {
  if (!needs_.per_bucket) return;  // the gradient of the update is the session's to scale
  if (updated)
    usage_error(
        "clip_grad_norm_ came when backward had updated some buckets already; call it in the first "
        "step, too, or pass overlap=False");
  state_ = next_ = State::off;
}

void Overlap::end_step() {
  state_ = next_;
}

}  // namespace riffle::schedule
