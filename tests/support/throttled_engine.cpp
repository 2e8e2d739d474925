#include "support/throttled_engine.h"

#include <thread>

namespace riffle::test {

void Throttle::set(Rank a, Rank b, Seconds per_message) {
  links_[static_cast<std::size_t>(a * ranks_ + b)] = per_message.count();
  links_[static_cast<std::size_t>(b * ranks_ + a)] = per_message.count();
}

void Throttle::set_all(Seconds per_message) {
  for (auto& link : links_) link = per_message.count();
}

void Throttle::set_between(Rank first_of_second, Seconds per_message) {
  for (Rank a = 0; a < first_of_second; ++a)
    for (Rank b = first_of_second; b < ranks_; ++b) set(a, b, per_message);
}

void Throttle::set_host(Rank rank, Seconds per_message) {
  for (Rank other = 0; other < ranks_; ++other)
    if (other != rank) set(rank, other, per_message);
}

Request ThrottledEngine::send(Rank to, Tag tag, std::span<const std::byte> data) {
  if (to != rank()) {
    Random random(static_cast<std::uint64_t>(rank()), sent_++);
    const Seconds time = throttle_.of(rank(), to) * (1 + throttle_.jitter() * random.uniform(0, 1));
    if (time > Seconds{}) std::this_thread::sleep_for(time);
  }
  return PassingEngine::send(to, tag, data);
}

}  // namespace riffle::test
