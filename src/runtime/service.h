// Serves slices (Collective::serve): answers for those that this rank owns, on a thread of its own,
// and asks the owners of the others. Messages are the engine's, one each way for each owner and
// part; rank by rank and slice by slice they come in order.
#pragma once

#include <exception>
#include <functional>
#include <mutex>
#include <thread>

#include "runtime/engine_memory.h"
#include "runtime/exchanger.h"
#include "schedule/clocks.h"

namespace riffle::runtime {

class Service {
 public:
  // `session` is a number that no other session uses; `timeout` that of one exchange. `fail` is
  // told, on the service's thread, why it could not go on.
  Service(Engine& engine, std::vector<Served> served, std::uint64_t session, Seconds timeout,
          std::function<void(std::exception_ptr)> fail);
  ~Service();
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  // Sends what the flight's values have moved, and gives them what the owners answer.
  void exchange(Flight& flight);
  // While nothing is under way on any rank: visits each part that is served, as serve() was given
  // it, with the slice of it that this rank holds. `held` is empty where it holds none.
  struct Part {
    const Exchange& exchange;
    int part = 0;
    TensorView first;
    TensorView held;
  };
  void visit(const std::function<void(const Part&)>& visit) const;

 private:
  // A member at one of our slices: it sends, is answered, and may send again.
  struct Desk {
    Rank rank = 0;
    Block memory{};
    TensorView values{};
    Request request{};  // empty while its answer waits for others
    bool answering = false;
  };
  struct Slice {  // our own of one part
    Block memory{};
    TensorView held{};
    schedule::Clocks clocks;
    std::vector<Desk> desks{};  // by member; none where we hold nothing
  };

  [[nodiscard]] Tag tag(std::size_t slice, std::uint32_t round) const;
  // The number of a part among all that is served.
  [[nodiscard]] std::size_t number_of(const Exchange& exchange, std::size_t part) const;
  void open(const Served& served);
  void run();
  void listen(std::size_t slice, Desk& desk);
  // Something may have come: true where the service is to end.
  bool look();
  void came(std::size_t slice, int member);

  Engine& engine_;
  EngineMemory memory_;
  std::vector<Served> served_;
  std::uint64_t channel_;
  Seconds timeout_;
  std::function<void(std::exception_ptr)> fail_;
  // Held while what slices hold is read or written: by the service's thread, and by who visits.
  mutable std::mutex mutex_;
  std::vector<Slice> slices_;
  std::vector<Rank> members_;  // of all groups
  Request stop_;
  std::thread thread_;
};

}  // namespace riffle::runtime
