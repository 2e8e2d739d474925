// Nobody waits forever. Workers go through the points of their steps; an exchange starts when all
// its members have reached its start and their lanes are free of what was issued before; a point
// is passed when everything due there is done. If that relation has no cycle, every run ends.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "schedule/order.h"
#include "verify/checks.h"

namespace riffle::verifier {
namespace {

using schedule::Place;

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
    for (std::size_t node = 0; node < points_; ++node) add_own_order(node);
    std::map<std::pair<int, int>, std::size_t> last;  // by worker and lane
    for (std::size_t i = 0; i < all_.size(); ++i) add_exchange(i, last);
    add_chains();
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
    const auto [step, point, bucket] = place(node);
    const int worker = static_cast<int>(node / per_step()) % workers_;
    const std::string where =
        schedule::is_of_all(point) ? "" : fmt::format(" of bucket {}", bucket);
    return fmt::format("{}{} of rank {} in step {}", name_of(point), where,
                       schedule_.ranks.ranks()[worker], step);
  }

 private:
  [[nodiscard]] std::size_t per_step() const {
    return static_cast<std::size_t>(schedule::kPoints) * buckets_;
  }
  [[nodiscard]] std::size_t at(const Place& place, int worker) const {
    return (place.step * workers_ + worker) * per_step() +
           static_cast<std::size_t>(place.point) * buckets_ + place.bucket;
  }
  // Where an exchange of `bucket` waits or is waited for.
  [[nodiscard]] std::size_t at(Moment moment, int bucket, int worker) const {
    const Point point = schedule::point_at(moment);
    return at({schedule::step_of(moment), point, schedule::is_of_all(point) ? 0 : bucket}, worker);
  }
  [[nodiscard]] Place place(std::size_t node) const {
    const std::size_t in_step = node % per_step();
    return {static_cast<Step>(node / per_step() / workers_), static_cast<Point>(in_step / buckets_),
            static_cast<int>(in_step % buckets_)};
  }

  // What a worker does by itself.
  void add_own_order(std::size_t node) {
    const Place here = place(node);
    if (schedule::is_of_all(here.point) && here.bucket > 0) return;  // no place
    const int worker = static_cast<int>(node / per_step()) % workers_;
    for (const Place& before : schedule::just_before(here, buckets_))
      needs_[node].push_back(at(before, worker));
  }

  void add_exchange(std::size_t index, std::map<std::pair<int, int>, std::size_t>& last) {
    const Instance& in = all_[index];
    const std::size_t node = points_ + index;
    for (const Rank rank : in.exchange->group) {
      const int worker = schedule_.ranks.index_of(rank);
      needs_[node].push_back(at(in.taken, in.exchange->bucket, worker));
      const auto [place, first] = last.try_emplace({worker, in.exchange->lane}, node);
      if (!first) {
        needs_[node].push_back(place->second);
        place->second = node;
      }
      if (schedule::step_of(in.merged) < schedule_.window)
        needs_[at(in.merged, in.exchange->bucket, worker)].push_back(node);
    }
  }

  // An exchange that starts from the result of another, which may be on another lane.
  void add_chains() {
    std::map<std::pair<Step, const Exchange*>, std::size_t> nodes;
    for (std::size_t i = 0; i < all_.size(); ++i)
      nodes[{all_[i].step, all_[i].exchange}] = points_ + i;
    for (Step step = 0; step < schedule_.window; ++step) {
      const Program& program = schedule_.at(step);
      const auto waits = schedule::waits_of(program);
      for (std::size_t i = 0; i < waits.size(); ++i)
        for (const int earlier : waits[i])
          needs_[nodes[{step, &program.exchanges[i]}]].push_back(
              nodes[{step, &program.exchanges[earlier]}]);
    }
  }

  const Schedule& schedule_;
  std::vector<Instance> all_;
  int buckets_;
  int workers_;
  std::size_t points_;
  std::vector<std::vector<std::size_t>> needs_;
};

// Most schedules need no graph: those without chains in flight. Let an exchange begin at its start,
// or where those before it on its members' lanes begin if that is later. If that is before its due
// point, everything waits only for what comes earlier in a step's order of points, so there is no
// cycle.
bool in_order(const Schedule& schedule) {
  for (const Program& program : schedule.programs)
    if (std::ranges::any_of(schedule::waits_of(program),
                            [](const auto& waits) { return !waits.empty(); }))
      return false;
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

}  // namespace riffle::verifier
