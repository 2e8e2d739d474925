// What a group can do besides its collectives.
#include "backend/backend.h"

namespace riffle::backend {

c10::intrusive_ptr<c10d::Backend::Options> RiffleBackend::getBackendOptions() {
  auto options = c10::make_intrusive<Options>(
      "riffle", std::chrono::duration_cast<std::chrono::milliseconds>(team_->timeout()));
  options->group_name = name_;
  for (int member = 0; member < size_; ++member)
    options->global_ranks_in_group.push_back(static_cast<uint64_t>(team_->rank_of(member)));
  return options;
}

void RiffleBackend::setTimeout(std::chrono::milliseconds timeout) {
  team_->set_timeout(Seconds(timeout));
}

void RiffleBackend::monitoredBarrier(const c10d::BarrierOptions& options, bool wait_all_ranks) {
  try {
    team_->monitored_barrier(options.timeout.count() < 0 ? Seconds{-1} : Seconds(options.timeout),
                             wait_all_ranks);
  } catch (...) {
    std::rethrow_exception(translated(std::current_exception()));
  }
}

c10::intrusive_ptr<c10d::Backend> RiffleBackend::split(
    const c10::intrusive_ptr<c10d::Store>& /*store*/, const std::vector<int>& ranks,
    const c10::intrusive_ptr<Options>& options) {
  distributed::TeamOptions team;
  team.name = options->group_name;
  team.timeout = Seconds(options->timeout);
  for (const int member : ranks) team.ranks.push_back(team_->rank_of(member));
  if (std::ranges::find(ranks, rank_) == ranks.end()) return nullptr;
  return c10::make_intrusive<RiffleBackend>(world_, std::move(team));
}

void RiffleBackend::shutdown() {
  team_->shutdown();
  world_ = nullptr;
}

}  // namespace riffle::backend
