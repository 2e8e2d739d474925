#include "lab/fair_queue.h"

namespace riffle::lab {

void FairQueue::push(std::uint64_t flow, int packet, std::int64_t bytes) {
  const auto [found, is_new] = flows_.try_emplace(flow);
  found->second.entries.push_back({packet, bytes});
  bytes_ += bytes;
  ++packets_;
  if (!is_new) return;
  found->second.credit = quantum_;
  fresh_.push_back(flow);
}

int FairQueue::pop() {
  for (;;) {
    std::deque<std::uint64_t>& list = fresh_.empty() ? turns_ : fresh_;
    const std::uint64_t id = list.front();
    Flow& flow = flows_.at(id);
    if (flow.credit <= 0 || flow.entries.empty()) {
      list.pop_front();
      // A flow that came first and is empty takes one more turn: it must not come first again at
      // once. One that is empty after its turn is forgotten.
      if (flow.entries.empty() && &list == &turns_) {
        flows_.erase(id);
        continue;
      }
      if (flow.credit <= 0) flow.credit += quantum_;
      turns_.push_back(id);
      continue;
    }
    const Entry entry = flow.entries.front();
    flow.entries.pop_front();
    flow.credit -= entry.bytes;
    bytes_ -= entry.bytes;
    --packets_;
    return entry.packet;
  }
}

}  // namespace riffle::lab
