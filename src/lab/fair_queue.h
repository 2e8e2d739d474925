// The queue of a host that sends, as Linux's default (fq_codel without CoDel): flows take turns of
// about one quantum of bytes; a flow that has just begun, or sends little, goes first.
#pragma once

#include <cstdint>
#include <deque>
#include <unordered_map>

namespace riffle::lab {

class FairQueue {
 public:
  explicit FairQueue(std::int64_t quantum) : quantum_(quantum) {}

  void push(std::uint64_t flow, int packet, std::int64_t bytes);
  [[nodiscard]] bool empty() const { return packets_ == 0; }
  [[nodiscard]] std::int64_t bytes() const { return bytes_; }
  // The next packet; there must be one.
  int pop();

 private:
  struct Entry {
    int packet = 0;
    std::int64_t bytes = 0;
  };
  struct Flow {
    std::deque<Entry> entries;
    std::int64_t credit = 0;
  };
  std::int64_t quantum_;
  std::unordered_map<std::uint64_t, Flow> flows_;  // those that are in one of the lists
  std::deque<std::uint64_t> fresh_;                // first served
  std::deque<std::uint64_t> turns_;
  std::int64_t bytes_ = 0;
  std::int64_t packets_ = 0;
};

}  // namespace riffle::lab
