// The agenda of the simulator: what happens next. Ties go to what was put in first, so a run is the
// same every time.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace riffle::simulator {

enum class Happening : std::uint8_t {
  stream_done,  // the first flow of a stream has sent its last byte (id: stream)
  left,         // of flows that left together somebody wants to know it (id: the first flow)
  delivery,     // flows that left together arrive (id: the first flow)
  begin,        // members begin their next round (id: the first of a list)
  timed_done,   // an exchange that has only a cost is over (id: collective)
  lane,         // an exchange of a worker may start (id: worker * lanes + lane)
  compute,      // a worker's computation has come to a point where it must look (id: worker)
  change,       // the cluster changes (id: which change)
};

struct Agenda {
  double time = 0;
  std::uint64_t order = 0;
  std::int32_t id = 0;
  Happening what{};

  bool operator<(const Agenda& other) const {
    return time < other.time || (time == other.time && order < other.order);
  }
};

// A heap of four children a node: half as deep as a binary one, and a node's children share a cache
// line or two.
class EventQueue {
 public:
  void push(double time, Happening what, std::int32_t id) {
    const Agenda item{time, order_++, id, what};
    std::size_t at = heap_.size();
    heap_.push_back(item);
    while (at > 0) {
      const std::size_t parent = (at - 1) / 4;
      if (!(item < heap_[parent])) break;
      heap_[at] = heap_[parent];
      at = parent;
    }
    heap_[at] = item;
  }

  Agenda pop() {
    const Agenda first = heap_.front();
    const Agenda last = heap_.back();
    heap_.pop_back();
    if (!heap_.empty()) sink(last);
    return first;
  }

  [[nodiscard]] bool empty() const { return heap_.empty(); }
  [[nodiscard]] double next() const { return heap_.front().time; }

 private:
  void sink(const Agenda& item) {
    const std::size_t size = heap_.size();
    std::size_t at = 0;
    for (;;) {
      std::size_t child = 4 * at + 1;
      if (child >= size) break;
      const std::size_t end = child + 4 < size ? child + 4 : size;
      for (std::size_t other = child + 1; other < end; ++other)
        if (heap_[other] < heap_[child]) child = other;
      if (!(heap_[child] < item)) break;
      heap_[at] = heap_[child];
      at = child;
    }
    heap_[at] = item;
  }

  std::vector<Agenda> heap_;
  std::uint64_t order_ = 0;
};

}  // namespace riffle::simulator
