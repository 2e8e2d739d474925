#include "python_exchanger.h"

#include <pybind11/stl.h>

#include <algorithm>

#include "riffle/error.h"

namespace py = pybind11;

namespace riffle::python {
namespace {

using runtime::Block;
using runtime::Flight;
using runtime::FlightPtr;
using Locked = py::gil_scoped_acquire;

py::tuple tuple_of(const TensorView& x) {
  return py::make_tuple(reinterpret_cast<std::uintptr_t>(x.data), x.count,
                        std::string(name_of(x.dtype)));
}

py::list list_of(std::span<const TensorView> all) {
  py::list list;
  for (const TensorView& each : all) list.append(tuple_of(each));
  return list;
}

// A Python object that may be dropped by any thread.
std::shared_ptr<py::object> shared(py::object object) {
  return {new py::object(std::move(object)), [](py::object* held) {
            const Locked locked;
            delete held;
          }};
}

// All is issued in the order of the program, so that all ranks issue alike: what is due before
// something ahead of it starts would never come.
void check_order(const std::vector<Program>& programs, int ranks) {
  for (const Program& program : programs) {
    std::vector<schedule::Moment> ahead(static_cast<std::size_t>(ranks), 0);
    for (const Exchange& exchange : program.exchanges) {
      if (exchange.group.size() < 2) continue;
      for (const Rank rank : exchange.group) {
        if (ahead.at(rank) > schedule::merged(exchange, 0))
          usage_error(
              "cannot run the exchange \"{}\" over a process group: it is due before one starts "
              "that its program has ahead of it; add it to the program first",
              print(exchange));
        ahead.at(rank) = std::max(ahead.at(rank), schedule::taken(exchange, 0));
      }
    }
  }
}

class PythonExchanger final : public runtime::Exchanger, private runtime::Memory {
 public:
  explicit PythonExchanger(py::object object)
      : self_(shared(std::move(object))),
        rank_(self_->attr("rank").cast<Rank>()),
        ranks_(Membership::all(self_->attr("size").cast<int>()).ranks) {}

  [[nodiscard]] Rank rank() const override { return rank_; }
  [[nodiscard]] const Group& ranks() const override { return ranks_; }
  [[nodiscard]] runtime::Memory& memory() override { return *this; }

  // --- For all.
  void broadcast(std::span<std::byte> bytes) override {
    const Locked locked;
    const py::bytes mine(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    const auto text = call("broadcast_bytes", mine).cast<std::string>();
    RIFFLE_CHECK_EQ(text.size(), bytes.size());
    std::ranges::copy(std::as_bytes(std::span(text)), bytes.begin());
  }
  void broadcast(TensorView values) override {
    const Locked locked;
    call("broadcast", tuple_of(values));
  }
  void all_reduce(std::span<double> values, Reduction reduction) override {
    const Locked locked;
    const std::vector<double> mine(values.begin(), values.end());
    const auto all =
        call("all_reduce", mine, reduction == Reduction::mean).cast<std::vector<double>>();
    std::ranges::copy(all, values.begin());
  }
  void average(TensorView values) override {
    const Locked locked;
    call("average", tuple_of(values));
  }

  // --- Flights.
  void open(const runtime::Opening& opening) override {
    recorder_ = &opening.recorder;
    check_order(opening.programs, ranks_.size());
    const Locked locked;
    call("open", opening.programs);
  }
  void change(const World& /*world*/, const std::vector<Program>& programs) override {
    check_order(programs, ranks_.size());
    const Locked locked;
    call("open", programs);
  }
  void plan(FlightPtr flight) override {
    const Locked locked;
    call("plan", std::move(flight));
  }
  void start(Flight& flight) override {
    flight.stage = Flight::Stage::started;
    const Locked locked;
    const auto waited = call("start", &flight).cast<double>();
    if (waited > 0)
      recorder_->wait(flight.exchange, flight.id.step, before(runtime::Recorder::now(), waited));
  }
  void wait(Flight& flight) override {
    if (flight.stage == Flight::Stage::done) return;
    const auto begin = runtime::Recorder::now();
    const Locked locked;
    // What was sent, and how long ago it was started and has ended.
    const auto [bytes, started, ended] =
        call("wait", &flight).cast<std::tuple<std::int64_t, double, double>>();
    flight.stage = Flight::Stage::done;
    recorder_->wait(flight.exchange, flight.id.step, begin);
    // One look at the clock for both: two could put the end of a short exchange before its start.
    const auto now = runtime::Recorder::now();
    recorder_->exchange(flight.exchange, flight.id.step, Bytes{bytes}, before(now, started),
                        before(now, ended));
  }
  void throw_if_failed() override {}
  void forget_planned() override {
    const Locked locked;
    call("forget_planned");
  }
  void look_around(std::string_view /*operation*/, Step /*step*/) override {}
  void meet(Step steps) override {
    const Locked locked;
    call("meet", steps);
  }
  void end(Step /*steps*/) noexcept override {
    const Locked locked;
    try {
      call("end");
    } catch (const py::error_already_set&) {
      // The session is over either way, and what failed has been thrown by a wait.
    }
  }
  [[nodiscard]] Slice slice(std::size_t count, DType /*dtype*/, int members,
                            int index) const override {
    const std::size_t each = count / static_cast<std::size_t>(members);
    return {each * static_cast<std::size_t>(index), each};
  }

  // --- The machines that the ranks run on.
  [[nodiscard]] int hosts() const override { return 0; }
  [[nodiscard]] Cluster cluster(bool measure) override {
    const Locked locked;
    return call("cluster", measure).cast<Cluster>();
  }
  [[nodiscard]] Algorithm algorithm(const CostModel& /*cost*/, const Exchange& exchange,
                                    Bytes /*size*/) const override {
    return exchange.algorithm;  // the library's own
  }
  [[nodiscard]] bool has_algorithms() const override { return false; }

 private:
  static Clock::time_point before(Clock::time_point now, double seconds) {
    return now -
           std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  }
  template <typename... Arguments>
  py::object call(const char* name, Arguments&&... arguments) const {
    return self_->attr(name)(std::forward<Arguments>(arguments)...);
  }

  // --- Memory.
  [[nodiscard]] Block allocate(std::size_t bytes) override {
    const Locked locked;
    auto tensor = call("allocate", bytes);
    const auto address = call("address", tensor).cast<std::uintptr_t>();
    return {{reinterpret_cast<std::byte*>(address), bytes}, shared(std::move(tensor))};
  }
  void copy(TensorView to, TensorView from) override {
    const Locked locked;
    call("copy", tuple_of(to), tuple_of(from));
  }
  void fill(TensorView x, double value) override {
    const Locked locked;
    call("fill", tuple_of(x), value);
  }
  void combine(TensorView out, std::span<const TensorView> inputs,
               std::span<const double> factors) override {
    const Locked locked;
    call("combine", tuple_of(out), list_of(inputs),
         std::vector<double>(factors.begin(), factors.end()));
  }
  void correct_statistics(TensorView x, TensorView mean, TensorView snapshot) override {
    const Locked locked;
    call("correct_statistics", tuple_of(x), tuple_of(mean), tuple_of(snapshot));
  }
  [[nodiscard]] double square_sum(TensorView x) override {
    const Locked locked;
    return call("square_sum", tuple_of(x)).cast<double>();
  }
  [[nodiscard]] bool is_zero(TensorView x) override {
    const Locked locked;
    return call("is_zero", tuple_of(x)).cast<bool>();
  }
  void read(std::span<std::byte> to, TensorView from) override {
    const Locked locked;
    const auto bytes = call("read", tuple_of(from)).cast<std::string>();
    RIFFLE_CHECK_EQ(bytes.size(), to.size());
    std::ranges::copy(std::as_bytes(std::span(bytes)), to.begin());
  }
  void write(TensorView to, std::span<const std::byte> from) override {
    const Locked locked;
    call("write", tuple_of(to), py::bytes(reinterpret_cast<const char*>(from.data()), from.size()));
  }

  std::shared_ptr<py::object> self_;
  Rank rank_;
  Group ranks_;
  runtime::Recorder* recorder_ = nullptr;
};

}  // namespace

std::unique_ptr<runtime::Exchanger> python_exchanger(py::object object) {
  return std::make_unique<PythonExchanger>(std::move(object));
}

void bind_flight(py::module_& module) {
  py::class_<Flight, FlightPtr>(module, "Flight", "One exchange of one step on this rank.")
      .def_property_readonly(
          "id", [](const Flight& self) { return std::pair(self.id.step, self.id.index); })
      .def_property_readonly("step", [](const Flight& self) { return self.id.step; })
      .def_property_readonly("after",
                             [](const Flight& self) {
                               std::vector<std::pair<Step, int>> all;
                               for (const auto& [step, index] : self.after)
                                 all.emplace_back(step, index);
                               return all;
                             })
      .def_property_readonly("exchange", [](const Flight& self) { return self.exchange; })
      .def_property_readonly("data", [](const Flight& self) { return list_of(self.data); })
      .def_property_readonly(
          "rounded",
          [](const Flight& self) {
            py::list all;
            for (const runtime::Rounded& each : self.rounded)
              all.append(py::make_tuple(tuple_of(each.lost), tuple_of(each.reference), each.moves,
                                        each.exact));
            return all;
          })
      .def_property_readonly(
          "factored",
          [](const Flight& self) {
            py::list all;
            for (const runtime::Factored& each : self.factored)
              all.append(py::make_tuple(tuple_of(each.matrix), tuple_of(each.lost),
                                        tuple_of(each.left), tuple_of(each.right), each.rank));
            return all;
          })
      .def_property_readonly("whole", [](const Flight& self) {
        py::list all;
        for (const auto& [values, travelling] : self.whole)
          all.append(py::make_tuple(tuple_of(values), tuple_of(travelling)));
        return all;
      });
}

}  // namespace riffle::python
