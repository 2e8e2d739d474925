// Flights over our own collectives: a thread per lane (dispatcher.h), lanes of this session's own
// (lanes.h), and a watch on who has ended (peer_monitor.h).
#pragma once

#include <optional>

#include "collective/control.h"
#include "runtime/dispatcher.h"
#include "runtime/engine_memory.h"
#include "runtime/exchanger.h"
#include "runtime/lanes.h"
#include "runtime/peer_monitor.h"
#include "runtime/service.h"

namespace riffle::runtime {

class EngineExchanger final : public Exchanger {
 public:
  // `collectives`: the engine's, where there are some already.
  EngineExchanger(Engine& engine, Collectives* collectives, Seconds timeout);
  ~EngineExchanger() override;

  [[nodiscard]] Rank rank() const override { return engine_.rank(); }
  [[nodiscard]] const Group& ranks() const override { return control_.ranks; }
  [[nodiscard]] Memory& memory() override { return memory_; }

  void broadcast(std::span<std::byte> bytes) override;
  void broadcast(TensorView values) override;
  void all_reduce(std::span<double> values, Reduction reduction) override;
  void average(TensorView values) override;

  void open(const Opening& opening) override;
  void change(const World& world, const std::vector<Program>& programs) override;
  void plan(FlightPtr flight) override;
  void start(Flight& flight) override;
  void wait(Flight& flight) override;
  void throw_if_failed() override;
  void forget_planned() override;
  void look_around(std::string_view operation, Step step) override;
  void meet(Step steps) override;
  [[nodiscard]] Slice slice(std::size_t count, DType dtype, int members, int index) const override {
    return slice_of(count, dtype, members, index);
  }
  [[nodiscard]] bool can_serve() const override { return true; }
  void serve(std::vector<Served> served) override;
  void gather_served(
      const std::function<std::vector<TensorView>(const Exchange&)>& values) override;
  void end(Step steps) noexcept override;

  [[nodiscard]] int hosts() const override;
  [[nodiscard]] Cluster cluster(bool measured) override;
  [[nodiscard]] Algorithm algorithm(const CostModel& cost, const Exchange& exchange,
                                    Bytes size) const override;
  [[nodiscard]] bool can_sense() const override;
  [[nodiscard]] Cluster check(const Cluster& known, const measure::CheckOptions& options,
                              const std::function<void()>& look_around) override;
  [[nodiscard]] int spare_lane() const override { return lanes_->own(); }

 private:
  // The collectives of a flight, on its lane's thread.
  void run(Flight& flight);
  void run(const Exchange& exchange, const TensorView& data,
           const CollectiveOptions& options) const;
  void know(const World& world);

  Engine& engine_;
  std::unique_ptr<Collectives> own_collectives_;
  collective::Control control_;
  EngineMemory memory_;
  // Of the world that all ranks agree on.
  Partition racks_;
  Bytes piece_{};
  // From open() on; what runs ends before what it uses.
  std::optional<Lanes> lanes_;
  std::optional<PeerMonitor> monitor_;
  std::optional<Dispatcher> dispatcher_;
  std::uint64_t session_ = 0;
  std::optional<Service> service_;
};

}  // namespace riffle::runtime
