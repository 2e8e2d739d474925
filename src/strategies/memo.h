// The last answer of a pure function, kept for the next call with equal arguments. Schedules recur:
// they are made once for a world, and the groups of a recurring step are the same handles every
// time, by whose identity readers cache what a group costs.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <tuple>

namespace riffle {

template <typename Value, typename... Keys>
class Memo {
 public:
  template <typename Make>
  std::shared_ptr<const Value> of(const Keys&... keys, Make&& make) const {
    const std::scoped_lock lock(mutex_);
    if (!value_ || *keys_ != std::tie(keys...)) {
      value_ = std::make_shared<const Value>(make());
      keys_ = std::tuple(keys...);
    }
    return value_;
  }

 private:
  mutable std::mutex mutex_;
  mutable std::optional<std::tuple<Keys...>> keys_;
  mutable std::shared_ptr<const Value> value_;
};

}  // namespace riffle
