// The steps under way: some worker has yet to begin them, or their exchanges are not over.
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "simulate/step_plan.h"

namespace riffle::simulator {

struct ActiveStep {
  std::shared_ptr<const StepPlan> plan;
  std::vector<int> collective;  // of each exchange; -1 before it is opened
  std::vector<char> done;       // of each item, where the plan is chained
  int entered = 0;              // workers that have begun it
  std::int64_t left = 0;        // items
};

class Steps {
 public:
  [[nodiscard]] ActiveStep& operator[](Step step) {
    return active_[static_cast<std::size_t>(step - oldest_)];
  }
  [[nodiscard]] const ActiveStep& operator[](Step step) const {
    return active_[static_cast<std::size_t>(step - oldest_)];
  }
  [[nodiscard]] Step oldest() const { return oldest_; }
  // The first that nobody has begun.
  [[nodiscard]] Step next() const { return oldest_ + static_cast<Step>(active_.size()); }

  void add(std::shared_ptr<const StepPlan> plan) {
    ActiveStep fresh;
    fresh.collective.assign(plan->exchanges.size(), -1);
    fresh.left = static_cast<std::int64_t>(plan->items.size());
    if (plan->chained) fresh.done.assign(plan->items.size(), 0);
    fresh.plan = std::move(plan);
    active_.push_back(std::move(fresh));
  }
  // Forgets those that all `workers` have begun and whose exchanges are over.
  void drop_finished(int workers) {
    while (!active_.empty() && active_.front().left == 0 && active_.front().entered == workers) {
      active_.pop_front();
      ++oldest_;
    }
  }

 private:
  std::deque<ActiveStep> active_;
  Step oldest_ = 0;
};

}  // namespace riffle::simulator
