// What still holds where values are served, whoever is fast: everybody is answered in the end, with
// all that the bound promises, and nothing that was sent is lost. The rule of schedule/clocks.h is
// played by a few workers with numbers that add up exactly, in many orders: one event at a time,
// drawn among all that may happen next, by workers that are each as fast as chance has it.
#include "verify/serving.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "riffle/random.h"
#include "schedule/clocks.h"
#include "verify/checks.h"
#include "verify/rational.h"

namespace riffle::verifier {
namespace {

constexpr int kMostWorkers = 5;
constexpr int kOrders = 48;
constexpr int kBeyond = 4;  // beyond the bound
constexpr int kLargestBound = 8;

Residue total(const std::vector<Residue>& values) {
  return std::accumulate(values.begin(), values.end(), Residue{});
}

class Game {
 public:
  Game(int workers, int ahead, int promised, std::uint64_t seed)
      : random_(seed),
        promised_(promised),
        steps_(std::min(std::max(ahead, 0), kLargestBound) + kBeyond),
        workers_(static_cast<std::size_t>(workers)),
        owners_(workers_.size(),
                {schedule::Clocks(workers, ahead), {}, std::vector<Step>(workers_.size())}) {
    for (Worker& each : workers_) each.pace = random_.uniform(0.01, 1);
  }

  // What went wrong; empty where nothing did.
  std::string run() {
    while (wrong_.empty() && std::ranges::any_of(workers_, [&](const Worker& each) {
             return each.step < steps_ || each.waiting > 0;
           }))
      if (!happen()) return "workers wait for each other";
    if (!wrong_.empty()) return wrong_;
    for (const Owner& owner : owners_)
      if (owner.held != total(sent_)) return "what is held is not what was sent";
    return {};
  }

 private:
  struct Worker {
    Step step = 0;    // done, and sent
    int waiting = 0;  // owners that have not answered
    double pace = 1;
  };
  struct Owner {
    schedule::Clocks clocks;
    Residue held;
    std::vector<Step> added;  // of each member
  };
  struct Message {
    int owner;
    int member;
    Residue moved;
    bool answer;
  };

  // One of the events that are possible, or none.
  bool happen() {
    double all = 0;
    const auto may_step = [&](const Worker& each) {
      return each.waiting == 0 && each.step < steps_;
    };
    for (const Worker& each : workers_) all += may_step(each) ? each.pace : 0;
    const double messages = static_cast<double>(messages_.size());
    if (all + messages == 0) return false;
    double at = random_.uniform(0, all + messages);
    if (at < messages) {
      const auto which = static_cast<std::ptrdiff_t>(at);
      const Message message = messages_[static_cast<std::size_t>(which)];
      messages_.erase(messages_.begin() + which);
      message.answer ? answered(message) : came(message);
      return true;
    }
    at -= messages;
    for (int w = 0; w < static_cast<int>(workers_.size()); ++w) {
      if (!may_step(workers_[w])) continue;
      at -= workers_[w].pace;
      if (at <= 0 || w + 1 == static_cast<int>(workers_.size())) {
        send(w);
        return true;
      }
    }
    return true;  // rounding: another draw
  }

  void send(int w) {
    Worker& worker = workers_[w];
    ++worker.step;
    const Residue moved(random_.next());
    sent_.push_back(moved);
    for (int owner = 0; owner < static_cast<int>(owners_.size()); ++owner, ++worker.waiting)
      messages_.push_back({owner, w, moved, false});
  }

  void came(const Message& message) {
    Owner& owner = owners_[message.owner];
    waiting_.push_back(message);
    for (const int member : owner.clocks.sent(message.member)) {
      const auto found = std::ranges::find_if(waiting_, [&](const Message& each) {
        return each.owner == message.owner && each.member == member;
      });
      owner.held = owner.held + found->moved;
      ++owner.added[member];
      messages_.push_back({message.owner, member, {}, true});
      waiting_.erase(found);
    }
    for (const Message& each : messages_)
      if (each.answer && each.owner == message.owner) check_bound(owner, each.member);
  }

  // Whoever is answered after its step t has all updates of the steps before t + 1 - ahead.
  void check_bound(const Owner& owner, int member) {
    if (promised_ < 0) return;
    for (const Step added : owner.added)
      if (added < workers_[member].step - promised_)
        wrong_ = fmt::format(
            "a worker that has made {} steps is answered with {} of another, more "
            "than {} behind",
            workers_[member].step, added, promised_);
  }

  void answered(const Message& message) { --workers_[message.member].waiting; }

  Random random_;
  int promised_;
  Step steps_;
  std::vector<Worker> workers_;
  std::vector<Owner> owners_;
  std::vector<Message> messages_;  // under way
  std::vector<Message> waiting_;   // at their owner
  std::vector<Residue> sent_;
  std::string wrong_;
};

}  // namespace

std::string play_serving(int workers, int ahead, int promised, std::uint64_t seed) {
  return Game(workers, ahead, promised, seed).run();
}

void check_serving(const Schedule& schedule, Verification& result) {
  std::vector<std::pair<int, int>> played;  // how many, and how far ahead
  for (Step step = 0; step < schedule.length(); ++step)
    for (const Exchange& exchange : schedule.at(step).exchanges) {
      if (exchange.collective != Collective::serve || exchange.group.size() < 2) continue;
      const int workers = std::min(exchange.group.size(), kMostWorkers);
      if (std::ranges::find(played, std::pair(workers, exchange.ahead)) != played.end()) continue;
      played.emplace_back(workers, exchange.ahead);
      result.serving = ServingProof{exchange.ahead, workers, kOrders};
      for (std::uint64_t order = 0; order < kOrders; ++order)
        if (const std::string wrong = play_serving(workers, exchange.ahead, exchange.ahead, order);
            !wrong.empty()) {
          add(result.problems, problem(Problem::Check::serving, instance(exchange, step), wrong));
          break;
        }
    }
}

}  // namespace riffle::verifier
