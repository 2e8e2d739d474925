// Nobody waits for ever. Workers go through the points of their steps; an exchange starts when all
// its members have reached its start and their lanes are free of what was issued before; a point
// is passed when everything due there is done. If that relation has no cycle, every run ends.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "verify/schedule.h"

namespace riffle::verify_detail {
namespace {

// Nodes: the points of every worker and step, then the exchanges.
class WaitGraph {
 public:
  explicit WaitGraph(const Schedule& schedule)
      : schedule_(schedule),
        all_(instances(schedule)),
        buckets_(static_cast<int>(schedule.buckets.size())),
        workers_(schedule.ranks.size()),
        points_(schedule.window * workers_ * per_step()) {
    std::erase_if(all_, [](const Instance& at) { return at.exchange->group.size() == 1; });
    needs_.resize(points_ + all_.size());
    for (Step step = 0; step < schedule.window; ++step)
      for (int worker = 0; worker < workers_; ++worker) add_step(step, worker);
    std::map<std::pair<int, int>, std::size_t> last;  // by worker and lane
    for (std::size_t i = 0; i < all_.size(); ++i) add_exchange(i, last);
  }

  // Nodes of a cycle, each waiting for the next; empty where there is none.
  [[nodiscard]] std::vector<std::size_t> cycle() const {
    enum : char { fresh, open, done };
    std::vector<char> state(needs_.size(), fresh);
    struct Frame {
      std::size_t node;
      std::size_t next;
    };
    std::vector<Frame> path;
    for (std::size_t root = 0; root < needs_.size(); ++root) {
      if (state[root] != fresh) continue;
      path.push_back({root, 0});
      state[root] = open;
      while (!path.empty()) {
        Frame& top = path.back();
        if (top.next == needs_[top.node].size()) {
          state[top.node] = done;
          path.pop_back();
          continue;
        }
        const std::size_t need = needs_[top.node][top.next++];
        if (state[need] == open) {
          std::vector<std::size_t> nodes;
          auto from = std::ranges::find(path, need, &Frame::node);
          for (; from != path.end(); ++from) nodes.push_back(from->node);
          return nodes;
        }
        if (state[need] == done) continue;
        state[need] = open;
        path.push_back({need, 0});
      }
    }
    return {};
  }

  [[nodiscard]] const Instance* exchange(std::size_t node) const {
    return node < points_ ? nullptr : &all_[node - points_];
  }
  // "step_done of rank 3 in step 0"
  [[nodiscard]] std::string name(std::size_t node) const {
    if (const Instance* at = exchange(node)) return describe(*at);
    const std::size_t in_step = node % per_step();
    const std::size_t worker = node / per_step() % workers_;
    const std::size_t step = node / per_step() / workers_;
    static constexpr std::array<std::string_view, 4> kNames{"before_forward", "bucket_ready",
                                                            "before_step", "after_step"};
    std::string point;
    if (in_step < kNames.size() * buckets_)
      point = fmt::format("{} of bucket {}", kNames[in_step / buckets_], in_step % buckets_);
    else
      point = in_step == kNames.size() * buckets_ ? "backward_done" : "step_done";
    return fmt::format("{} of rank {} in step {}", point, schedule_.ranks.ranks()[worker], step);
  }

 private:
  enum BucketPoint { forward, ready, before, after };

  [[nodiscard]] std::size_t per_step() const { return 4 * buckets_ + 2; }
  [[nodiscard]] std::size_t base(Step step, int worker) const {
    return (step * workers_ + worker) * per_step();
  }
  [[nodiscard]] std::size_t at(Step step, int worker, BucketPoint point, int bucket) const {
    return base(step, worker) + point * buckets_ + bucket;
  }
  [[nodiscard]] std::size_t backward_done(Step step, int worker) const {
    return base(step, worker) + 4 * buckets_;
  }
  [[nodiscard]] std::size_t step_done(Step step, int worker) const {
    return base(step, worker) + 4 * buckets_ + 1;
  }

  // What a worker does by itself. The last bucket holds the first layers.
  void add_step(Step step, int worker) {
    for (int b = 0; b < buckets_; ++b) {
      auto& begins = needs_[at(step, worker, forward, b)];
      if (b + 1 < buckets_)
        begins.push_back(at(step, worker, forward, b + 1));
      else if (step > 0)
        begins.push_back(step_done(step - 1, worker));
      needs_[at(step, worker, ready, b)].push_back(b > 0 ? at(step, worker, ready, b - 1)
                                                         : at(step, worker, forward, 0));
      needs_[at(step, worker, before, b)].push_back(backward_done(step, worker));
      needs_[at(step, worker, after, b)].push_back(at(step, worker, before, b));
      needs_[step_done(step, worker)].push_back(at(step, worker, after, b));
    }
    needs_[backward_done(step, worker)].push_back(at(step, worker, ready, buckets_ - 1));
  }

  [[nodiscard]] std::size_t start_node(const Instance& in, int worker) const {
    switch (in.exchange->start) {
      case Start::bucket_ready:
        return at(in.step, worker, ready, in.exchange->bucket);
      case Start::backward_done:
        return backward_done(in.step, worker);
      case Start::bucket_stepped:
        return at(in.step, worker, after, in.exchange->bucket);
      case Start::step_done:
        break;
    }
    return step_done(in.step, worker);
  }
  [[nodiscard]] std::size_t due_node(const Instance& in, int worker) const {
    const Step step = in.step + in.exchange->due.steps;
    switch (in.exchange->due.point) {
      case DuePoint::before_forward:
        return at(step, worker, forward, in.exchange->bucket);
      case DuePoint::before_step:
        return at(step, worker, before, in.exchange->bucket);
      case DuePoint::after_step:
        break;
    }
    return at(step, worker, after, in.exchange->bucket);
  }

  void add_exchange(std::size_t index, std::map<std::pair<int, int>, std::size_t>& last) {
    const Instance& in = all_[index];
    const std::size_t node = points_ + index;
    for (const Rank rank : in.exchange->group) {
      const int worker = schedule_.ranks.index_of(rank);
      needs_[node].push_back(start_node(in, worker));
      const auto [place, first] = last.try_emplace({worker, in.exchange->lane}, node);
      if (!first) {
        needs_[node].push_back(place->second);
        place->second = node;
      }
      if (in.step + in.exchange->due.steps < schedule_.window)
        needs_[due_node(in, worker)].push_back(node);
    }
  }

  const Schedule& schedule_;
  std::vector<Instance> all_;
  int buckets_;
  int workers_;
  std::size_t points_;
  std::vector<std::vector<std::size_t>> needs_;
};

// Most schedules need no graph. Let an exchange begin at its start, or where those before it on its
// members' lanes begin if that is later. If that is before its due point, everything waits only for
// what comes earlier in a step's order of points, so there is no cycle.
bool in_order(const Schedule& schedule) {
  std::map<int, std::vector<Moment>> lanes;  // where the last exchange of each worker begins
  for (const Instance& at : instances(schedule)) {
    if (at.exchange->group.size() == 1) continue;
    auto& lane = lanes[at.exchange->lane];
    lane.resize(static_cast<std::size_t>(schedule.ranks.size()), 0);
    Moment begins = at.taken;
    for (const Rank rank : at.exchange->group)
      begins = std::max(begins, lane[schedule.ranks.index_of(rank)]);
    if (begins >= at.merged) return false;
    for (const Rank rank : at.exchange->group) lane[schedule.ranks.index_of(rank)] = begins;
  }
  return true;
}

}  // namespace

void check_deadlock(const Schedule& schedule, std::vector<Problem>& problems) {
  if (in_order(schedule)) return;
  const WaitGraph graph(schedule);
  const std::vector<std::size_t> nodes = graph.cycle();
  const Instance* first = nullptr;
  std::string story;
  for (const std::size_t node : nodes) {
    if (first == nullptr) first = graph.exchange(node);
    story += graph.name(node) + " waits for ";
  }
  if (first == nullptr) return;
  add(problems, problem(Problem::Check::deadlock, *first, story + "the first of these"));
}

}  // namespace riffle::verify_detail
